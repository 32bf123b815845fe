import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from agop.similarity import haar
from agop.target_linearity import (
    layer_target_linearity,
    null_level,
    principal_components,
    released_target_linearity,
    target_linearity,
    target_linearity_gap,
)


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


def test_null_level_is_the_mean_over_permutations():
    H, Y = sample(n=40, k=9)
    rng = np.random.default_rng(0)
    values = [target_linearity(H, rng.permutation(Y)) for _ in range(400)]
    # standard error of the mean over 400 permutations is .003
    assert np.mean(values) == pytest.approx(null_level(H), abs=0.01)
    assert null_level(H) == pytest.approx(9 / 39)
    adjusted = [
        target_linearity(H, rng.permutation(Y), adjusted=True) for _ in range(400)
    ]
    assert np.mean(adjusted) == pytest.approx(0, abs=0.015)


def test_null_level_counts_independent_directions():
    H, _ = sample(n=30, k=4)
    doubled = np.hstack([H, H @ np.ones((4, 2)), np.ones((30, 1))])
    assert null_level(doubled) == pytest.approx(4 / 29)
    assert null_level(np.ones((5, 2))) == 0
    assert null_level(np.random.default_rng(0).standard_normal((5, 9))) == 1


def test_adjusting_is_one_minus_a_ratio_of_variances():
    H, Y = sample(n=50, k=7)
    plain, adjusted = target_linearity(H, Y), target_linearity(H, Y, adjusted=True)
    assert adjusted == pytest.approx(1 - (1 - plain) * 49 / 42)
    assert target_linearity(H, H, adjusted=True) == pytest.approx(1)
    with pytest.raises(ValueError, match="any targets"):
        target_linearity(np.eye(4), [1.0, 2.0, 0.0, 0.0], adjusted=True)


def released_by_steps(H, Y):
    """Second implementation: the normal equations, without an intercept."""
    Y = Y - Y.mean(0)
    residual = Y - H @ np.linalg.solve(H.T @ H, H.T @ Y)
    return 1 - (residual**2).sum() / ((Y - Y.mean(1, keepdims=True)) ** 2).sum()


def test_released_variant():
    H, Y = sample()
    assert released_target_linearity(H, Y) == pytest.approx(released_by_steps(H, Y))
    # One-hot rows have mean 0 once centred, so only the intercept is missing.
    y = np.random.default_rng(1).integers(0, 3, len(H))
    centred = H - H.mean(0)
    assert released_target_linearity(centred, np.eye(3)[y]) == pytest.approx(
        target_linearity(H, np.eye(3)[y])
    )
    assert released_target_linearity(H, np.eye(3)[y]) < target_linearity(
        H, np.eye(3)[y]
    )


def test_released_variant_falls_below_zero_on_targets_of_common_brightness():
    """Pitfall P12: the row means, which the denominator drops, are all there is."""
    rng = np.random.default_rng(0)
    H = rng.standard_normal((500, 4))
    images = rng.standard_normal((500, 1)) + 0.1 * rng.standard_normal((500, 20))
    assert 0 < target_linearity(H, images) < 0.05
    assert released_target_linearity(H, images) < -30
    with pytest.raises(ValueError, match="constant rows"):
        released_target_linearity(H, np.repeat(images[:, :1], 3, axis=1))


def test_principal_components_keep_the_largest_variance():
    H, _ = sample(n=60, k=6)
    Z = principal_components(H, 3)
    values = np.linalg.eigvalsh(np.cov(H.T, bias=True))[::-1]
    np.testing.assert_allclose(Z.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.T @ Z / 60, np.diag(values[:3]), atol=1e-10)
    # All of them span what the features do.
    Y = sample(n=60, k=6, seed=3)[1]
    assert target_linearity(principal_components(H, 6), Y) == pytest.approx(
        target_linearity(H, Y)
    )
    with pytest.raises(ValueError, match="at most 6"):
        principal_components(H, 7)


def test_gap_of_the_last_layer():
    H, Y = sample()
    layers = [H[:, :2], H, H[:, :5]]
    values = layer_target_linearity(layers, Y)
    assert values.tolist() == [target_linearity(h, Y) for h in layers]
    assert target_linearity_gap(layers, Y) == values[2] - values[1] < 0
    with pytest.raises(ValueError, match="at least two"):
        target_linearity_gap([H], Y)


def test_constant_targets_are_refused_whatever_the_rounding():
    with pytest.raises(ValueError, match="constant"):
        target_linearity(torch.eye(7), torch.full((7, 1), 0.1))
    with pytest.raises(ValueError, match="two samples"):
        null_level(torch.ones(1, 3))


