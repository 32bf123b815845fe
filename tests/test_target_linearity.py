import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from agop.target_linearity import target_linearity


def sample(n=200, k=7, C=3, seed=0):
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((n, k)) + 5.0
    Y = np.tanh(H @ rng.standard_normal((k, C))) + rng.standard_normal((n, C)) + 3.0
    return H, Y


def by_regression(H, Y):
    """Second implementation: fitted values of scikit-learn's regression."""
    residual = Y - LinearRegression().fit(H, Y).predict(H)
    return 1 - (residual**2).sum() / ((Y - Y.mean(0)) ** 2).sum()


def test_equals_the_share_explained_by_a_fitted_regression():
    H, Y = sample()
    assert target_linearity(H, Y) == pytest.approx(by_regression(H, Y), abs=1e-12)
    single = target_linearity(H, Y[:, 0])
    assert single == pytest.approx(by_regression(H, Y[:, :1]), abs=1e-12)


def test_intercept_and_centring_matter():
    H, Y = sample()
    shifted = target_linearity(H + 100, Y - 50)
    assert shifted == pytest.approx(target_linearity(H, Y), abs=1e-10)
    # Without an intercept the same targets would leave a residual.
    x = np.linspace(-1, 1, 11)[:, None]
    assert target_linearity(x, 2 * x + 10) == pytest.approx(1, abs=1e-12)


def test_depends_on_the_span_only():
    H, Y = sample()
    A = np.random.default_rng(1).standard_normal((7, 7))
    doubled = np.hstack([H @ A, H])  # rank deficient
    assert target_linearity(doubled, Y) == pytest.approx(
        target_linearity(H, Y), abs=1e-10
    )


def test_unrelated_features_score_their_rank_over_n_minus_one():
    rng = np.random.default_rng(0)
    n, k = 101, 20
    values = [
        target_linearity(rng.standard_normal((n, k)), rng.standard_normal(n))
        for _ in range(200)
    ]
    # standard error of the mean over 200 draws is .004
    assert np.mean(values) == pytest.approx(k / (n - 1), abs=0.015)
    wide = target_linearity(rng.standard_normal((20, 30)), rng.standard_normal(20))
    assert wide == pytest.approx(1, abs=1e-12)


def test_constant_features_explain_nothing():
    assert target_linearity(torch.ones(5, 2), torch.arange(5.0)) == 0


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="as many rows"):
        target_linearity(torch.ones(5, 2), torch.ones(4))
    with pytest.raises(ValueError, match="constant"):
        target_linearity(torch.eye(5), torch.ones(5, 2))
    with pytest.raises(ValueError, match="shape"):
        target_linearity(torch.ones(5), torch.ones(5))
