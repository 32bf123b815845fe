"""Kernels under a Mahalanobis matrix, and the two weights their gradients need.

Every kernel here sees a pair of points only through one number, their Euclidean
distance or their inner product, after a change of coordinates

    Y = X R / L,    M = R Rᵀ,    so that  ‖x − z‖_M / L = ‖y − z‖.

The matrix M and the bandwidth L are therefore not part of a kernel: they are the
coordinates (`transform`). With P the matrix of pairwise distances (or inner
products) and K = κ(P), every gradient has the form

    ∇_y k(y, z_i) = B(y, z_i) z_i + E(y, z_i) y,

so that contracting with coefficients a_i needs the matrix B and the vector
r = Σ_i E(·, z_i) a_i only. The module `agop.kernel_agop` builds on these two.

Shape letters: n and m points, d input dimensions, r columns of R, C outputs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ._validation import check_integer, check_real, check_samples

# Elements of an n-column strip: large enough for gemm, small enough for the cache.
_STRIP_ELEMENTS = 2**18
_STRIP_ROWS = 128

__all__ = [
    "GaussianKernel",
    "Kernel",
    "LaplaceKernel",
    "NeuralTangentKernel",
    "Points",
    "PolynomialKernel",
    "kernel_diagonal",
    "kernel_matmul",
    "kernel_matrix",
    "resolve_kernel",
    "transform",
]


@dataclass(frozen=True, eq=False)
class Points:
    """Points in the coordinates Y = X R / L, with their squared norms.

    Attributes
    ----------
    Y : Tensor of shape (n, r)
    sq : Tensor of shape (n, 1)
    """

    Y: Tensor
    sq: Tensor

    @classmethod
    def of(cls, Y: Tensor) -> Points:
        """Points with the rows of Y, of shape (n, r)."""
        return cls(Y, Y.square().sum(1, keepdim=True))

    def __getitem__(self, rows: slice | Tensor) -> Points:
        """The points of these rows."""
        return Points(self.Y[rows], self.sq[rows])

    @property
    def n(self) -> int:
        """Number of points."""
        return self.Y.shape[0]


class Kernel(ABC):
    """A kernel k(y, z) of the distance or of the inner product of two points.

    Subclasses are small frozen dataclasses: equal settings compare equal, and
    scikit-learn can clone them.
    """

    #: True where k(y + t, z + t) = k(y, z); such data are centred before use.
    translation_invariant: ClassVar[bool]

    @abstractmethod
    def pairwise(self, y: Points, z: Points) -> Tensor:
        """P of shape (m, n): distances or inner products of every pair."""

    @abstractmethod
    def value(self, P: Tensor, y: Points, z: Points) -> Tensor:
        """K of shape (m, n) from P; P is left as it is."""

    @abstractmethod
    def weights(
        self, P: Tensor, y: Points, z: Points, A: Tensor
    ) -> tuple[Tensor, Tensor]:
        """B of shape (m, n) and r = E A of shape (m, C), as defined above."""

    @abstractmethod
    def diagonal(self, y: Points) -> Tensor:
        """k(y_j, y_j), of shape (m,)."""


class _RadialKernel(Kernel):
    """k(y, z) = κ(‖y − z‖): here B = −κ'(D)/D and E = −B."""

    translation_invariant: ClassVar[bool] = True

    def pairwise(self, y: Points, z: Points) -> Tensor:
        return _distances(y, z)

    def weights(
        self, P: Tensor, y: Points, z: Points, A: Tensor
    ) -> tuple[Tensor, Tensor]:
        B = self._slope(P)
        return B, -(B @ A)

    def diagonal(self, y: Points) -> Tensor:
        return torch.ones_like(y.sq[:, 0])

    @abstractmethod
    def _slope(self, D: Tensor) -> Tensor:
        """−κ'(D)/D, and 0 where D = 0."""


@dataclass(frozen=True)
class LaplaceKernel(_RadialKernel):
    """Laplace kernel exp(−‖y − z‖), with the Euclidean (L2) norm.

    With bandwidth L this is exp(−‖x − z‖_M / L) of Radhakrishnan et al. (2024),
    Algorithm 1. Note that `sklearn.metrics.pairwise.laplacian_kernel` is another
    function: it uses the L1 norm.

    The kernel has a kink at y = z. Its gradient there is set to zero, which is the
    mean of the one-sided gradients and the convention of the paper's code.

    Examples
    --------
    >>> import torch
    >>> Y = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    >>> kernel_matrix(LaplaceKernel(), Y, bandwidth=5.0)
    tensor([[1.0000, 0.3679],
            [0.3679, 1.0000]])
    """

    def value(self, P: Tensor, y: Points, z: Points) -> Tensor:
        return torch.neg(P).exp_()

    def _slope(self, D: Tensor) -> Tensor:
        return torch.neg(D).exp_().div_(D).masked_fill_(D == 0, 0.0)


