r"""Lottery tickets among input coordinates: choose a few, start anew on those alone.

Radhakrishnan, Beaglehole, Pandit and Belkin (2024, Figs. 4 and 14) threshold the
diagonal of a trained feature matrix. Here are that choice, the ones to compare it with,
and the task that is left. All scores are computed from training data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from agop._validation import check_integer, check_real
from agop.datasets import Dataset, Provenance, draw_faces
from agop.image_tasks import load_images
from agop.networks import FullyConnected
from agop.progress import first_layer_diagonals
from agop.tasks import Task


def top_coordinates(scores: ArrayLike, share: float) -> NDArray[np.bool_]:
    """Return the coordinates with the largest scores.

    Parameters
    ----------
    scores : array of shape (d,)
    share : float in (0, 1]
        How many to take; ``share * d`` is rounded, and at least one is taken.

    Returns
    -------
    bool array of shape (d,)
        Of equal scores, those at the front come first.

    Raises
    ------
    ValueError
        If the share is out of range or the scores are no finite vector.

    Examples
    --------
    >>> top_coordinates([0.1, 0.9, 0.5, 0.2], 0.5)
    array([False,  True,  True, False])

    553 of the 27648 values of an image of 96 x 96:

    >>> int(top_coordinates(np.arange(27648), 0.02).sum())
    553
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise ValueError(f"scores must be a finite vector, got shape {scores.shape}")
    if check_real(share, "share") > 1:
        raise ValueError(f"share must be at most 1, got {share}")
    count = max(1, round(share * len(scores)))
    mask = np.zeros(len(scores), dtype=bool)
    mask[np.argsort(-scores, kind="stable")[:count]] = True
    return mask


def mutual_information(
    X: ArrayLike, y: ArrayLike, *, bins: int = 8
) -> NDArray[np.float64]:
    """Return the mutual information of each coordinate, binned, with the label.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,), class labels
    bins : int, default=8
        Of equal width, from a coordinate's smallest value to its largest.

    Returns
    -------
    array of shape (d,), in nats

    Notes
    -----
    Each coordinate is judged alone. Equal to scikit-learn's `mutual_info_classif` of
    the binned values with ``discrete_features=True``, but counted for all coordinates
    at once.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    >>> (mutual_information(X, [0, 0, 1, 1]) / np.log(2)).round(3).tolist()
    [1.0, 0.0]
    """
    X = np.asarray(X)
    bins = check_integer(bins, "bins", minimum=2)
    if bins > 127:
        raise ValueError(f"bins must be at most 127, got {bins}")
    if X.ndim != 2:
        raise ValueError(f"X must be (n, d), got shape {X.shape}")
    low, span = X.min(0), np.ptp(X, axis=0)
    unit = (X - low) / np.where(span > 0, span, 1)  # in [0, 1]
    levels = np.minimum((bins * unit).astype(np.int8), bins - 1)
    Y = (np.asarray(y)[:, None] == np.unique(y)).astype(float)  # (n, C)
    joint = np.stack([(levels == b).T @ Y for b in range(bins)], axis=1)
    joint /= len(X)  # (d, bins, C)
    product = joint.sum(2, keepdims=True) * joint.sum(1, keepdims=True)
    ratio = np.divide(joint, product, out=np.ones_like(joint), where=joint > 0)
    return np.asarray((joint * np.log(ratio)).sum((1, 2)))


