r"""Neural collapse: the four measures of Papyan, Han and Donoho (2020).

Features H (n, k) with labels 0..C-1. With :math:`\mu_c` the mean of class c and
:math:`\mu_G` the mean of the :math:`\mu_c`,

.. math::
    \Sigma_W = \frac1C \sum_c \frac1{n_c} \sum_{i \in c}
        (h_i - \mu_c)(h_i - \mu_c)^T, \qquad
    \Sigma_B = \frac1C \sum_c (\mu_c - \mu_G)(\mu_c - \mu_G)^T .

Each class counts alike; for classes of equal size these are the averages over samples
of the paper. Past zero training error, the variation within classes vanishes against
that between them (NC1), the centred means form a regular simplex (NC2), the rows of the
last layer align with them (NC3), and the network picks the class of the nearest mean
(NC4). All four measures are 0 at collapse. Computed in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from agop._validation import check_samples, check_tensor


class ClassStatistics(NamedTuple):
    """Means and scatter of the classes."""

    means: Tensor  # μ_c - μ_G, (C, k)
    centre: Tensor  # μ_G, (k,)
    within: Tensor  # Σ_W, (k, k)
    between: Tensor  # Σ_B, (k, k)


class SimplexGaps(NamedTuple):
    """How far the centred class means are from a regular simplex; 0 if they are one."""

    norms: float  # standard deviation of their norms over the mean of them
    angles: float  # mean |cos + 1/(C - 1)| over pairs of classes
    gram: float  # mean squared entry of (their cosines - those of the simplex)


@torch.no_grad()
def class_statistics(H: Any, y: Any) -> ClassStatistics:
    """Return the centred class means and both scatter matrices.

    Parameters
    ----------
    H : array or tensor of shape (n, k)
    y : int array or tensor of shape (n,)
        Labels 0..C-1, each present.

    Raises
    ------
    ValueError
        If there is a single class, a class without samples, or a length that doesn't
        fit.
    TypeError
        If the labels are no integers.

    Examples
    --------
    >>> found = class_statistics([[0.0], [2.0], [4.0], [6.0]], [0, 0, 1, 1])
    >>> found.means.flatten().tolist(), found.centre.tolist()
    ([-2.0, 2.0], [3.0])
    >>> float(found.within), float(found.between)
    (1.0, 4.0)
    """
    g = _group(H, y)
    within = g.deviation.mT @ (g.weight[:, None] * g.deviation)
    between = g.means.mT @ g.means / len(g.means)
    return ClassStatistics(g.means, g.centre, within, between)


@torch.no_grad()
def nc1(H: Any, y: Any) -> float:
    r"""Return the variability within classes, :math:`\mathrm{tr}(\Sigma_W
    \Sigma_B^\dagger) / C`.

    Parameters
    ----------
    H : array or tensor of shape (n, k)
    y : int array or tensor of shape (n,)

    Raises
    ------
    ValueError
        If all class means coincide, or no class has two samples: there is then nothing
        to compare. Otherwise as in `class_statistics`.

    Notes
    -----
    Unchanged by rotating, scaling and shifting the features. It sees the variation
    *in the span of the class means* only; `variability_ratio` sees all of it.

    Examples
    --------
    >>> round(nc1([[0.0], [2.0], [4.0], [6.0]], [0, 0, 1, 1]), 12)
    0.125
    """
    g = _group(H, y)
    _check_scatter(g)
    # Σ_B = M^T M / C with M (C, k) the centred means, so tr(Σ_W Σ_B†) / C is the mean
    # of |M†^T (h - μ_c)|²: no (k, k) matrix is needed.
    readout = torch.linalg.pinv(g.means)  # (k, C)
    return float(g.weight @ (g.deviation @ readout).square().sum(1))


@torch.no_grad()
def variability_ratio(H: Any, y: Any) -> float:
    r"""Return :math:`\mathrm{tr}\,\Sigma_W / \mathrm{tr}\,\Sigma_B`.

    The measure of Beaglehole, Súkeník, Mondelli and Belkin (2024). Parameters, errors
    and invariances as for `nc1`. (Their released code divides Σ_W by C once more.)

    Examples
    --------
    >>> variability_ratio([[0.0], [2.0], [4.0], [6.0]], [0, 0, 1, 1])
    0.25
    """
    g = _group(H, y)
    _check_scatter(g)
    within = g.weight @ g.deviation.square().sum(1)
    return float(within / g.means.square().sum(1).mean())


@torch.no_grad()
def nc2(H: Any, y: Any) -> SimplexGaps:
    r"""Return how far the centred class means are from a regular simplex.

    In a regular simplex all have one norm, and all pairs the cosine -1/(C - 1).

    Raises
    ------
    ValueError
        If a class mean equals their mean: it has no direction. Otherwise as in
        `class_statistics`.

    Examples
    --------
    >>> nc2(torch.eye(3), [0, 1, 2]).angles < 1e-12
    True
    """
    g = _group(H, y)
    means, norms = g.means, g.means.norm(dim=1)  # (C, k), (C,)
    if not (norms > g.rounding).all():
        raise ValueError(
            "H must have class means different from their mean: the mean of class "
            f"{int(norms.argmin())} is equal to it"
        )
    C = len(means)
    cosines = (means / norms[:, None]) @ (means / norms[:, None]).mT
    gaps = cosines - (C * torch.eye(C).to(means) - 1) / (C - 1)
    return SimplexGaps(
        norms=float(norms.std(correction=0) / norms.mean()),
        angles=float(gaps.abs().sum() / (C * (C - 1))),  # the diagonal adds nothing
        gram=float(gaps.square().mean()),
    )


@torch.no_grad()
def nc3(W: Any, H: Any, y: Any) -> float:
    r"""Return the gap of self-duality, :math:`\|W / \|W\|_F - M / \|M\|_F\|_F^2`.

    Parameters
    ----------
    W : array or tensor of shape (C, k)
        Weights of the last layer.
    H : array or tensor of shape (n, k)
        Its inputs; M (C, k) are the centred class means.
    y : int array or tensor of shape (n,)

    Returns
    -------
    float
        Between 0 and 4; 2 for orthogonal matrices.

    Raises
    ------
    ValueError
        If ``W`` does not have a row a class and a column a feature, or is zero, or if
        all class means coincide.

    Examples
    --------
    >>> H = torch.eye(2)
    >>> nc3([[1.0, -1.0], [-1.0, 1.0]], H, [0, 1]) < 1e-12
    True
    """
    g = _group(H, y)
    means = _check_distinct(g)
    W = check_tensor(W, "W").to(means)
    if W.shape != means.shape:
        raise ValueError(
            f"W must have the shape {tuple(means.shape)} (classes, features), got "
            f"{tuple(W.shape)}"
        )
    if not W.any():
        raise ValueError("W must not be zero: it has no direction")
    return float((W / W.norm() - means / means.norm()).square().sum())


@torch.no_grad()
def nc4(scores: Any, H: Any, y: Any) -> float:
    """Return the share of samples that the network puts in another class than the
    nearest class mean does.

    Parameters
    ----------
    scores : array or tensor of shape (n, C)
        Outputs of the network.
    H, y
        As for `nc1`; the class means are those of H.

    Raises
    ------
    ValueError
        If ``scores`` is not (n, C), or as in `class_statistics`.

    Notes
    -----
    Ties go to the lower class on both sides.

    Examples
    --------
    >>> H = torch.tensor([[0.0], [1.0], [4.0], [5.0]])
    >>> nc4(torch.hstack([1 - H, H - 1]), H, [0, 0, 1, 1])
    0.0
    """
    g = _group(H, y)
    scores = check_samples(scores, "scores").to(g.means.device)
    shape = len(g.deviation), len(g.means)
    if scores.shape != shape:
        raise ValueError(
            f"scores must have the shape {shape}, got {tuple(scores.shape)}"
        )
    centred = g.deviation + g.means[g.y]  # (n, k)
    nearest = torch.cdist(centred, g.means).argmin(1)
    return float((scores.argmax(1) != nearest).double().mean())


class _Groups(NamedTuple):
    """Features, split into the means of their classes and what deviates from them."""

    y: Tensor  # (n,)
    deviation: Tensor  # h_i - μ_c, (n, k)
    weight: Tensor  # 1 / (C n_c), (n,), of sum 1
    means: Tensor  # μ_c - μ_G, (C, k)
    centre: Tensor  # μ_G, (k,)
    rounding: float  # norm below which a centred mean is zero


def _group(H: Any, y: Any) -> _Groups:
    H = check_samples(H, "H").double().flatten(1)
    y = _check_labels(y, len(H)).to(H.device)
    members = torch.nn.functional.one_hot(y).to(H)  # (n, C)
    count = members.sum(0)  # (C,)
    empty = (count == 0).nonzero().flatten().tolist()
    if empty:
        raise ValueError(f"y must hold every label up to its largest, lacks {empty}")
    means = (members / count).mT @ H  # (C, k)
    centre = means.mean(0)
    return _Groups(
        y=y,
        deviation=H - means[y],
        weight=1 / (len(count) * count[y]),
        means=means - centre,
        centre=centre,
        rounding=10 * float(H.abs().max()) * len(centre) * torch.finfo(H.dtype).eps,
    )


def _check_labels(y: Any, n: int) -> Tensor:
    y = check_tensor(y, "y")
    if y.is_floating_point() or y.dtype == torch.bool:
        raise TypeError(f"y must hold integer labels, got {y.dtype}")
    if y.shape != (n,):
        raise ValueError(f"y must hold {n} labels, got shape {tuple(y.shape)}")
    if y.min() < 0:
        raise ValueError(f"y must hold labels from 0 on, got {int(y.min())}")
    if y.max() < 1:
        raise ValueError("y must hold at least two classes, got one")
    return y.long()


def _check_distinct(g: _Groups) -> Tensor:
    if not g.means.norm() > g.rounding:
        raise ValueError(
            "H must have different class means: all coincide, so there is no "
            "variation between classes to compare with"
        )
    return g.means


def _check_scatter(g: _Groups) -> None:
    _check_distinct(g)
    if len(g.y) == len(g.means):
        raise ValueError(
            "y must give some class at least two samples: there is no variation "
            "within classes of one"
        )
