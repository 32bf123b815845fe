"""Multi-index targets: functions of few directions, their AGOP in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agop._validation import check_integer


@dataclass(frozen=True)
class MultiIndex:
    r"""The target :math:`f^*(x) = \sum_i c_i (u_i + u_i^2 / 2)` with :math:`u = U x`.

    A function of rank r (definition 2.1 of Tansley, Massart and Cartis, after Cartis
    et al. 2024): it is constant along the d - r directions orthogonal to the rows of U.

    Attributes
    ----------
    U : tensor of shape (r, d), orthonormal rows
    c : tensor of shape (r,)

    Examples
    --------
    >>> target = multi_index(6, 2, seed=0)
    >>> X = torch.randn(100, 6, dtype=torch.float64)
    >>> target(X).shape, int(torch.linalg.matrix_rank(target.agop(X)))
    (torch.Size([100, 1]), 2)
    """

    U: Tensor
    c: Tensor

    def __call__(self, X: Tensor) -> Tensor:
        """Map inputs (n, d) to targets (n, 1)."""
        u = X @ self.U.mT  # (n, r)
        return ((u + u.square() / 2) @ self.c)[:, None]

    def agop(self, X: Tensor) -> Tensor:
        r"""Return :math:`\frac1n \sum_p U^T g_p g_p^T U`, g = c (1 + u), (d, d)."""
        g = self.c * (1 + X @ self.U.mT)  # (n, r)
        return self.U.mT @ (g.mT @ g / len(X)) @ self.U


def multi_index(d: int, r: int, *, seed: int = 0) -> MultiIndex:
    """Return a target of r random directions in d dimensions, with c_i = 0.8^(i-1).

    Examples
    --------
    >>> multi_index(5, 2, seed=1).c
    tensor([1.0000, 0.8000], dtype=torch.float64)
    """
    d, r = check_integer(d, "d"), check_integer(r, "r")
    if r > d:
        raise ValueError(f"r must be at most d = {d}, got {r}")
    generator = torch.Generator().manual_seed(seed)
    G = torch.randn(d, r, dtype=torch.float64, generator=generator)
    return MultiIndex(
        torch.linalg.qr(G).Q.mT, 0.8 ** torch.arange(r, dtype=torch.float64)
    )


def overlap(U: Tensor, G: Tensor) -> float:
    r"""Return how much of the rows of U the leading eigenvectors of G hold.

    :math:`\frac1r \|U V\|_F^2` with V the r leading eigenvectors: 1 if they span the
    rows, and r/d on average if they are random.

    Parameters
    ----------
    U : tensor of shape (r, d), orthonormal rows
    G : tensor of shape (d, d), symmetric

    Examples
    --------
    >>> U = torch.eye(3)[:2]
    >>> overlap(U, torch.diag(torch.tensor([3.0, 2.0, 1.0])))
    1.0
    """
    r = len(U)
    V = torch.linalg.eigh(G.to(U))[1][:, -r:]  # (d, r)
    return float((U @ V).square().sum() / r)


def low_rank_map(d: int, C: int, singular_values: list[float], *, seed: int) -> Tensor:
    """Return a (C, d) matrix with the given singular values and random directions.

    Examples
    --------
    >>> J = low_rank_map(6, 4, [3.0, 1.0], seed=0)
    >>> torch.linalg.svdvals(J).round(decimals=6)
    tensor([3., 1., 0., 0.], dtype=torch.float64)
    """
    r = len(singular_values)
    if not 0 < r <= min(d, C):
        raise ValueError(
            f"singular_values must be 1 to {min(d, C)} numbers, got {singular_values}"
        )
    generator = torch.Generator().manual_seed(seed)
    U, V = (
        torch.linalg.qr(
            torch.randn(size, r, dtype=torch.float64, generator=generator)
        ).Q
        for size in (C, d)
    )
    return (U * torch.tensor(singular_values, dtype=torch.float64)) @ V.mT
