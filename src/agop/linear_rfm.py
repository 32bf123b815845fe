r"""Recursive feature machines with linear predictors, and what they minimise.

With :math:`f(x) = \Theta x` the AGOP is :math:`\Theta^T \Theta`. Alternating

.. math::
    \Theta \leftarrow \arg\min_\Theta \|X \Theta^T - Y\|_F^2
        + \mu \, \mathrm{tr}(\Theta M^{-1} \Theta^T), \qquad
    M \leftarrow (\Theta^T \Theta)^s

is iteratively reweighted least squares: its fixed points are the critical points of the
squared error plus :math:`(2 \mu / p) \|\Theta\|_p^p`, the Schatten quasi-norm with
p = 2 - 2s. A linear network of L weight matrices under weight decay has p = 2/L, hence
the power s = (L - 1)/L.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from agop._validation import check_integer, check_real, check_samples


def schatten(J: Tensor, p: float) -> Tensor:
    r"""Return :math:`\|J\|_p^p`, the sum of the singular values to the power p, (...).

    Parameters
    ----------
    J : tensor of shape (..., C, d)
    p : float, positive

    Examples
    --------
    >>> schatten(torch.diag(torch.tensor([4.0, 9.0])), 0.5)
    tensor(5.)
    """
    return torch.linalg.svdvals(J).pow(check_real(p, "p")).sum(-1)


def depth_to_power(depth: int) -> tuple[float, float]:
    """Return the power s of the RFM and the Schatten exponent p of L weight matrices.

    Examples
    --------
    >>> depth_to_power(2), depth_to_power(4)
    ((0.5, 1.0), (0.75, 0.5))
    """
    L = check_integer(depth, "depth")
    return (L - 1) / L, 2 / L


def agop_power(theta: Tensor, power: float, smoothing: float = 0.0) -> Tensor:
    r"""Return :math:`(\Theta^T \Theta + \varepsilon I)^s`, (..., d, d).

    Parameters
    ----------
    theta : tensor of shape (..., C, d)
    power : float
        s >= 0.
    smoothing : float, default=0
        ε. Without it a direction that is lost once is lost for good.

    Examples
    --------
    >>> agop_power(torch.tensor([[0.0, 3.0]]), 0.5)
    tensor([[0., 0.],
            [0., 3.]])
    """
    # Singular values of Θ: the eigenvalues of Θ^T Θ have half their digits.
    sigma, V = torch.linalg.svd(theta)[1:]  # (..., min(C, d)), (..., d, d)
    values = sigma.new_full(V.shape[:-1], smoothing)  # (..., d)
    values[..., : sigma.shape[-1]] += sigma.square()
    return V.mT @ (values.pow(power)[..., None] * V)


def metric_ridge(X: Any, Y: Any, M: Tensor, ridge: float) -> Tensor:
    r"""Return the (C, d) minimiser of the ridge problem in the metric ``M``.

    Kernel ridge regression with kernel :math:`x^T M z`, so that a singular M, whose
    null space is then out of reach, needs no care.

    Parameters
    ----------
    X : array or tensor of shape (n, d)
    Y : array or tensor of shape (n, C)
    M : tensor of shape (d, d), symmetric, positive semi-definite
    ridge : float
        μ, on the squared error summed over samples and outputs.

    Examples
    --------
    >>> X = torch.eye(2, dtype=torch.float64)
    >>> metric_ridge(X, X, X, ridge=1.0)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """
    X, Y = check_samples(X, "X"), check_samples(Y, "Y")
    ridge = check_real(ridge, "ridge")
    if M.shape != (X.shape[1], X.shape[1]):
        raise ValueError(
            f"M must have shape {(X.shape[1], X.shape[1])}, got {tuple(M.shape)}"
        )
    # M X^T (X M X^T + μ I)^{-1} = (M X^T X + μ I)^{-1} M X^T: d equations, not n
    system = M @ X.mT @ X + ridge * torch.eye(len(M)).to(M)  # (d, d)
    return torch.linalg.solve(system, M @ X.mT @ Y).mT


def linear_rfm(
    X: Any, Y: Any, *, power: float, ridge: float, smoothing: Sequence[float]
) -> list[Tensor]:
    """Return the (C, d) predictors of a linear RFM, one an iteration, from M = I.

    Parameters
    ----------
    X : array or tensor of shape (n, d)
    Y : array or tensor of shape (n, C)
    power : float
        s, of the AGOP as metric: 1/2 for two layers, (L - 1)/L for L.
    ridge : float
        μ; for the loss and decay of `agop.deep_linear` it is λ n C / 2. No step is
        normalised: a rescaled M would be another ridge.
    smoothing : sequence of float
        ε of each update of M, hence the number of ridge fits. The first fit has C rows,
        so that without smoothing no later one leaves their span.

    Examples
    --------
    >>> X = torch.eye(2, dtype=torch.float64)
    >>> Y = torch.diag(torch.tensor([2.0, 0.2], dtype=torch.float64))
    >>> path = linear_rfm(X, Y, power=0.5, ridge=0.5, smoothing=[0.0] * 50)
    >>> path[-1].round(decimals=3)  # soft thresholding at the ridge: the nuclear norm
    tensor([[1.5000, 0.0000],
            [0.0000, 0.0000]], dtype=torch.float64)
    """
    power = check_real(power, "power", positive=False)
    X = check_samples(X, "X")
    M, path = torch.eye(X.shape[1]).to(X), []
    for epsilon in smoothing:
        path.append(metric_ridge(X, Y, M, ridge))
        M = agop_power(path[-1], power, epsilon)
    return path


def complete_matrix(
    Y: Tensor,
    observed: Tensor,
    *,
    power: float,
    smoothing: Sequence[float],
    ridge: float = 1e-8,
) -> Tensor:
    r"""Return the completion of a matrix by a linear RFM, from M = I.

    The samples are entries: :math:`x = e_i e_j^T`, whose prediction is
    :math:`\Theta_{ij}`. Rows do not interact in the ridge problem, so that each is a
    small kernel ridge regression whose kernel matrix is a block of M.

    Parameters
    ----------
    Y : tensor of shape (..., C, d)
        Only its observed entries are read.
    observed : bool tensor of shape (..., C, d)
    power : float
        s, as in `linear_rfm`.
    smoothing : sequence of float
        ε of each iteration, relative to the largest eigenvalue of the AGOP, by which
        the AGOP is divided; falling slowly from 1, it leads to low rank.
    ridge : float, default=1e-8
        μ, small: observed entries are matched.

    Returns
    -------
    tensor of shape (..., C, d)

    Examples
    --------
    >>> u = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    >>> seen = torch.tensor([[1, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=torch.bool)
    >>> smoothing = torch.logspace(0, -8, 100).tolist()
    >>> completed = complete_matrix(u @ u.T, seen, power=1.0, smoothing=smoothing)
    >>> bool((completed - u @ u.T).abs().max() < 1e-2)
    True
    """
    if observed.shape != Y.shape or observed.dtype != torch.bool:
        raise ValueError(f"observed must be a bool tensor of shape {tuple(Y.shape)}")
    if len(smoothing) == 0:
        raise ValueError("smoothing must hold one number for each iteration, got none")
    power = check_real(power, "power", positive=False)
    ridge = check_real(ridge, "ridge")
    mask = observed.to(Y.dtype)
    both = mask[..., :, None] * mask[..., None, :]  # (..., C, d, d): seen in one row
    identity = torch.eye(Y.shape[-1]).to(Y)
    M, theta = identity, Y
    for epsilon in smoothing:
        # Rows and columns of unseen entries hold only the identity: they drop out.
        kernel = both * M[..., None, :, :] + ridge * identity
        kernel = kernel + torch.diag_embed(1 - mask)
        dual = torch.linalg.solve(kernel, (mask * Y)[..., None])[..., 0]  # (..., C, d)
        theta = dual @ M
        largest = torch.linalg.matrix_norm(theta, 2)[..., None, None]
        M = agop_power(theta / largest, power, epsilon)
    return theta
