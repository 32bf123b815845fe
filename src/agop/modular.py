r"""Modular arithmetic from one-hot inputs, and the circulant features that solve it.

A pair (a, b) of residues is the vector :math:`x = e_a \oplus e_b \in R^{2p}`, its
target the one-hot vector of a + b modulo p. What RFMs and networks learn from part of
the table is a feature matrix of four blocks

.. math::
    M = \begin{pmatrix} A & C^T \\ C & A \end{pmatrix}, \qquad
    A = c_1 I + c_2 1 1^T, \qquad C \text{ circulant}

(Mallinar, Beaglehole, Zhu, Radhakrishnan, Pandit and Belkin): C_ij = c_(i-j), indices
modulo p. With them the product of C_(a b') and C_(a' b) is large on average when
a - b' = a' - b, that is when the pairs (a, b) and (a', b') have the same sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agop._validation import check_integer, check_real

Floats = NDArray[np.float64]


def addition_table(p: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return all pairs of residues and their sums modulo ``p``.

    Returns
    -------
    X : array of shape (p², 2p)
        One-hot a, then one-hot b.
    y : int array of shape (p²,)

    Examples
    --------
    >>> X, y = addition_table(3)
    >>> X[5].tolist(), int(y[5])  # 1 + 2
    ([0.0, 1.0, 0.0, 0.0, 0.0, 1.0], 0)
    """
    p = check_integer(p, "p", minimum=2)
    a, b = np.divmod(np.arange(p * p), p)
    one = np.eye(p)
    return np.hstack([one[a], one[b]]), (a + b) % p


def split_table(
    p: int, share: float, *, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of the table to train on, and the others.

    Parameters
    ----------
    p : int
    share : float
        Share of the p² rows to train on, below 1.
    seed : int

    Examples
    --------
    >>> [len(rows) for rows in split_table(4, 0.75)]
    [12, 4]
    """
    if check_real(share, "share") >= 1:
        raise ValueError(f"share must be below 1, got {share}")
    rows = np.random.default_rng(seed).permutation(check_integer(p, "p") ** 2)
    count = round(share * len(rows))
    return np.sort(rows[:count]), np.sort(rows[count:])


def circulant_deviation(B: Any) -> float:
    r"""Return how far a square block is from circulant, from 0 to 1.

    .. math::
        \frac1{\|B - \bar B\|_F^2} \sum_s \sum_{i - j = s} (B_{ij} - \bar B_s)^2,

    with indices modulo p, :math:`\bar B_s` the mean of diagonal s and :math:`\bar B`
    that of all entries: the share of the variance within diagonals, p/(p + 1) on
    average for independent entries. (The paper divides by the norm of B itself, which
    a constant block makes small.)

    Raises
    ------
    ValueError
        If ``B`` is not square, or constant.

    Examples
    --------
    >>> circulant_deviation([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [2.0, 3.0, 1.0]])
    0.0
    """
    B = np.asarray(B, dtype=np.float64)
    if B.ndim != 2 or B.shape[0] != B.shape[1]:
        raise ValueError(f"B must be square, got shape {B.shape}")
    i, j = np.indices(B.shape)
    lines = B[i, (i - j) % len(B)]  # column s holds diagonal s, i - s modulo p
    total = ((B - B.mean()) ** 2).sum()
    if total == 0:
        raise ValueError("B must not be constant")
    return float(((lines - lines.mean(0)) ** 2).sum() / total)


def random_circulant_map(p: int, *, seed: int = 0) -> Floats:
    r"""Return the fourth root of a random M of the form above, (2p, 2p), symmetric.

    :math:`c_1 = 1`, :math:`c_2 = -1/p`, and the first column of C is drawn from
    U(0, 1), then centred. The negative eigenvalues of such an M are set to zero:
    the map then keeps the directions :math:`(u, v)` in which C reinforces A. No entry
    depends on any sample. Samples X become X @ map (Mallinar et al., Fig. 4).

    Examples
    --------
    >>> F = random_circulant_map(5)
    >>> circulant_deviation(F[5:, :5]) < 1e-10
    True
    """
    p = check_integer(p, "p", minimum=2)
    c = np.random.default_rng(seed).random(p)
    i, j = np.indices((p, p))
    C = (c - c.mean())[(i - j) % p]
    A = np.eye(p) - 1 / p
    values, vectors = np.linalg.eigh(np.block([[A, C.T], [C, A]]))
    root: Floats = (vectors * values.clip(min=0) ** 0.25) @ vectors.T
    return root
