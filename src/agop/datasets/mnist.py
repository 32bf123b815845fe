"""MNIST: 70,000 handwritten digits."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agop.datasets.dataset import Dataset
from agop.datasets.errors import DatasetError
from agop.datasets.images import read_npz
from agop.datasets.registry import entry
from agop.datasets.storage import locate


def load_mnist(*, source: str = "auto", download: bool = True) -> Dataset:
    """Load MNIST: X (60000, 28, 28, 1) and X_test (10000, 28, 28, 1), uint8.

    Parameters
    ----------
    source : ``"auto"`` (a local mirror before the official files), ``"mirror"`` or
        ``"official"``. Both hold the same pixels in the same order.
    download : whether missing files may be downloaded (12 MB).

    Raises
    ------
    DatasetError
        If the files are not to be had, or are not what they should be.

    >>> load_mnist(source="auto").X.shape  # doctest: +SKIP
    (60000, 28, 28, 1)
    """
    found = locate(entry("mnist"), source, download)
    paths = tuple(found.paths.values())  # in the order of the registry
    if found.mirrored:
        (X, y), (X_test, y_test) = read_npz(paths[0]), read_npz(paths[1])
    else:
        X, y, X_test, y_test = (read_idx(path) for path in paths)
    return Dataset(
        name="mnist",
        X=X[..., None],  # (n, 28, 28, 1)
        y=y.astype(np.int64),
        X_test=X_test[..., None],
        y_test=y_test.astype(np.int64),
        class_names=tuple("0123456789"),
        provenance=found.provenance(),
    )


def read_idx(path: Path) -> NDArray[Any]:
    """Read a gzipped idx file of bytes, the format of the MNIST files.

    Four bytes ``0 0 8 k``, then k sizes as big-endian int32, then the values.
    """
    with gzip.open(path) as file:
        data = file.read()
    if data[:3] != b"\x00\x00\x08":
        raise DatasetError(f"{path} is not an idx file of bytes")
    shape = np.frombuffer(data, ">i4", count=data[3], offset=4)
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])
    if values.size != np.prod(shape):
        raise DatasetError(f"{path} holds {values.size} values, not {tuple(shape)}")
    return values.reshape(shape).copy()