def test_hand_computed():
    """Line through (0, 0), (1, 0), (2, 3): slope 3/2, residuals 1/2, -1, 1/2."""
    H, Y = [[0.0], [1.0], [2.0]], [0.0, 0.0, 3.0]  # squares of Y_c: 1 + 1 + 4
    assert target_linearity(H, Y) == pytest.approx(1 - 1.5 / 6)
    assert target_linearity(H, Y, adjusted=True) == pytest.approx(1 - 2 * 1.5 / 6)
    # No intercept: slope 3/5 for -1, -1, 2, so the residuals are -1, -1.6, 0.8.
    assert released_target_linearity(H, Y) == pytest.approx(1 - 4.2 / 6)


def test_reduction_by_hand_keeps_variance_and_may_drop_the_target():
    """Features (3a, b) of orthogonal signs a, b: the first component is 3a."""
    a, b = np.array([1.0, 1, -1, -1]), np.array([1.0, -1, 1, -1])
    first = principal_components(np.stack([3 * a, b], 1), 1)
    np.testing.assert_allclose(first.abs(), 3 * np.ones((4, 1)))
    assert target_linearity(first, a) == pytest.approx(1)
    assert target_linearity(first, b) == pytest.approx(0, abs=1e-12)
    # Unlike target linearity, its reduction depends on the scale of the features.
    other = principal_components(np.stack([a, 3 * b], 1), 1)
    assert target_linearity(other, b) == pytest.approx(1)


@pytest.mark.parametrize("r", [None, 3])
def test_invariance_under_rotation_scale_shift_and_order(r):
    """Of all measures, with and without principal components first."""
    H, Y = sample()
    rng = np.random.default_rng(5)
    Q, order = haar(7, rng), rng.permutation(len(H))
    moved = (4 * H @ Q - 2)[order]
    reduced = [h if r is None else principal_components(h, r) for h in (H, moved)]
    for adjusted in (False, True):
        one, two = (
            target_linearity(h, y, adjusted=adjusted)
            for h, y in zip(reduced, (Y, 3 * Y[order] + 1), strict=True)
        )
        assert two == pytest.approx(one, rel=1e-9)
    half, moved_half = H[:, :2], (5 * H[:, :2] @ haar(2, rng) + 1)[order]
    gap = target_linearity_gap([half, reduced[0]], Y)
    moved_gap = target_linearity_gap([moved_half, reduced[1]], -2 * Y[order])
    assert moved_gap == pytest.approx(gap, rel=1e-9)


def test_degenerate_features_follow_the_stated_convention():
    """No variance explains nothing; n - 1 directions, here n <= k, explain all."""
    rng = np.random.default_rng(0)
    flat, y = np.full((6, 3), 0.1), rng.standard_normal(6)
    wide = rng.standard_normal((6, 9))
    assert flat.mean(0).tolist() != flat[0].tolist()  # so centring leaves rounding
    assert target_linearity(flat, y) == null_level(flat) == 0
    assert target_linearity(flat, y, adjusted=True) == pytest.approx(0)
    assert target_linearity(principal_components(flat, 2), y) == 0
    assert target_linearity(wide, y) == pytest.approx(1)
    shares = [target_linearity(wide, rng.standard_normal(6)) for _ in range(50)]
    assert max(shares) <= 1  # rounding does not carry them above
    assert target_linearity(principal_components(wide, 6), y) == pytest.approx(1)
    assert target_linearity_gap([flat, wide], y) == pytest.approx(1)
    with pytest.raises(ValueError, match="any targets"):
        target_linearity(wide, y, adjusted=True)
    with pytest.raises(ValueError, match="constant"):  # a single class
        target_linearity(wide, np.ones((6, 1)))
    # One column that varies is enough, and a first row may be met again.
    assert target_linearity(wide, [[1.0, 0.0]] * 3 + [[1.0, 2.0]] * 3) > 0


def test_released_variant_centres_rows_below_only_for_several_targets():
    """One column twice over: rows are constant, where one column has a variance."""
    H, Y = sample(C=1)
    assert released_target_linearity(H, Y) == pytest.approx(
        1
        - np.square(Y - Y.mean() - H @ np.linalg.pinv(H) @ (Y - Y.mean())).sum()
        / np.square(Y - Y.mean()).sum()
    )
    raw = released_target_linearity(H, Y, centre_targets=False)
    fitted = H @ np.linalg.pinv(H) @ Y
    assert raw == pytest.approx(
        1 - np.square(Y - fitted).sum() / np.square(Y - Y.mean()).sum()
    )
