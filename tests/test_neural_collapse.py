import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestCentroid

from agop.neural_collapse import (
    class_statistics,
    nc1,
    nc2,
    nc3,
    nc4,
    variability_ratio,
)
from agop.similarity import haar
from agop.target_linearity import target_linearity


def sample(counts=(20, 20, 20), k=7, seed=0, spread=2.0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    means = spread * rng.standard_normal((len(counts), k)) + 3
    return means[y] + rng.standard_normal((len(y), k)), rng.permutation(y) * 0 + y


def by_loops(H, y):
    """Second implementation of all scatter, sample by sample, in numpy."""
    classes = [H[y == c] for c in range(y.max() + 1)]
    means = [np.mean(h, axis=0) for h in classes]
    centre = sum(means) / len(means)
    within = sum(
        sum(np.outer(h - m, h - m) for h in members) / len(members)
        for members, m in zip(classes, means, strict=True)
    ) / len(classes)
    between = sum(np.outer(m - centre, m - centre) for m in means) / len(means)
    return np.array(means) - centre, within, between


# By hand: classes {(0,0), (2,0)} and {(4,2), (6,2)}, means (1,0) and (5,2), so
# Σ_W = diag(1, 0) and Σ_B = (2,1)(2,1)^T.
HAND = (
    np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 2.0], [6.0, 2.0]]),
    np.array([0, 0, 1, 1]),
)


def test_hand_computed():
    found = class_statistics(*HAND)
    assert found.centre.tolist() == [3, 1]
    assert found.means.tolist() == [[-2, -1], [2, 1]]
    assert found.within.tolist() == [[1, 0], [0, 0]]
    assert found.between.tolist() == [[4, 2], [2, 1]]
    # Σ_B† = vv^T / 25 with v = (2, 1), so tr(Σ_W Σ_B†) / C = (4 / 25) / 2
    assert nc1(*HAND) == pytest.approx(0.08, abs=1e-14)
    assert variability_ratio(*HAND) == pytest.approx(1 / 5)
    two = nc2(*HAND)  # two centred means are always a simplex
    assert max(two) < 1e-12
    # W along (1, 0) against M along (2, 1) / sqrt 5, in both rows
    gap = nc3([[-1.0, 0.0], [1.0, 0.0]], *HAND)
    assert gap == pytest.approx(2 - 2 * 2 / np.sqrt(5))
    scores = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    assert nc4(scores, *HAND) == 1 / 4


def test_simplex_gaps_by_hand():
    # Means (-1, 0), (1, 0), (0, 3) with centre (0, 1): norms sqrt 2, sqrt 2, 2.
    H = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    found = nc2(H, np.arange(3))
    norms = np.array([2**0.5, 2**0.5, 2.0])
    assert found.norms == pytest.approx(norms.std() / norms.mean())
    cosines = np.array([0.0, -1 / 2**0.5, -1 / 2**0.5])  # of the three pairs
    assert found.angles == pytest.approx(np.abs(cosines + 0.5).mean())
    assert found.gram == pytest.approx(2 * ((cosines + 0.5) ** 2).sum() / 9)


