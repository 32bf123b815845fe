r"""Target linearity: how much of the targets a linear map of the features explains.

For features H (n, k) and targets Y (n, C), both centred over the n samples,

.. math::
    \mathrm{TL}(H, Y) = 1 - \min_B \frac{\|Y_c - H_c B\|_F^2}{\|Y_c\|_F^2},

the share of the variance of Y that least squares with an intercept explains (Cha,
Beaglehole, Radhakrishnan and Lee). It depends on H through the span of its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agop._validation import check_integer, check_samples, check_tensor


@torch.no_grad()
def target_linearity(H: Any, Y: Any, *, adjusted: bool = False) -> float:
    r"""Return the share of the variance of ``Y`` linear in ``H``, between 0 and 1.

    Parameters
    ----------
    H : array or tensor of shape (n, k)
        Features, e.g. the input of a layer.
    Y : array or tensor of shape (n, C), or (n,) if C = 1
        Targets, e.g. one-hot labels.
    adjusted : bool, default=False
        Return 1 - (1 - TL) (n - 1) / (n - 1 - r) instead, r the rank of H_c, whose
        mean over permutations of the targets is 0 (see `null_level`); it may be
        negative.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If ``H`` and ``Y`` differ in their number of rows, or ``Y`` is constant; if
        ``adjusted`` and the features, of rank n - 1, fit any targets.

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
    H, Y = _check_pair(H, Y)
    U, Y = _basis(H), Y - Y.mean(0)
    share = float(((U.mT @ Y).square().sum() / Y.square().sum()).clamp(max=1.0))
    if not adjusted:
        return share
    free = len(H) - 1 - U.shape[1]
    if free == 0:
        raise ValueError(
            f"H must have a rank below n - 1 = {len(H) - 1} to be adjusted for: "
            "these features fit any targets"
        )
    return 1 - (1 - share) * (len(H) - 1) / free


@torch.no_grad()
def null_level(H: Any) -> float:
    r"""Return the mean target linearity of ``H`` over all permutations of the targets.

    It is r/(n - 1), r the rank of the centred features, whatever the targets: the
    average over permutations of :math:`Y_c Y_c^T` is a multiple of the projection on
    the vectors of mean 0, so the share explained is the share of their n - 1
    dimensions that H spans.

    Parameters
    ----------
    H : array or tensor of shape (n, k), n >= 2

    Examples
    --------
    >>> null_level([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])  # rank 1
    0.5
    """
    H = check_samples(H, "H").double().flatten(1)
    if len(H) < 2:
        raise ValueError(f"H must hold at least two samples, got {len(H)}")
    return _basis(H).shape[1] / (len(H) - 1)


@torch.no_grad()
def released_target_linearity(H: Any, Y: Any, *, centre_targets: bool = True) -> float:
    r"""Return what the released code of Cha et al. computes as target linearity.

    .. math::
        1 - \frac{\|Y - H (H^T H)^{-1} H^T Y\|_F^2}
            {\|Y - \text{(mean of each row)}\|_F^2}

    for several targets, with the mean of each column below for a single one. Three
    differences from `target_linearity`: there is no intercept; with several targets
    the denominator subtracts row means; and 1e-5 is added to the diagonal of H'H only
    where its inverse fails, which with rank-deficient features may be never.

    Parameters
    ----------
    H : array or tensor of shape (n, k)
    Y : array or tensor of shape (n, C), or (n,) if C = 1
    centre_targets : bool, default=True
        Whether column means are subtracted from ``Y`` first, as the callers do.

    Raises
    ------
    ValueError
        If the numbers of rows differ, ``Y`` is constant, or all of its rows are.

    Notes
    -----
    src/metric.py, cth127/GramLin @ 44aa3e1. The rows of centred one-hot targets have
    mean 0, so there the denominator is the right one; rows of images do not. The
    inverse is computed as a pseudo-inverse here, to make the result well defined.

    Examples
    --------
    >>> H = torch.tensor([[1.0], [2.0], [3.0]])  # no intercept: 1 is not fitted
    >>> round(released_target_linearity(H, [3.0, 4.0, 5.0]), 2)
    0.14
    >>> round(target_linearity(H, [3.0, 4.0, 5.0]), 12)
    1.0
    """
    H, Y = _check_pair(H, Y)
    if centre_targets:
        Y = Y - Y.mean(0)
    residual = Y - H @ torch.linalg.pinv(H) @ Y
    deviation = Y - Y.mean(0 if Y.shape[1] == 1 else 1, keepdim=True)
    if deviation.norm() <= 1e-12 * Y.norm():  # rounding
        raise ValueError("Y must not have constant rows: the denominator is zero")
    return float(1 - residual.square().sum() / deviation.square().sum())


