r"""Deep linear networks, many at once: gradient flow, descent, and what they keep.

A stack of S networks of one architecture is a list of L tensors, W_l of shape
(S, k_l, k_{l-1}), with k_0 = d inputs and k_L = C outputs; axes before the last two
may be missing or several. Its loss is any differentiable function of the product
:math:`J = W_L \cdots W_1`, and enters only through its gradient with respect to J.

Here L counts weight matrices, as in Tansley, Massart and Cartis (2025).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from agop._validation import check_integer, check_real, check_samples
from agop.networks import DeepLinear

Weights = Sequence[Tensor]
LossGradient = Callable[[Tensor], Tensor]
Number = float | Tensor

OPTIMIZERS = ("sgd", "adam", "adamw")


def stack(nets: Sequence[DeepLinear]) -> list[Tensor]:
    """Return the weights of S networks of one architecture, (S, k_l, k_{l-1}) each.

    Raises
    ------
    ValueError
        If there is no network, or their widths differ.

    Examples
    --------
    >>> W = stack([DeepLinear((3, 4, 2), seed=seed) for seed in range(5)])
    >>> [tuple(layer.shape) for layer in W]
    [(5, 4, 3), (5, 2, 4)]
    """
    if not nets:
        raise ValueError("nets must hold at least one network")
    if any(net.widths != nets[0].widths for net in nets):
        raise ValueError(
            f"nets must have the same widths, got {sorted({n.widths for n in nets})}"
        )
    layers = zip(*(net.weights for net in nets), strict=True)
    return [torch.stack([W.detach() for W in layer]) for layer in layers]


def product(W: Weights) -> Tensor:
    """Return the Jacobian J = W_L ... W_1, (..., C, d).

    Examples
    --------
    >>> product([torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0]])])
    tensor([[3., 6.]])
    """
    J = W[0]
    for weight in W[1:]:
        J = weight @ J
    return J


def imbalance(W: Weights) -> list[Tensor]:
    r"""Return D_l = W_{l+1}^T W_{l+1} - W_l W_l^T, (..., k_l, k_l), l = 1..L-1.

    Balanced weights (definition 3.1 of Tansley, Massart and Cartis) have D_l = 0.

    Examples
    --------
    >>> imbalance([torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0]])])
    [tensor([[4.]])]
    """
    return [V.mT @ V - W_l @ W_l.mT for W_l, V in itertools.pairwise(W)]


def imbalance_norm(W: Weights) -> Tensor:
    r"""Return :math:`(\sum_l \|D_l\|_F^2)^{1/2}`, (...).

    Examples
    --------
    >>> imbalance_norm([torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0]])])
    tensor(4.)
    """
    squares = [D.square().sum((-2, -1)) for D in imbalance(W)]
    return torch.stack(squares).sum(0).sqrt()


def power_gap(W: Weights, *, relative: bool = True) -> Tensor:
    r"""Return :math:`\|A - (W_1^T W_1)^L\|_F` with :math:`A = J^T J`, (...).

    Zero for balanced weights: theorem 3.1 of Tansley, Massart and Cartis.

    Parameters
    ----------
    W : list of L tensors (..., k_l, k_{l-1})
    relative : bool, default=True
        Divide by :math:`\|A\|_F`.

    Examples
    --------
    >>> net = DeepLinear((3, 4, 2), dtype=torch.float64)
    >>> bool(power_gap(stack([net]))[0] < 1e-14)
    True
    """
    J = product(W)
    A = J.mT @ J  # (..., d, d)
    power = torch.linalg.matrix_power(W[0].mT @ W[0], len(W))
    norm = torch.linalg.matrix_norm
    return norm(A - power) / norm(A) if relative else norm(A - power)


def alignment(W: Weights, power: float | None = None) -> Tensor:
    r"""Return the cosine of :math:`W_1^T W_1` and :math:`A^\alpha`, (...).

    Parameters
    ----------
    W : list of L tensors (..., k_l, k_{l-1})
    power : float, optional
        alpha; 1/L if absent.

    Notes
    -----
    Equal to `agop.cosine` of one matrix and `agop.matrix_power` of the other, for a
    whole stack at once. Powers are taken of singular values of J, not of eigenvalues
    of J^T J: squaring would lose half the digits of the small ones.

    Examples
    --------
    >>> W = stack([DeepLinear((3, 4, 2), init="lecun_normal", dtype=torch.float64)])
    >>> bool(alignment(W)[0] < 0.999)
    True
    """
    alpha = 1 / len(W) if power is None else check_real(power, "power")
    s, V = torch.linalg.svd(product(W), full_matrices=False)[
        1:
    ]  # (..., r), (..., r, d)
    A_power = V.mT @ (s.pow(2 * alpha)[..., None] * V)  # (..., d, d)
    gram = W[0].mT @ W[0]
    norm = torch.linalg.matrix_norm
    return (gram * A_power).sum((-2, -1)) / (norm(gram) * norm(A_power))


def squared_error(X: Any, Y: Any) -> LossGradient:
    r"""Return the gradient :math:`J \mapsto \nabla_J \frac1{nC}\|X J^T - Y\|_F^2`.

    Parameters
    ----------
    X : array or tensor of shape (n, d)
    Y : array or tensor of shape (n, C)

    Examples
    --------
    >>> X = torch.eye(2)
    >>> squared_error(X, X)(torch.zeros(2, 2))
    tensor([[-0.5000,  0.0000],
            [ 0.0000, -0.5000]])
    """
    X, Y = _check_pair(X, Y)
    scale = 2 / Y.numel()
    # The loss depends on the data through these moments only, up to a constant.
    XX, YX = scale * X.mT @ X, scale * Y.mT @ X  # (d, d), (C, d)
    return lambda J: J @ XX - YX


def minibatches(
    X: Any, Y: Any, batch_size: int, *, seed: int = 0
) -> Iterator[LossGradient]:
    """Yield the gradient of `squared_error` on mini-batches, without end.

    Each epoch is a seeded permutation cut in batches, as in `agop.train`.

    Examples
    --------
    >>> X = torch.ones(6, 2)
    >>> next(minibatches(X, X, 3))(torch.eye(2))
    tensor([[0., 0.],
            [0., 0.]])
    """
    X, Y = _check_pair(X, Y)
    check_integer(batch_size, "batch_size")
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(X), generator=generator)
        for x, y in zip(
            X[order].split(batch_size), Y[order].split(batch_size), strict=True
        ):
            yield _batch_gradient(x, y)


def _batch_gradient(x: Tensor, y: Tensor) -> LossGradient:
    scaled = (2 / y.numel()) * x  # (b, d)
    return lambda J: (J @ x.mT - y.mT) @ scaled  # never forms a (d, d) moment


def layer_gradients(W: Weights, loss_gradient: LossGradient) -> list[Tensor]:
    r"""Return the gradient of the loss with respect to each layer, (S, k_l, k_{l-1}).

    .. math:: \nabla_{W_l} = (W_L \cdots W_{l+1})^T \nabla_J (W_{l-1} \cdots W_1)^T

    Parameters
    ----------
    W : list of L tensors (S, k_l, k_{l-1})
    loss_gradient : callable
        Maps J (S, C, d) to the gradient of the loss with respect to it.

    Notes
    -----
    Hence :math:`W_{l+1}^T \nabla_{W_{l+1}} = \nabla_{W_l} W_l^T`, the identity behind
    lemmas 3.1 and 3.2 of Tansley, Massart and Cartis.

    Examples
    --------
    >>> W = [torch.tensor([[[2.0]]]), torch.tensor([[[3.0]]])]
    >>> layer_gradients(W, lambda J: J - 5.0)
    [tensor([[[3.]]]), tensor([[[2.]]])]
    """
    # bmm, not @: half the overhead, and overhead is all that tiny networks cost
    below = list(itertools.accumulate(W, lambda prefix, w: torch.bmm(w, prefix)))
    above = loss_gradient(below.pop())  # (S, C, d)
    gradients = []
    for weight, prefix in zip(reversed(W[1:]), reversed(below), strict=True):
        gradients.append(torch.bmm(above, prefix.mT))  # (S, k_l, k_{l-1})
        above = torch.bmm(weight.mT, above)  # (S, k_{l-1}, d)
    return [above, *reversed(gradients)]


@torch.no_grad()
def flow(
    W: Weights,
    loss_gradient: LossGradient,
    times: Sequence[float],
    *,
    step: float = 0.02,
    weight_decay: Number = 0.0,
) -> list[list[Tensor]]:
    r"""Follow the gradient flow of a stack of networks.

    Integrates, by the classical Runge-Kutta method of order 4,

    .. math:: \dot W_l = -\nabla_{W_l} \ell(W_L \cdots W_1) - \lambda W_l .

    Parameters
    ----------
    W : list of L tensors (S, k_l, k_{l-1})
        Weights at time 0; not modified. float64 is advised.
    loss_gradient : callable
        Maps J (S, C, d) to the gradient of the loss with respect to it.
    times : increasing sequence of float
        When to keep the weights; 0 is the start.
    step : float, default=0.02
        Longest time step; shortened so that a whole number of them fits between times.
    weight_decay : float or tensor (S,), default=0
        λ, of each network.

    Returns
    -------
    list of weights, one for each time

    Raises
    ------
    ValueError
        If times do not increase from 0 or later, or step or decay is out of range.

    Examples
    --------
    >>> W = stack([DeepLinear((2, 3, 2), dtype=torch.float64)])
    >>> target = torch.eye(2, dtype=torch.float64)
    >>> (end,) = flow(W, lambda J: J - target, [20.0])
    >>> bool((product(end) - target).abs().max() < 1e-6)
    True
    """
    _check_increasing(times, "times")
    check_real(step, "step")
    decay = _per_network(weight_decay, "weight_decay", W)

    def velocity(theta: Tensor) -> Tensor:
        layers = layer_gradients(_views(theta, W), loss_gradient)
        return torch.addcmul(_flat(layers), theta, decay).neg_()

    now, theta, kept = 0.0, _flat(W), []
    for time in times:
        count = math.ceil((time - now) / step - 1e-9)
        for _ in range(count):
            theta = _runge_kutta(velocity, theta, (time - now) / count)
        kept.append([view.clone() for view in _views(theta, W)])
        now = time
    return kept


def _runge_kutta(
    velocity: Callable[[Tensor], Tensor], theta: Tensor, h: float
) -> Tensor:
    """Return the weights (S, P) after one step of length ``h``."""
    a = velocity(theta)
    b = velocity(theta.add(a, alpha=h / 2))
    c = velocity(theta.add(b, alpha=h / 2))
    d = velocity(theta.add(c, alpha=h))
    mean = a.add_(b, alpha=2).add_(c, alpha=2).add_(d)  # times 6
    return theta.add(mean, alpha=h / 6)


@torch.no_grad()
def descend(
    W: Weights,
    gradients: LossGradient | Iterable[LossGradient],
    steps: Sequence[int],
    *,
    lr: Number,
    optimizer: str = "sgd",
    momentum: Number = 0.0,
    weight_decay: Number = 0.0,
) -> list[list[Tensor]]:
    r"""Train a stack of networks, each with its own step size, momentum and decay.

    The same updates as `agop.train` with the optimiser of that name, from gradients in
    closed form: tiny networks by the dozen cost little more than one.

    Parameters
    ----------
    W : list of L tensors (S, k_l, k_{l-1})
        Weights at the start; not modified.
    gradients : callable, or iterable of callables
        ``squared_error(X, Y)`` for full batches, ``minibatches(X, Y, b)`` for batches,
        which all networks then share.
    steps : increasing sequence of int
        After how many updates to keep the weights; 0 is the start.
    lr : float or tensor (S,)
        Learning rate η.
    optimizer : {"sgd", "adam", "adamw"}, default="sgd"
        "sgd" and "adam" add λW to the gradient; "adamw" shrinks W by 1 - ηλ instead.
    momentum : float or tensor (S,), default=0
        Heavy-ball coefficient of "sgd".
    weight_decay : float or tensor (S,), default=0

    Returns
    -------
    list of weights, one for each entry of ``steps``

    Raises
    ------
    ValueError, FloatingPointError
        If an argument is out of range; if the weights are not finite when kept.

    Examples
    --------
    >>> W = stack([DeepLinear((2, 3, 2), dtype=torch.float64)] * 3)
    >>> X = torch.eye(2, dtype=torch.float64)
    >>> rates = torch.tensor([0.1, 0.2, 0.4], dtype=torch.float64)
    >>> start, end = descend(W, squared_error(X, X), [0, 100], lr=rates)
    >>> [tuple(layer.shape) for layer in end]
    [(3, 3, 2), (3, 2, 3)]
    """
    _check_increasing(steps, "steps")
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer must be one of {OPTIMIZERS}, got {optimizer!r}")
    theta = _flat(W)
    views = _views(theta, W)  # they follow the updates, which are in place
    options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
    numbers = {name: _per_network(v, name, W) for name, v in options.items()}
    update = (_sgd if optimizer == "sgd" else _adam)(theta, optimizer, **numbers)
    batches = itertools.repeat(gradients) if callable(gradients) else iter(gradients)
    done, kept = 0, []
    for total in steps:
        for loss_gradient in itertools.islice(batches, total - done):
            layers = layer_gradients(views, loss_gradient)
            update(_flat(layers))
        done = total
        if not theta.isfinite().all():
            raise FloatingPointError(f"training diverged before step {total}")
        kept.append([view.clone() for view in views])
    return kept


Update = Callable[[Tensor], None]


def _sgd(
    theta: Tensor, _: str, lr: Tensor, momentum: Tensor, weight_decay: Tensor
) -> Update:
    """Return the heavy-ball update v <- βv + g + λθ, θ <- θ - ηv, in place."""
    velocity = torch.zeros_like(theta)

    def update(gradient: Tensor) -> None:
        gradient.addcmul_(theta, weight_decay)
        velocity.mul_(momentum).add_(gradient)
        theta.addcmul_(velocity, lr, value=-1)

    return update


def _adam(
    theta: Tensor, kind: str, lr: Tensor, momentum: Tensor, weight_decay: Tensor
) -> Update:
    """Return Adam's update with PyTorch's constants, coupled or decoupled, in place."""
    if momentum.any():
        raise ValueError("momentum is for optimizer='sgd'")
    beta, beta2, epsilon = 0.9, 0.999, 1e-8
    mean, square = torch.zeros_like(theta), torch.zeros_like(theta)
    counter = itertools.count(1)

    def update(gradient: Tensor) -> None:
        t = next(counter)
        if kind == "adam":
            gradient.addcmul_(theta, weight_decay)
        else:
            theta.mul_(1 - lr * weight_decay)
        mean.lerp_(gradient, 1 - beta)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        root = square.sqrt().div_((1 - beta2**t) ** 0.5).add_(epsilon)
        theta.addcmul_(mean.div(root), lr, value=-1 / (1 - beta**t))

    return update


def _flat(W: Weights) -> Tensor:
    """Return all weights as one tensor (S, P): an update is then few operations."""
    return torch.cat([w.flatten(1) for w in W], dim=1)


def _views(theta: Tensor, W: Weights) -> list[Tensor]:
    """Return the layers, (S, k_l, k_{l-1}) each, as views of ``theta`` (S, P)."""
    parts = theta.split([w[0].numel() for w in W], dim=1)
    return [part.view(w.shape) for part, w in zip(parts, W, strict=True)]


def _per_network(value: Number, name: str, W: Weights) -> Tensor:
    """Return ``value`` as a tensor (S, 1), or (1, 1) if it is one for all."""
    values = torch.as_tensor(value, dtype=W[0].dtype, device=W[0].device)
    if values.dim() > 1 or (values.dim() == 1 and len(values) != len(W[0])):
        raise ValueError(
            f"{name} must be a number or one for each of the {len(W[0])} networks, "
            f"got shape {tuple(values.shape)}"
        )
    if not (values.isfinite() & (values >= 0)).all():
        raise ValueError(f"{name} must be finite and non-negative, got {value}")
    return values.reshape(-1, 1)


def _check_increasing(values: Sequence[float], name: str) -> None:
    pairs = zip([0, *values], values, strict=False)
    if len(values) == 0 or any(later < earlier for earlier, later in pairs):
        raise ValueError(f"{name} must increase from 0 or later, got {list(values)}")


def _check_pair(X: Any, Y: Any) -> tuple[Tensor, Tensor]:
    X, Y = check_samples(X, "X"), check_samples(Y, "Y")
    if X.dim() != 2 or Y.dim() != 2 or len(X) != len(Y):
        raise ValueError(
            "X and Y must be (n, d) and (n, C), "
            f"got {tuple(X.shape)} and {tuple(Y.shape)}"
        )
    return X, Y
