"""How a network is built and trained, as one value that can be named and varied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from agop.networks import FullyConnected
from agop.tasks import Task
from agop.training import train


@dataclass(frozen=True)
class Recipe:
    """A fully connected network without biases, and its training on squared error.

    The defaults are those of Fig. 2A of arXiv:2212.13881; `dataclasses.replace` varies
    one of them.

    Attributes
    ----------
    width, depth : units in a hidden layer, and hidden layers L.
    activation, init, first_layer_std : as for `FullyConnected`.
    optimizer, lr, batch_size, epochs : as for `train`.
    max_steps : end after so many updates even if epochs remain; None never does.
    freeze_first : whether W_1 stays as it was drawn.
    dtype : name of the floating-point type.

    Examples
    --------
    >>> Recipe(epochs=500, max_steps=3000).steps(1000)
    3000
    >>> Recipe(width=64, depth=2).network(d=3, C=2).widths
    (3, 64, 64, 2)
    """

    width: int = 1024
    depth: int = 5
    activation: str = "relu"
    init: str | float = "torch"
    first_layer_std: float | None = 1e-4
    optimizer: str = "sgd"
    lr: float = 0.1
    batch_size: int = 128
    epochs: int = 500
    max_steps: int | None = None
    freeze_first: bool = False
    dtype: str = "float32"

    def steps(self, n: int) -> int:
        """Return the number of updates on n training rows."""
        whole = self.epochs * math.ceil(n / self.batch_size)
        return whole if self.max_steps is None else min(whole, self.max_steps)

    def network(
        self, d: int, C: int, *, seed: int = 0, device: str = "cpu"
    ) -> FullyConnected:
        """Return the network for d inputs and C outputs before training."""
        net = FullyConnected(
            (d, *[self.width] * self.depth, C),
            self.activation,
            seed=seed,
            init=self.init,
            first_layer_std=self.first_layer_std,
            dtype=getattr(torch, self.dtype),
            device=device,
        )
        net.weights[0].requires_grad_(not self.freeze_first)
        return net

    def settings(self) -> dict[str, Any]:
        """Return the recipe as plain values, for a record or a key."""
        return asdict(self)


@dataclass(frozen=True)
class Fitted:
    """A trained network, and its weights before and on the way.

    Attributes
    ----------
    net : FullyConnected, trained
    initial : list of the L + 1 weights before training
    on_the_way : dict of step to the list of weights after it
    steps : number of updates made
    """

    net: FullyConnected
    initial: list[Tensor]
    on_the_way: dict[int, list[Tensor]]
    steps: int

    def at(self, fraction: float) -> list[Tensor]:
        """Return the weights after a part of the training, one of those asked for."""
        return self.on_the_way[math.ceil(fraction * self.steps)]


def fit(
    task: Task,
    recipe: Recipe,
    *,
    seed: int = 0,
    fractions: Sequence[float] = (),
    device: str = "cpu",
) -> Fitted:
    """Train a network on a task by a recipe.

    Parameters
    ----------
    task : Task
    recipe : Recipe
    seed : int, default=0
        Of the initial weights and of the order of the batches.
    fractions : sequence of float
        Parts of the training, in 0..1, after which to keep the weights; each is
        rounded up to a whole update.
    device : str, default="cpu"

    Raises
    ------
    FloatingPointError
        If training diverges.

    Examples
    --------
    >>> from agop.datasets import load
    >>> from agop.tasks import make_task
    >>> recipe = Recipe(width=16, depth=2, epochs=5)
    >>> fitted = fit(make_task(load("wine")), recipe, fractions=(0.5, 1))
    >>> fitted.steps, sorted(fitted.on_the_way)
    (10, [5, 10])
    """
    net = recipe.network(task.d, task.C, seed=seed, device=device)
    initial = copy_weights(net)
    steps = recipe.steps(len(task.X))
    history = train(
        net,
        task.X,
        task.Y,
        lr=recipe.lr,
        optimizer=recipe.optimizer,
        batch_size=recipe.batch_size,
        steps=steps,
        seed=seed,
        snapshots={math.ceil(f * steps) for f in fractions},
        record_every=max(1, steps // 10),  # to notice a divergence
    )
    on_the_way = {
        step: [state[f"layers.{i}.weight"] for i in range(len(initial))]
        for step, state in history.snapshots.items()
    }
    return Fitted(net, initial, on_the_way, steps)


def copy_weights(net: FullyConnected) -> list[Tensor]:
    """Return copies of the L + 1 weights of a network, W_1 first."""
    return [W.detach().clone() for W in net.weights]


@torch.no_grad()
def with_weights(net: FullyConnected, weights: Sequence[Tensor]) -> FullyConnected:
    """Return a network like ``net`` whose layers have the weights given.

    Fewer or more layers than ``net`` has are fine: their shapes decide. Biases are
    not carried over.

    Raises
    ------
    ValueError
        If the shapes do not chain, or ``net`` has biases.

    Examples
    --------
    >>> net = FullyConnected((3, 8, 8, 2), "tanh")
    >>> with_weights(net, net.weights[1:]).widths  # all after the first layer
    (8, 8, 2)
    """
    if any(layer.bias is not None for layer in net.layers):
        raise ValueError("net must have no biases")
    shapes = [tuple(W.shape) for W in weights]
    if any(k != d for (k, _), (_, d) in pairwise(shapes)):
        raise ValueError(f"weights of shapes {shapes} do not chain")
    widths = (shapes[0][1], *(k for k, _ in shapes))
    W = weights[0]
    other = FullyConnected(widths, net.activation, dtype=W.dtype, device=W.device)
    for mine, theirs in zip(other.weights, weights, strict=True):
        mine.copy_(theirs)
    return other