@dataclass(frozen=True)
class GaussianKernel(_RadialKernel):
    """Gaussian kernel exp(−‖y − z‖² / 2).

    With bandwidth L this is exp(−‖x − z‖²_M / (2 L²)): L is the standard deviation
    (scikit-learn's `length_scale`), not the L of exp(−‖x − z‖² / L).

    Examples
    --------
    >>> import torch
    >>> Y = torch.tensor([[0.0], [2.0]])
    >>> kernel_matrix(GaussianKernel(), Y, bandwidth=2.0)
    tensor([[1.0000, 0.6065],
            [0.6065, 1.0000]])
    """

    def value(self, P: Tensor, y: Points, z: Points) -> Tensor:
        return P.square().mul_(-0.5).exp_()

    def _slope(self, D: Tensor) -> Tensor:
        # At D = 0 the weight multiplies y − z = 0: without it nothing has to cancel.
        return D.square().mul_(-0.5).exp_().masked_fill_(D == 0, 0.0)


@dataclass(frozen=True)
class PolynomialKernel(Kernel):
    """Polynomial kernel (c + y·z)^p; the default is the quadratic one, (y·z)².

    With bandwidth L and matrix M this is (c + xᵀ M z / L²)^p.

    Parameters
    ----------
    degree : int, default=2
        The power p, at least 1.
    offset : float, default=0.0
        The constant c, not negative.

    Examples
    --------
    >>> import torch
    >>> kernel_matrix(PolynomialKernel(), torch.tensor([[1.0, 0.0], [2.0, 1.0]]))
    tensor([[ 1.,  4.],
            [ 4., 25.]])
    """

    degree: int = 2
    offset: float = 0.0
    translation_invariant: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_integer(self.degree, "degree")
        check_real(self.offset, "offset", positive=False)

    def pairwise(self, y: Points, z: Points) -> Tensor:
        return y.Y @ z.Y.mT

    def value(self, P: Tensor, y: Points, z: Points) -> Tensor:
        return (P + self.offset).pow_(self.degree)

    def weights(
        self, P: Tensor, y: Points, z: Points, A: Tensor
    ) -> tuple[Tensor, Tensor]:
        B = (P + self.offset).pow_(self.degree - 1).mul_(self.degree)
        return B, A.new_zeros(y.n, A.shape[1])

    def diagonal(self, y: Points) -> Tensor:
        return (y.sq[:, 0] + self.offset).pow_(self.degree)


