"""CelebA: 202,599 faces with 40 binary attributes."""

import io
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agop.datasets.dataset import Dataset
from agop.datasets.registry import entry
from agop.datasets.storage import locate

_TRAIN, _TEST = 0, 2  # numbers of the official partition; 1 is validation


def load_celeba(
    attribute: str,
    *,
    n_train: int = 10_000,
    n_test: int = 2_000,
    size: int = 96,
    balanced: bool = False,
    download: bool = True,
) -> Dataset:
    """Load CelebA faces, labelled 1 where they have the attribute.

    All of CelebA is 23 GB in memory, so that only the first faces of the official
    training and test parts are read, and scaled to a square (bilinear).

    Parameters
    ----------
    attribute : one of the 40 names, such as ``"Eyeglasses"`` or ``"Smiling"``.
    n_train, n_test : numbers of faces; fewer if the part has fewer.
    size : side in pixels; X is (n_train, size, size, 3), uint8.
    balanced : whether to take as many faces with the attribute as without.
    download : whether the official files may be downloaded (1.5 GB).

    Raises
    ------
    ValueError
        If there is no such attribute, or a number is not positive.
    DatasetError
        If the files are not to be had, or are not what they should be.
    """
    for name, value in (("n_train", n_train), ("n_test", n_test), ("size", size)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    found = locate(entry("celeba"), "official", download)
    files, y = _read_attribute(found.paths["list_attr_celeba.txt"], attribute)
    part = np.loadtxt(found.paths["list_eval_partition.txt"], np.int64, usecols=1)
    train = _first(np.flatnonzero(part == _TRAIN), y, n_train, balanced)
    test = _first(np.flatnonzero(part == _TEST), y, n_test, balanced)
    images = _read_images(
        found.paths["img_align_celeba.zip"],
        files[np.concatenate([train, test])],
        size,
    )
    return Dataset(
        name="celeba",
        X=images[: len(train)],
        y=y[train],
        X_test=images[len(train) :],
        y_test=y[test],
        class_names=(f"not {attribute}", attribute),
        provenance=found.provenance(f"Scaled to {size} x {size}, bilinear."),
    )


def _read_attribute(path: Path, attribute: str) -> tuple[NDArray, NDArray[np.int64]]:
    """Return file names and labels 0, 1; the file has a count, a header, then rows."""
    with path.open(encoding="utf-8") as file:
        header = [next(file), next(file)][1].split()
    if attribute not in header:
        raise ValueError(
            f"CelebA has no attribute {attribute!r}; it has {', '.join(header)}"
        )
    column = 1 + header.index(attribute)
    files = np.loadtxt(path, str, skiprows=2, usecols=0)
    values = np.loadtxt(path, np.int64, skiprows=2, usecols=column)  # -1 or 1
    return files, (values + 1) // 2


def _first(
    rows: NDArray[np.int64], y: NDArray[np.int64], n: int, balanced: bool
) -> NDArray[np.int64]:
    """Return the first n of these rows, or the first n/2 of each class."""
    if not balanced:
        return rows[:n]
    classes = [rows[y[rows] == label] for label in (0, 1)]
    half = min(n // 2, *(len(c) for c in classes))
    return np.sort(np.concatenate([c[:half] for c in classes]))


def _read_images(archive: Path, files: NDArray, size: int) -> NDArray[np.uint8]:
    """Decode images straight from the zip: nothing is unpacked."""
    from PIL import Image

    images = np.empty((len(files), size, size, 3), np.uint8)
    with zipfile.ZipFile(archive) as zipped:
        for k, file in enumerate(files):
            data = io.BytesIO(zipped.read(f"img_align_celeba/{file}"))
            face = Image.open(data).convert("RGB")
            images[k] = np.asarray(face.resize((size, size), Image.Resampling.BILINEAR))
    return images
