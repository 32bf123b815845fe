import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

from agop.low_rank_targets import (
    hermite_ridge,
    sign_product,
    subspace_share,
    top_direction,
)


def test_sign_product_uses_the_signs_before_the_noise():
    clean = sign_product(n=50, n_test=20, seed=1)
    noisy = sign_product(n=50, n_test=20, noise=0.1, seed=1)
    for X, y in ((clean.X, clean.y), (clean.X_test, clean.y_test)):
        assert set(X.ravel()) == {-1.0, 1.0}
        np.testing.assert_array_equal(y, np.prod(X[:, :2], axis=1))
    np.testing.assert_array_equal(noisy.y, clean.y)
    # 1500 entries: standard error of the deviation .002
    assert (noisy.X - clean.X).std() == pytest.approx(0.1, abs=0.01)
    assert clean.X.shape == (50, 30)
    assert clean.X_test.shape == (20, 30)


def test_hermite_ridge_is_the_polynomial_of_numpy():
    task = hermite_ridge(n=40, n_test=30, d=6, seed=2)
    assert np.linalg.norm(task.U) == pytest.approx(1)
    for X, y in ((task.X, task.y), (task.X_test, task.y_test)):
        np.testing.assert_allclose(
            y, hermeval((X @ task.U)[:, 0], [0, 0, 1, 0, 1]), atol=1e-12
        )


def test_hermite_ridge_has_the_variance_stated():
    # heavy tails: the mean over 20 draws of 50,000 has a relative error of 2 %
    values = [hermite_ridge(n=50_000, n_test=1, seed=s).y.var() for s in range(20)]
    assert np.mean(values) == pytest.approx(26, rel=0.1)


def test_top_direction_solves_the_eigenvalue_problem():
    A = np.random.default_rng(0).standard_normal((5, 8))
    M = A @ A.T
    v = top_direction(M)
    x = np.ones(5)
    for _ in range(500):  # power iteration
        x = M @ x
        x /= np.linalg.norm(x)
    assert abs(v @ x) == pytest.approx(1, abs=1e-10)
    assert v[np.abs(v).argmax()] > 0


def test_subspace_share_is_a_ratio_of_eigenvalues_in_their_basis():
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    M = (Q * [5.0, 3.0, 1.0, 1.0]) @ Q.T
    assert subspace_share(M, Q[:, :2]) == pytest.approx(0.8)
    assert subspace_share(M, Q) == pytest.approx(1)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="d must be at least 2"):
        sign_product(d=1, seed=0)
    with pytest.raises(ValueError, match="noise"):
        sign_product(noise=-1, seed=0)
