"""SVHN: house numbers from street photographs, cropped to one digit."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agop.datasets.dataset import Dataset
from agop.datasets.registry import entry
from agop.datasets.storage import locate


def load_svhn(*, download: bool = True) -> Dataset:
    """Load SVHN: X (73257, 32, 32, 3) and X_test (26032, 32, 32, 3), uint8.

    Labels are the digits 0..9. The 531,131 "extra" images are not loaded.

    Parameters
    ----------
    download : whether the official files may be downloaded (246 MB).

    Raises
    ------
    DatasetError
        If the files are not to be had, or are not what they should be.
    """
    found = locate(entry("svhn"), "official", download)
    X, y = _read_mat(found.paths["train_32x32.mat"])
    X_test, y_test = _read_mat(found.paths["test_32x32.mat"])
    digits = tuple("0123456789")
    return Dataset("svhn", X, y, X_test, y_test, (), digits, found.provenance())


def _read_mat(path: Path) -> tuple[NDArray[Any], NDArray[np.int64]]:
    from scipy.io import loadmat

    mat = loadmat(path, variable_names=("X", "y"))
    images = np.ascontiguousarray(mat["X"].transpose(3, 0, 1, 2))  # (n, 32, 32, 3)
    labels = mat["y"].ravel().astype(np.int64)
    return images, labels % 10  # the file writes the digit 0 as 10
