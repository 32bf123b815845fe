r"""A given first layer under random upper layers (theorem 1).

For the network of Radhakrishnan, Beaglehole, Pandit and Belkin (2024), eq. (1),

.. math::
    f(x) = a^\top \phi_L(x), \qquad
    \phi_l = \varphi\Bigl(\sqrt{c/k_l}\, W_l \phi_{l-1}\Bigr), \qquad \phi_0 = x,

with ReLU, c = 2 and random :math:`a, W_2, \dots, W_L` whose rows are symmetric about
zero with second moment I, the gradients satisfy, at every width and every x,

.. math::
    E_{a, W_2, \dots, W_L}\bigl[\nabla f(x) \nabla f(x)^\top\bigr]
    = \frac2{k_1} W_1^\top \mathrm{diag}\bigl(1[W_1 x > 0]\bigr) W_1 .

Averaged over inputs that lie on either side of each row of W_1 equally often, this is
:math:`W_1^\top W_1 / k_1`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from agop._validation import check_integer, check_real, check_samples

# Networks alive at once in `random_upper_agops`: enough to hide the cost of a call.
CHUNK_SIZE = 64

Draw = Callable[[tuple[int, ...], torch.Generator], Tensor]


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def _skewed(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    W = torch.empty(shape, dtype=torch.float64)
    return W.exponential_(generator=generator) - 1


# Entries of mean 0 and variance 1: symmetric about zero, and not.
DISTRIBUTIONS: dict[str, Draw] = {"normal": _normal, "skewed": _skewed}


def averaged_agop(weights: Sequence[Tensor], X: Any, *, c: float = 2.0) -> Tensor:
    r"""Return the AGOP of the network, averaged over its last layer a.

    Since :math:`E[a a^\top] = I`, this is :math:`\frac1n \sum_i J_i^\top J_i` with J_i
    the Jacobian of :math:`\phi_L` at sample i.

    Parameters
    ----------
    weights : sequence of tensors
        W_1, ..., W_L of shapes (k_1, d), (k_2, k_1), ..., unscaled. Any of them may
        have an axis of R networks in front: (R, k_2, k_1).
    X : array or tensor of shape (n, d), or (R, n, d) for R networks
    c : float, default=2
        c_φ, the factor under the square root of each layer.

    Returns
    -------
    tensor of shape (d, d), or (R, d, d), float64

    Raises
    ------
    ValueError
        If the weights do not fit each other or X.

    Examples
    --------
    One unit, active at one of two points:

    >>> W = torch.tensor([[1.0, 0.0]])
    >>> averaged_agop([W], [[1.0, 2.0], [-1.0, 2.0]]).round(decimals=9)
    tensor([[1., 0.],
            [0., 0.]], dtype=torch.float64)
    """
    h = check_samples(X, "X").double()  # ([R,] n, d)
    n, d = h.shape[-2:]
    J = torch.eye(d, dtype=h.dtype).expand(n, d, d)  # ([R,] n, k, d)
    for i, W in enumerate(weights):
        if W.dim() < 2 or W.shape[-1] != h.shape[-1]:
            raise ValueError(
                f"weights[{i}] must have shape (k, {h.shape[-1]}), got {tuple(W.shape)}"
            )
        W = (check_real(c, "c") / W.shape[-2]) ** 0.5 * W.double()
        z = h @ W.mT  # ([R,] n, k)
        J = (z > 0).unsqueeze(-1) * (W.unsqueeze(-3) @ J)
        h = z.relu()
    rows = J.flatten(-3, -2)  # ([R,] n k, d)
    return rows.mT @ rows / n


def random_upper_agops(
    W: Tensor,
    X: Any,
    widths: Sequence[int],
    *,
    c: float = 2.0,
    distribution: str = "normal",
    seed: int = 0,
) -> Tensor:
    r"""Return one AGOP for each of R networks with first layer ``W``.

    The upper layers are drawn anew for each network, and so independent; the
    expectation over the last layer a is exact (`averaged_agop`).

    Parameters
    ----------
    W : tensor of shape (k_1, d)
        The first layer, the same in every network.
    X : array or tensor of shape (R, n, d)
        Points of each network; ``X.expand(R, n, d)`` gives all the same ones.
    widths : sequence of int
        k_2, ..., k_L; empty for a network whose only hidden layer is ``W``.
    c : float, default=2
    distribution : {"normal", "skewed"}, default="normal"
        Of the entries of W_2, ..., W_L: N(0, 1), or exponential less its mean, which
        has mean 0 and variance 1 too but is not symmetric.
    seed : int, default=0

    Returns
    -------
    tensor of shape (R, d, d), float64

    Raises
    ------
    ValueError
        If ``X`` is not (R, n, d) or the distribution is unknown.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> W = torch.randn(5, 2, dtype=torch.float64, generator=generator)
    >>> X = torch.randn(2000, 10, 2, dtype=torch.float64, generator=generator)
    >>> mean = random_upper_agops(W, X, (8,)).mean(0)
    >>> target = W.T @ W / 5
    >>> bool((mean - target).norm() < 0.05 * target.norm())
    True
    """
    X = check_samples(X, "X")
    if X.dim() != 3:
        raise ValueError(f"X must have shape (R, n, d), got {tuple(X.shape)}")
    if distribution not in DISTRIBUTIONS:
        raise ValueError(
            f"distribution must be one of {sorted(DISTRIBUTIONS)}, got {distribution!r}"
        )
    draw, generator = DISTRIBUTIONS[distribution], torch.Generator().manual_seed(seed)
    sizes = [len(W), *(check_integer(k, "widths") for k in widths)]
    shapes = list(zip(sizes[1:], sizes, strict=False))
    agops = []
    for x in X.split(CHUNK_SIZE):
        upper = [draw((len(x), *shape), generator) for shape in shapes]
        agops.append(averaged_agop([W, *upper], x, c=c))
    return torch.cat(agops)


def expected_agop(W: Tensor, X: Any) -> Tensor:
    r"""Return the expectation of `random_upper_agops` over the upper layers.

    .. math:: \frac2{k_1} W^\top \mathrm{diag}(p) W, \qquad
        p_j = \frac1n \#\{i : w_j^\top x_i > 0\},

    exactly, at every width, for c = 2 and rows that are symmetric about zero with
    second moment I. With all p_j = 1/2 this is :math:`W^\top W / k_1`.

    Parameters
    ----------
    W : tensor of shape (k_1, d)
    X : array or tensor of shape (n, d)

    Examples
    --------
    >>> expected_agop(torch.tensor([[1.0, 0.0]]), [[1.0, 2.0], [-1.0, 2.0]])
    tensor([[1., 0.],
            [0., 0.]], dtype=torch.float64)
    """
    X, W = check_samples(X, "X").double(), W.double()
    active = (X @ W.mT > 0).double().mean(0)  # (k_1,)
    return 2 / len(W) * W.mT @ (active[:, None] * W)
