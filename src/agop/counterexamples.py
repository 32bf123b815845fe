r"""Networks that fit their data and break the ansatz for every exponent.

Quadratic units :math:`f(x) = \sum_j a_j (w_j^T x)^2` with
:math:`W = \sqrt2\,\mathrm{diag}(a)` are balanced, :math:`\|w_j\|^2 = 2 a_j^2`, and
gradient flow keeps them so. On inputs with independent symmetric coordinates they
stay diagonal, and learn :math:`f^*(x) = \sum_i c_i x_i^2` exactly, ending at
:math:`2 a_i^3 = c_i`.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from agop.networks import FullyConnected


def quadratic_network(a: Any) -> FullyConnected:
    r"""Return :math:`f(x) = \sum_j a_j (\sqrt2 a_j x_j)^2` as a network of d units.

    Parameters
    ----------
    a : array or tensor of shape (d,), positive
        A constant vector is the balanced start; `solution` gives the end of training.

    Raises
    ------
    ValueError
        If ``a`` is not a vector of positive numbers.

    Examples
    --------
    >>> net = quadratic_network([1.0, 2.0])
    >>> float(net(torch.tensor([[1.0, 1.0]], dtype=torch.float64)).round())
    18.0
    """
    a = _positive_vector(a, "a")
    net = FullyConnected((len(a), len(a), 1), "quadratic", dtype=a.dtype)
    with torch.no_grad():
        net.weights[0].copy_(2**0.5 * torch.diag(a))
        net.weights[1].copy_(a[None])
    return net


def solution(c: Any) -> Tensor:
    r"""Return the output weights :math:`a_i = (c_i / 2)^{1/3}` that fit the target c.

    Examples
    --------
    >>> solution([2.0, 16.0])
    tensor([1., 2.], dtype=torch.float64)
    """
    return (_positive_vector(c, "c") / 2) ** (1 / 3)


def quadratic_features(c: Any, moments: Any) -> tuple[Tensor, Tensor]:
    r"""Return the diagonals of the NFM and the AGOP of the trained network, (d,) each.

    Parameters
    ----------
    c : array or tensor of shape (d,), positive
        Coefficients of the target.
    moments : array or tensor of shape (d,), positive
        :math:`E x_i^2`.

    Returns
    -------
    (nfm, agop) : :math:`(\sqrt2 c_i)^{2/3}` and :math:`4 c_i^2 E x_i^2`

    Examples
    --------
    >>> quadratic_features([2.0, 2.0], [1.0, 0.25])
    (tensor([2., 2.], dtype=torch.float64), tensor([16.,  4.], dtype=torch.float64))
    """
    c, moments = _positive_vector(c, "c"), _positive_vector(moments, "moments")
    if c.shape != moments.shape:
        raise ValueError(
            f"c and moments must be of one length, got {len(c)} and {len(moments)}"
        )
    return (2**0.5 * c) ** (2 / 3), 4 * c.square() * moments


def factorial_design(scales: Any) -> Tensor:
    r"""Return every combination of the values ±s_i/2 and ±s_i, (4^d, d).

    Its coordinates are independent and symmetric, with
    :math:`E x_i^2 = \frac58 s_i^2`; two magnitudes keep :math:`x_i^2` from being
    constant.

    Examples
    --------
    >>> factorial_design([1.0]).flatten().tolist()
    [-1.0, -0.5, 0.5, 1.0]
    """
    s = _positive_vector(scales, "scales")
    levels = [torch.tensor([-1.0, -0.5, 0.5, 1.0]).to(s) * scale for scale in s]
    return torch.tensor(list(itertools.product(*levels)), dtype=s.dtype)


def _positive_vector(values: Any, name: str) -> Tensor:
    vector = torch.as_tensor(values, dtype=torch.float64)
    if vector.dim() != 1 or len(vector) == 0 or not (vector > 0).all():
        raise ValueError(f"{name} must be a vector of positive numbers, got {values}")
    return vector
