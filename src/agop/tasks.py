"""A classification task as tensors: scaled inputs, one-hot targets, a test part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from agop.datasets import Dataset


@dataclass(frozen=True)
class Task:
    """A classification task ready for training.

    Attributes
    ----------
    name : str
    X : tensor of shape (n, d), training inputs
    Y : tensor of shape (n, C), one-hot training targets
    y : tensor of shape (n,), training labels 0..C-1
    X_test, y_test : tensors of shape (m, d) and (m,)
    """

    name: str
    X: Tensor
    Y: Tensor
    y: Tensor
    X_test: Tensor
    y_test: Tensor

    @property
    def d(self) -> int:
        """Input dimension."""
        return self.X.shape[1]

    @property
    def C(self) -> int:
        """Number of classes."""
        return self.Y.shape[1]


def make_task(
    dataset: Dataset,
    *,
    n: int | None = None,
    test_size: float = 0.2,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Task:
    """Return ``dataset`` as tensors.

    Features are standardised by the training rows; images are divided by 255 and
    flattened instead, for a pixel that is dark everywhere has no scale of its own.

    Parameters
    ----------
    dataset : Dataset
        With integer labels. Its official test part is used where there is one.
    n : int, optional
        Keep this many training rows, drawn by class in proportion.
    test_size : float, default=0.2
        Share of the rows that become the test part where there is no official one.
    seed : int, default=0
        Fixes both draws.
    dtype : torch.dtype, default=torch.float32

    Raises
    ------
    ValueError
        If the labels are no integers, or there are not ``n`` training rows.

    Examples
    --------
    >>> from agop.datasets import load
    >>> task = make_task(load("wine"), seed=0)
    >>> task.X.shape, task.Y.shape, task.X_test.shape
    (torch.Size([142, 13]), torch.Size([142, 3]), torch.Size([36, 13]))
    """
    if not np.issubdtype(dataset.y.dtype, np.integer):
        raise ValueError(f"{dataset.name}: y must hold integer labels")
    X, X_test, y, y_test = _parts(dataset, test_size, seed)
    if n is not None and n != len(X):
        X, y = _draw(X, y, n, seed, dataset.name)
    X, X_test = _scaled(X, X_test)
    C = int(max(y.max(), y_test.max())) + 1
    labels = torch.as_tensor(y, dtype=torch.long)
    return Task(
        name=dataset.name,
        X=torch.as_tensor(X, dtype=dtype),
        Y=torch.eye(C, dtype=dtype)[labels],
        y=labels,
        X_test=torch.as_tensor(X_test, dtype=dtype),
        y_test=torch.as_tensor(y_test, dtype=torch.long),
    )


def accuracy(scores: Tensor, y: Tensor) -> float:
    """Return the share of rows whose largest score is at the label.

    >>> accuracy(torch.eye(3), torch.tensor([0, 1, 1]))
    0.666...
    """
    return float((scores.argmax(1) == y).double().mean())


def _parts(dataset: Dataset, test_size: float, seed: int) -> tuple[np.ndarray, ...]:
    """Return X, X_test, y, y_test: the official parts, or a seeded split."""
    if dataset.X_test is not None and dataset.y_test is not None:
        return dataset.X, dataset.X_test, dataset.y, dataset.y_test
    return tuple(
        train_test_split(
            dataset.X,
            dataset.y,
            test_size=test_size,
            random_state=seed,
            stratify=_if_possible(dataset.y),
        )
    )


def _draw(
    X: np.ndarray, y: np.ndarray, n: int, seed: int, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``n`` rows, each class in proportion."""
    if not 0 < n < len(X):
        raise ValueError(f"n must be in 1..{len(X)}, the rows of {name}; got {n}")
    X, _, y, _ = train_test_split(
        X, y, train_size=n, random_state=seed, stratify=_if_possible(y)
    )
    return X, y


def _if_possible(y: np.ndarray) -> np.ndarray | None:
    """Return ``y`` to stratify by, unless a class has a single row."""
    return y if np.bincount(y)[np.unique(y)].min() > 1 else None


def _scaled(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide images by 255 and flatten them; standardise anything else."""
    if X.dtype == np.uint8:
        return X.reshape(len(X), -1) / 255, X_test.reshape(len(X_test), -1) / 255
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test)
