"""Transforms of a regression target before it is learnt, and their inverses."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def signed_log(y: ArrayLike) -> NDArray[np.float64]:
    """sign(y) log(1 + |y|): odd and increasing, so that it can be undone.

    >>> signed_log([-1.0, 0.0, 1.0]).round(4)
    array([-0.6931,  0.    ,  0.6931])
    """
    y = np.asarray(y, dtype=np.float64)
    return np.sign(y) * np.log1p(np.abs(y))


def signed_exp(z: ArrayLike) -> NDArray[np.float64]:
    """sign(z) (exp(|z|) − 1), the inverse of `signed_log`.

    >>> signed_exp(signed_log([-3.0, 0.5])).round(12)
    array([-3. ,  0.5])
    """
    z = np.asarray(z, dtype=np.float64)
    return np.sign(z) * np.expm1(np.abs(z))


def log_as_printed(y: ArrayLike) -> NDArray[np.float64]:
    """|y| log(1 + |y|), as App. B of Radhakrishnan et al. (2024) prints it.

    It has the same value at y and −y, so that it cannot be undone on centred targets.

    >>> log_as_printed([-1.0, 1.0]).round(4)
    array([0.6931, 0.6931])
    """
    y = np.abs(np.asarray(y, dtype=np.float64))
    return y * np.log1p(y)
