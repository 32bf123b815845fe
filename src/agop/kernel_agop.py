"""Gradients of kernel predictors and their average outer product, in closed form.

For a predictor f_c(x) = Σ_i a_ic k(x, z_i), with the weights B and r of
`agop.kernels`, the gradients at the m points Y are

    H_c = diag(r_c) Y + B diag(a_c) Z,                                    (m, r)

and the average gradient outer product (AGOP) is S = (1/m) Σ_c H_cᵀ H_c in the
coordinates Y = X R / L, that is (R/L) S (R/L)ᵀ in those of X. Nothing of size
n × C × d is ever stored: B is formed strip by strip, so that the memory is that
of a strip and of one d × d matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ._validation import check_samples
from .kernels import Kernel, Points, common_coordinates, resolve_kernel, strips

__all__ = [
    "Expansion",
    "agop_diagonal",
    "agop_factor",
    "agop_matrix",
    "gradients",
    "kernel_agop",
    "kernel_gradient",
    "psd_factor",
]

# The C-free form subtracts terms larger than its result. Beyond this ratio it
# would lose more than five of float64's sixteen digits; the loop loses none.
_MAX_CANCELLATION = 1e5

_GRAM_BLOCK = 256  # rows and columns of the blocks in which BᵀB is accumulated


class Expansion(NamedTuple):
    """A predictor f_c(y) = Σ_i A_ic k(y, z_i) in the coordinates Y.

    A solver that holds n × n arrays can lend them: `P` with the pairwise numbers of
    z, and `scratch`, which may be overwritten.
    """

    kernel: Kernel
    z: Points  # n points
    A: Tensor  # (n, C)
    P: Tensor | None = None  # (n, n)
    scratch: Tensor | None = None  # (n, n)

    def points(self, at: At) -> Points:
        """The points meant by `at`, in the coordinates of z."""
        if at is None:
            return self.z
        return at if isinstance(at, Points) else self.z[at]

    def pairwise(self, at: At, y: Points, strip: slice) -> Tensor:
        """P for a strip of the points y of `at`: (b, n)."""
        if self.P is None or isinstance(at, Points):
            return self.kernel.pairwise(y[strip], self.z)
        return self.P[strip] if at is None else self.P[at[strip]]


# Where gradients are taken: at new points, at some rows of z (an index tensor), or
# (None) at all of them. Only the last two can use the P of a solver again.
At = Points | Tensor | None


def kernel_gradient(
    kernel: str | Kernel,
    X: Tensor,
    Z: Tensor,
    A: Tensor,
    *,
    R: Tensor | None = None,
    bandwidth: float = 1.0,
) -> Tensor:
    """Gradients of f_c(x) = Σ_i A_ic k(x, z_i) at the rows of X.

    Parameters
    ----------
    kernel : str or Kernel
        See `agop.kernels.resolve_kernel`.
    X : Tensor of shape (m, d)
    Z : Tensor of shape (n, d)
    A : Tensor of shape (n, C)
    R, bandwidth
        See `agop.kernels.transform`.

    Returns
    -------
    Tensor of shape (m, C, d)

    Raises
    ------
    ValueError, TypeError
        If an argument has the wrong shape or type, or holds NaN or infinity.

    Notes
    -----
    At a kink of the kernel (x = z_i for "laplace", x parallel to z_i for "ntk…")
    the term without derivative counts as zero.

    Examples
    --------
    >>> import torch
    >>> Z = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    >>> A = torch.tensor([[1.0], [0.0]])
    >>> kernel_gradient("laplace", Z, Z, A)[1, 0]  # -exp(-5) (3, 4) / 5
    tensor([-0.0040, -0.0054])
    """
    kernel = resolve_kernel(kernel)
    y, z = common_coordinates(kernel, X, Z, R, bandwidth)
    G = gradients(Expansion(kernel, z, _coefficients(A, z)), y)
    if R is None:
        return G.div_(bandwidth)
    W = R / bandwidth
    return G * W if R.ndim == 1 else G @ W.mT


def kernel_agop(
    kernel: str | Kernel,
    X: Tensor,
    Z: Tensor,
    A: Tensor,
    *,
    R: Tensor | None = None,
    bandwidth: float = 1.0,
    centred: bool = False,
) -> Tensor:
    """AGOP of f_c(x) = Σ_i A_ic k(x, z_i) over the rows of X.

    Parameters
    ----------
    kernel, X, Z, A, R, bandwidth
        See `kernel_gradient`.
    centred : bool, default=False
        Subtract from the gradients of each output their mean over the rows of X.

    Returns
    -------
    Tensor of shape (d, d), symmetric and positive semi-definite

    Examples
    --------
    >>> import torch
    >>> X = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    >>> A = torch.ones(2, 1)
    >>> kernel_agop("quadratic", X, X, A)  # f(x) = 2 x_1², gradient (4 x_1, 0)
    tensor([[16.,  0.],
            [ 0.,  0.]])
    """
    kernel = resolve_kernel(kernel)
    y, z = common_coordinates(kernel, X, Z, R, bandwidth)
    S = agop_matrix(Expansion(kernel, z, _coefficients(A, z)), y, centred=centred)
    if R is None:
        return S.div_(bandwidth**2)
    W = R / bandwidth
    return W[:, None] * S * W if R.ndim == 1 else W @ S @ W.mT


def _coefficients(A: Tensor, z: Points) -> Tensor:
    """A of shape (n, C), checked, in the precision of the points."""
    A = check_samples(A, "A").to(z.Y)
    if A.dim() != 2 or len(A) != z.n:
        raise ValueError(
            f"A must have shape ({z.n}, C), one row per row of Z, got {tuple(A.shape)}"
        )
    return A


def gradients(f: Expansion, at: At = None) -> Tensor:
    """Gradients of f in the coordinates of its points: (m, C, r)."""
    G = f.A.new_empty(f.points(at).n, f.A.shape[1], f.z.Y.shape[1])
    for rows, c, H in _gradient_strips(f, at):
        G[rows, c] = H
    return G


def agop_factor(f: Expansion, at: At = None, *, centred: bool = False) -> Tensor:
    """T of shape (r, q) with T Tᵀ = S, the AGOP in the coordinates of f.

    With at most r gradients in all (m C ≤ r) these are T themselves: no r × r matrix
    is formed.
    """
    m, C, r = f.points(at).n, f.A.shape[1], f.z.Y.shape[1]
    if m * C > r:
        return psd_factor(agop_matrix(f, at, centred=centred))
    G = gradients(f, at)  # (m, C, r)
    if centred:
        G -= G.mean(0)
    return G.view(m * C, r).mT / m**0.5


def agop_matrix(f: Expansion, at: At = None, *, centred: bool = False) -> Tensor:
    """S of shape (r, r): the AGOP in the coordinates of f.

    The sum over outputs costs C m r (n + r) multiplications. In float64, given
    scratch memory, and where it is cheaper, S comes from a form that has no factor
    C (`_sums_without_loop`).
    """
    sums = _sums_without_loop(f, at) if _loop_is_dearer(f, at) else None
    S, g = sums or _sums_by_loop(f, at)
    m = f.points(at).n
    S /= m
    g /= m  # mean gradient of each output
    return S.addmm_(g.mT, g, alpha=-1) if centred else S


def agop_diagonal(f: Expansion, at: At = None, *, centred: bool = False) -> Tensor:
    """Diagonal of S, of shape (r,), without any r × r matrix."""
    m, C, r = f.points(at).n, f.A.shape[1], f.z.Y.shape[1]
    s, g = f.A.new_zeros(r), f.A.new_zeros(C, r)
    for _, c, H in _gradient_strips(f, at):
        s += H.square().sum(0)
        g[c] += H.sum(0)
    s /= m
    g /= m
    return (s - g.square().sum(0)).clamp_(min=0) if centred else s


def psd_factor(S: Tensor) -> Tensor:
    """T with T Tᵀ = S for a symmetric positive semi-definite S of shape (r, r).

    Cholesky where S is definite; otherwise eigenvectors scaled by the square roots
    of the eigenvalues, where those below rounding level are dropped.

    Examples
    --------
    >>> import torch
    >>> psd_factor(torch.tensor([[4.0, 0.0], [0.0, 0.0]])).abs()
    tensor([[2.],
            [0.]])
    """
    T, failed = torch.linalg.cholesky_ex(S)
    if not failed:
        return T
    values, vectors = torch.linalg.eigh(S)
    keep = values > values[-1] * S.shape[0] * torch.finfo(S.dtype).eps
    return vectors[:, keep] * values[keep].sqrt()


def _weight_strips(
    f: Expansion, at: At, height: int = 0
) -> Iterator[tuple[slice, Points, Tensor, Tensor]]:
    """Strips of the weights: rows, their points, B (b, n) and r (b, C)."""
    y = f.points(at)
    for rows in strips(y.n, f.z.n, height):
        P = f.pairwise(at, y, rows)
        yield rows, y[rows], *f.kernel.weights(P, y[rows], f.z, f.A)


def _gradient_strips(f: Expansion, at: At) -> Iterator[tuple[slice, int, Tensor]]:
    """Strips of the gradients: rows, output c, and H_c (b, r)."""
    for rows, y, B, r in _weight_strips(f, at):
        for c in range(f.A.shape[1]):
            H = (B * f.A[:, c]) @ f.z.Y
            yield rows, c, H.addcmul_(r[:, c : c + 1], y.Y)


def _loop_is_dearer(f: Expansion, at: At) -> bool:
    """Whether the form without a loop over outputs is allowed and cheaper."""
    if f.scratch is None or f.A.dtype != torch.float64:
        return False
    m, n, r, C = f.points(at).n, f.z.n, f.z.Y.shape[1], f.A.shape[1]
    return m * n * n / 2 + (m + n) * n * r + m * r * r < C * m * r * (n + r)


def _sums_by_loop(f: Expansion, at: At) -> tuple[Tensor, Tensor]:
    """Σ_c H_cᵀ H_c of shape (r, r), and the column sums of each H_c, (C, r)."""
    r, C = f.z.Y.shape[1], f.A.shape[1]
    S, g = f.A.new_zeros(r, r), f.A.new_zeros(C, r)
    for _, c, H in _gradient_strips(f, at):
        S.addmm_(H.mT, H)
        g[c] += H.sum(0)
    return S, g


def _sums_without_loop(f: Expansion, at: At) -> tuple[Tensor, Tensor] | None:
    """The same two sums without a loop over outputs.

    Multiplying out Σ_c H_cᵀ H_c leaves, with ∘ the elementwise product,

        Yᵀ diag(Σ_c r_c²) Y + sym Yᵀ (B ∘ r Aᵀ) Z + Zᵀ (BᵀB ∘ A Aᵀ) Z:

    O(m n² + n² r) whatever C. These terms cancel where B is large, that is for
    near-duplicate points under the Laplace kernel; None where that costs too
    many digits.
    """
    Z, A, Q = f.z.Y, f.A, f.scratch
    assert Q is not None
    Q.zero_()  # will hold the lower triangle of BᵀB
    own, mixed, outer = Z.new_zeros(3, Z.shape[1], Z.shape[1])
    columns, g = A.new_zeros(f.z.n), Z.new_zeros(A.shape[1], Z.shape[1])
    for _, y, B, r in _weight_strips(f, at, _GRAM_BLOCK):
        for cols in strips(f.z.n, 0, _GRAM_BLOCK):
            Q[cols, : cols.stop].addmm_(B[:, cols].mT, B[:, : cols.stop])
        columns += B.sum(0)
        g.addmm_(r.mT, y.Y)
        own.addmm_(y.Y.mT, y.Y * r.square().sum(1, keepdim=True))
        mixed.addmm_(y.Y.mT, B.mul_(r @ A.mT) @ Z)
    g.addmm_(A.mT * columns, Z)
    for cols in strips(f.z.n, 0, _GRAM_BLOCK):
        G = Q[cols, : cols.stop].mul_(A[cols] @ A[: cols.stop].mT)
        G[:, cols].mul_(0.5)  # all else is counted twice, by symmetry
        outer.addmm_(Z[cols].mT, G @ Z[: cols.stop])
    terms = own.trace() + 2 * mixed.trace().abs() + 2 * outer.trace()
    S = own.add_(mixed).add_(mixed.mT).add_(outer).add_(outer.mT)
    return (S, g) if terms <= _MAX_CANCELLATION * S.trace() else None
