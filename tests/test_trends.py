"""Spearman correlations and a sign test, against scipy's and by counting."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, spearmanr

from agop.trends import rank_correlation, trend


def test_rho_is_spearmans():
    values = np.random.default_rng(0).integers(0, 6, (20, 5)).astype(float)
    values[0] = 2  # constant: no order at all
    found = trend(values).rho
    assert math.isnan(found[0])
    for row, rho in zip(values[1:], found[1:], strict=True):
        assert rho == pytest.approx(spearmanr(range(5), row).statistic, abs=1e-12)


def test_the_sign_test_is_that_of_a_fair_coin():
    values = np.random.default_rng(1).standard_normal((31, 4))
    values[:2] = 1  # without a trend: not counted
    values[2:20, 3] = 9
    found = trend(values)
    tosses = found.falling + found.rising
    assert tosses == np.count_nonzero(found.rho[2:])  # nan, and no zero, left out
    for count, p in (
        (found.falling, found.p_falling),
        (found.rising, found.p_rising),
    ):
        test = binomtest(count, tosses, alternative="greater")
        assert p == pytest.approx(test.pvalue, rel=1e-9)


def test_reversing_the_conditions_reverses_the_trend():
    values = np.random.default_rng(2).standard_normal((15, 5))
    forth, back = trend(values), trend(values[:, ::-1])
    assert np.allclose(forth.rho, -back.rho)
    assert (forth.falling, forth.p_falling) == (back.rising, back.p_rising)
    assert forth.median == pytest.approx(-back.median)


def test_no_data_set_has_a_trend():
    found = trend(np.ones((3, 4)))
    assert (found.falling, found.rising) == (0, 0)
    assert (found.p_falling, found.p_rising) == (1, 1)


@pytest.mark.parametrize("bad", [[1.0, 2.0], [[1.0]], [[1.0, math.nan]]])
def test_bad_values(bad):
    with pytest.raises(ValueError, match="finite"):
        trend(bad)


def test_rank_correlation_is_spearmans():
    rng = np.random.default_rng(0)
    x, groups = rng.integers(0, 9, 60), np.repeat(np.arange(6), 10)
    y = x + 3 * rng.standard_normal(60)
    found = rank_correlation(x, y, groups)
    assert found.rho == pytest.approx(spearmanr(x, y).statistic)
    assert found.low < found.rho < found.high
    assert found == rank_correlation(x, y, groups)
    assert np.isnan(rank_correlation(x, np.ones(60), groups, draws=5).rho)


def test_interval_is_between_runs_not_between_points():
    """Points that agree within two opposite runs say nothing about the sign."""
    x = np.tile(np.arange(50.0), 2)
    y = np.concatenate([np.arange(50.0), -np.arange(50.0)])
    found = rank_correlation(x, y, np.repeat([0, 1], 50))
    assert found.low == pytest.approx(-1)
    assert found.high == pytest.approx(1)


def test_interval_covers_independence():
    inside = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((2, 100))
        found = rank_correlation(x, y, np.arange(100), draws=200)
        inside += found.low <= 0 <= found.high
    assert inside >= 34  # 38 expected; below 34 with probability .02


def test_rank_correlation_names_bad_input():
    with pytest.raises(ValueError, match="one length"):
        rank_correlation([1, 2], [1, 2], [0])
    with pytest.raises(ValueError, match="two runs"):
        rank_correlation([1, 2], [1, 2], [0, 0])


def test_rank_correlation_by_hand():
    """Ranks 1 2 3 4 against 2 1 4 3: 1 - 6 * 4 / (4 * 15) = .6."""
    found = rank_correlation([1, 2, 3, 4], [20, 10, 40, 30], [0, 0, 1, 1])
    assert found.rho == pytest.approx(0.6)


def test_rank_correlation_sees_order_only():
    """Not the scale, nor the order of samples; a falling map turns the sign."""
    rng = np.random.default_rng(4)
    x, groups = rng.standard_normal(40), np.repeat(np.arange(5), 8)
    y = x + rng.standard_normal(40)
    found = rank_correlation(x, y, groups)
    assert rank_correlation(np.exp(x), 7 * y - 3, groups) == found
    turned = rank_correlation(x, -y, groups)
    assert turned.rho == pytest.approx(-found.rho)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))
    order = rng.permutation(40)
    mixed = rank_correlation(x[order], y[order], groups[order])
    assert (mixed.rho, mixed.low, mixed.high) == pytest.approx(
        (found.rho, found.low, found.high)
    )


def test_rank_correlation_of_a_constant_is_undefined():
    found = rank_correlation([1.0, 1.0, 1.0, 1.0], [1, 2, 3, 4], [0, 0, 1, 1])
    assert np.isnan([found.rho, found.low, found.high]).all()
