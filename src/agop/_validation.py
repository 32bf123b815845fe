"""Checks shared by the public functions: every message names the argument."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor


def check_integer(value: Any, name: str, *, minimum: int = 1) -> int:
    """Return ``value`` as an int, or raise if it isn't an integer >= ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def check_real(value: Any, name: str, *, positive: bool = True) -> float:
    """Return ``value`` as a finite float that is > 0, or >= 0 if not ``positive``."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    value = float(value)
    if not np.isfinite(value) or value < 0 or (positive and value == 0):
        wanted = "positive" if positive else "non-negative"
        raise ValueError(f"{name} must be finite and {wanted}, got {value}")
    return value


def check_tensor(X: Any, name: str) -> Tensor:
    """Return ``X`` as a finite tensor, sharing its memory where possible."""
    try:
        X = torch.as_tensor(X)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{name} must be an array or tensor of numbers, got {type(X).__name__}"
        ) from error
    # The sum needs no temporary of the size of X, but it may overflow.
    if not X.sum().isfinite() and not X.isfinite().all():
        raise ValueError(f"{name} must be finite, got nan or infinite entries")
    return X


def check_samples(X: Any, name: str) -> Tensor:
    """Return ``X`` as a finite tensor (n, ...) of at least one sample."""
    X = check_tensor(X, name)
    if X.dim() < 2:
        raise ValueError(
            f"{name} must have one row per sample, shape (n, ...), "
            f"got shape {tuple(X.shape)}"
        )
    if len(X) == 0:
        raise ValueError(f"{name} must hold at least one sample, got none")
    return X