@pytest.mark.parametrize("counts", [(20, 20, 20), (3, 40, 11, 6)])
def test_equal_the_loops(counts):
    H, y = sample(counts)
    means, within, between = by_loops(H, y)
    found = class_statistics(H, y)
    for ours, theirs in zip(
        (found.means, found.within, found.between),
        (means, within, between),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    inverse = np.linalg.pinv(between, rcond=1e-10)
    assert nc1(H, y) == pytest.approx(np.trace(within @ inverse) / len(counts))
    ratio = np.trace(within) / np.trace(between)
    assert variability_ratio(H, y) == pytest.approx(ratio)
    W = np.random.default_rng(1).standard_normal(means.shape)
    gap = W / np.linalg.norm(W) - means / np.linalg.norm(means)
    assert nc3(W, H, y) == pytest.approx((gap**2).sum())


def test_nearest_means_are_those_of_scikit_learn():
    H, y = sample((15, 30, 20), spread=0.5)
    scores = np.random.default_rng(2).standard_normal((len(y), 3))
    nearest = NearestCentroid().fit(H, y).predict(H)
    expected = (scores.argmax(1) != nearest).mean()
    assert nc4(scores, H, y) == pytest.approx(expected, abs=1e-15)
    assert 0.2 < expected < 1


def test_scatter_adds_up_for_classes_of_one_size():
    H, y = sample()
    found = class_statistics(H, y)
    np.testing.assert_allclose(
        found.within + found.between, np.cov(H.T, bias=True), atol=1e-12
    )


def test_invariance_under_rotation_scale_shift_and_order():
    H, y = sample()
    rng = np.random.default_rng(3)
    Q = haar(H.shape[1], rng)
    order = rng.permutation(len(y))
    scores = rng.standard_normal((len(y), 3))
    W = rng.standard_normal((3, H.shape[1]))
    moved = (5 * H @ Q + 100)[order]
    assert nc1(moved, y[order]) == pytest.approx(nc1(H, y), rel=1e-9)
    assert variability_ratio(moved, y[order]) == pytest.approx(
        variability_ratio(H, y), rel=1e-9
    )
    assert nc2(moved, y[order]) == pytest.approx(nc2(H, y), rel=1e-9)
    assert nc3(2 * W @ Q, moved, y[order]) == pytest.approx(nc3(W, H, y), rel=1e-9)
    assert nc4(scores[order], moved, y[order]) == nc4(scores, H, y)


def test_a_collapsed_simplex_scores_zero():
    y = np.repeat(np.arange(4), 5)
    H = np.eye(4)[y] @ haar(4, np.random.default_rng(0)) * 3 + 1
    W = class_statistics(H, y).means
    assert nc1(H, y) < 1e-20
    assert variability_ratio(H, y) < 1e-20
    assert max(nc2(H, y)) < 1e-12
    assert nc3(W, H, y) < 1e-20
    assert nc4(H @ W.numpy().T, H, y) == 0


def test_fewer_samples_than_features_are_no_obstacle():
    H, y = sample((3, 3, 3), k=50)
    assert 0 < nc1(H, y) < np.inf


@pytest.mark.parametrize("seed", range(5))
def test_nc1_bounds_what_is_not_target_linear(seed):
    """1 - TL <= C NC1 / (C - 1), and TL is Pillai's trace over C - 1."""
    H, y = sample((25,) * 4, seed=seed, spread=1.0)
    found, C = class_statistics(H, y), 4
    lacking = 1 - target_linearity(H, np.eye(C)[y])
    assert 0 < lacking <= C / (C - 1) * nc1(H, y)
    total = found.within + found.between
    pillai = torch.linalg.solve(total, found.between).trace() / (C - 1)
    assert 1 - lacking == pytest.approx(float(pillai), abs=1e-12)


def test_nc1_and_the_ratio_differ_off_the_span_of_the_means():
    H, y = HAND
    noise = np.array([1.0, -1.0, 1.0, -1.0])[:, None]
    beside = np.hstack([H, 10 * noise])
    assert nc1(beside, y) == pytest.approx(nc1(H, y))
    assert variability_ratio(beside, y) == pytest.approx(1 / 5 + 100 / 5)


def test_degenerate_input_is_named():
    H, y = HAND
    with pytest.raises(ValueError, match="at least two classes"):
        nc1(H, np.zeros(4, int))
    with pytest.raises(ValueError, match="class means"):
        nc1(np.array([[0.0], [2.0], [0.0], [2.0]]), y)
    with pytest.raises(ValueError, match="class means"):
        variability_ratio(np.full((4, 3), 0.1), y)
    with pytest.raises(ValueError, match="mean of class 1"):
        nc2(np.array([[-1.0], [0.0], [1.0]]), np.arange(3))
    with pytest.raises(ValueError, match="two samples"):
        nc1(np.eye(3), np.arange(3))
    with pytest.raises(ValueError, match="lacks"):
        nc1(H, np.array([0, 0, 2, 2]))
    with pytest.raises(ValueError, match="from 0 on"):
        nc1(H, np.array([-1, 0, 1, 1]))
    with pytest.raises(ValueError, match="4 labels"):
        nc1(H, y[:3])
    with pytest.raises(TypeError, match="integer labels"):
        nc1(H, y / 1)
    with pytest.raises(ValueError, match="W must have the shape"):
        nc3(np.eye(3), H, y)
    with pytest.raises(ValueError, match="W must not be zero"):
        nc3(np.zeros((2, 2)), H, y)
    with pytest.raises(ValueError, match="scores must have the shape"):
        nc4(np.ones((4, 3)), H, y)
    with pytest.raises(ValueError, match="finite"):
        nc1(H * np.nan, y)


def test_means_that_differ_by_rounding_coincide():
    tenths = np.array([[0.1], [0.2], [0.3]])
    twice, y = np.vstack([tenths, tenths[[0, 2, 1]]]), np.repeat([0, 1], 3)
    assert class_statistics(twice, y).means.any()  # of size 1e-17
    for measure in (nc1, variability_ratio):
        with pytest.raises(ValueError, match="class means"):
            measure(twice, y)
    with pytest.raises(ValueError, match="class means"):
        nc3([[1.0], [-1.0]], twice, y)
    with pytest.raises(ValueError, match="mean of class 1"):
        nc2(tenths, np.arange(3))


def test_one_class_is_refused_by_all_measures():
    H, y = np.random.default_rng(0).standard_normal((4, 2)), np.zeros(4, int)
    for measure in (
        nc1,
        nc2,
        variability_ratio,
        class_statistics,
        lambda H, y: nc3(np.ones((1, 2)), H, y),
        lambda H, y: nc4(np.ones((4, 1)), H, y),
    ):
        with pytest.raises(ValueError, match="at least two classes"):
            measure(H, y)


def test_no_variance_within_classes_is_collapse_with_more_features_than_samples():
    """n <= k and zero variance: 0 by convention, not an error."""
    y = np.repeat(np.arange(3), 2)
    H = np.random.default_rng(1).standard_normal((3, 9))[y]
    assert nc1(H, y) < 1e-28
    assert variability_ratio(H, y) < 1e-28
