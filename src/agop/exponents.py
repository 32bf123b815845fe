r"""Which power of an AGOP is nearest to a Gram matrix, over all positive powers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar


def best_exponent(
    G: Any, A: Any, *, low: float = 1e-2, high: float = 1e2
) -> tuple[float, float]:
    r"""Return the alpha whose :math:`A^\alpha` has the largest cosine with G, and it.

    Parameters
    ----------
    G : array or tensor of shape (d, d)
        A neural feature matrix.
    A : array or tensor of shape (d, d), symmetric, positive semi-definite, not zero
        An AGOP.
    low, high : float, default=1e-2 and 1e2
        Range of alpha. A maximum at an end means that no power in between does better:
        towards 0 the power tends to the projection onto the range of A, towards
        infinity to that onto its leading eigenvector.

    Returns
    -------
    (alpha, cosine) : tuple of float

    Raises
    ------
    ValueError
        If shapes differ, A is zero, or the range is empty.

    Notes
    -----
    With :math:`A = \sum_i a_i v_i v_i^T` the cosine is
    :math:`\sum_i a_i^\alpha v_i^T G v_i / (\|G\| \sqrt{\sum_i a_i^{2\alpha}})`: one
    eigendecomposition serves every power. The best of a grid is refined by Brent's
    method.

    Examples
    --------
    >>> A = np.diag([1.0, 8.0, 27.0])
    >>> alpha, cosine = best_exponent(np.diag([1.0, 2.0, 3.0]), A)
    >>> round(alpha, 6), round(cosine, 6)
    (0.333333, 1.0)
    """
    G, A = (
        torch.as_tensor(matrix).detach().cpu().double().numpy() for matrix in (G, A)
    )
    if A.ndim != 2 or A.shape[0] != A.shape[1] or G.shape != A.shape:
        raise ValueError(
            f"G and A must be square and of one shape, got {G.shape} and {A.shape}"
        )
    if not 0 < low < high:
        raise ValueError(f"low and high must be 0 < low < high, got {low} and {high}")
    a, V = np.linalg.eigh((A + A.T) / 2)
    if not a[-1] > 0:
        raise ValueError("A must have a positive eigenvalue")
    a = a.clip(min=0) / a[-1]  # (d,): no power overflows
    along = np.einsum("di,de,ei->i", V, G, V) / np.linalg.norm(G)  # (d,)

    def loss(log_alpha: float) -> float:
        power = a ** np.exp(log_alpha)
        return float(-(power @ along) / np.linalg.norm(power))

    grid = np.linspace(np.log(low), np.log(high), 201)
    best = int(np.argmin([loss(x) for x in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(
        loss, bounds=bounds, method="bounded", options={"xatol": 1e-12}
    )
    refined = min(float(found.x), float(grid[best]), key=loss)
    return float(np.exp(refined)), -loss(refined)
