"""What a model looks at while it learns: progress measures along the training.

Accuracy alone doesn't say when a model turns from one feature to another. The share
of the diagonal of its feature matrix that lies on given coordinates does, and so does
the target linearity of its last hidden layer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agop.features import pre_activation_grams
from agop.networks import FullyConnected
from agop.rfm import RFMClassifier
from agop.stars import MarkedTask
from agop.target_linearity import target_linearity
from agop.training import train


@dataclass
class Progress:
    """Measures at each recorded step of a network, or each iteration of an RFM.

    Attributes
    ----------
    steps : list of int
    train, test : list of float
        Accuracies.
    nfm_share, agop_share : list of float
        Share of the diagonals of NFM and AGOP that lies on the mark. Of an RFM, the
        first is that of the matrix M in use, the second that of its successor.
    linearity : list of float
        Target linearity of the last hidden layer on the test set; empty for an RFM.
    diagonals : list of arrays of shape (d,)
        Diagonal of the NFM or of M.
    """

    steps: list[int] = field(default_factory=list)
    train: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)
    nfm_share: list[float] = field(default_factory=list)
    agop_share: list[float] = field(default_factory=list)
    linearity: list[float] = field(default_factory=list)
    diagonals: list[NDArray[Any]] = field(default_factory=list)

    def first(self, level: float) -> int:
        """Return the first index at which the training accuracy is at least ``level``.

        Raises
        ------
        ValueError
            If it never is.

        Examples
        --------
        >>> Progress(train=[0.5, 0.9, 1.0]).first(0.99)
        2
        """
        reached = np.flatnonzero(np.asarray(self.train) >= level)
        if len(reached) == 0:
            raise ValueError(f"training accuracy never reaches level={level}")
        return int(reached[0])


def mass_share(diagonal: Any, mask: Any) -> float:
    """Return the share of a non-negative vector's sum that lies on a mask.

    Parameters
    ----------
    diagonal : array or tensor of shape (d,)
    mask : bool array of shape (d,)

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> mass_share([3.0, 1.0], np.array([True, False]))
    0.75
    """
    values, mask = np.asarray(diagonal, dtype=np.float64), np.asarray(mask, dtype=bool)
    if values.shape != mask.shape:
        raise ValueError(
            f"diagonal and mask must have one shape, got {values.shape} "
            f"and {mask.shape}"
        )
    return float(values[mask].sum() / values.sum())


@torch.no_grad()
def first_layer_diagonals(net: FullyConnected, X: Any) -> tuple[Tensor, Tensor]:
    """Return the diagonals of NFM and AGOP of the first layer, each (d,).

    No d by d matrix is formed: the diagonal of W^T K W is the sum over units of
    W * (K W), K being the second moment of the gradients before the activation.

    Parameters
    ----------
    net : FullyConnected
    X : array or tensor of shape (n, d)

    Examples
    --------
    >>> net = FullyConnected((3, 4, 1))
    >>> nfm_diagonal, agop_diagonal = first_layer_diagonals(net, torch.eye(3))
    >>> bool(torch.allclose(nfm_diagonal, (net.weights[0] ** 2).sum(0)))
    True
    """
    W = net.weights[0].detach()  # (k, d)
    K = pre_activation_grams(net, X, layers=[0])[0]  # (k, k)
    return W.square().sum(0), (W * (K @ W)).sum(0)


def follow_network(
    net: FullyConnected,
    task: MarkedTask,
    *,
    lr: float,
    steps: int,
    every: int,
) -> Progress:
    """Train by full-batch Adam on the squared error of one-hot labels; measure.

    Parameters
    ----------
    net : FullyConnected
        Two outputs; trained in place.
    task : MarkedTask
    lr, steps : float, int
        Learning rate and number of updates.
    every : int
        Measure at the multiples of so many steps.

    Returns
    -------
    Progress
    """
    progress = Progress()
    X, X_test = (torch.as_tensor(x).to(net.weights[0]) for x in (task.X, task.X_test))
    Y, Y_test = (torch.eye(2)[y].to(X) for y in (task.y, task.y_test))

    @torch.no_grad()
    def measure(*_: Any) -> None:
        H = net.hidden(X_test)[-1]  # (m, k)
        hits = net.layers[-1](H).argmax(1) == Y_test.argmax(1)
        diagonals = [v.numpy() for v in first_layer_diagonals(net, X)]
        progress.test.append(float(hits.double().mean()))
        progress.nfm_share.append(mass_share(diagonals[0], task.mask))
        progress.agop_share.append(mass_share(diagonals[1], task.mask))
        progress.linearity.append(target_linearity(H, Y_test))
        progress.diagonals.append(diagonals[0])

    history = train(
        net,
        X,
        Y,
        lr=lr,
        optimizer="adam",
        steps=steps,
        record_every=every,
        callback=measure,
    )
    progress.steps, progress.train = history.steps, history.accuracies
    return progress


def follow_rfm(machine: RFMClassifier, task: MarkedTask) -> Progress:
    """Fit a diagonal RFM and measure it after each solved system.

    Parameters
    ----------
    machine : RFMClassifier
        With ``diagonal=True``; fitted in place.
    task : MarkedTask

    Returns
    -------
    Progress
        One entry a machine, M = I first.
    """
    progress = Progress()

    def measure(fitted: RFMClassifier) -> None:
        progress.steps.append(fitted.n_iter_)
        progress.train.append(fitted.history_[-1]["train_score"])
        progress.test.append(fitted.score(task.X_test, task.y_test))
        progress.diagonals.append(fitted.M_)
        progress.nfm_share.append(mass_share(fitted.M_, task.mask))

    machine.fit(task.X, task.y, callback=measure)
    progress.agop_share = progress.nfm_share[1:]  # the AGOP is the next M
    return progress
