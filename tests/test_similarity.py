from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agop.similarity import (
    cosine,
    independent_gram_null,
    matrix_power,
    pearson,
    proportionality_gap,
    rotation_null,
)

pairs = arrays(np.float64, (2, 4, 4), elements=st.integers(-1000, 1000).map(float))


def gram(d, k, seed=0):
    W = np.random.default_rng(seed).standard_normal((k, d))
    return W.T @ W


def loop_cosine(A, B):
    dot = sum(a * b for a, b in zip(A.flat, B.flat, strict=True))
    norms = [sum(a * a for a in M.flat) ** 0.5 for M in (A, B)]
    return dot / (norms[0] * norms[1])


@settings(deadline=None)
@given(pairs)
def test_pearson_is_that_of_numpy_and_cosine_that_of_a_loop(pair):
    A, B = pair
    if A.std() > 0 and B.std() > 0:
        assert pearson(A, B) == pytest.approx(
            np.corrcoef(A.flat, B.flat)[0, 1], abs=1e-12
        )
    if A.any() and B.any():
        assert cosine(A, B) == pytest.approx(loop_cosine(A, B), abs=1e-12)


@pytest.mark.parametrize("similarity", [cosine, pearson])
def test_off_diagonal_ignores_the_diagonal(similarity):
    A, B = gram(6, 4), gram(6, 4, seed=1)
    value = similarity(A, B, off_diagonal=True)
    mask = ~np.eye(6, dtype=bool)
    assert value == pytest.approx(similarity(A[mask], B[mask]), abs=1e-14)
    assert value == similarity(A + np.diag(range(6)), B, off_diagonal=True)
    assert value != pytest.approx(similarity(A, B), abs=0.01)


@pytest.mark.parametrize("similarity", [cosine, pearson])
def test_similarity_is_free_of_scale_and_of_container(similarity):
    A, B = gram(6, 4), gram(6, 4, seed=1)
    value = similarity(A, B)
    assert isinstance(value, float)
    tensors = torch.from_numpy(A).requires_grad_(), torch.from_numpy(B)
    assert similarity(*tensors) == value
    assert similarity(A.tolist(), B) == value
    assert similarity(1e-200 * A, 1e200 * B) == pytest.approx(value, abs=1e-12)
    assert similarity(A, -A) == pytest.approx(-1.0, abs=1e-15)
    assert -1.0 <= similarity(A, -A) <= similarity(A, A) <= 1.0


def test_undefined_similarities_are_nan():
    assert np.isnan(cosine(np.zeros((2, 2)), np.eye(2)))
    assert np.isnan(pearson(np.ones((2, 2)), np.eye(2)))
    assert np.isnan(cosine(np.eye(2), np.eye(2), off_diagonal=True))


def test_all_positive_features_show_why_the_two_differ():
    # Unrelated rank-one matrices of positive vectors: no correlation, large cosine.
    rng = np.random.default_rng(0)
    u, v = rng.uniform(size=(2, 200))
    A, B = np.outer(u, u), np.outer(v, v)
    assert cosine(A, B) > 0.4
    assert abs(pearson(A, B)) < 0.1


def test_similarities_name_bad_arguments():
    with pytest.raises(ValueError, match="same shape"):
        cosine(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="A must be a square"):
        pearson(np.ones((2, 3)), np.ones((2, 3)), off_diagonal=True)


@pytest.mark.parametrize("alpha", [1 / 5, 1 / 2, 1.0, 2.0, 3.5])
def test_matrix_power_inverts_its_inverse_and_agrees_with_the_svd(alpha):
    A = gram(6, 9)
    power = matrix_power(A, alpha)
    np.testing.assert_allclose(matrix_power(power, 1 / alpha), A, rtol=1e-9)
    U, s, Vt = np.linalg.svd(A)
    np.testing.assert_allclose(power, (U * s**alpha) @ Vt, rtol=1e-11)


def test_matrix_power_of_a_singular_matrix_clips_rounding():
    root = matrix_power(np.diag([4.0, -1e-12]), 0.5)
    np.testing.assert_array_equal(root, np.diag([2.0, 0.0]))
    assert not matrix_power(np.zeros((3, 3)), 0.5).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_matrix_power_keeps_kind_and_dtype(dtype):
    A = torch.from_numpy(gram(5, 8)).to(dtype)
    root = matrix_power(A, 0.5)
    assert root.dtype == dtype
    torch.testing.assert_close(root @ root, A)
    array = matrix_power(A.numpy(), 0.5)
    assert array.dtype == A.numpy().dtype
    np.testing.assert_array_equal(array, root.numpy())
    assert matrix_power(np.array([[4]]), 0.5) == 2.0


@pytest.mark.parametrize(
    ("A", "alpha", "match"),
    [
        (np.ones((2, 3)), 0.5, "square"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), 0.5, "symmetric"),
        (np.diag([1.0, -0.1]), 0.5, "positive semi-definite"),
        (np.diag([1.0, np.nan]), 0.5, "finite"),
        (np.eye(2), 0.0, "alpha"),
        (np.eye(2), -1.0, "alpha"),
    ],
)
def test_matrix_power_names_bad_arguments(A, alpha, match):
    with pytest.raises(ValueError, match=match):
        matrix_power(A, alpha)


