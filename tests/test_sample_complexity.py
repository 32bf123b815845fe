import math

import numpy as np
import pytest

from agop.polynomial_targets import HermitePolynomial
from agop.sample_complexity import (
    geometric_sizes,
    growth_exponent,
    learning_curve,
    samples_needed,
)

D, P = 4, 2


def curve_by_hand(f, d, sizes, metric, kernel, ridge, noise, seed):
    """The same draw and the same fit, from the formulas."""
    rng = np.random.default_rng(seed)
    T, X = rng.standard_normal((1000, d)), rng.standard_normal((max(sizes), d))
    y = f(X) + noise * rng.standard_normal(len(X))
    M = np.eye(d) if metric is None else metric
    s = np.trace(M)

    def K(A, B):
        inner = A @ M @ B.T
        if kernel == "polynomial":
            return (1 + inner / s) ** P
        squares = [np.einsum("id,de,ie->i", Z, M, Z) for Z in (A, B)]
        return np.exp(-(squares[0][:, None] + squares[1] - 2 * inner) / (2 * s))

    errors = []
    for n in sizes:
        a = np.linalg.solve(K(X[:n], X[:n]) + ridge * np.eye(n), y[:n])
        errors.append(np.mean((K(T, X[:n]) @ a - f(T)) ** 2) / np.mean(f(T) ** 2))
    return np.array(errors)


@pytest.mark.parametrize("kernel", ["polynomial", "gaussian"])
@pytest.mark.parametrize("with_metric", [False, True])
def test_errors_are_those_of_the_formulas(kernel, with_metric):
    f = HermitePolynomial(D, 2, P)
    metric = f.agop() if with_metric else None
    sizes, ridge, noise = (5, 20, 40), 1e-3, 0.2
    expected = curve_by_hand(f, D, sizes, metric, kernel, ridge, noise, seed=5)
    found = learning_curve(
        f, D, sizes, metric=metric, kernel=kernel, degree=P, ridges=(ridge,),
        noise=noise, seed=5,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("r", "p"), [(1, 2), (2, 2), (2, 3)])
def test_the_target_is_known_from_as_many_samples_as_coefficients(r, p):
    f, count = HermitePolynomial(6, r, p), math.comb(r + p, p)
    below, at = learning_curve(
        f, 6, (count - 1, count + 2), metric=f.agop(), degree=p, ridges=(1e-10,)
    )
    assert at < 1e-4
    assert below > 10 * at
    raw = learning_curve(f, 6, (count + 2,), degree=p)
    assert raw[0] > 0.1


def test_the_best_ridge_is_kept_and_a_degree_too_low_never_fits():
    f = HermitePolynomial(D, 1, 3)
    one, two = (
        learning_curve(f, D, (30,), degree=3, ridges=(r,), noise=1.0)
        for r in (1e-8, 1.0)
    )
    both = learning_curve(f, D, (30,), degree=3, ridges=(1e-8, 1.0), noise=1.0)
    assert both == min(one, two)
    low = learning_curve(f, D, (500,), metric=f.agop(), degree=2)
    assert low[0] > 0.8
    assert learning_curve(f, D, (500,), metric=f.agop(), degree=3)[0] < 1e-6


def test_smaller_samples_are_parts_of_larger_ones():
    f = HermitePolynomial(D, 2, P)
    few = learning_curve(f, D, (3, 9), noise=1.0, seed=1)
    more = learning_curve(f, D, (3, 7, 9), noise=1.0, seed=1)
    assert (few == more[[0, 2]]).all()
    assert (few != learning_curve(f, D, (3, 9), noise=1.0, seed=2)).all()


def test_samples_needed():
    assert samples_needed([1, 2, 4], [0.9, 0.8, 0.7], 0.5) == float("inf")
    assert samples_needed([1, 2, 4], [0.4, 0.3, 0.1], 0.5) == 1
    assert samples_needed([1, 2, 4], [0.4, 0.6, 0.4], 0.5) == pytest.approx(8**0.5)
    assert samples_needed([1, 2, 4], [0.9, 0.5, 0.1], 0.5) == 2
    with pytest.raises(ValueError, match="sizes must increase"):
        samples_needed([2, 2], [1.0, 1.0], 0.5)


def test_samples_needed_finds_where_a_known_curve_crosses():
    sizes = geometric_sizes(10, 1000, 1.2)
    errors = 1 - np.log(sizes) / np.log(1000)
    assert samples_needed(sizes, errors, 0.25) == pytest.approx(1000**0.75)


def test_growth_exponent_of_a_power_law_with_noise():
    x = np.array([4, 8, 16, 32, 64])
    noise = np.array([1.1, 0.95, 1.0, 1.05, 0.9])
    assert growth_exponent(x, 3 * x**1.7) == pytest.approx(1.7)
    assert growth_exponent(x, 3 * x**1.7 * noise) == pytest.approx(1.7, abs=0.1)


def test_geometric_sizes():
    sizes = geometric_sizes(2, 1000, 1.1)
    assert (sizes[0], sizes[-1]) == (2, 1000)
    ratios = np.divide(sizes[1:], sizes[:-1])
    assert (np.diff(sizes) >= 1).all()
    assert (ratios[-20:] < 1.15).all()


def test_bad_input_names_the_argument():
    f = HermitePolynomial(D, 1, 2)
    with pytest.raises(ValueError, match="kernel must be"):
        learning_curve(f, D, (5,), kernel="laplace")
    with pytest.raises(ValueError, match="ridges must hold"):
        learning_curve(f, D, (5,), ridges=())
    with pytest.raises(ValueError, match="sizes"):
        learning_curve(f, D, (0,))
    with pytest.raises(ValueError, match="noise"):
        learning_curve(f, D, (5,), noise=-1.0)
