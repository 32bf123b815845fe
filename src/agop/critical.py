r"""Train a small network to a critical point, as far as rounding allows.

Statements about critical points are empty at the end of an ordinary training: the
gradient is small, and still far above the rounding error. Here a quasi-Newton method
comes close, and Newton's method takes the last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from agop._validation import check_integer, check_real
from agop.linearization import Loss


def critical_point(
    net: nn.Module,
    X: Tensor,
    Y: Any,
    loss: Loss,
    *,
    decay: float,
    iterations: int = 300,
    newton_steps: int = 50,
    callback: Callable[[float], None] | None = None,
) -> float:
    r"""Move ``net`` to a critical point of the loss with weight decay.

    That is, of :math:`\mathcal L + (\lambda/2) \|\theta\|^2`.

    L-BFGS first, then Newton steps with the full Hessian: for smooth activations and
    up to some hundred parameters in float64. With ReLU the Hessian is blind to kinks.
    Newton's method does not ask whether the point is a minimum or a saddle.

    Parameters
    ----------
    net : nn.Module, changed in place
    X, Y, loss
        As for `agop.linearization.layer_uses`.
    decay : float
        λ, on every parameter. With λ > 0 the Hessian is regular at generic points.
    iterations : int, default=300
        Of L-BFGS.
    newton_steps : int, default=50
        At most, each halved until the gradient norm falls; ends when it falls no more.
    callback : callable, optional
        Called with the gradient norm about every 20 iterations and at each Newton
        step, while ``net`` has the weights it belongs to.

    Returns
    -------
    float
        The norm of the gradient, penalty included, at the end.

    Examples
    --------
    >>> from agop.networks import FullyConnected
    >>> X = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
    >>> net = FullyConnected((1, 4, 1), "tanh", dtype=torch.float64)
    >>> critical_point(net, X, X**2 + X, nn.functional.mse_loss, decay=0.01) < 1e-13
    True
    """
    decay = check_real(decay, "decay", positive=False)
    parameters = list(net.parameters())
    names = [name for name, _ in net.named_parameters()]
    sizes = [p.numel() for p in parameters]
    report = callback or (lambda norm: None)

    def objective(theta: Tensor) -> Tensor:
        parts = theta.split(sizes)
        state = {
            name: part.view_as(p)
            for name, part, p in zip(names, parts, parameters, strict=True)
        }
        outputs = torch.func.functional_call(net, state, (X,))
        return loss(outputs, Y) + decay / 2 * theta.square().sum()

    def move_to(theta: Tensor) -> None:
        nn.utils.vector_to_parameters(theta, parameters)

    gradient = torch.func.grad(objective)
    start = nn.utils.parameters_to_vector(parameters).detach()
    theta = _quasi_newton(objective, start, iterations, move_to, report)
    norm = float(gradient(theta).norm())
    for _ in range(check_integer(newton_steps, "newton_steps", minimum=0)):
        # jacrev of grad: the forward mode of torch.func.hessian isn't needed
        hessian = torch.func.jacrev(gradient)(theta)
        step = torch.linalg.lstsq(hessian, gradient(theta)[:, None])[0][:, 0]
        theta, now = _shortened(gradient, theta, step, norm)
        if now >= norm:
            break
        norm = now
        move_to(theta)
        report(norm)
    move_to(theta)
    return norm


def _shortened(
    gradient: Callable[[Tensor], Tensor], theta: Tensor, step: Tensor, norm: float
) -> tuple[Tensor, float]:
    """Halve the step until the gradient norm falls; at rounding none does it."""
    # far from rest, or where the Hessian is almost singular, a full step leaps away
    for halvings in range(12):
        there = theta - step / 2**halvings
        now = float(gradient(there).norm())
        if now < norm:
            return there, now
    return theta, norm


def _quasi_newton(
    objective: Callable[[Tensor], Tensor],
    start: Tensor,
    iterations: int,
    move_to: Callable[[Tensor], None],
    report: Callable[[float], None],
) -> Tensor:
    theta = start.clone().requires_grad_()
    rounds, left = 20, check_integer(iterations, "iterations")
    descent = torch.optim.LBFGS(
        [theta],
        max_iter=rounds,
        history_size=50,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        descent.zero_grad()
        value = objective(theta)
        value.backward()
        return value

    while left > 0:
        descent.step(closure)
        closure()
        assert theta.grad is not None
        move_to(theta.detach())
        report(float(theta.grad.norm()))
        left -= rounds
    return theta.detach()
