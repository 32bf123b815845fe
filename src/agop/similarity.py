r"""How alike two feature matrices are, and how alike unrelated ones already look.

Neither similarity is zero for unrelated matrices: Gram matrices are positive
semi-definite, hence share a large multiple of the identity. Compare every value with
`independent_gram_null` or `rotation_null`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agop._validation import check_integer, check_real

Matrix = TypeVar("Matrix", NDArray[Any], Tensor)
Similarity = Callable[[NDArray[Any], NDArray[Any]], float]


def cosine(A: Any, B: Any, *, off_diagonal: bool = False) -> float:
    r"""Return the cosine :math:`\langle A, B\rangle / (\|A\|_F \|B\|_F)`.

    Parameters
    ----------
    A, B : array or tensor of the same shape
    off_diagonal : bool, default=False
        Compare the entries off the diagonal only; needs square matrices.

    Returns
    -------
    float
        In [-1, 1], from float64 arithmetic; nan if a matrix is zero.

    Raises
    ------
    ValueError
        If the shapes differ, or are not square and ``off_diagonal`` is set.

    Notes
    -----
    Definition 5.1 of Tansley, Massart and Cartis (2025); also what the code released
    with arXiv:2212.13881 computes where its text says "Pearson".

    Examples
    --------
    >>> A = [[2.0, 1.0], [1.0, 2.0]]
    >>> cosine(A, A, off_diagonal=True)
    1.0
    >>> cosine(A, [[0.0, 1.0], [1.0, 0.0]])
    0.447213...
    """
    a, b = _entries(A, B, off_diagonal)
    return _cosine(a, b)


def pearson(A: Any, B: Any, *, off_diagonal: bool = False) -> float:
    r"""Return the Pearson correlation of the entries of ``A`` and ``B``.

    The cosine after subtracting from each matrix the mean of its (compared) entries.
    Parameters, errors and nan (for constant entries) as in `cosine`.

    Examples
    --------
    >>> A = [[2.0, 1.0], [1.0, 2.0]]
    >>> pearson(A, [[0.0, 1.0], [1.0, 0.0]])
    -1.0
    """
    a, b = _entries(A, B, off_diagonal)
    return _cosine(a - a.mean(), b - b.mean())


def proportionality_gap(A: Any, B: Any) -> float:
    r"""Return how far ``A`` is from any multiple of ``B``.

    .. math:: \min_c \frac{\|A - c B\|_F}{\|A\|_F}
        = \sqrt{1 - \cos(A, B)^2},

    computed from the difference itself: the cosine of two proportional matrices is 1
    to 1e-16, which leaves only 1e-8 of its complement.

    Parameters
    ----------
    A, B : array or tensor of the same shape

    Returns
    -------
    float
        In [0, 1]; nan if a matrix is zero.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> A = [[2.0, 1.0], [1.0, 2.0]]
    >>> proportionality_gap(A, [[6.0, 3.0], [3.0, 6.0]])
    0.0
    >>> proportionality_gap(A, [[0.0, 1.0], [1.0, 0.0]])
    0.894427...
    """
    a, b = _entries(A, B, off_diagonal=False)
    lengths = np.linalg.norm(a), np.linalg.norm(b)
    if 0.0 in lengths:
        return float("nan")
    a, b = a / lengths[0], b / lengths[1]
    return float(np.linalg.norm(a - (a @ b) * b))


def _cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
    # Scaling by the largest entry first: squares of 1e-200 would underflow.
    largest = np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0)
    if 0.0 in largest:
        return float("nan")
    a, b = a / largest[0], b / largest[1]
    value = (a @ b) / np.sqrt((a @ a) * (b @ b))
    return float(np.clip(value, -1.0, 1.0))


def _entries(A: Any, B: Any, off_diagonal: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    A, B = _float64(A), _float64(B)
    if A.shape != B.shape:
        raise ValueError(
            f"A and B must have the same shape, got {A.shape} and {B.shape}"
        )
    if not off_diagonal:
        return A.ravel(), B.ravel()
    _check_square(A, "A")
    mask = ~np.eye(len(A), dtype=bool)
    return A[mask], B[mask]


def _float64(A: Any) -> NDArray[Any]:
    if isinstance(A, Tensor):
        A = A.detach().cpu().numpy()
    return np.asarray(A, dtype=np.float64)


def _check_square(A: NDArray[Any], name: str) -> None:
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {A.shape}")


def matrix_power(A: Matrix, alpha: float) -> Matrix:
    r"""Return the power :math:`A^\alpha` of a symmetric positive semi-definite matrix.

    Parameters
    ----------
    A : array or tensor of shape (d, d)
    alpha : float, positive
        1/2 and 1/L are the exponents that the papers put on the AGOP.

    Returns
    -------
    array or tensor of shape (d, d)
        Of the kind, dtype and device of ``A``, computed by an eigendecomposition in
        float64 with negative eigenvalues set to 0.

    Raises
    ------
    ValueError
        If ``A`` is not square or not finite, is asymmetric, or has an eigenvalue
        below -sqrt(eps) times the largest one, eps that of its dtype: rounding alone
        doesn't do that. If ``alpha`` is not positive.

    Notes
    -----
    Small powers amplify the noise in the null space: a float32 matrix of rank 1 has
    spurious eigenvalues of 1e-7, whose fifth root is 0.04.

    Examples
    --------
    >>> matrix_power(np.array([[4.0, 0.0], [0.0, 9.0]]), 0.5)
    array([[2., 0.],
           [0., 3.]])
    """
    alpha = check_real(alpha, "alpha")
    if isinstance(A, Tensor):
        dtype = A.dtype if A.is_floating_point() else torch.float64
        tolerance = torch.finfo(dtype).eps ** 0.5
        power = _psd_power(_float64(A), alpha, tolerance)
        return torch.from_numpy(power).to(A.device, dtype)
    A = np.asarray(A)
    kind = A.dtype if np.issubdtype(A.dtype, np.floating) else np.dtype(np.float64)
    tolerance = float(np.finfo(kind).eps) ** 0.5
    return _psd_power(_float64(A), alpha, tolerance).astype(kind)


def _psd_power(A: NDArray[Any], alpha: float, tolerance: float) -> NDArray[Any]:
    _check_square(A, "A")
    if not np.isfinite(A).all():
        raise ValueError("A must be finite, got nan or infinite entries")
    gap = np.abs(A - A.T).max(initial=0.0)
    if gap > tolerance * np.abs(A).max(initial=0.0):
        raise ValueError(f"A must be symmetric, but A - A.T reaches {gap:.3g}")
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    if len(A) and values[0] < -tolerance * np.abs(values).max():
        raise ValueError(
            "A must be positive semi-definite, but its eigenvalues range from "
            f"{values[0]:.3g} to {values[-1]:.3g}"
        )
    power: NDArray[Any] = (vectors * values.clip(min=0) ** alpha) @ vectors.T
    return power


def independent_gram_null(
    d: int,
    k: int,
    *,
    draws: int = 100,
    seed: int = 0,
    similarity: Similarity = cosine,
) -> NDArray[Any]:
    r"""Return similarities of pairs of independent Gaussian Gram matrices.

    Each draw compares :math:`W^T W` with :math:`V^T V`, W and V being (k, d) with
    independent N(0, 1) entries: what a layer of k units on d inputs scores against
    an unrelated layer of the same shape.

    Parameters
    ----------
    d, k : int
        Inputs and units of the layer.
    draws : int, default=100
    seed : int, default=0
    similarity : callable, default=cosine
        Maps two (d, d) arrays to a float; `functools.partial` sets its options.

    Returns
    -------
    array of shape (draws,)

    Notes
    -----
    The cosine concentrates at k/(k + d + 1): close to 1 as soon as k ≫ d.

    Examples
    --------
    >>> null = independent_gram_null(29, 1024, draws=5)
    >>> bool(abs(null.mean() - 1024 / (1024 + 29 + 1)) < 0.01)
    True
    """
    d, k = check_integer(d, "d"), check_integer(k, "k")
    rng = np.random.default_rng(seed)

    def gram() -> NDArray[Any]:
        W = rng.standard_normal((k, d))
        return np.asarray(W.T @ W)

    n_draws = check_integer(draws, "draws")
    return np.array([similarity(gram(), gram()) for _ in range(n_draws)])


def rotation_null(
    A: Any,
    B: Any,
    *,
    draws: int = 100,
    seed: int = 0,
    similarity: Similarity = cosine,
) -> NDArray[Any]:
    r"""Return similarities of ``A`` with randomly rotated copies of ``B``.

    Each draw compares A with :math:`Q B Q^T`, Q a Haar-distributed orthogonal matrix:
    the spectra are kept, the directions are lost. For fractional powers, take the
    power first: it commutes with the rotation.

    Parameters
    ----------
    A, B : array or tensor of shape (d, d)
    draws, seed, similarity
        As for `independent_gram_null`.

    Returns
    -------
    array of shape (draws,)

    Raises
    ------
    ValueError
        If the matrices are not square or differ in shape.

    Notes
    -----
    The mean of the cosine is exactly tr(A) tr(B) / (d ‖A‖ ‖B‖).

    Examples
    --------
    >>> A = np.diag([1.0, 0.0])
    >>> null = rotation_null(A, A, draws=200)
    >>> bool(abs(null.mean() - 1 / 2) < 0.1)
    True
    """
    A, B = _float64(A), _float64(B)
    _check_square(A, "A")
    if A.shape != B.shape:
        raise ValueError(
            f"A and B must have the same shape, got {A.shape} and {B.shape}"
        )
    rng = np.random.default_rng(seed)
    rotations = (haar(len(A), rng) for _ in range(check_integer(draws, "draws")))
    return np.array([similarity(A, Q @ B @ Q.T) for Q in rotations])


def haar(d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a random rotation of R^d, uniform over the orthogonal matrices, (d, d).

    >>> Q = haar(3, np.random.default_rng(0))
    >>> bool(np.allclose(Q @ Q.T, np.eye(3)))
    True
    """
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    # LAPACK fixes the signs of R's diagonal, not of Q: undo, or Q isn't uniform.
    return np.asarray(Q * np.sign(np.diag(R)))
