"""Does a quantity fall, or rise, from one condition to the next, in most data sets?"""

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
