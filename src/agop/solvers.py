"""Solvers of the kernel ridge system (K + λ I) A = T, dense and iterative.

`CholeskySolver` holds two n × n arrays. `NystromCGSolver` holds none: it runs
conjugate gradients with strips of K that are kept as far as a memory budget allows
and computed again otherwise. Both take the ridge literally: nothing is ever added
to the diagonal that the caller did not ask for.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from ._validation import check_integer, check_real
from .kernels import Kernel, Points, strips

__all__ = [
    "CholeskySolver",
    "KernelOperator",
    "KernelSolveError",
    "NystromCG",
    "NystromCGSolver",
    "Solver",
    "conjugate_gradients",
    "default_memory",
    "make_solver",
    "nystrom",
    "solve_cholesky_",
]

#: Above this many samples solver="auto" is iterative.
DENSE_LIMIT = 20_000

_BLOCK = 256  # columns that the Cholesky factorisation treats at a time


class KernelSolveError(np.linalg.LinAlgError):
    """K + λ I is not positive definite to working precision."""


class Solver:
    """What the estimators need of a solver.

    Attributes
    ----------
    P, scratch : Tensor of shape (n, n) or None
        After `solve`: the pairwise numbers of the points, and free memory of the
        same size, both lent to the AGOP step.
    converged : bool
        False once any solution fell short.
    report : dict
        Figures about the last solve, for the history.
    """

    P: Tensor | None = None
    scratch: Tensor | None = None
    converged: bool = True
    report: dict[str, float]

    def solve(self, kernel: Kernel, z: Points, T: Tensor, ridge: float) -> Tensor:
        """A of shape (n, C) with (K(z, z) + λ I) A = T."""
        raise NotImplementedError


class CholeskySolver(Solver):
    """Dense solver: exact to rounding, n³/3 operations, two n × n arrays.

    One array keeps the pairwise distances (the AGOP step needs them again), the
    other holds first K and then, in the same memory, its Cholesky factor.

    Parameters
    ----------
    n : int
        Number of points.
    like : Tensor
        Gives dtype and device.
    """

    def __init__(self, n: int, like: Tensor) -> None:
        self.P, self.scratch = like.new_empty(n, n), like.new_empty(n, n)
        self.report = {}

    def solve(self, kernel: Kernel, z: Points, T: Tensor, ridge: float) -> Tensor:
        """A of shape (n, C); see `solve_cholesky_` for the errors."""
        P, K = self.P, self.scratch
        assert P is not None
        assert K is not None
        # Both are symmetric: work on strips of the lower triangle only.
        for rows in strips(z.n, z.n):
            start, stop = rows.start, rows.stop
            left = z[:stop]
            P[rows, :stop] = kernel.pairwise(z[rows], left)
            P[:start, rows] = P[rows, :start].mT
            K[rows, :stop] = kernel.value(P[rows, :stop], z[rows], left)
        return solve_cholesky_(K, T, ridge)


def solve_cholesky_(K: Tensor, T: Tensor, ridge: float) -> Tensor:
    """Solve (K + λ I) A = T by Cholesky in the memory of K.

    Parameters
    ----------
    K : Tensor of shape (n, n)
        Symmetric. Only the lower triangle is read; all of K is overwritten.
    T : Tensor of shape (n, C)
    ridge : float
        λ, not negative; added to the diagonal as it is.

    Returns
    -------
    A : Tensor of shape (n, C)

    Raises
    ------
    KernelSolveError
        If K + λ I is not positive definite to the precision of its dtype.

    Examples
    --------
    >>> import torch
    >>> solve_cholesky_(torch.eye(2), torch.ones(2, 1), ridge=1.0)
    tensor([[0.5000],
            [0.5000]])
    """
    K.diagonal().add_(ridge)
    failed = _factorise_(K)
    if failed:
        raise KernelSolveError(_not_definite(failed, K, ridge))
    A = torch.linalg.solve_triangular(K, T, upper=False)
    A = torch.linalg.solve_triangular(K.mT, A, upper=True)
    if not torch.isfinite(A).all():
        raise KernelSolveError(_not_definite(0, K, ridge))
    return A


def _factorise_(K: Tensor) -> int:
    """Turn the lower triangle of K into its Cholesky factor, in place, by blocks.

    `torch.linalg.cholesky` needs a second matrix, and a third of its time to clear the
    other triangle; here nearly all work is one product per block of columns.

    Returns
    -------
    int
        0, or the order of the first leading minor that is not positive.
    """
    for cols in strips(len(K), 0, rows=_BLOCK):
        left, below = slice(cols.start), slice(cols.stop, None)
        K[cols.start :, cols].addmm_(K[cols.start :, left], K[cols, left].mT, alpha=-1)
        L, info = torch.linalg.cholesky_ex(K[cols, cols])
        if info:
            return cols.start + int(info)
        K[cols, cols] = L
        # X Lᵀ = K[below, cols], transposed so that LAPACK's column order is ours.
        K[below, cols] = torch.linalg.solve_triangular(
            L, K[below, cols].mT, upper=False
        ).mT
    return 0


def _not_definite(minor: int, K: Tensor, ridge: float) -> str:
    """Message of a failed Cholesky factorisation."""
    remedy = "a larger ridge"
    if K.dtype != torch.float64:
        remedy += " or dtype='float64'"
    where = f" (leading minor {minor} of {K.shape[0]})" if minor else ""
    return (
        f"the kernel matrix plus ridge={ridge:g} is not positive definite in "
        f"{_name(K)}{where}: points coincide, or almost. Try {remedy}; no ridge is "
        "added on your behalf."
    )


@dataclass(frozen=True)
class NystromCG:
    """Settings of the iterative solver.

    Conjugate gradients, preconditioned by a Nyström approximation of K whose
    columns are chosen by randomly pivoted Cholesky (Chen, Epperly, Tropp and
    Webber 2023; the form of the preconditioner is that of Frangella, Tropp and
    Udell 2023).

    Parameters
    ----------
    rank : int, default=500
        Columns of the approximation; at most n are used.
    tol : float, default=1e-6
        Stop when ‖(K + λ I) a − t‖ ≤ tol ‖t‖ for every output.
    max_iter : int, default=500
        Give up, with a `ConvergenceWarning`, after so many products with K.
    """

    rank: int = 500
    tol: float = 1e-6
    max_iter: int = 500

    def __post_init__(self) -> None:
        check_integer(self.rank, "rank")
        check_real(self.tol, "tol")
        check_integer(self.max_iter, "max_iter")


class NystromCGSolver(Solver):
    """Iterative solver for many points, within a memory budget.

    Parameters
    ----------
    settings : NystromCG
    cache_bytes : float
        Memory for strips of K that are kept between products.
    rng : numpy.random.Generator
        Chooses the columns of the preconditioner.
    """

    def __init__(
        self, settings: NystromCG, cache_bytes: float, rng: np.random.Generator
    ) -> None:
        self.settings, self.cache_bytes, self.rng = settings, cache_bytes, rng
        self.report = {}

    def solve(self, kernel: Kernel, z: Points, T: Tensor, ridge: float) -> Tensor:
        """A of shape (n, C); warns (`ConvergenceWarning`) where it falls short."""
        K = KernelOperator(kernel, z, self.cache_bytes)
        U, values = nystrom(kernel, z, min(self.settings.rank, z.n), self.rng)
        A, n_iter, residual = conjugate_gradients(
            lambda V: K.matmul(V).add_(V, alpha=ridge),
            T,
            lambda V: _precondition(V, U, values, ridge),
            self.settings.tol,
            self.settings.max_iter,
        )
        self.report = {"solver_iterations": n_iter, "residual": residual}
        if not residual <= self.settings.tol:
            self.converged = False
            warnings.warn(
                f"the iterative solver stopped at a relative residual of "
                f"{residual:.1e} after {n_iter} iterations (tol="
                f"{self.settings.tol:g}, ridge={ridge:g}); raise max_iter, rank or "
                "ridge",
                ConvergenceWarning,
                stacklevel=2,
            )
        return A


class KernelOperator:
    """Products K V with the symmetric K of `z`, from strips of its lower triangle.

    As many strips as fit in `cache_bytes` are kept; the others are computed again
    for each product.
    """

    def __init__(self, kernel: Kernel, z: Points, cache_bytes: float) -> None:
        self.kernel, self.z = kernel, z
        self._kept: list[Tensor] = []
        for rows in strips(z.n, z.n):
            cache_bytes -= (rows.stop - rows.start) * rows.stop * z.Y.itemsize
            if cache_bytes < 0:
                break
            self._kept.append(self._strip(rows))

    def matmul(self, V: Tensor) -> Tensor:
        """K V of shape (n, C)."""
        out = torch.zeros_like(V)
        for i, rows in enumerate(strips(self.z.n, self.z.n)):
            K = self._kept[i] if i < len(self._kept) else self._strip(rows)
            out[rows] += K @ V[: rows.stop]
            out[: rows.start] += K[:, : rows.start].mT @ V[rows]
        return out

    def _strip(self, rows: slice) -> Tensor:
        """K[rows, :stop]."""
        y, z = self.z[rows], self.z[: rows.stop]
        return self.kernel.value(self.kernel.pairwise(y, z), y, z)


def nystrom(
    kernel: Kernel, z: Points, rank: int, rng: np.random.Generator, block: int = 100
) -> tuple[Tensor, Tensor]:
    """Nyström approximation U diag(values) Uᵀ of K by randomly pivoted Cholesky.

    Pivots are drawn, `block` at a time, in proportion to what the approximation
    still lacks of the diagonal of K; duplicates are then never drawn twice.

    Returns
    -------
    U : Tensor of shape (n, q)
        Orthonormal columns, q ≤ rank.
    values : Tensor of shape (q,)
        Decreasing, positive.
    """
    F = z.Y.new_zeros(z.n, rank)  # K is close to F Fᵀ
    lack = kernel.diagonal(z)
    floor = lack.sum() * z.n * torch.finfo(lack.dtype).eps
    q = 0
    while q < rank and lack.sum() > floor:
        weight = lack.double().cpu().numpy()
        count = min(block, rank - q, int((weight > 0).sum()))
        pivots = torch.from_numpy(
            rng.choice(z.n, count, replace=False, p=weight / weight.sum())
        ).to(lack.device)
        y = z[pivots]
        G = kernel.value(kernel.pairwise(z, y), z, y)  # (n, b)
        G -= F[:, :q] @ F[pivots, :q].mT
        # An approximation may be shifted freely (the system itself never is).
        core = G[pivots]
        core.diagonal().add_(10 * torch.finfo(G.dtype).eps * kernel.diagonal(y).sum())
        L, failed = torch.linalg.cholesky_ex(core)
        if failed:
            break
        F[:, q : q + count] = torch.linalg.solve_triangular(L, G.mT, upper=False).mT
        lack = (lack - F[:, q : q + count].square().sum(1)).clamp_(min=0)
        lack[pivots] = 0
        q += count
    U, singular, _ = torch.linalg.svd(F[:, :q], full_matrices=False)
    values = singular.square()
    keep = values > values[:1] * z.n * torch.finfo(values.dtype).eps
    return U[:, keep], values[keep]


def _precondition(V: Tensor, U: Tensor, values: Tensor, ridge: float) -> Tensor:
    """Divide the part of V in the span of U by the eigenvalues of K + λ I there."""
    ratio = (values[-1:] + ridge) / (values + ridge)  # ≤ 1
    return V + U @ ((ratio - 1)[:, None] * (U.mT @ V))


def conjugate_gradients(
    matmul: Callable[[Tensor], Tensor],
    T: Tensor,
    precondition: Callable[[Tensor], Tensor],
    tol: float,
    max_iter: int,
) -> tuple[Tensor, int, float]:
    """Preconditioned conjugate gradients, one right-hand side per column of T.

    Returns
    -------
    A : Tensor of shape (n, C)
    n_iter : int
    residual : float
        The largest ‖matmul(a) − t‖ / ‖t‖ of the columns, computed from A itself.
    """
    A, residual = torch.zeros_like(T), T.clone()
    scale = T.norm(dim=0)
    scale = torch.where(scale > 0, scale, 1.0)
    direction = Z = precondition(residual)
    rho = (residual * Z).sum(0)
    n_iter = 0
    while n_iter < max_iter and ((residual.norm(dim=0) / scale) > tol / 2).any():
        product = matmul(direction)
        n_iter += 1
        step = _safe_ratio(rho, (direction * product).sum(0))
        A += step * direction
        residual -= step * product
        Z = precondition(residual)
        rho, previous = (residual * Z).sum(0), rho
        direction = Z + _safe_ratio(rho, previous) * direction
    exact = (matmul(A) - T).norm(dim=0) / scale
    return A, n_iter, float(exact.max())


def _safe_ratio(a: Tensor, b: Tensor) -> Tensor:
    """a / b, and 0 where b = 0 (a column that is solved exactly)."""
    return torch.where(b != 0, a / b, 0.0)


def default_memory(device: torch.device) -> float:
    """Three quarters of the memory of this device, in bytes."""
    if device.type == "cuda":
        return 0.75 * torch.cuda.mem_get_info(device)[1]
    if not hasattr(os, "sysconf"):  # Windows: nothing to ask without a dependency
        return float("inf")
    return 0.75 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def make_solver(
    solver: str | NystromCG,
    like: Tensor,
    n: int,
    C: int,
    *,
    budget: float,
    besides: float,
    rng: np.random.Generator,
) -> Solver:
    """Choose a solver, before anything large is allocated.

    Parameters
    ----------
    solver : {"auto", "cholesky", "iterative"} or NystromCG
        "auto" is Cholesky up to 20,000 points if that fits, otherwise iterative.
    like : Tensor
        Gives dtype and device.
    n, C : int
        Numbers of points and outputs.
    budget, besides : float
        Bytes that may be used, and bytes that are used by other things.
    rng : numpy.random.Generator

    Raises
    ------
    MemoryError
        If the solver does not fit; the message says what would.
    """
    if not (isinstance(solver, NystromCG) or solver in _SOLVERS):
        raise ValueError(
            f"solver must be one of {_SOLVERS} or a NystromCG, got {solver!r}"
        )
    dense = 2 * n**2 * like.itemsize
    fits = dense + besides <= budget
    if solver == "cholesky" or (solver == "auto" and n <= DENSE_LIMIT and fits):
        if not fits:
            raise MemoryError(_too_dense(n, like, budget, besides))
        return CholeskySolver(n, like)
    settings = solver if isinstance(solver, NystromCG) else NystromCG()
    rank = min(settings.rank, n)
    vectors = (n * (2 * rank + 6 * C) + 2 * rank**2) * like.itemsize
    if vectors + besides > budget:
        raise MemoryError(
            f"the iterative solver with rank={rank} needs "
            f"{(vectors + besides) / 1e9:.2g} GB for {n} samples in "
            f"{_name(like)}, but the budget is {budget / 1e9:.2g} GB; a smaller "
            "rank (solver=NystromCG(rank=...)), fewer samples or dtype='float32' "
            "would fit"
        )
    return NystromCGSolver(settings, budget - besides - vectors, rng)


_SOLVERS = ("auto", "cholesky", "iterative")


def _too_dense(n: int, like: Tensor, budget: float, besides: float) -> str:
    """Message for a Cholesky factorisation that does not fit."""
    room = max(0.0, budget - besides)
    fits = {size: int((room / (2 * size)) ** 0.5) for size in (8, 4)}
    single = f", or {fits[4]} in float32" if like.itemsize == 8 else ""
    return (
        f"solver='cholesky' needs {(2 * n**2 * like.itemsize + besides) / 1e9:.2g} "
        f"GB (two {n} x {n} arrays of {_name(like)}, and {besides / 1e9:.2g} GB "
        f"besides), but the budget is {budget / 1e9:.2g} GB. About "
        f"{fits[like.itemsize]} samples would fit{single}; or use "
        "solver='iterative'"
    )


def _name(tensor: Tensor) -> str:
    """dtype as the user writes it."""
    return str(tensor.dtype).removeprefix("torch.")
