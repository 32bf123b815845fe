"""The small sets that scikit-learn ships: no file to fetch."""

from importlib.resources import as_file, files
from typing import Any

import numpy as np

from agop.datasets.checksums import checksum
from agop.datasets.dataset import Dataset, Provenance
from agop.datasets.registry import unknown

# name: files of sklearn.datasets.data, whose checksums go into the provenance
_FILES = {
    "digits": ("digits.csv.gz",),
    "iris": ("iris.csv",),
    "wine": ("wine_data.csv",),
    "breast_cancer": ("breast_cancer.csv",),
    "diabetes": ("diabetes_data_raw.csv.gz", "diabetes_target.csv.gz"),
}
SHIPPED = tuple(_FILES)


def load_shipped(name: str) -> Dataset:
    """Load one of scikit-learn's own sets: X (n, d) float64, not standardised.

    Parameters
    ----------
    name : digits, iris, wine, breast_cancer, or diabetes (the only regression).

    Raises
    ------
    ValueError
        If scikit-learn ships no such set.

    >>> load_shipped("iris")
    Dataset('iris', X (150, 4) float64, no official test part)
    """
    import sklearn.datasets

    if name not in _FILES:
        raise ValueError(unknown("set of scikit-learn's", name, _FILES))
    bunch: Any = getattr(sklearn.datasets, f"load_{name}")()
    regression = name == "diabetes"
    return Dataset(
        name=name,
        X=np.asarray(bunch.data, np.float64),
        y=np.asarray(bunch.target, np.float64 if regression else np.int64),
        feature_names=tuple(str(f) for f in bunch.feature_names),
        class_names=() if regression else tuple(str(c) for c in bunch.target_names),
        provenance=_provenance(name),
    )


def _provenance(name: str) -> Provenance:
    from sklearn import __version__

    sums = {}
    for file in _FILES[name]:
        with as_file(files("sklearn.datasets.data") / file) as path:
            sums[file] = checksum(path)
    return Provenance(name, f"shipped with scikit-learn {__version__}", sums)
