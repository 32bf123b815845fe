"""RFM, Laplace kernel and NTK on tables, with everything shared that can be.

All three are kernel ridge regression on one-hot labels. Within a grid the kernel
matrix of one input scaling is computed once for all ridges, and solved for all
outputs together; the first fit of an RFM, that of the Laplace kernel, and the AGOP of
it serve both the full and the diagonal matrix M.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from agop.kernel_agop import Expansion
from agop.kernels import (
    Kernel,
    LaplaceKernel,
    NeuralTangentKernel,
    Points,
    kernel_matmul,
    transform,
)
from agop.recursion import Machine, next_factor
from agop.solvers import (
    CholeskySolver,
    NystromCG,
    NystromCGSolver,
    Solver,
    default_memory,
    solve_cholesky_,
)

from .protocol import Candidate, Chosen, Method, Score, hits
from .tables import Split

RIDGES = (10.0, 1.0, 0.1, 0.01, 0.001)  # from stiff to flexible
BANDWIDTH = 10.0  # L
N_FITS = 5  # "5 iterations": the Laplace kernel and four updates of M
DEPTHS = (1, 2, 3, 4, 5)  # hidden layers of the NTK
DIAGONAL_BELOW = 5000  # rows of a table: smaller ones choose between full and diagonal

#: Hyper-parameters are chosen, and M is learnt, from at most so many rows. Tables of
#: up to 8124 rows are not touched by either.
SELECT_ROWS, LEARN_ROWS = 4096, 6144

#: Beyond so many training rows the last system is solved by conjugate gradients, at
#: most 50 iterations (as many as the paper allows EigenPro). In double precision: the
#: kernel is close to constant under L = 10, and single precision takes four times the
#: iterations and stops short (measured on chess-krvk).
DENSE_ROWS = 10_000
LARGE = NystromCG(rank=1000, tol=1e-3, max_iter=50)
CACHE_BYTES = 8e9

#: Up to so many rows one eigendecomposition costs less than a Cholesky factorisation
#: for each of five ridges (measured; at 2000 rows it costs four times as much).
EIGEN_ROWS = 200


class Frame(NamedTuple):
    """A split as tensors; the origin is the mean of the training rows."""

    x: Tensor  # (n, d)
    T: Tensor  # (n, C), one-hot
    x_test: Tensor  # (m, d)
    y_test: np.ndarray  # (m,)

    @classmethod
    def of(cls, split: Split, *, centre: bool = True) -> Frame:
        """The split in float64, moved to the origin unless the kernel minds."""
        origin = split.X.mean(0) if centre else 0.0
        x, x_test = (torch.from_numpy(X - origin) for X in (split.X, split.X_test))
        T = torch.eye(split.C, dtype=x.dtype)[torch.from_numpy(split.y)]
        return cls(x, T, x_test, split.y_test)


def ridge_path(K: Tensor, T: Tensor, ridges: Sequence[float]) -> list[Tensor]:
    """Solve (K + λ I) A = T for every λ, from one eigendecomposition where cheaper.

    Parameters
    ----------
    K : Tensor of shape (n, n)
        Symmetric, positive semi-definite; left as it is.
    T : Tensor of shape (n, C)
    ridges : sequence of positive floats

    Returns
    -------
    list of Tensors of shape (n, C)

    Examples
    --------
    >>> [A.tolist() for A in ridge_path(torch.eye(1), torch.ones(1, 1), (1.0, 3.0))]
    [[[0.5]], [[0.25]]]
    """
    if len(K) > EIGEN_ROWS:
        return [solve_cholesky_(K.clone(), T, ridge) for ridge in ridges]
    values, V = torch.linalg.eigh(K)
    values.clamp_(min=0)
    B = V.mT @ T  # (n, C)
    return [V @ (B / (values + ridge)[:, None]) for ridge in ridges]


def rfm_path(
    x: Tensor,
    T: Tensor,
    *,
    ridges: Sequence[float] = RIDGES,
    diagonals: Sequence[bool] = (False, True),
    n_fits: int = N_FITS,
    normalise: str = "none",
) -> Iterator[tuple[float, bool, Machine]]:
    """Algorithm 1 for every ridge, with full and with diagonal M.

    Parameters
    ----------
    x : Tensor of shape (n, d)
    T : Tensor of shape (n, C)
    ridges : sequence of positive floats
    diagonals : sequence of bool
        Which kinds of M; the first stands for both where M = I.
    n_fits : int
        Kernel machines solved for each, the first under M = I.
    normalise : {"none", "max", "trace"}
        See `agop.recursion.normalise_factor`; the paper's algorithm has none.

    Yields
    ------
    ridge, diagonal, machine
        All with M = I first, then those of one ridge and kind after the other. Less
        than n_fits for a ridge whose predictor becomes constant.
    """
    kernel, eye = LaplaceKernel(), x.new_ones(x.shape[1])
    z = Points.of(transform(x, eye, BANDWIDTH))
    P = kernel.pairwise(z, z)  # (n, n)
    first = ridge_path(kernel.value(P, z, z), T, ridges)
    for ridge, A in zip(ridges, first, strict=True):
        yield ridge, diagonals[0], Machine(0, eye, z, A)
    solver = CholeskySolver(len(x), x)
    for ridge, A in zip(ridges, first, strict=True):
        f = Expansion(kernel, z, A, P, solver.scratch)
        R = next_factor(eye, f, bandwidth=BANDWIDTH, normalise=normalise)
        if R is None or n_fits < 2:
            continue
        for diagonal in diagonals:
            start = R.square().sum(1).sqrt() if diagonal else R  # diag of the same M
            steps = _continue(start, x, T, solver, ridge, diagonal, normalise)
            for machine in islice(steps, n_fits - 1):
                yield ridge, diagonal, machine


def _continue(
    R: Tensor | None,
    x: Tensor,
    T: Tensor,
    solver: CholeskySolver,
    ridge: float,
    diagonal: bool,
    normalise: str,
) -> Iterator[Machine]:
    """Machines of Algorithm 1 from the factor R of the first update on."""
    kernel, t = LaplaceKernel(), 0
    while R is not None:
        t += 1
        z = Points.of(transform(x, R, BANDWIDTH))
        A = solver.solve(kernel, z, T, ridge)
        yield Machine(t, R, z, A)
        f = Expansion(kernel, z, A, solver.P, solver.scratch)
        R = next_factor(
            R, f, bandwidth=BANDWIDTH, diagonal=diagonal, normalise=normalise
        )


def learn_factor(
    x: Tensor, T: Tensor, chosen: Chosen, *, normalise: str = "none"
) -> Tensor:
    """Return the factor R of M = R Rᵀ after the chosen number of updates."""
    path = rfm_path(
        x,
        T,
        ridges=(chosen["ridge"],),
        diagonals=(chosen["diagonal"],),
        n_fits=chosen["updates"] + 1,
        normalise=normalise,
    )
    machine = None
    for _, _, machine in path:
        if machine.t == chosen["updates"]:
            break
    assert machine is not None
    return machine.R


def fit_and_score(
    kernel: Kernel, frame: Frame, R: Tensor | None, bandwidth: float, ridge: float
) -> Score:
    """Solve one kernel machine on all rows of the frame and score its test rows."""
    x, T, x_test, y_test = frame
    solver = _solver(len(x), x)
    z, y = (Points.of(transform(X, R, bandwidth)) for X in (x, x_test))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # kept in the notes
        A = solver.solve(kernel, z, T, ridge)
    F = kernel_matmul(kernel, y, z, A)  # (m, C)
    return Score(hits(F.numpy(), y_test), dict(solver.report))


def _solver(n: int, like: Tensor) -> Solver:
    if n <= DENSE_ROWS:
        return CholeskySolver(n, like)
    cache = min(CACHE_BYTES, default_memory(like.device) / 2)
    return NystromCGSolver(LARGE, cache, np.random.default_rng(0))


def _scalings(split: Split) -> tuple[bool, ...]:
    """Rows as they are, and on the unit sphere unless one of them is zero."""
    return (False,) if split.has_zero_row else (False, True)


def _scaled(split: Split, sphere: bool) -> Split:
    return split.on_sphere() if sphere else split


@dataclass(frozen=True)
class RFM(Method):
    """Recursive Feature Machine; M is learnt afresh in each fold.

    The grid has 5 ridges, up to 5 fits, rows on the unit sphere or not and, for
    tables under 5000 rows, full or diagonal M.
    """

    normalise: str = "none"
    name: ClassVar[str] = "rfm"

    def candidates(self, split: Split) -> Iterator[Candidate]:
        """Validate all machines of the grid; those with M = I come first."""
        small = len(split.y) + len(split.y_test) < DIAGONAL_BELOW
        split = split.at_most(SELECT_ROWS, SELECT_ROWS)
        found: list[tuple[int, Candidate]] = []
        for sphere in _scalings(split):
            frame = Frame.of(_scaled(split, sphere))
            path = rfm_path(
                frame.x,
                frame.T,
                diagonals=(False, True) if small else (False,),
                normalise=self.normalise,
            )
            for ridge, diagonal, machine in path:
                chosen = {
                    "sphere": sphere,
                    "ridge": ridge,
                    "diagonal": diagonal,
                    "updates": machine.t,
                }
                found.append((machine.t, Candidate(chosen, _accuracy(machine, frame))))
        yield from (candidate for _, candidate in sorted(found, key=lambda f: f[0]))

    def score(self, chosen: Chosen, fold: Split, selection: Split) -> Score:
        """Learn M on rows of the fold, then solve on all of them."""
        return self._score_with(self._learn(chosen, fold), chosen, fold)

    def _learn(self, chosen: Chosen, split: Split) -> Tensor | None:
        if chosen["updates"] == 0:
            return None
        some = _scaled(split.at_most(LEARN_ROWS, 1), chosen["sphere"])
        frame = Frame.of(some)
        return learn_factor(frame.x, frame.T, chosen, normalise=self.normalise)

    def _score_with(self, R: Tensor | None, chosen: Chosen, fold: Split) -> Score:
        frame = Frame.of(_scaled(fold, chosen["sphere"]))
        return fit_and_score(LaplaceKernel(), frame, R, BANDWIDTH, chosen["ridge"])


@dataclass(frozen=True)
class ReusedRFM(RFM):
    """The released script's variant: M of the selection split serves in all folds.

    Test rows of the folds are among the rows that M was learnt from: leakage.
    """

    name: ClassVar[str] = "rfm-reused"
    selects_as: ClassVar[str | None] = "rfm"

    def score(self, chosen: Chosen, fold: Split, selection: Split) -> Score:
        """Learn M on the selection split's training rows, and solve on the fold."""
        return self._score_with(self._learn(chosen, selection), chosen, fold)


