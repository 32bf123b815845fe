r"""Target linearity: how much of the targets a linear map of the features explains.

For features H (n, k) and targets Y (n, C), both centred over the n samples,

.. math::
    \mathrm{TL}(H, Y) = 1 - \min_B \frac{\|Y_c - H_c B\|_F^2}{\|Y_c\|_F^2},

the share of the variance of Y that least squares with an intercept explains (Cha,
Beaglehole, Radhakrishnan and Lee). It depends on H through the span of its columns.
"""

from __future__ import annotations

from typing import Any

import torch

from agop._validation import check_samples, check_tensor


@torch.no_grad()
def target_linearity(H: Any, Y: Any) -> float:
    r"""Return the share of the variance of ``Y`` linear in ``H``, between 0 and 1.

    Parameters
    ----------
    H : array or tensor of shape (n, k)
        Features, e.g. the input of a layer.
    Y : array or tensor of shape (n, C), or (n,) if C = 1
        Targets, e.g. one-hot labels.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If ``H`` and ``Y`` differ in their number of rows, or ``Y`` is constant.

    Notes
    -----
    Features unrelated to the targets score (rank of H_c)/(n - 1) on average, and any
    n - 1 independent features score 1: take n well above k. Computed in float64.

    Examples
    --------
    >>> H = torch.tensor([[0.0], [1.0], [2.0]])
    >>> round(target_linearity(H, 3 * H + 1), 12)
    1.0
    >>> round(target_linearity(H, [0.0, 1.0, 0.0]), 12)
    0.0
    """
    H = check_samples(H, "H").double().flatten(1)
    Y = check_tensor(Y, "Y").to(H)
    Y = Y.reshape(len(Y), -1) if Y.dim() else Y.reshape(0, 1)
    if len(H) != len(Y):
        raise ValueError(f"H and Y must have as many rows, got {len(H)} and {len(Y)}")
    H, Y = H - H.mean(0), Y - Y.mean(0)
    total = Y.square().sum()
    if total == 0:
        raise ValueError("Y must not be constant: there is no variance to explain")
    U, s, _ = torch.linalg.svd(H, full_matrices=False)
    # Directions of rounding size are no features: numpy's rule for the rank.
    U = U[:, s > s.max() * max(H.shape) * torch.finfo(s.dtype).eps]  # (n, rank)
    return float(((U.mT @ Y).square().sum() / total).clamp(max=1.0))
