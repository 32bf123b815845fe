"""What a loader returns: arrays, names, and where they came from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Provenance:
    """Where a data set came from, in a form that a record can keep.

    Parameters
    ----------
    name : the data set's name in the registry.
    source : ``"official download"``, ``"local mirror"`` or ``"shipped with …"``.
    files : name of each file read, with its checksum (``"sha256:…"``). Names are
        relative, so that no record holds a path of somebody's machine.
    lossy : whether values differ from the original's (JPEG copies).
    notes : faults of the data, and what the loader did about them.

    >>> Provenance("xor", "drawn by hand", {}).to_dict()["lossy"]
    False
    """

    name: str
    source: str
    files: dict[str, str]
    lossy: bool = False
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain types, as JSON stores them."""
        return {
            "name": self.name,
            "source": self.source,
            "files": dict(self.files),
            "lossy": self.lossy,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set in memory.

    Parameters
    ----------
    name : the name given to `load`.
    X : (n, d) float64 features, or (n, H, W, channels) uint8 images.
    y : (n,) int64 class labels 0..C-1, or float64 targets.
    X_test, y_test : the official test part, None where there is none.
    feature_names : d names, empty for images.
    class_names : C names, empty for regression.
    provenance : where it came from.

    >>> import numpy as np
    >>> where = Provenance("xor", "drawn by hand", {})
    >>> Dataset("xor", np.zeros((4, 2)), np.zeros(4, int), provenance=where)
    Dataset('xor', X (4, 2) float64, no official test part)
    """

    name: str
    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any] | None = None
    y_test: NDArray[Any] | None = None
    feature_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    provenance: Provenance = Provenance("", "", {})

    def __repr__(self) -> str:
        test = "no official test part"
        if self.X_test is not None:
            test = f"X_test {self.X_test.shape}"
        kind = type(self).__name__
        return f"{kind}({self.name!r}, X {self.X.shape} {self.X.dtype}, {test})"


Split = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, eq=False, repr=False)
class UCIDataset(Dataset):
    """One of the 121 UCI sets, with the authors' own splits of `X`.

    Parameters
    ----------
    selection : (train, validation) row indices, disjoint, together all rows. The
        authors use them to choose hyperparameters.
    folds : four pairs (train, test) of row indices, as scikit-learn's ``cv=``
        takes them. They are independent stratified 75/25 splits, not a partition:
        their test parts overlap, and each overlaps `selection`.
    """

    selection: Split = (np.empty(0, np.int64), np.empty(0, np.int64))
    folds: tuple[Split, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Table(Dataset):
    """A table with categorical columns coded as 0, 1, … in `X`.

    Parameters
    ----------
    categorical : indices of the categorical columns of `X`.
    categories : for each of those indices its values, in the order of their codes.
    task : ``"regression"`` or ``"classification"``.
    """

    categorical: tuple[int, ...] = ()
    categories: dict[int, tuple[str, ...]] | None = None
    task: str = "regression"