@torch.no_grad()
def principal_components(H: Any, r: int) -> Tensor:
    """Return the first ``r`` principal components of the features, (n, r), float64.

    Parameters
    ----------
    H : array or tensor of shape (n, k)
    r : int
        At most min(n, k); components beyond the rank are 0.

    Examples
    --------
    >>> H = torch.tensor([[0.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
    >>> principal_components(H, 1).abs().flatten().round(decimals=6).tolist()
    [2.0, 0.0, 2.0]
    """
    H = check_samples(H, "H").double().flatten(1)
    if check_integer(r, "r") > min(H.shape):
        raise ValueError(f"r must be at most {min(H.shape)}, got {r}")
    U, s, _ = torch.linalg.svd(H - H.mean(0), full_matrices=False)
    return U[:, :r] * s[:r]


def layer_target_linearity(
    layers: Sequence[Any], Y: Any, *, adjusted: bool = False
) -> NDArray[np.float64]:
    """Return the target linearity of each layer's features, (L,).

    Parameters
    ----------
    layers : sequence of (n, k_l) arrays or tensors
        E.g. ``net.hidden(X)``: the data first, then each hidden layer.
    Y, adjusted
        As in `target_linearity`.

    Examples
    --------
    >>> X = torch.tensor([[-1.0], [0.0], [1.0]])
    >>> layer_target_linearity([X, X**2], X**2).round(6).tolist()
    [0.0, 1.0]
    """
    return np.array([target_linearity(H, Y, adjusted=adjusted) for H in layers])


def target_linearity_gap(layers: Sequence[Any], Y: Any) -> float:
    """Return by how much the last layer is more target linear than the one before.

    The quantity of Fig. 14 of Cha et al.

    Raises
    ------
    ValueError
        If there are fewer than two layers.

    Examples
    --------
    >>> X = torch.tensor([[-1.0], [0.0], [1.0]])
    >>> round(target_linearity_gap([X, X**2], X**2), 6)
    1.0
    """
    if len(layers) < 2:
        raise ValueError(f"layers must be at least two, got {len(layers)}")
    before, last = layer_target_linearity(layers[-2:], Y)
    return float(last - before)


def _check_pair(H: Any, Y: Any) -> tuple[Tensor, Tensor]:
    H = check_samples(H, "H").double().flatten(1)
    Y = check_tensor(Y, "Y").to(H)
    Y = Y.reshape(len(Y), -1) if Y.dim() else Y.reshape(0, 1)
    if len(H) != len(Y):
        raise ValueError(f"H and Y must have as many rows, got {len(H)} and {len(Y)}")
    if (Y[0] == Y).all():
        raise ValueError("Y must not be constant: there is no variance to explain")
    return H, Y


def _basis(H: Tensor) -> Tensor:
    """Return an orthonormal basis of the span of the centred features, (n, rank)."""
    U, s, _ = torch.linalg.svd(H - H.mean(0), full_matrices=False)
    # Directions of rounding size are no features: numpy's rule for the rank, with the
    # size before centring, since the mean of a constant column is rounded as well.
    return U[:, s > H.norm() * max(H.shape) * torch.finfo(s.dtype).eps]