def test_null_of_the_tabular_layer_is_close_to_one():
    # Five hidden layers of 1,024 units on 29 features: the shape of the UCI figure.
    # cosine: k / (k + d + 1) = .9715 for the exact moments; Pearson a little less.
    null = partial(independent_gram_null, 29, 1024, draws=40)
    assert null().mean() == pytest.approx(0.970, abs=0.003)
    assert null(similarity=pearson).mean() == pytest.approx(0.969, abs=0.003)
    off_diagonal = null(similarity=partial(pearson, off_diagonal=True))
    # 406 free entries: the standard error of one draw is 1/sqrt(406) = .05
    assert abs(off_diagonal.mean()) < 4 * 0.05 / 40**0.5
    assert off_diagonal.std() == pytest.approx(0.05, rel=0.35)


@pytest.mark.parametrize(("d", "k"), [(10, 200), (60, 60), (200, 20)])
def test_independent_null_concentrates_at_its_closed_form(d, k):
    # E<A, B> = d k^2 and E|A|^2 = d k (k + d + 1) for Gaussian Gram matrices
    null = independent_gram_null(d, k, draws=50, seed=1)
    assert null.shape == (50,)
    assert null.mean() == pytest.approx(k / (k + d + 1), rel=0.02)


def test_rotation_null_has_the_exact_mean():
    A, B = gram(6, 2), gram(6, 3, seed=1)
    null = rotation_null(A, B, draws=2000)
    expected = np.trace(A) * np.trace(B) / 6
    expected /= np.linalg.norm(A) * np.linalg.norm(B)
    standard_error = null.std() / 2000**0.5
    assert abs(null.mean() - expected) < 4 * standard_error


def test_rotations_are_uniform():
    # QR leaves the signs of R's diagonal to LAPACK; unfixed, the mean here is 8 % high.
    ones = np.ones((10, 10))
    null = rotation_null(ones, ones, draws=10_000)
    assert abs(null.mean() - 1 / 10) < 4 * null.std() / 100


def test_rotation_null_keeps_the_spectrum_of_b_and_leaves_a_alone():
    A, B, seen = gram(4, 2), gram(4, 3, seed=1), []
    rotation_null(A, B, draws=3, similarity=lambda *pair: seen.append(pair) or 0.0)
    for first, second in seen:
        np.testing.assert_array_equal(first, A)
        np.testing.assert_allclose(
            np.linalg.eigvalsh(second), np.linalg.eigvalsh(B), atol=1e-12
        )
    assert not np.allclose(seen[0][1], seen[1][1])


def test_nulls_depend_on_their_seed_only():
    np.random.seed(0)  # noqa: NPY002 - the global generator must not matter
    first = independent_gram_null(3, 4, draws=5, seed=1)
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(first, independent_gram_null(3, 4, draws=5, seed=1))
    assert (first != independent_gram_null(3, 4, draws=5, seed=2)).all()
    A, B = torch.eye(3), torch.diag(torch.tensor([1.0, 2.0, 3.0]))
    rotated = rotation_null(B, B, draws=5, seed=1)
    np.testing.assert_array_equal(rotated, rotation_null(B, B, draws=5, seed=1))
    np.testing.assert_allclose(np.ptp(rotation_null(A, B, draws=5)), 0, atol=1e-12)


def test_nulls_name_bad_arguments():
    with pytest.raises(ValueError, match="d must"):
        independent_gram_null(0, 3)
    with pytest.raises(TypeError, match="k must"):
        independent_gram_null(3, 3.0)
    with pytest.raises(ValueError, match="draws"):
        independent_gram_null(3, 3, draws=0)
    with pytest.raises(ValueError, match="square"):
        rotation_null(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="same shape"):
        rotation_null(np.eye(2), np.eye(3))


def test_proportionality_gap_is_the_least_distance_to_a_multiple():
    A, B = gram(6, 4), gram(6, 4, seed=1)
    fits = np.linspace(0, 2, 20001) * np.linalg.norm(A) / np.linalg.norm(B)
    # min over a grid of c: an upper bound that is off by the square of its spacing
    distance = min(np.linalg.norm(A - c * B) for c in fits) / np.linalg.norm(A)
    assert proportionality_gap(A, B) == pytest.approx(distance, abs=1e-7)
    assert proportionality_gap(A, B) == pytest.approx(
        np.sqrt(1 - cosine(A, B) ** 2), abs=1e-12
    )


@pytest.mark.parametrize("size", [1e-9, 1e-12, 1e-14])
def test_proportionality_gap_resolves_what_the_cosine_rounds_away(size):
    A, N = gram(6, 4), gram(6, 4, seed=1)
    N = N - np.vdot(A, N) / np.vdot(A, A) * A  # orthogonal to A
    N *= size * np.linalg.norm(A) / np.linalg.norm(N)
    # 1e-16 is the rounding of A itself
    assert proportionality_gap(3 * A, A + N) == pytest.approx(size, abs=5e-16)


def test_proportionality_gap_of_nothing_is_undefined():
    assert np.isnan(proportionality_gap(np.eye(2), np.zeros((2, 2))))
    with pytest.raises(ValueError, match="same shape"):
        proportionality_gap(np.eye(2), np.eye(3))