@dataclass(frozen=True)
class NeuralTangentKernel(Kernel):
    """Neural tangent kernel of a fully connected ReLU network, in closed form.

    `depth` counts the hidden layers. With u the cosine of y and z and the
    normalisation that keeps norms from layer to layer (weights of variance
    2 / fan-in), the arc-cosine functions

        κ0(u) = (π − arccos u) / π,
        κ1(u) = (u (π − arccos u) + √(1 − u²)) / π

    give, from Σ = Θ = u, the recursion Θ ← κ1(Σ) + Θ κ0(Σ), Σ ← κ1(Σ), repeated
    `depth` times, and k(y, z) = ‖y‖ ‖z‖ Θ(u). Hence k(y, y) = (depth + 1) ‖y‖²: the
    kernel is **not** normalised to one, and it grows with depth. It is homogeneous
    in y, so that without offset the bandwidth only rescales the kernel against
    the ridge.

    Where y and z are parallel the kernel has a kink (as the Laplace kernel has at
    y = z); the part of the gradient across the common direction is set to zero
    there. At y = 0 without offset value and gradient are zero.

    Parameters
    ----------
    depth : int, default=1
        Number of hidden layers, 1 to 5 in the papers (any positive number works).
    offset : float, default=0.0
        β², the square of a constant appended to each input (a first-layer bias).

    Examples
    --------
    >>> import torch
    >>> Y = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    >>> kernel_matrix(NeuralTangentKernel(depth=1), Y)
    tensor([[2.0000, 0.6366],
            [0.6366, 8.0000]], dtype=torch.float64)
    """

    depth: int = 1
    offset: float = 0.0
    translation_invariant: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_integer(self.depth, "depth")
        check_real(self.offset, "offset", positive=False)

    def pairwise(self, y: Points, z: Points) -> Tensor:
        return y.Y @ z.Y.mT

    def value(self, P: Tensor, y: Points, z: Points) -> Tensor:
        scale = self._norms(y, z)
        return scale * self._recursion(self._cosine(P, scale))[0]

    def weights(
        self, P: Tensor, y: Points, z: Points, A: Tensor
    ) -> tuple[Tensor, Tensor]:
        # k is homogeneous in (y, β), so y·∇k + β ∂k/∂β = k fixes E from K and B:
        # B (P + β²) + E (‖y‖² + β²) = K.
        scale = self._norms(y, z)
        theta, B = self._recursion(self._cosine(P, scale))  # (m, n) each
        B.masked_fill_(scale == 0, 0.0)
        radial = theta.mul_(scale).sub_(B * (P + self.offset)) @ A  # (m, C)
        norm = y.sq + self.offset  # (m, 1)
        return B, torch.where(norm > 0, radial / norm, 0.0)

    def diagonal(self, y: Points) -> Tensor:
        return (y.sq[:, 0] + self.offset) * (self.depth + 1)

    def _norms(self, y: Points, z: Points) -> Tensor:
        """‖y‖ ‖z‖ of the inputs with the constant appended, of shape (m, n)."""
        return (y.sq + self.offset).sqrt() @ (z.sq + self.offset).sqrt().mT

    def _cosine(self, P: Tensor, scale: Tensor) -> Tensor:
        u = (P + self.offset).div_(scale).masked_fill_(scale == 0, 0.0)
        # Rounding must not decide on which side of the kink parallel points fall.
        parallel = u.abs() >= 1 - 32 * torch.finfo(u.dtype).eps
        return torch.where(parallel, u.sign(), u)

    def _recursion(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Θ(u) and Θ'(u), elementwise."""
        sigma, dsigma = u, torch.ones_like(u)
        theta, dtheta = u, dsigma
        for _ in range(self.depth):
            k0, k1, dk0 = _arc_cosine(sigma)
            theta, dtheta = (
                torch.addcmul(k1, theta, k0),
                (k0 + theta * dk0) * dsigma + dtheta * k0,
            )
            sigma, dsigma = k1, dsigma * k0
        return theta, dtheta


def _arc_cosine(u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """κ0, κ1 and κ0' at u; note κ1' = κ0. κ0' is 0 at the kinks u = ±1."""
    sin = ((1 - u) * (1 + u)).sqrt()
    k0 = 1 - u.acos() / math.pi
    k1 = u * k0 + sin / math.pi
    return k0, k1, (1 / (math.pi * sin)).masked_fill_(sin == 0, 0.0)


def _distances(y: Points, z: Points) -> Tensor:
    """Euclidean distances of shape (m, n), accurate also where they are small.

    ‖y‖² + ‖z‖² − 2 y·z costs one gemm but loses all digits for close pairs; those
    (few) are computed again from differences. Points that agree to rounding are
    the same point: their distance is exactly 0.
    """
    eps = torch.finfo(y.Y.dtype).eps
    D = torch.addmm(z.sq.mT, y.Y, z.Y.mT, alpha=-2).add_(y.sq)  # squared distances
    close = _nonzero(2e3 * eps * y.sq >= D)
    for pairs in close.split(max(1, _STRIP_ELEMENTS // max(1, y.Y.shape[1]))):
        i, j = pairs.unbind(1)
        exact = (y.Y[i] - z.Y[j]).square().sum(1)
        D[i, j] = exact.masked_fill_(exact <= (32 * eps) ** 2 * y.sq[i, 0], 0.0)
    return D.sqrt_()


def _nonzero(mask: Tensor) -> Tensor:
    """Indices (q, 2) of the true entries; on the CPU numpy finds them faster."""
    if mask.device.type != "cpu":
        return mask.nonzero()
    flat = torch.from_numpy(np.flatnonzero(mask.numpy()))
    return torch.stack([flat // mask.shape[1], flat % mask.shape[1]], 1)


_NAMED_KERNELS: dict[str, Kernel] = {
    "laplace": LaplaceKernel(),
    "gaussian": GaussianKernel(),
    "quadratic": PolynomialKernel(degree=2),
    **{f"ntk{depth}": NeuralTangentKernel(depth) for depth in range(1, 6)},
}


def resolve_kernel(kernel: str | Kernel) -> Kernel:
    """The kernel of this name, or the kernel itself.

    Parameters
    ----------
    kernel : str or Kernel
        "laplace", "gaussian", "quadratic", "ntk1" … "ntk5", or an instance.

    Raises
    ------
    ValueError
        If the name is unknown.

    Examples
    --------
    >>> resolve_kernel("ntk3")
    NeuralTangentKernel(depth=3, offset=0.0)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str) or kernel not in _NAMED_KERNELS:
        names = ", ".join(repr(name) for name in _NAMED_KERNELS)
        raise ValueError(f"kernel must be one of {names} or a Kernel, got {kernel!r}")
    return _NAMED_KERNELS[kernel]


def transform(X: Tensor, R: Tensor | None = None, bandwidth: float = 1.0) -> Tensor:
    """Coordinates Y = X R / L in which ‖x − z‖_M / L is a Euclidean distance.

    Parameters
    ----------
    X : Tensor of shape (n, d)
    R : Tensor of shape (d, r) or (d,), optional
        Factor of M = R Rᵀ; a vector stands for a diagonal matrix, None for I.
    bandwidth : float, default=1.0
        L, positive.

    Returns
    -------
    Tensor of shape (n, r), or (n, d) where R is a vector or None.

    Examples
    --------
    >>> import torch
    >>> transform(torch.ones(1, 2), torch.tensor([1.0, 3.0]), bandwidth=2.0)
    tensor([[0.5000, 1.5000]])
    """
    check_real(bandwidth, "bandwidth")
    if R is None:
        return X / bandwidth
    if R.shape[0] != X.shape[1]:
        raise ValueError(
            f"R must have one row per column of X ({X.shape[1]}), got {R.shape[0]}"
        )
    return X * (R / bandwidth) if R.ndim == 1 else X @ (R / bandwidth)


def kernel_matrix(
    kernel: str | Kernel,
    X: Tensor,
    Z: Tensor | None = None,
    *,
    R: Tensor | None = None,
    bandwidth: float = 1.0,
) -> Tensor:
    """Matrix of k(x_j, z_i) under M = R Rᵀ and bandwidth L.

    Parameters
    ----------
    kernel : str or Kernel
        See `resolve_kernel`.
    X : Tensor of shape (m, d)
    Z : Tensor of shape (n, d), optional
        X itself if None.
    R, bandwidth
        See `transform`.

    Returns
    -------
    Tensor of shape (m, n)

    Raises
    ------
    ValueError, TypeError
        If an argument has the wrong shape or type, or holds NaN or infinity.

    Examples
    --------
    >>> import torch
    >>> X = torch.tensor([[0.0, 0.0], [0.0, 7.0]])
    >>> kernel_matrix("laplace", X, R=torch.tensor([1.0, 0.0]))  # blind to axis 2
    tensor([[1., 1.],
            [1., 1.]])
    """
    kernel = resolve_kernel(kernel)
    x, z = common_coordinates(kernel, X, Z, R, bandwidth)
    K = z.Y.new_empty(x.n, z.n)
    for rows in strips(x.n, z.n):
        K[rows] = kernel.value(kernel.pairwise(x[rows], z), x[rows], z)
    return K


def kernel_matmul(kernel: Kernel, y: Points, z: Points, A: Tensor) -> Tensor:
    """K(y, z) A of shape (m, C), one strip of K at a time; A is (n, C)."""
    out = A.new_empty(y.n, A.shape[1])
    for rows in strips(y.n, z.n):
        K = kernel.value(kernel.pairwise(y[rows], z), y[rows], z)
        torch.mm(K, A, out=out[rows])
    return out


def kernel_diagonal(kernel: str | Kernel, X: Tensor) -> Tensor:
    """k(x, x) for the rows of X, shape (n,); 1 for the radial kernels.

    Examples
    --------
    >>> import torch
    >>> kernel_diagonal("ntk2", torch.ones(1, 4))
    tensor([12.])
    """
    X = _floating(check_samples(X, "X"))
    return resolve_kernel(kernel).diagonal(Points.of(X))


def common_coordinates(
    kernel: Kernel,
    X: Tensor,
    Z: Tensor | None,
    R: Tensor | None,
    bandwidth: float,
) -> tuple[Points, Points]:
    """X and Z as `Points` of one coordinate system, centred where that is free.

    Far from the origin distances lose digits (‖y‖² + ‖z‖² − 2 y·z cancels); a
    translation-invariant kernel allows us to move the origin to the mean of Z.
    """
    X = _floating(check_samples(X, "X"))
    Z = X if Z is None else _floating(check_samples(Z, "Z")).to(X.dtype)
    if X.shape[1] != Z.shape[1]:
        raise ValueError(
            f"X and Z must have the same number of columns, got {X.shape[1]} and "
            f"{Z.shape[1]}"
        )
    same = Z is X
    if kernel.translation_invariant:
        origin = Z.mean(0)
        X, Z = X - origin, Z - origin
    z = Points.of(transform(Z, R, bandwidth))
    return (z if same else Points.of(transform(X, R, bandwidth))), z


def _floating(X: Tensor) -> Tensor:
    """X itself, or integers as float64."""
    return X if X.is_floating_point() else X.double()


def strips(m: int, n: int, rows: int = 0) -> Iterator[slice]:
    """Slices that cut m rows of n columns into strips of about 2**18 elements.

    Examples
    --------
    >>> list(strips(5, 10, rows=3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    rows = rows or max(_STRIP_ROWS, _STRIP_ELEMENTS // max(1, n))
    for start in range(0, m, rows):
        yield slice(start, min(start + rows, m))
