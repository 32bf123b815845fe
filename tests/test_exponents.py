import numpy as np
import pytest
import torch

from agop.exponents import best_exponent
from agop.similarity import cosine, matrix_power


def psd(seed, d=6, rank=6):
    F = np.random.default_rng(seed).standard_normal((d, rank))
    return F @ F.T


@pytest.mark.parametrize("alpha", [0.2, 1 / 3, 1.0, 2.5])
@pytest.mark.parametrize("rank", [6, 3])
def test_a_power_is_recognised(alpha, rank):
    A = psd(0, rank=rank)
    found, value = best_exponent(5 * matrix_power(A, alpha), A)
    assert found == pytest.approx(alpha, abs=1e-6)
    assert value == pytest.approx(1.0, abs=1e-12)


def test_no_other_power_does_better():
    G, A = psd(1), psd(2)
    found, value = best_exponent(G, A)
    assert value == pytest.approx(cosine(G, matrix_power(A, found)), abs=1e-12)
    others = [cosine(G, matrix_power(A, a)) for a in np.geomspace(0.02, 50, 300)]
    assert max(others) <= value + 1e-12
    assert max(others) > value - 1e-3  # and the maximum is not overstated


def test_scale_and_kind_do_not_matter():
    G, A = psd(1), psd(2)
    expected = best_exponent(G, A)
    assert best_exponent(1e9 * G, 1e-200 * A) == pytest.approx(expected, abs=1e-6)
    tensors = torch.from_numpy(G), torch.from_numpy(A)
    assert best_exponent(*tensors) == pytest.approx(expected)


def test_the_ends_of_the_range_are_reached():
    A = np.diag([1.0, 2.0])
    assert best_exponent(np.eye(2), A)[0] == pytest.approx(0.01)
    assert best_exponent(np.diag([0.0, 1.0]), A)[0] > 20  # flat from there on


@pytest.mark.parametrize(
    ("G", "A", "options", "match"),
    [
        (np.eye(2), np.eye(3), {}, "of one shape"),
        (np.eye(2), np.zeros((2, 2)), {}, "positive eigenvalue"),
        (np.eye(2), np.eye(2), {"low": 2.0, "high": 1.0}, "low"),
        (np.ones((2, 3)), np.ones((2, 3)), {}, "must be square"),
    ],
)
def test_bad_arguments_are_named(G, A, options, match):
    with pytest.raises(ValueError, match=match):
        best_exponent(G, A, **options)