def coordinate_scores(
    net: FullyConnected,
    initial: Tensor,
    X: Tensor,
    y: Tensor,
    *,
    seed: int = 0,
) -> dict[str, NDArray[np.float64]]:
    """Return scores by which input coordinates can be chosen.

    Parameters
    ----------
    net : FullyConnected, trained
    initial : tensor of shape (k, d)
        W_1 before training.
    X : tensor of shape (n, d)
        Training inputs.
    y : tensor of shape (n,)
        Training labels.
    seed : int, default=0
        Of the random scores.

    Returns
    -------
    dict of arrays of shape (d,)
        "nfm" and "agop": diagonals of the two matrices of the first layer.
        "initial weights": diagonal of the NFM before training. "mutual information":
        see `mutual_information`. "random": uniform.

    Examples
    --------
    >>> net = FullyConnected((4, 3, 2))
    >>> W = net.weights[0].detach()
    >>> scores = coordinate_scores(net, W, torch.eye(4), torch.tensor([0, 1, 0, 1]))
    >>> sorted(scores)
    ['agop', 'initial weights', 'mutual information', 'nfm', 'random']
    """
    nfm_diagonal, agop_diagonal = first_layer_diagonals(net, X)
    return {
        "nfm": nfm_diagonal.double().cpu().numpy(),
        "agop": agop_diagonal.double().cpu().numpy(),
        "mutual information": mutual_information(X.cpu().numpy(), y.cpu().numpy()),
        "initial weights": initial.detach().square().sum(0).double().cpu().numpy(),
        "random": np.random.default_rng(seed).random(X.shape[1]),
    }


def restricted(task: Task, mask: ArrayLike, *, rescale: bool = True) -> Task:
    """Return the task of which only some coordinates are left.

    Parameters
    ----------
    task : Task
    mask : bool array of shape (d,)
    rescale : bool, default=True
        Multiply by one factor, so that the root mean square norm of the training
        inputs is what it was: a step size or a bandwidth then means the same.

    Raises
    ------
    ValueError
        If the mask does not fit, or nothing is left of the training inputs.

    Examples
    --------
    >>> X = torch.tensor([[3.0, 4.0], [4.0, 3.0]])
    >>> y = torch.tensor([0, 1])
    >>> task = Task("two", X, torch.eye(2), y, X, y)
    >>> restricted(task, [True, False], rescale=False).X.tolist()
    [[3.0], [4.0]]
    """
    chosen = torch.as_tensor(np.asarray(mask, dtype=bool))
    if chosen.shape != (task.d,):
        raise ValueError(f"mask must have shape ({task.d},), got {tuple(chosen.shape)}")
    X, X_test = task.X[:, chosen], task.X_test[:, chosen]
    norms = [x.double().square().sum(1).mean().sqrt() for x in (task.X, X)]
    if norms[1] == 0:
        raise ValueError("mask must leave a coordinate that is not zero throughout")
    scale = float(norms[0] / norms[1]) if rescale else 1.0
    return replace(task, X=X * scale, X_test=X_test * scale)


def attribute_sets(
    source: str,
    attributes: Sequence[str],
    *,
    n: int,
    n_test: int,
    size: int,
    seed: int = 0,
) -> dict[str, Dataset]:
    """Load one data set for each attribute of faces.

    Parameters
    ----------
    source : {"faces", "celeba"}
        Drawn faces are the same for all attributes, and drawn once.
    attributes : names of `agop.datasets.ATTRIBUTES`, or of CelebA
    n, n_test, size, seed
        As for `agop.image_tasks.load_images`.

    Raises
    ------
    ValueError
        If there is no such attribute.

    Examples
    --------
    >>> sets = attribute_sets("faces", ["smile", "hat"], n=6, n_test=4, size=16)
    >>> sets["hat"]
    Dataset('faces/hat', X (6, 16, 16, 3) uint8, X_test (4, 16, 16, 3))
    """
    if source != "faces":
        return {
            name: load_images(source, name, n=n, n_test=n_test, size=size, seed=seed)
            for name in attributes
        }
    faces = draw_faces(n + n_test, size=size, seed=seed)
    sets: dict[str, Any] = {}
    for name in attributes:
        y = faces[name].astype(np.int64)
        sets[name] = Dataset(
            name=f"faces/{name}",
            X=faces.images[:n],
            y=y[:n],
            X_test=faces.images[n:],
            y_test=y[n:],
            class_names=(f"no {name}", name),
            provenance=Provenance(f"faces/{name}", f"drawn by agop, seed {seed}", {}),
        )
    return sets