@dataclass(frozen=True)
class Laplace(Method):
    """Kernel ridge regression with the Laplace kernel: an RFM that learns no M."""

    name: ClassVar[str] = "laplace"

    def candidates(self, split: Split) -> Iterator[Candidate]:
        """5 ridges, rows on the unit sphere or not."""
        split = split.at_most(SELECT_ROWS, SELECT_ROWS)
        for sphere in _scalings(split):
            frame = Frame.of(_scaled(split, sphere))
            for ridge, value in _ridge_scores(LaplaceKernel(), frame, BANDWIDTH):
                yield Candidate({"sphere": sphere, "ridge": ridge}, value)

    def score(self, chosen: Chosen, fold: Split, selection: Split) -> Score:
        """Solve on all rows of the fold."""
        frame = Frame.of(_scaled(fold, chosen["sphere"]))
        return fit_and_score(LaplaceKernel(), frame, None, BANDWIDTH, chosen["ridge"])


@dataclass(frozen=True)
class NTK(Method):
    """Kernel ridge regression with the NTK of 1 to 5 hidden layers, without offset."""

    name: ClassVar[str] = "ntk"
    max_rows: ClassVar[int] = DENSE_ROWS

    def candidates(self, split: Split) -> Iterator[Candidate]:
        """5 depths, 5 ridges, rows on the unit sphere or not."""
        split = split.at_most(SELECT_ROWS, SELECT_ROWS)
        for sphere in _scalings(split):
            frame = Frame.of(_scaled(split, sphere), centre=False)
            for depth in DEPTHS:
                kernel = NeuralTangentKernel(depth)
                for ridge, value in _ridge_scores(kernel, frame, 1.0):
                    yield Candidate(
                        {"sphere": sphere, "depth": depth, "ridge": ridge}, value
                    )

    def score(self, chosen: Chosen, fold: Split, selection: Split) -> Score:
        """Solve on all rows of the fold."""
        frame = Frame.of(_scaled(fold, chosen["sphere"]), centre=False)
        kernel = NeuralTangentKernel(chosen["depth"])
        return fit_and_score(kernel, frame, None, 1.0, chosen["ridge"])


def _ridge_scores(
    kernel: Kernel, frame: Frame, bandwidth: float
) -> Iterator[tuple[float, float]]:
    """Every ridge and its validation accuracy, from one kernel matrix each way."""
    z, y = (Points.of(X / bandwidth) for X in (frame.x, frame.x_test))
    A = torch.cat(
        ridge_path(kernel.value(kernel.pairwise(z, z), z, z), frame.T, RIDGES), 1
    )  # (n, 5 C)
    F = kernel_matmul(kernel, y, z, A)
    for ridge, scores in zip(RIDGES, F.split(frame.T.shape[1], 1), strict=True):
        yield ridge, hits(scores.numpy(), frame.y_test)


def _accuracy(machine: Machine, frame: Frame) -> float:
    """Accuracy of a machine on the frame's test rows."""
    y = Points.of(transform(frame.x_test, machine.R, BANDWIDTH))
    F: Any = kernel_matmul(LaplaceKernel(), y, machine.z, machine.A)
    return hits(F.numpy(), frame.y_test)
