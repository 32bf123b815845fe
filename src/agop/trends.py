"""Do quantities rise or fall together: over conditions, or over runs of a training?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Trend:
    """Spearman correlations with the order of the conditions, one a data set.

    Attributes
    ----------
    rho : (S,) array, in [-1, 1]; nan where all conditions gave the same value.
    falling, rising : how many are below and above 0.
    p_falling, p_rising : how probable so many, or more, are for fair coins.
    """

    rho: NDArray[np.float64]
    falling: int
    rising: int
    p_falling: float
    p_rising: float

    @property
    def median(self) -> float:
        """Median of the correlations."""
        return float(np.nanmedian(self.rho))


def trend(values: ArrayLike) -> Trend:
    """Return the trend of ``values`` along its second axis: a sign test over sets.

    Parameters
    ----------
    values : array of shape (S, m)
        A row a data set, a column a condition, in the order to be tested.

    Raises
    ------
    ValueError
        If it is not such an array, of at least two conditions, or is not finite.

    Notes
    -----
    Within a data set only the order of values counts, so that easy and hard sets
    weigh the same. Sets without a trend (0 or nan) are left out of the test.

    Examples
    --------
    >>> found = trend([[3, 2, 1], [9, 5, 4], [1, 0, 2]])
    >>> found.rho.tolist(), found.falling, found.p_falling
    ([-1.0, -1.0, 0.5], 2, 0.5)
    """
    from scipy.stats import binom, rankdata

    values = np.asarray(values, np.float64)
    if values.ndim != 2 or values.shape[1] < 2 or not np.isfinite(values).all():
        raise ValueError(
            "values must be a finite (S, m) array with m >= 2, got shape "
            f"{values.shape}"
        )
    ranks = rankdata(values, axis=1)  # (S, m), ties share their mean rank
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    order = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    lengths = np.sqrt((ranks**2).sum(1) * (order**2).sum())
    rho = np.full(len(values), np.nan)
    np.divide(ranks @ order, lengths, out=rho, where=lengths > 0)
    falling, rising = int((rho < 0).sum()), int((rho > 0).sum())
    tosses = falling + rising
    return Trend(
        rho,
        falling,
        rising,
        p_falling=float(binom.sf(falling - 1, tosses, 0.5)),
        p_rising=float(binom.sf(rising - 1, tosses, 0.5)),
    )


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation with an interval.

    Attributes
    ----------
    rho : float, over all points; nan if one quantity is constant.
    low, high : bounds of the 95 % interval.
    """

    rho: float
    low: float
    high: float


def rank_correlation(
    x: ArrayLike, y: ArrayLike, groups: ArrayLike, *, draws: int = 1000, seed: int = 0
) -> RankCorrelation:
    """Return the rank correlation of two quantities measured repeatedly in each run.

    Points of one run are not independent; whole runs are. The interval holds the
    middle 95 % of the correlations of samples of as many runs, drawn with replacement.

    Parameters
    ----------
    x, y : arrays of shape (n,)
    groups : array of shape (n,)
        The run of each point; at least two.
    draws : int, default=1000
    seed : int, default=0

    Raises
    ------
    ValueError
        If the three differ in length or there is a single run.

    Notes
    -----
    With few runs the interval is too short: it knows only the spread between these.

    Examples
    --------
    >>> rank_correlation([1, 2, 3, 4], [1, 4, 9, 16], [0, 0, 1, 1])
    RankCorrelation(rho=1.0, low=1.0, high=1.0)
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    groups = np.asarray(groups)
    if x.ndim != 1 or not x.shape == y.shape == groups.shape:
        raise ValueError(
            "x, y and groups must be of one length, got shapes "
            f"{x.shape}, {y.shape} and {groups.shape}"
        )
    runs = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    if len(runs) < 2:
        raise ValueError("groups must name at least two runs, got one")
    rng, found = np.random.default_rng(seed), []
    for _ in range(draws):
        rows = np.concatenate([runs[i] for i in rng.integers(0, len(runs), len(runs))])
        found.append(_spearman(x[rows], y[rows]))
    defined = [rho for rho in found if not np.isnan(rho)] or [np.nan]
    low, high = np.quantile(defined, [0.025, 0.975])
    return RankCorrelation(_spearman(x, y), float(low), float(high))


def _spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    from scipy.stats import rankdata

    a, b = (rankdata(v) - (len(v) + 1) / 2 for v in (x, y))
    length = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / length) if length > 0 else float("nan")
