r"""Polynomials of a few directions, with their expected gradient outer product.

Targets for the sample-complexity experiments of Radhakrishnan, Beaglehole, Pandit and
Belkin (2024), proposition 6: :math:`f(x) = g(Ux)` with U of shape (r, d).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agop._validation import check_integer

Array = NDArray[np.float64]


class HermitePolynomial:
    r"""A random polynomial of degree p and rank r, all of it in degree p.

    .. math::
        f(x) = \sum_{|a| = p} c_a \prod_{i=1}^r h_{a_i}(u_i^\top x), \qquad
        \sum_a c_a^2 = 1,

    with h_m the Hermite polynomial of degree m, normalised for N(0, 1), and orthonormal
    u_i. For x ~ N(0, I) it has mean 0 and variance 1 and is uncorrelated with every
    polynomial of lower degree, so nothing can be gained from an easier part.

    Parameters
    ----------
    d : int
        Input dimension.
    rank : int
        r, between 1 and d.
    degree : int
        p, at least 1.
    seed : int, default=0
        Of the coefficients and of the directions.

    Attributes
    ----------
    U : array of shape (r, d), orthonormal rows
    exponents : list of tuples, the a
    coefficients : array, the c_a

    Examples
    --------
    >>> f = HermitePolynomial(d=5, rank=1, degree=2)
    >>> x = np.zeros((1, 5))
    >>> round(abs(float(f(x)[0])), 6)  # h_2(0) = -1/sqrt(2)
    0.707107
    """

    def __init__(self, d: int, rank: int, degree: int, *, seed: int = 0) -> None:
        d, rank = check_integer(d, "d"), check_integer(rank, "rank")
        if rank > d:
            raise ValueError(f"rank must be at most d = {d}, got {rank}")
        self.d, self.rank = d, rank
        self.degree = check_integer(degree, "degree")
        rng = np.random.default_rng(seed)
        self.exponents = [
            a
            for a in itertools.product(range(degree + 1), repeat=rank)
            if sum(a) == degree
        ]
        coefficients = rng.standard_normal(len(self.exponents))
        self.coefficients = coefficients / np.linalg.norm(coefficients)
        self.U = np.linalg.qr(rng.standard_normal((d, rank)))[0].T

    def __call__(self, X: ArrayLike) -> Array:
        """Return f at each row of ``X`` (n, d), as (n,)."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.d:
            raise ValueError(f"X must have shape (n, {self.d}), got {X.shape}")
        h = _hermite(X @ self.U.T, self.degree)  # (p + 1, n, r)
        columns = np.arange(self.rank)
        terms = [h[list(a), :, columns].prod(axis=0) for a in self.exponents]
        return np.asarray(self.coefficients @ np.array(terms))

    def agop(self) -> Array:
        r"""Return :math:`E \nabla f(x) \nabla f(x)^\top` for x ~ N(0, I), (d, d).

        From :math:`h_m' = \sqrt m\, h_{m-1}`; its rank is at most r, its trace p.
        """
        slopes: list[dict[tuple[int, ...], float]] = [{} for _ in range(self.rank)]
        for a, c in zip(self.exponents, self.coefficients, strict=True):
            for i in (i for i in range(self.rank) if a[i] > 0):
                lower = (*a[:i], a[i] - 1, *a[i + 1 :])
                slopes[i][lower] = float(c * math.sqrt(a[i]))
        index = sorted({b for slope in slopes for b in slope})
        D = np.array([[slope.get(b, 0.0) for b in index] for slope in slopes])
        return np.asarray(self.U.T @ (D @ D.T) @ self.U)


def _hermite(u: Array, degree: int) -> Array:
    """Return h_0, ..., h_degree at ``u``, stacked in front of its axes."""
    h = [np.ones_like(u), u]
    for m in range(1, degree):  # sqrt(m + 1) h_{m+1} = u h_m - sqrt(m) h_{m-1}
        h.append((u * h[m] - math.sqrt(m) * h[m - 1]) / math.sqrt(m + 1))
    return np.array(h[: degree + 1])
