"""Targets that depend on few directions of the input: Figs. 13B and 13C.

(Radhakrishnan, Beaglehole, Pandit and Belkin, 2024.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agop._validation import check_integer, check_real

Floats = NDArray[np.float64]


class Regression(NamedTuple):
    """A regression task with a test part.

    Attributes
    ----------
    X, X_test : arrays of shape (n, d) and (m, d)
    y, y_test : arrays of shape (n,) and (m,)
    U : array of shape (d, r)
        Orthonormal directions on which the target depends.
    """

    X: Floats
    y: Floats
    X_test: Floats
    y_test: Floats
    U: Floats


def sign_product(
    *, n: int = 1000, n_test: int = 10_000, d: int = 30, noise: float = 0.0, seed: int
) -> Regression:
    """Draw y = x_1 x_2 for random signs x, seen with noise (Fig. 13B).

    Parameters
    ----------
    n, n_test, d : int
    noise : float, default=0
        Standard deviation of the normal noise added to x after y is computed. The
        paper adds some and does not say how much.
    seed : int

    Examples
    --------
    >>> task = sign_product(n=4, n_test=2, d=3, seed=0)
    >>> bool((task.y == task.X[:, 0] * task.X[:, 1]).all())
    True
    """
    n, n_test = check_integer(n, "n"), check_integer(n_test, "n_test")
    d = check_integer(d, "d", minimum=2)
    noise = check_real(noise, "noise", positive=False)
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size=(n + n_test, d))
    X = signs + noise * rng.standard_normal(signs.shape)
    return _split(X, signs[:, 0] * signs[:, 1], n, np.eye(d)[:, :2])


def hermite_ridge(
    *, n: int = 1000, n_test: int = 10_000, d: int = 10, seed: int
) -> Regression:
    r"""Draw y = He_2(u·x) + He_4(u·x) for normal x and a random unit u (Fig. 13C).

    He_2(t) = t² - 1 and He_4(t) = t⁴ - 6 t² + 3 are the Hermite polynomials
    orthogonal under N(0, 1): the variances of the two terms are 2 and 24.

    Examples
    --------
    >>> hermite_ridge(n=4, n_test=2, d=3, seed=0).U.shape
    (3, 1)
    """
    n, n_test = check_integer(n, "n"), check_integer(n_test, "n_test")
    rng = np.random.default_rng(seed)
    u = rng.standard_normal(check_integer(d, "d"))
    u /= np.linalg.norm(u)
    X = rng.standard_normal((n + n_test, d))
    t = X @ u
    return _split(X, (t**2 - 1) + (t**4 - 6 * t**2 + 3), n, u[:, None])


def _split(X: Floats, y: Floats, n: int, U: Floats) -> Regression:
    return Regression(X[:n], y[:n], X[n:], y[n:], U)


def top_direction(M: Any) -> Floats:
    """Return the unit eigenvector of the largest eigenvalue, (d,), largest entry > 0.

    Parameters
    ----------
    M : array or tensor of shape (d, d), symmetric

    Examples
    --------
    >>> top_direction(np.diag([1.0, 4.0])).tolist()
    [0.0, 1.0]
    """
    _, vectors = np.linalg.eigh(np.asarray(M, dtype=np.float64))
    v: Floats = vectors[:, -1]
    return np.asarray(v * np.sign(v[np.abs(v).argmax()]))


def subspace_share(M: Any, U: Any) -> float:
    """Return tr(Uᵀ M U) / tr(M): the share of M within the span of U.

    Parameters
    ----------
    M : array or tensor of shape (d, d), symmetric, positive semi-definite
    U : array of shape (d, r), orthonormal columns

    Examples
    --------
    >>> subspace_share(np.diag([3.0, 1.0]), [[1.0], [0.0]])
    0.75
    """
    M, U = np.asarray(M, dtype=np.float64), np.asarray(U, dtype=np.float64)
    return float(np.trace(U.T @ M @ U) / np.trace(M))
