"""Metrics against numbers worked out by hand, and against loops."""

import numpy as np
import pytest
from scipy.stats import rankdata

from agop.tabular.metrics import (
    adtm,
    average_accuracy,
    bootstrap,
    chance_of_first,
    check_matrix,
    critical_difference,
    error_reduction,
    friedman_rank,
    pma,
    ranks,
    relative_to_best,
    share_near_best,
)

NAN = np.nan
# Three tables, three methods; the third method lacks the third table.
BY_HAND = np.array([[0.9, 0.8, 1.0], [0.5, 0.45, 0.4], [0.6, 0.6, NAN]])


def random_matrix(seed, N=30, J=5):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.3, 1.0, (N, J))
    X[rng.random((N, J)) < 0.15] = NAN
    X[:, 0] = rng.uniform(0.3, 1.0, N)  # no empty row
    return X


def test_average_by_hand():
    assert average_accuracy(BY_HAND) == pytest.approx([2 / 3, 1.85 / 3, 0.7])


def test_p90_p95_by_hand():
    # relative to the best: .9 .8 1 | 1 .9 .8 | 1 1 -
    assert share_near_best(BY_HAND, 0.90) == pytest.approx([1, 2 / 3, 1 / 2])
    assert share_near_best(BY_HAND, 0.95) == pytest.approx([2 / 3, 1 / 3, 1 / 2])


def test_pma_by_hand():
    assert pma(BY_HAND) == pytest.approx([2.9 / 3, 2.7 / 3, 0.9])


def test_friedman_by_hand():
    # ranks 2 3 1 | 1 2 3 | all tied at .6, the imputed value: 2 2 2
    assert ranks(BY_HAND).tolist() == [[2, 3, 1], [1, 2, 3], [2, 2, 2]]
    assert friedman_rank(BY_HAND) == pytest.approx([5 / 3, 7 / 3, 2])


def test_adtm_by_hand():
    # (x - min) / (max - min): .5 0 1 | 1 .5 0 | agreement, left out
    assert adtm(BY_HAND) == pytest.approx([0.75, 0.25, 0.5])
    # (x - min) / max: .1 0 .2 | .2 .1 0 | 0 0 -
    assert adtm(BY_HAND, as_printed=True) == pytest.approx([0.1, 0.1 / 3, 0.1])


def test_adtm_reaches_its_ends_only_when_corrected():
    X = np.array([[0.8, 0.9], [0.5, 0.6]])
    assert adtm(X).tolist() == [0, 1]
    assert adtm(X, as_printed=True)[1] < 0.2


@pytest.mark.parametrize("seed", range(3))
def test_metrics_against_loops(seed):
    X = random_matrix(seed)
    N, J = X.shape
    for j in range(J):
        near, relative, distance, rank = [], [], [], []
        for i in range(N):
            known = [x for x in X[i] if x == x]
            mean = sum(known) / len(known)
            filled = [x if x == x else mean for x in X[i]]
            rank.append(
                1
                + sum(x > filled[j] for x in filled)
                + (sum(x == filled[j] for x in filled) - 1) / 2
            )
            if X[i, j] != X[i, j]:
                continue
            near.append(X[i, j] >= 0.9 * max(known))
            relative.append(X[i, j] / max(known))
            if max(known) > min(known):
                gap = max(known) - min(known)
                distance.append((X[i, j] - min(known)) / gap)
        assert share_near_best(X, 0.9)[j] == pytest.approx(np.mean(near))
        assert pma(X)[j] == pytest.approx(np.mean(relative))
        assert adtm(X)[j] == pytest.approx(np.mean(distance))
        assert friedman_rank(X)[j] == pytest.approx(np.mean(rank))


def test_ranks_without_gaps_are_scipys():
    X = np.random.default_rng(0).random((6, 4))
    assert np.array_equal(ranks(X), np.array([rankdata(-row) for row in X]))


def test_ties_at_the_threshold_count():
    assert share_near_best([[0.27, 0.3]], 0.9)[0] == 1  # .27 / .3 = .8999…


def test_metrics_do_not_change_with_the_order_of_tables_or_methods():
    X = random_matrix(4)
    rows, columns = np.arange(len(X))[::-1], np.array([3, 1, 4, 0, 2])
    for metric in (average_accuracy, pma, friedman_rank, adtm):
        assert metric(X[rows][:, columns]) == pytest.approx(metric(X)[columns])


def test_bootstrap_covers_a_known_mean():
    """A 90 % interval of a mean holds the truth in about 90 % of repetitions."""
    rng = np.random.default_rng(1)
    inside = 0
    for seed in range(200):
        X = rng.normal(0.5, 0.1, (60, 1))
        found = bootstrap(lambda X: float(X.mean()), X, draws=200, level=0.9, seed=seed)
        inside += found.low <= 0.5 <= found.high
    # Binomial(200, .9) has standard deviation 4.2: four of them, decided before.
    assert 163 <= inside <= 197


def test_bootstrap_keeps_rows_whole():
    X = np.random.default_rng(2).random((20, 1)) + np.array([[0.0, 0.3]])
    found = bootstrap(lambda X: float((X[:, 1] - X[:, 0]).mean()), X)
    assert found.high - found.low < 1e-12  # the difference is the same in each row


def test_bootstrap_of_arrays_and_its_seed():
    X = random_matrix(5)
    once, again = (bootstrap(pma, X, draws=50, seed=3) for _ in range(2))
    assert once.low.shape == (5,)
    assert np.array_equal(once.low, again.low)
    assert not np.array_equal(once.low, bootstrap(pma, X, draws=50, seed=4).low)


def test_chance_of_first():
    # The second is ahead on average because of one table that a draw may leave out.
    X = np.array([[0.6, 0.5]] * 4 + [[0.1, 0.9]])
    chance = chance_of_first(average_accuracy, X, draws=4000)
    # Left out with probability (4/5)^5 = .328.
    assert chance[0] == pytest.approx(0.8**5, abs=0.03)
    assert chance.sum() == pytest.approx(1)


@pytest.mark.parametrize(("J", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_is_demsars_table(J, q):
    """q of Table 5(a) in Demšar (2006)."""
    assert critical_difference(J, 30) == pytest.approx(
        q * np.sqrt(J * (J + 1) / 180), rel=1e-3
    )


def test_error_reduction_has_the_sign_of_a_gain():
    assert error_reduction([0.9], [0.8]) == pytest.approx([0.1])


def test_relative_to_best_keeps_gaps():
    assert np.isnan(relative_to_best(BY_HAND)[2, 2])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([0.5], "shape"),
        ([[80.0, 90.0]], r"0\.\.1"),
        ([[NAN, NAN], [0.5, 0.5]], "table 0"),
        ([[NAN, 0.5], [NAN, 0.5]], "method 0"),
    ],
)
def test_matrices_that_make_no_sense(matrix, message):
    with pytest.raises(ValueError, match=message):
        check_matrix(matrix)


def test_adtm_needs_a_difference():
    with pytest.raises(ValueError, match="agree"):
        adtm([[0.5, 0.5]])
