"""STL-10: photographs of ten classes at 96 x 96, and two of its classes."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agop.datasets.dataset import Dataset
from agop.datasets.errors import DatasetError
from agop.datasets.images import read_npz
from agop.datasets.registry import entry
from agop.datasets.storage import Located, in_mirror, locate, unpacked

CLASS_NAMES = (
    "airplane", "bird", "car", "cat", "deer",
    "dog", "horse", "monkey", "ship", "truck",
)  # fmt: skip
_AIRPLANE, _TRUCK = 0, 9

# The archive also holds 100,000 unlabelled images (2.8 GB), which nobody here needs.
_WANTED = ("train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin")


def load_stl10(*, download: bool = True) -> Dataset:
    """Load the labelled part of STL-10.

    X is (5000, 96, 96, 3) and X_test (8000, 96, 96, 3), uint8, in the official order.

    Parameters
    ----------
    download : whether the official archive may be downloaded (2.6 GB).

    Raises
    ------
    DatasetError
        If the archive is not to be had, or is not what it should be.
    """
    found = locate(entry("stl10"), "official", download)
    X, y, X_test, y_test = _read_official(found)
    return Dataset("stl10", X, y, X_test, y_test, (), CLASS_NAMES, found.provenance())


def load_stl10_airplane_truck(
    *, source: str = "auto", download: bool = True
) -> Dataset:
    """Load the airplanes (0) and trucks (1) of STL-10, exact pixels.

    X is (1000, 96, 96, 3), X_test (1600, 96, 96, 3), uint8, in the official order.
    They are the images of the grokking experiment (Radhakrishnan et al., Fig. 5).

    Parameters
    ----------
    source : ``"auto"`` (a local mirror, or else cut from the official archive),
        ``"mirror"`` or ``"official"``.
    download : whether the official archive may be downloaded (2.6 GB).

    Raises
    ------
    DatasetError
        If the files are not to be had, or are not what they should be.
    """
    two = entry("stl10-airplane-truck")
    if source == "mirror" or (source == "auto" and in_mirror(two.mirror)):
        found = locate(two, "mirror")
        (X, y), (X_test, y_test) = map(read_npz, found.paths.values())
    else:
        found = locate(entry("stl10"), source, download)
        ten = _read_official(found)
        (X, y), (X_test, y_test) = _two_classes(*ten[:2]), _two_classes(*ten[2:])
    names = ("airplane", "truck")
    where = found.provenance()
    return Dataset(two.name, X, y, X_test, y_test, (), names, where)


def _two_classes(
    X: NDArray[Any], y: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    rows = np.isin(y, (_AIRPLANE, _TRUCK))
    return X[rows], (y[rows] == _TRUCK).astype(np.int64)


def _read_official(found: Located) -> tuple[NDArray[Any], ...]:
    """Return X, y, X_test, y_test of the ten classes."""
    name = "stl10_binary.tar.gz"
    folder = unpacked(found.paths[name], found.entry.file(name), _wanted)
    missing = [name for name in _WANTED if not (folder / name).is_file()]
    if missing:
        raise DatasetError(f"the STL-10 archive lacks {', '.join(missing)}")
    X, y, X_test, y_test = (np.fromfile(folder / name, np.uint8) for name in _WANTED)
    return _as_images(X), _from_zero(y), _as_images(X_test), _from_zero(y_test)


def _wanted(member: str) -> str | None:
    name = Path(member).name
    return name if name in _WANTED else None


def _as_images(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    columns_first = values.reshape(-1, 3, 96, 96)  # (n, channel, column, row)
    return np.ascontiguousarray(columns_first.transpose(0, 3, 2, 1))  # (n, 96, 96, 3)


def _from_zero(labels: NDArray[np.uint8]) -> NDArray[np.int64]:
    return labels.astype(np.int64) - 1  # the files count classes from 1
