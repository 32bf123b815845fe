"""Image classification tasks for fully connected networks, all scaled alike.

Networks without biases see an image as its difference from the mean training image,
scaled so that these differences have the same root mean square norm for every data
set: what step size is stable then does not depend on the resolution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from agop.datasets import Dataset, load
from agop.tasks import Task

ATTRIBUTE_SOURCES = ("faces", "celeba")
Parts = tuple[NDArray[Any], NDArray[np.int64], NDArray[Any], NDArray[np.int64]]


def load_images(
    source: str, label: str = "", *, n: int, n_test: int, size: int, seed: int = 0
) -> Dataset:
    """Load the data set of an image task.

    Parameters
    ----------
    source : str
        "faces" (drawn), "celeba", or any set of images that `load` knows.
    label : str
        For the first two, an attribute; CelebA is taken with as many faces that have
        it as without. For the others, two classes such as "4-9", or "" for all.
    n, n_test : int
        Training and test images: exact for faces, upper bounds otherwise.
    size : int
        Side in pixels, of "faces" and "celeba"; the others have their own.
    seed : int, default=0
        Of the drawn faces.

    Raises
    ------
    ValueError
        If there is no such source, attribute or class.

    Examples
    --------
    >>> load_images("faces", "smile", n=20, n_test=10, size=16).class_names
    ('no smile', 'smile')
    """
    sizes: dict[str, Any] = {"n_train": n, "n_test": n_test, "size": size}
    if source == "faces":
        return load(source, attribute=label, seed=seed, **sizes)
    if source == "celeba":
        return load(source, attribute=label, balanced=True, **sizes)
    return load(source)


def image_task(
    dataset: Dataset,
    label: str = "",
    *,
    n: int,
    n_test: int,
    radius: float = 10.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Task:
    """Return images as a task: centred, scaled, flattened, with one-hot targets.

    Parameters
    ----------
    dataset : Dataset
        Of images or of flat pixels, with integer labels.
    label : str
        Two classes such as "4-9", which become 0 and 1; anything without a hyphen
        between two numbers keeps all classes.
    n, n_test : int
        At most so many rows are drawn for training and testing.
    radius : float, default=10
        Root mean square norm of the centred training images.
    seed : int, default=0
        Of the draw of rows.
    dtype : torch.dtype

    Raises
    ------
    ValueError
        If one of the two classes has no rows.

    Examples
    --------
    >>> task = image_task(load("digits"), "4-9", n=200, n_test=100)
    >>> task.X.shape, task.C, round(float(task.X.square().sum(1).mean().sqrt()), 3)
    (torch.Size([200, 64]), 2, 10.0)
    """
    images, y, test_images, y_test = _two_classes(_parts(dataset, seed), label)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(images))[:n]
    test_rows = rng.permutation(len(test_images))[:n_test]
    X, X_test = _flat(images[rows], dtype), _flat(test_images[test_rows], dtype)
    mean = X.mean(0)
    scale = radius / (X - mean).square().sum(1).mean().sqrt()
    labels, test_labels = (torch.as_tensor(a) for a in (y[rows], y_test[test_rows]))
    C = int(max(y.max(), y_test.max())) + 1
    return Task(
        name=dataset.name if "/" in dataset.name else f"{dataset.name} {label}".strip(),
        X=(X - mean) * scale,
        Y=torch.eye(C, dtype=dtype)[labels],
        y=labels,
        X_test=(X_test - mean) * scale,
        y_test=test_labels,
    )


def _parts(dataset: Dataset, seed: int) -> Parts:
    """Return X, y, X_test, y_test: the official parts, or a fifth held out."""
    if dataset.X_test is not None and dataset.y_test is not None:
        return dataset.X, dataset.y, dataset.X_test, dataset.y_test
    X, X_test, y, y_test = train_test_split(
        dataset.X, dataset.y, test_size=0.2, random_state=seed, stratify=dataset.y
    )
    return X, y, X_test, y_test


def _two_classes(parts: Parts, label: str) -> Parts:
    first, hyphen, second = label.partition("-")
    if not (hyphen and first.isdigit() and second.isdigit()):
        return parts
    kept = []
    for X, y in (parts[:2], parts[2:]):
        rows = (y == int(first)) | (y == int(second))
        kept += [X[rows], (y[rows] == int(second)).astype(np.int64)]
        if len(set(kept[-1].tolist())) < 2:
            raise ValueError(f"label is {label!r}, but a class of the two has no rows")
    return tuple(kept)


def _flat(images: NDArray[Any], dtype: torch.dtype) -> torch.Tensor:
    return torch.as_tensor(images.reshape(len(images), -1)).to(dtype)
