r"""One training loop for every chapter, and the gradient flow it discretises.

Losses, for outputs f (n, C) and targets Y (n, C):

* "mse": the mean over all entries, :math:`\frac1{nC}\sum (f_{pc} - Y_{pc})^2`, with no
  factor 1/2, as in the released code of the papers;
* "cross_entropy": :math:`-\frac1n\sum_{pc} Y_{pc} \log\mathrm{softmax}(f_p)_c`.

Every step uses plain tensor operations and the seeds given: on a CPU, the same call
gives the same network.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

import torch
from torch import Tensor, nn

from agop._validation import check_integer, check_real, check_samples, check_tensor
from agop.networks import DeepLinear, eval_mode

State = dict[str, Tensor]
Rows = Tensor | slice


@dataclass
class History:
    """What was measured on the way.

    Attributes
    ----------
    steps : list of int
        Steps at which the lists below were filled; 0 is before the first update.
    losses, val_losses : list of float
        Loss over all training (validation) samples, without weight decay.
    accuracies, val_accuracies : list of float
        Share of samples whose largest output is that of the largest target; nan for
        a single output.
    snapshots : dict of int to state_dict
        Copies of the weights at the steps asked for.
    """

    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    val_losses: list[float] = field(default_factory=list)
    val_accuracies: list[float] = field(default_factory=list)
    snapshots: dict[int, State] = field(default_factory=dict)


def train(
    net: nn.Module,
    X: Any,
    Y: Any,
    *,
    lr: float,
    loss: str = "mse",
    optimizer: str | Callable[..., torch.optim.Optimizer] = "sgd",
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    batch_size: int | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    X_val: Any = None,
    Y_val: Any = None,
    record_every: int | None = None,
    snapshots: Iterable[int] = (),
    stop_when: float | Callable[[History], bool] | None = None,
    callback: Callable[[int, nn.Module], None] | None = None,
) -> History:
    r"""Train a network in place and return what was measured.

    Parameters
    ----------
    net : nn.Module
        Maps (n, ...) to (n, C). Parameters that don't require gradients stay as they
        are. Updates are taken in the mode the module is in, measures in eval mode.
    X : array or tensor of shape (n, ...)
    Y : array or tensor of shape (n, C), or (n,) if C = 1
        With "cross_entropy" also integer classes of shape (n,).
    lr : float
        Learning rate, γ.
    loss : {"mse", "cross_entropy"}, default="mse"
    optimizer : {"sgd", "adam", "adamw"} or callable, default="sgd"
        A callable gets ``(parameters, lr=lr)`` and returns a torch optimizer:
        ``functools.partial(torch.optim.AdamW, betas=(0.9, 0.98))``.
    momentum : float, default=0
        Heavy-ball coefficient of "sgd".
    weight_decay : float, default=0
        λ. "sgd" and "adam" add λW to the gradient, that of the penalty (λ/2) Σ ‖W‖²;
        "adamw" shrinks W by the factor 1 - γλ at each step instead (decoupled).
    batch_size : int, optional
        Full batch if absent. Otherwise each epoch is a seeded permutation cut in
        batches; the last one may be smaller.
    epochs, steps : int
        Length of the training, in passes over the data or in updates: give one.
    seed : int, default=0
        Of the order of the batches.
    X_val, Y_val : optional
        Samples to measure on, never to train on.
    record_every : int, optional
        Measure at multiples of so many steps, at step 0 and at the last; about 100
        times in all if absent.
    snapshots : iterable of int
        Steps after which to keep a copy of the weights, 0 being the start.
    stop_when : float or callable, optional
        Stop at a recorded step once the training loss is at most this value, or once
        ``stop_when(history)`` is true.
    callback : callable, optional
        Called as ``callback(step, net)`` at each recorded step.

    Returns
    -------
    History

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, or shapes do not fit each other.
    FloatingPointError
        If the loss is not finite at a recorded step.

    Examples
    --------
    >>> from agop.networks import FullyConnected
    >>> net = FullyConnected((2, 16, 1), seed=0)
    >>> X = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    >>> history = train(net, X, X[:, 0] * X[:, 1], lr=0.3, steps=500)
    >>> history.losses[-1] < 0.2 * history.losses[0]
    True
    """
    task = _Task(net, X, Y, X_val, Y_val, loss)
    plan = _Plan(len(task.X), batch_size, epochs, steps, record_every, snapshots)
    history = History()

    def batch_loss(rows: Rows) -> Tensor:
        return task.loss(net(task.X[rows]), task.Y[rows])

    def observe(step: int) -> bool:
        if step in plan.snapshots:
            history.snapshots[step] = _copy(net.state_dict())
        if not plan.records(step):
            return False
        with torch.no_grad(), eval_mode(net):
            task.record([history], step, *(net(x)[None] for x in task.inputs))
        if callback is not None:
            callback(step, net)
        return _is_met(stop_when, history)

    parameters = [p for p in net.parameters() if p.requires_grad]
    descent = _make_optimizer(optimizer, parameters, lr, momentum, weight_decay)
    _descend(descent, batch_loss, plan.batches(seed), observe)
    return history


def train_many(
    nets: Sequence[nn.Module],
    X: Any,
    Y: Any,
    *,
    lr: float,
    loss: str = "mse",
    optimizer: str | Callable[..., torch.optim.Optimizer] = "sgd",
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    batch_size: int | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    seeds: Sequence[int] | None = None,
    X_val: Any = None,
    Y_val: Any = None,
    record_every: int | None = None,
    snapshots: Iterable[int] = (),
) -> list[History]:
    r"""Train networks of one architecture on the same data, all in one computation.

    Equal, up to rounding, to ``train(net, X, Y, seed=seed, ...)`` for each net and
    seed (in float32, a rounding that flips a ReLU grows with the steps). Faster when
    the networks are small: their weights are stacked along a new axis, so that S
    networks cost the overhead of one; from widths of some hundreds on, train singly.
    Optimisers must act entry by entry, as those named do, or networks get coupled.

    Parameters
    ----------
    nets : sequence of nn.Module
        Trained in place; same architecture, no buffers.
    seeds : sequence of int, optional
        Order of the batches of each network; 0, 1, 2, ... if absent.

    The others are those of `train`; there is no early stopping.

    Returns
    -------
    list of History, one per network

    Raises
    ------
    ValueError
        If the networks differ in architecture or have buffers, or as in `train`.

    Examples
    --------
    >>> from agop.networks import FullyConnected
    >>> nets = [FullyConnected((2, 8, 1), seed=s) for s in range(3)]
    >>> X = torch.randn(32, 2, generator=torch.Generator().manual_seed(0))
    >>> histories = train_many(nets, X, X[:, 0], lr=0.1, steps=200)
    >>> all(h.losses[-1] < h.losses[0] for h in histories)
    True
    """
    nets = list(nets)
    _check_same_architecture(nets)
    seeds = range(len(nets)) if seeds is None else list(seeds)
    if len(seeds) != len(nets):
        raise ValueError(f"seeds must be {len(nets)} integers, got {len(seeds)}")
    task = _Task(nets[0], X, Y, X_val, Y_val, loss)
    plan = _Plan(len(task.X), batch_size, epochs, steps, record_every, snapshots)
    histories = [History() for _ in nets]
    weights = torch.func.stack_module_state(nets)[0]  # (S, ...) each
    shell = copy.deepcopy(nets[0]).to("meta")

    def predict(x: Tensor, shared: bool = True) -> Tensor:
        return torch.vmap(
            lambda w, x: torch.func.functional_call(shell, w, (x,)),
            in_dims=(0, None if shared else 0),
        )(weights, x)  # (S, b, C), from x (b, ...) if shared or else (S, b, ...)

    def batch_loss(rows: Rows) -> Tensor:
        # The gradient of the sum is that of each net's loss for its own weights.
        outputs = predict(task.X[rows], shared=batch_size is None)
        return task.loss(outputs, task.Y[rows]).sum()

    def observe(step: int) -> bool:
        if step in plan.snapshots:
            for history, state in zip(
                histories, _unstack(weights, len(nets)), strict=True
            ):
                history.snapshots[step] = _copy(state)
        if plan.records(step):
            with torch.no_grad():
                task.record(histories, step, *map(predict, task.inputs))
        return False

    parameters = [p for p in weights.values() if p.requires_grad]
    descent = _make_optimizer(optimizer, parameters, lr, momentum, weight_decay)
    _descend(descent, batch_loss, plan.stacked_batches(seeds), observe)
    for net, state in zip(nets, _unstack(weights, len(nets)), strict=True):
        net.load_state_dict(state)
    return histories


def gradient_flow(
    net: DeepLinear,
    X: Any,
    Y: Any,
    *,
    t: float,
    step: float = 0.02,
    weight_decay: float = 0.0,
    record_every: int | None = None,
    snapshots: Iterable[int] = (),
    callback: Callable[[int, nn.Module], None] | None = None,
) -> History:
    r"""Follow the gradient flow of a deep linear network up to time ``t``.

    Integrates, by the classical Runge-Kutta method of order 4,

    .. math::
        \dot W_l = -\nabla_{W_l} \Bigl[ \frac1{nC} \|J X^T - Y^T\|_F^2
            + \frac{\lambda}{2} \sum_l \|W_l\|_F^2 \Bigr], \qquad
        J = W_{L+1} \cdots W_1 .

    It is the limit of ``train(net, X, Y, lr=γ, steps=t/γ, weight_decay=λ)`` as γ → 0.

    Parameters
    ----------
    net : DeepLinear
        Moved in place; float64 is advised.
    X : array or tensor of shape (n, d)
    Y : array or tensor of shape (n, C)
    t : float
        Length of the flow, in units of the learning rate times steps.
    step : float, default=0.02
        Time step; shortened so that a whole number of them makes ``t``.
    weight_decay : float, default=0
        λ, half the coefficient of Σ ‖W‖² in the penalised loss.
    record_every, snapshots, callback
        As for `train`, in numbers of time steps.

    Returns
    -------
    History
        Entry s of ``steps`` is the time ``s * t / steps[-1]``.

    Raises
    ------
    TypeError
        If ``net`` is not a `DeepLinear`.
    ValueError
        If an argument is out of range, or shapes do not fit each other.

    Notes
    -----
    Without decay the flow keeps D_l = W_{l+1}^T W_{l+1} - W_l W_l^T; with it,
    D_l(t) = exp(-2λt) D_l(0): lemmas 3.1 and 3.2 of Tansley, Massart and Cartis
    (2025). Gradient descent breaks the first at O(γ), this integrator at O(step^4).

    Examples
    --------
    >>> net = DeepLinear((3, 4, 2), dtype=torch.float64)
    >>> X = torch.eye(3, dtype=torch.float64)
    >>> history = gradient_flow(net, X, X[:, :2], t=20.0)
    >>> history.losses[-1] < 0.01
    True
    >>> bool(net.imbalance()[0].abs().max() < 1e-8)
    True
    """
    if not isinstance(net, DeepLinear):
        raise TypeError(f"net must be a DeepLinear, got {type(net).__name__}")
    task = _Task(net, X, Y, None, None, "mse")
    decay = check_real(weight_decay, "weight_decay", positive=False)
    count = max(1, math.ceil(check_real(t, "t") / check_real(step, "step") - 1e-9))
    plan = _Plan(len(task.X), None, None, count, record_every, snapshots)
    history = History()
    # The loss depends on the data through these moments only, up to a constant.
    scale = 2 / task.Y.numel()
    XX, YX = scale * task.X.mT @ task.X, scale * task.Y.mT @ task.X  # (d, d), (C, d)

    def velocity(W: list[Tensor]) -> list[Tensor]:
        return _linear_velocity(W, XX, YX, decay)

    def observe(step: int) -> None:
        if step in plan.snapshots:
            history.snapshots[step] = _copy(net.state_dict())
        if plan.records(step):
            task.record([history], step, net(task.X)[None])
            if callback is not None:
                callback(step, net)

    with torch.no_grad():
        observe(0)
        for i in range(1, count + 1):
            moved = _runge_kutta(velocity, net.weights, t / count)
            for W, new in zip(net.weights, moved, strict=True):
                W.copy_(new)
            observe(i)
    return history


def _linear_velocity(
    W: list[Tensor], XX: Tensor, YX: Tensor, decay: float
) -> list[Tensor]:
    """Return -∇_{W_l} = -(W_{>l}^T ∇_J) (W_{l-1} ... W_1)^T - λ W_l for every l."""
    below = [torch.eye(len(XX), dtype=XX.dtype, device=XX.device)]
    for weight in W:
        below.append(weight @ below[-1])  # (k_l, d)
    above = below[-1] @ XX - YX  # (C, d): gradient for the product J
    velocity = []
    for weight, product in zip(reversed(W), reversed(below[:-1]), strict=True):
        velocity.append(-(above @ product.mT) - decay * weight)  # (k_l, k_{l-1})
        above = weight.mT @ above  # (k_{l-1}, d)
    return velocity[::-1]


def _runge_kutta(
    velocity: Callable[[list[Tensor]], list[Tensor]], W: list[Tensor], h: float
) -> list[Tensor]:
    """Return the weights after one step of size ``h``."""

    def moved(direction: list[Tensor], length: float) -> list[Tensor]:
        return [w + length * v for w, v in zip(W, direction, strict=True)]

    a = velocity(W)
    b = velocity(moved(a, h / 2))
    c = velocity(moved(b, h / 2))
    d = velocity(moved(c, h))
    mean = [(p + 2 * q + 2 * r + s) / 6 for p, q, r, s in zip(a, b, c, d, strict=True)]
    return moved(mean, h)


def _mse(outputs: Tensor, Y: Tensor) -> Tensor:
    return (outputs - Y).square().mean(dim=(-2, -1))


def _cross_entropy(outputs: Tensor, Y: Tensor) -> Tensor:
    return -(Y * outputs.log_softmax(-1)).sum(-1).mean(-1)


# Each maps (..., n, C) and (..., n, C) to (...): one loss a network.
_LOSSES = {"mse": _mse, "cross_entropy": _cross_entropy}


def _accuracy(outputs: Tensor, Y: Tensor) -> Tensor:
    if Y.shape[-1] == 1:
        return outputs.new_full(outputs.shape[:-2], math.nan)
    hits = outputs.argmax(-1) == Y.argmax(-1)
    return hits.to(outputs.dtype).mean(-1)


class _Task:
    """Checked samples, with and without a validation set, and the loss on them."""

    def __init__(
        self, net: nn.Module, X: Any, Y: Any, X_val: Any, Y_val: Any, loss: str
    ) -> None:
        if loss not in _LOSSES:
            raise ValueError(f"loss must be one of {sorted(_LOSSES)}, got {loss!r}")
        if (X_val is None) != (Y_val is None):
            raise ValueError("X_val and Y_val must be given together")
        self.loss = _LOSSES[loss]
        self.X, self.Y = _check_pair(net, X, Y, loss, "")
        self.inputs, self.targets = [self.X], [self.Y]
        if X_val is not None:
            X_val, Y_val = _check_pair(net, X_val, Y_val, loss, "_val")
            self.inputs.append(X_val)
            self.targets.append(Y_val)

    def record(self, histories: list[History], step: int, *outputs: Tensor) -> None:
        """Append the measures of S networks, from their outputs (S, n, C)."""
        for history in histories:
            history.steps.append(step)
        for prefix, f, Y in zip(("", "val_"), outputs, self.targets, strict=False):
            losses, accuracies = self.loss(f, Y).tolist(), _accuracy(f, Y).tolist()
            if not all(map(math.isfinite, losses)):
                raise FloatingPointError(
                    f"training diverged: {prefix}loss is {losses} at step {step}; "
                    "take smaller steps"
                )
            for s, history in enumerate(histories):
                getattr(history, f"{prefix}losses").append(losses[s])
                getattr(history, f"{prefix}accuracies").append(accuracies[s])


def _check_pair(
    net: nn.Module, X: Any, Y: Any, loss: str, suffix: str
) -> tuple[Tensor, Tensor]:
    """Return X (n, ...) and Y (n, C) with the dtype and device of the network."""
    parameter = next(net.parameters(), None)
    if parameter is None:
        raise ValueError("net must have parameters to train")
    X = check_samples(X, f"X{suffix}").to(parameter)
    with torch.no_grad(), eval_mode(net):
        outputs = net(X[:1])
    if outputs.dim() != 2:
        raise ValueError(
            f"net must map (n, ...) to (n, C), but a batch of 1 gave {outputs.shape}"
        )
    C = outputs.shape[1]
    if loss == "cross_entropy" and C < 2:
        raise ValueError("loss='cross_entropy' needs a network of at least 2 outputs")
    Y = check_tensor(Y, f"Y{suffix}")
    if loss == "cross_entropy" and Y.dim() == 1:
        Y = _one_hot(Y, C, f"Y{suffix}")
    Y = Y.to(parameter)
    Y = Y.unsqueeze(1) if Y.dim() == 1 else Y
    if Y.shape != (len(X), C):
        raise ValueError(
            f"Y{suffix} must have shape {(len(X), C)} for these samples and this "
            f"network, got {tuple(Y.shape)}"
        )
    return X, Y


def _one_hot(Y: Tensor, C: int, name: str) -> Tensor:
    if Y.is_floating_point():
        raise TypeError(f"{name} of shape (n,) must hold integer classes")
    Y = Y.long()
    if Y.min() < 0 or Y.max() >= C:
        raise ValueError(f"{name} must hold classes from 0 to {C - 1}")
    return nn.functional.one_hot(Y, C)


class _Plan:
    """Number of updates, their batches, and the steps to record or keep."""

    def __init__(
        self,
        n: int,
        batch_size: int | None,
        epochs: int | None,
        steps: int | None,
        record_every: int | None,
        snapshots: Iterable[int],
    ) -> None:
        self.n = n
        self.batch_size = (
            None if batch_size is None else check_integer(batch_size, "batch_size")
        )
        if (epochs is None) == (steps is None):
            raise ValueError("give either epochs or steps, and not both")
        if epochs is not None:
            per_epoch = math.ceil(n / (self.batch_size or n))
            self.total = per_epoch * check_integer(epochs, "epochs")
        else:
            self.total = check_integer(steps, "steps")
        if record_every is None:
            record_every = math.ceil(self.total / 100)
        self.every = check_integer(record_every, "record_every")
        self.snapshots = set(snapshots)
        if any(step not in range(self.total + 1) for step in self.snapshots):
            raise ValueError(
                f"snapshots must be steps from 0 to {self.total}, "
                f"got {sorted(self.snapshots)}"
            )

    def records(self, step: int) -> bool:
        return step % self.every == 0 or step == self.total

    def batches(self, seed: int) -> Iterator[Rows]:
        """Yield the rows of each update."""
        return islice(self._endless_batches(seed), self.total)

    def _endless_batches(self, seed: int) -> Iterator[Rows]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            if self.batch_size is None:
                yield slice(None)
            else:
                order = torch.randperm(self.n, generator=generator)
                yield from order.split(self.batch_size)

    def stacked_batches(self, seeds: Sequence[int]) -> Iterator[Rows]:
        """Yield the rows of each update of S networks: (S, b), or all for each."""
        if self.batch_size is None:
            return self.batches(0)
        orders = (cast(Iterator[Tensor], self.batches(seed)) for seed in seeds)
        return map(torch.stack, zip(*orders, strict=True))


def _make_optimizer(
    kind: str | Callable[..., torch.optim.Optimizer],
    parameters: list[Any],
    lr: float,
    momentum: float,
    weight_decay: float,
) -> torch.optim.Optimizer:
    if not parameters:
        raise ValueError("net has no parameter that requires a gradient")
    lr = check_real(lr, "lr")
    momentum = check_real(momentum, "momentum", positive=False)
    decay = check_real(weight_decay, "weight_decay", positive=False)
    if kind != "sgd" and momentum:
        raise ValueError(f"momentum is for optimizer='sgd', got optimizer={kind!r}")
    if callable(kind):
        if decay:
            raise ValueError("weight_decay must be set in the callable optimizer")
        return kind(parameters, lr=lr)
    # fused: one kernel for all parameters, else small networks wait for Python
    if kind == "sgd":
        return torch.optim.SGD(
            parameters, lr=lr, momentum=momentum, weight_decay=decay, fused=True
        )
    named = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    if kind not in named:
        raise ValueError(
            f"optimizer must be 'sgd', 'adam', 'adamw' or a callable, got {kind!r}"
        )
    return named[kind](parameters, lr=lr, weight_decay=decay, fused=True)


@torch.enable_grad()
def _descend(
    optimizer: torch.optim.Optimizer,
    batch_loss: Callable[[Rows], Tensor],
    batches: Iterator[Rows],
    observe: Callable[[int], bool],
) -> None:
    """Update once a batch, until the batches end or ``observe(step)`` is true."""
    if observe(0):
        return
    for step, rows in enumerate(batches, start=1):
        optimizer.zero_grad()
        batch_loss(rows).backward()
        optimizer.step()
        if observe(step):
            break
    optimizer.zero_grad()


def _is_met(
    stop_when: float | Callable[[History], bool] | None, history: History
) -> bool:
    if stop_when is None:
        return False
    if callable(stop_when):
        return bool(stop_when(history))
    return history.losses[-1] <= stop_when


def _check_same_architecture(nets: list[nn.Module]) -> None:
    if not nets:
        raise ValueError("nets must hold at least one network")
    if any(repr(net) != repr(nets[0]) for net in nets):
        raise ValueError("nets must have the same architecture")
    if any(True for net in nets for _ in net.buffers()):
        raise ValueError("nets must not have buffers (batch norm): train() them singly")


def _copy(state: State) -> State:
    return {name: value.detach().clone() for name, value in state.items()}


def _unstack(weights: State, count: int) -> list[State]:
    return [{name: w[s] for name, w in weights.items()} for s in range(count)]
