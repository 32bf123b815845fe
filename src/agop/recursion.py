"""The recursion of Recursive Feature Machines, on tensors.

A Recursive Feature Machine (Radhakrishnan, Beaglehole, Pandit and Belkin,
Science 383, 2024, Algorithm 1) alternates between two steps,

    A ← (K_M(X, X) + λ I)⁻¹ Y          solve kernel ridge regression under M,
    M ← (1/n) Σ_p ∇f(x_p) ∇f(x_p)ᵀ     replace M by the AGOP of the predictor,

from M = I. Here M is never formed: it is carried as M = R Rᵀ, so that it stays
symmetric and positive semi-definite whatever the precision, and so that a data
set with fewer rows than columns costs nothing of order d³. The estimators of
`agop.rfm` wrap this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .kernel_agop import Expansion, agop_diagonal, agop_factor
from .kernels import Kernel, Points, transform
from .solvers import Solver

__all__ = [
    "NORMALISATIONS",
    "Machine",
    "iterate",
    "next_factor",
    "normalise_factor",
]

NORMALISATIONS = ("none", "max", "trace")


class Machine(NamedTuple):
    """A kernel machine f_c(x) = Σ_i A_ic k_M(x, x_i), solved under M = R Rᵀ."""

    t: int  # updates of M so far
    R: Tensor  # (d, r), or (d,) for a diagonal matrix
    z: Points  # the training samples in the coordinates x R / L, (n, r)
    A: Tensor  # (n, C)


def iterate(
    x: Tensor,
    T: Tensor,
    kernel: Kernel,
    solver: Solver,
    rng: np.random.Generator,
    *,
    bandwidth: float,
    ridge: float,
    n_iter: int,
    n_gradients: int | None = None,
    **step: Any,
) -> Iterator[Machine]:
    """Algorithm 1, one solved kernel machine at a time.

    Parameters
    ----------
    x : Tensor of shape (n, d)
    T : Tensor of shape (n, C)
        Targets.
    kernel, solver, rng
        The last one draws the rows at which gradients are taken.
    bandwidth, ridge, n_iter, n_gradients
        As in `RFMRegressor`.
    **step
        Passed to `next_factor`.

    Yields
    ------
    Machine
        For t = 0 … n_iter updates of M; fewer if the predictor becomes constant.
    """
    R: Tensor | None = x.new_ones(x.shape[1])  # M = I
    for t in range(n_iter + 1):
        if R is None:
            return
        z = Points.of(transform(x, R, bandwidth))
        A = solver.solve(kernel, z, T, ridge)
        yield Machine(t, R, z, A)
        if t < n_iter:
            f = Expansion(kernel, z, A, solver.P, solver.scratch)
            rows = _sample(n_gradients, z, rng)
            R = next_factor(R, f, rows, bandwidth=bandwidth, **step)


def next_factor(
    R: Tensor,
    f: Expansion,
    rows: Tensor | None = None,
    *,
    bandwidth: float,
    diagonal: bool = False,
    centred: bool = False,
    power: float = 1.0,
    normalise: str = "max",
) -> Tensor | None:
    """Second step of Algorithm 1: the factor of the next M from the predictor f.

    Parameters
    ----------
    R : Tensor of shape (d, r) or (d,)
        Factor of the present M; a vector stands for a diagonal matrix.
    f : Expansion
        The predictor in the coordinates Y = X R / L.
    rows : Tensor of shape (m,), optional
        Points of f at which gradients are taken; all by default.
    bandwidth : float
        L.
    diagonal, centred, power, normalise
        As in `RFMRegressor`.

    Returns
    -------
    Tensor of shape (d, q) or, where `diagonal`, (d,)
        None if the AGOP is zero (a constant predictor) or underflows: no next M.
    """
    W = R / bandwidth
    if diagonal:
        R = (W.square() * agop_diagonal(f, rows, centred=centred)).sqrt_()  # (d,)
    else:
        T = agop_factor(f, rows, centred=centred)  # (r, q)
        R = W[:, None] * T if W.ndim == 1 else W @ T  # (d, q)
    number = torch.finfo(R.dtype)
    if not _row_norms(R).max() > number.tiny / number.eps:  # squares without digits
        return None
    return normalise_factor(_factor_power(R, power), normalise)


def _factor_power(R: Tensor, power: float) -> Tensor:
    """A factor of (R Rᵀ)^power: with R = U s Vᵀ that is U s^power."""
    if power == 1:
        return R
    if R.ndim == 1:
        return R.pow(power)
    # The singular values of R keep digits that the eigenvalues of R Rᵀ have lost.
    U, s, _ = torch.linalg.svd(R, full_matrices=False)
    return U * s.pow(power)


def normalise_factor(R: Tensor, normalise: str) -> Tensor:
    """R scaled so that M = R Rᵀ is normalised.

    "max" divides M by its largest entry (always on the diagonal), "trace" gives it
    the trace d of the identity from which the iteration starts, "none" leaves it.

    Examples
    --------
    >>> import torch
    >>> R = normalise_factor(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), "max")
    >>> R @ R.T
    tensor([[1.0000, 0.1600],
            [0.1600, 0.0400]])
    """
    diagonal = _row_norms(R)  # diag M, (d,)
    if normalise == "max":
        return R / diagonal.max().sqrt()
    if normalise == "trace":
        return R / diagonal.mean().sqrt()
    return R


def _sample(size: int | None, z: Points, rng: np.random.Generator) -> Tensor | None:
    """`size` different rows in increasing order; None stands for all of them."""
    if size is None or size >= z.n:
        return None
    rows = np.sort(rng.choice(z.n, size, replace=False))
    return torch.from_numpy(rows).to(z.Y.device)


def _row_norms(R: Tensor) -> Tensor:
    """Diagonal of R Rᵀ, of shape (d,)."""
    return R.square() if R.ndim == 1 else R.square().sum(1)
