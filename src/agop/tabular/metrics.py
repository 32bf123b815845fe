"""How methods compare over many tables: the metrics of the paper, and their intervals.

All take a matrix of accuracies, one row a table and one column a method, with NaN
where a method has no result on a table. Such a table does not count for that method,
except for the Friedman rank, which imputes. Shape letters: N tables, J methods.

Definitions: Radhakrishnan et al. (2024), App. B, after Fernández-Delgado et al. (2014).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata, spearmanr, studentized_range

Matrix = NDArray[np.float64]


class Interval(NamedTuple):
    """A value with the ends of its interval."""

    value: Any
    low: Any
    high: Any


def check_matrix(accuracies: ArrayLike) -> Matrix:
    """Return the accuracies as an (N, J) array.

    Raises
    ------
    ValueError
        If it is no matrix, values lie outside 0..1, or a row or column is empty.
    """
    X = np.asarray(accuracies, dtype=np.float64)
    if X.ndim != 2 or X.size == 0:
        raise ValueError(f"accuracies must have shape (N, J), got {X.shape}")
    known = X[~np.isnan(X)]
    if len(known) and (known.min() < 0 or known.max() > 1):
        raise ValueError("accuracies must lie in 0..1 (or be NaN where missing)")
    for axis, what in ((1, "table"), (0, "method")):
        empty = np.isnan(X).all(axis=axis)
        if empty.any():
            raise ValueError(f"{what} {int(empty.argmax())} has no result at all")
    return X


def average_accuracy(accuracies: ArrayLike) -> NDArray[np.float64]:
    """Mean accuracy of each method over the tables it has, (J,).

    >>> average_accuracy([[0.5, 0.75], [1.0, np.nan]])
    array([0.75, 0.75])
    """
    return np.nanmean(check_matrix(accuracies), axis=0)


def share_near_best(accuracies: ArrayLike, share: float) -> NDArray[np.float64]:
    """Share of tables on which each method has at least `share` of the best accuracy.

    P90 and P95 of the paper, as fractions, are `share` = 0.90 and 0.95.

    >>> share_near_best([[0.8, 1.0], [0.95, 1.0]], 0.9)
    array([0.5, 1. ])
    """
    X = check_matrix(accuracies)
    near = relative_to_best(X) >= share - 1e-12  # 0.9 * 1.0 counts as 0.9
    return near.sum(axis=0) / (~np.isnan(X)).sum(axis=0)


def relative_to_best(accuracies: ArrayLike) -> Matrix:
    """Accuracy divided by the best one on each table, (N, J)."""
    X = check_matrix(accuracies)
    return X / np.nanmax(X, axis=1, keepdims=True)


def pma(accuracies: ArrayLike) -> NDArray[np.float64]:
    """Mean over tables of the accuracy relative to the best (PMA), as a fraction, (J,).

    >>> pma([[0.5, 1.0], [0.9, 0.6]])
    array([0.75      , 0.8333...])
    """
    return np.nanmean(relative_to_best(accuracies), axis=0)


def ranks(accuracies: ArrayLike) -> Matrix:
    """Rank of each method on each table, 1 the best and ties shared, (N, J).

    A missing result counts as the mean of the methods that have one on that table.

    >>> ranks([[0.9, 0.7, 0.7], [0.6, np.nan, 0.8]])
    array([[1. , 2.5, 2.5],
           [3. , 2. , 1. ]])
    """
    X = check_matrix(accuracies)
    filled = np.where(np.isnan(X), np.nanmean(X, axis=1, keepdims=True), X)
    return rankdata(-filled, axis=1)


def friedman_rank(accuracies: ArrayLike) -> NDArray[np.float64]:
    """Mean rank of each method over all tables, (J,); see `ranks`."""
    return ranks(accuracies).mean(axis=0)


def adtm(accuracies: ArrayLike, *, as_printed: bool = False) -> NDArray[np.float64]:
    """Average distance to the minimum of each method, (J,).

    The mean over tables of (accuracy − worst) / (best − worst): 1 for a method that is
    the best everywhere, 0 for one that is the worst everywhere. The paper states these
    two ends but prints a division by the best accuracy, under which the best method
    does not get 1. Where all methods agree the quotient is 0/0 and the table is left
    out (as printed it counts as 0).

    >>> adtm([[0.8, 0.9]]), adtm([[0.8, 0.9]], as_printed=True).round(2)
    (array([0., 1.]), array([0.  , 0.11]))
    """
    X = check_matrix(accuracies)
    worst = np.nanmin(X, axis=1, keepdims=True)
    best = np.nanmax(X, axis=1, keepdims=True)
    below = best if as_printed else np.where(best > worst, best - worst, np.nan)
    quotients = (X - worst) / below
    if np.isnan(quotients).all():
        raise ValueError("all methods agree on every table: no distance to divide by")
    return np.nanmean(quotients, axis=0)


def bootstrap(
    statistic: Callable[[Matrix], Any],
    matrix: ArrayLike,
    *,
    draws: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Percentile interval of a statistic over tables, drawn again with replacement.

    Rows are drawn whole, so that methods are compared on the same tables.

    Parameters
    ----------
    statistic : callable
        From an (N, J) matrix to a number or an array.
    matrix : array-like of shape (N, J)
    draws, level, seed

    Examples
    --------
    >>> X = np.array([[0.9, 0.8]] * 5)
    >>> bootstrap(lambda X: float((X[:, 0] - X[:, 1]).mean()).__round__(3), X)
    Interval(value=0.1, low=0.1, high=0.1)
    """
    X = np.asarray(matrix, dtype=np.float64)
    rng = np.random.default_rng(seed)
    values = np.array(
        [statistic(X[rng.integers(len(X), size=len(X))]) for _ in range(draws)]
    )
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    if low.ndim == 0:
        low, high = float(low), float(high)
    return Interval(statistic(X), low, high)


def chance_of_first(
    score: Callable[[Matrix], NDArray[np.float64]],
    accuracies: ArrayLike,
    *,
    draws: int = 2000,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Share of bootstrap draws of the tables in which each method scores best, (J,).

    How safe a first place is against another choice of tables of the same kind.

    Parameters
    ----------
    score : callable
        From the matrix to one number a method, the larger the better.

    Examples
    --------
    >>> chance_of_first(average_accuracy, [[0.9, 0.8], [0.7, 0.6]])
    array([1., 0.])
    """
    X = check_matrix(accuracies)
    rng = np.random.default_rng(seed)
    wins = np.zeros(X.shape[1])
    for _ in range(draws):
        values = score(X[rng.integers(len(X), size=len(X))])
        best = values == values.max()
        wins += best / best.sum()
    return wins / draws


def critical_difference(n_methods: int, n_tables: int, level: float = 0.95) -> float:
    """Difference of mean ranks that Nemenyi's test asks for (Demšar, JMLR 2006).

    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    q = studentized_range.ppf(level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_tables)))


def error_reduction(ours: ArrayLike, theirs: ArrayLike) -> NDArray[np.float64]:
    """Error of theirs minus error of ours on each table (Fig. 7B), (N,).

    >>> error_reduction([0.75], [0.5])
    array([0.25])
    """
    return np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)


def rank_correlation(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's correlation of x and y, (N,) each; 0 where one of them is constant.

    >>> rank_correlation([1, 2, 3], [5, 7, 6])
    0.5
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.round(spearmanr(x, y).statistic, 12))
