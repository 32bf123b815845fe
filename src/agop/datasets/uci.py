"""The 121 UCI classification sets of Fernández-Delgado et al. (JMLR 2014).

``uci121.csv`` beside this module holds a row a set: sizes, faults, and the checksums
of its files. The archive of the authors has no published checksum, so that each file
is verified after unpacking.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agop.datasets.checksums import checksum
from agop.datasets.dataset import Provenance, Split, UCIDataset
from agop.datasets.errors import ChecksumError, DatasetError
from agop.datasets.registry import entry, unknown
from agop.datasets.storage import (
    MIRROR,
    OFFICIAL,
    check_source,
    in_mirror,
    mirror_file,
    official_file,
    unpacked,
)


@dataclass(frozen=True)
class UCISet:
    """What is known of a set before loading it.

    Parameters
    ----------
    name : its name in the collection, such as ``"hayes-roth"``.
    n, n_test, d, n_classes : rows, rows of the test file (0: none), features, classes.
    mirrored : name of the mirror's archive that has it, None if none has.
    rebuilt : whether the mirror's data file was rebuilt from raw data, so that no
        checksum of the authors' file is known.
    raw : ``"train"`` or ``"test"`` if that file was published without the z-scoring
        that the other has; else None.
    checksums : sha256 of its files in the mirror; empty if none has it.
    """

    name: str
    n: int
    n_test: int
    d: int
    n_classes: int
    mirrored: str | None
    rebuilt: bool
    raw: str | None
    checksums: dict[str, str]

    @property
    def data_file(self) -> str:
        """Name of the file with the rows of `X`."""
        return f"{self.name}_train_R.dat" if self.n_test else f"{self.name}_R.dat"

    @property
    def test_file(self) -> str:
        """Name of the file with the rows of `X_test`."""
        return f"{self.name}_test_R.dat"


def uci_names() -> tuple[str, ...]:
    """Return the 121 names in alphabetical order.

    The 90 sets of Arora et al. (2020) are those of at most 5000 rows without a test
    file:

    >>> infos = [uci_info(name) for name in uci_names()]
    >>> len([i for i in infos if i.n <= 5000 and not i.n_test])
    90
    """
    return tuple(_sets())


def uci_info(name: str) -> UCISet:
    """Return what is known of a set before loading it.

    Raises
    ------
    ValueError
        If the collection has no such set.

    >>> uci_info("monks-1").raw
    'train'
    """
    if name not in _sets():
        raise ValueError(unknown("UCI set", name, _sets()))
    return _sets()[name]


def load_uci(
    name: str,
    *,
    scaling: str = "per_file",
    source: str = "auto",
    download: bool = True,
) -> UCIDataset:
    """Load one of the 121 UCI sets, with the authors' splits.

    The authors z-scored the features of each file by that file's own mean and
    standard deviation (with n - 1), but left out one of the two files of 11 sets.
    Taken as they are, those 11 give nonsense on their test file.

    Parameters
    ----------
    name : one of `uci_names`.
    scaling : ``"per_file"`` z-scores the file that was left out as the authors did
        the others, and changes nothing else; ``"as_published"`` changes nothing. Both
        leave standardisation by training rows alone to the caller.
    source : ``"auto"`` (a local mirror, or else the official archive), ``"mirror"``
        or ``"official"``.
    download : whether the official archive may be downloaded (195 MB).

    Returns
    -------
    UCIDataset
        With X (n, d) float64, y (n,) in 0..C-1, and index arrays into X. The test part
        of conn-bench-vowel-deterding is left out: it repeats training rows.

    Raises
    ------
    ValueError
        If there is no such set, or `scaling` or `source` is none of their words.
    DatasetError
        If the files are not to be had, or are not what they should be.
    """
    if scaling not in ("per_file", "as_published"):
        raise ValueError(
            f"scaling is {scaling!r}; it must be 'per_file' or 'as_published'"
        )
    info = uci_info(name)
    folder, where = _find(info, source, download)
    sums, notes = _verify(info, folder, where)
    X, y = _read_data(folder / info.data_file, info)
    test: dict[str, Any] = {}
    if info.n_test and name != "conn-bench-vowel-deterding":
        X_test, y_test = _read_data(folder / info.test_file, info)
        test = {"X_test": X_test, "y_test": y_test}
    if scaling == "per_file" and info.raw == "train":
        X = _zscore(X)
    if scaling == "per_file" and info.raw == "test":
        test["X_test"] = _zscore(test["X_test"])
    notes += _faults(info, scaling)
    selection, *folds = _read_splits(folder, info)
    return UCIDataset(
        name=f"uci/{name}",
        X=X,
        y=y,
        **test,
        feature_names=tuple(f"f{j + 1}" for j in range(info.d)),
        class_names=tuple(str(c) for c in range(info.n_classes)),
        provenance=Provenance(f"uci/{name}", where, sums, notes=notes),
        selection=selection,
        folds=tuple(folds),
    )


def verify_uci(
    name: str, *, source: str = "auto", download: bool = True
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Find a set's files, downloaded if need be, and verify them.

    Returns
    -------
    sums : the checksum of each file.
    notes : a sentence for each file that cannot be compared with the authors' own.

    Raises
    ------
    DatasetError
        If the files are not to be had; `ChecksumError` if one has other bytes.
    """
    info = uci_info(name)
    return _verify(info, *_find(info, source, download))


def _find(info: UCISet, source: str, download: bool) -> tuple[Path, str]:
    """Return the folder of the set's files, and where they come from."""
    check_source(source)
    collection = entry("uci121")
    if source != "official" and info.mirrored is not None:
        file = collection.file(info.mirrored)
        if source == "mirror" or in_mirror([file]):
            return unpacked(mirror_file(file), file, _place) / info.name, MIRROR
    if source == "mirror":
        raise DatasetError(f"no local mirror has the UCI set {info.name}")
    (file,) = collection.official
    try:
        archive = official_file(collection, file, download)
    except DatasetError as error:
        if not in_mirror(collection.mirror):
            raise
        # A mirror is there, so that the set itself is what is missing.
        raise type(error)(f"the local mirror lacks {info.name}, and {error}") from error
    return unpacked(archive, file, _place) / info.name, OFFICIAL


def _place(member: str) -> str | None:
    """Map ``…/<set>/<file>`` to ``<set>/<file>``, and leave out what is not read."""
    path = PurePosixPath(member)
    wanted = path.name.endswith("_R.dat") or path.name.startswith("conxuntos")
    return str(PurePosixPath(*path.parts[-2:])) if wanted else None


def _verify(
    info: UCISet, folder: Path, where: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the checksums of the files, and a note on each that is not the authors'.

    For a data file that the mirror rebuilt, the authors' own checksum is unknown.
    """
    wanted = [info.data_file, "conxuntos.dat", "conxuntos_kfold.dat"]
    wanted += [info.test_file] if info.n_test else []
    sums, notes = {}, []
    for name in wanted:
        if not (folder / name).is_file():
            raise DatasetError(f"the {where} of UCI set {info.name} lacks {name}")
        found = sums[name] = checksum(folder / name)
        expected = info.checksums.get(name)
        rebuilt = info.rebuilt and name == info.data_file
        if rebuilt and found == expected:
            notes.append(
                f"{name} was rebuilt from raw data, not checked byte for byte."
            )
        elif expected is None or (rebuilt and where == OFFICIAL):
            notes.append(f"No checksum of the authors' {name} is known.")
        elif found != expected:
            raise ChecksumError(f"{folder / name}: expected {expected}, found {found}")
    return sums, tuple(notes)


def _read_data(path: Path, info: UCISet) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Read a data file: row number, d features, class; after one header line."""
    rows = np.loadtxt(path, skiprows=1, ndmin=2)  # (n, 1 + d + 1)
    n = info.n_test if path.name == info.test_file else info.n
    if rows.shape != (n, info.d + 2):
        raise DatasetError(f"{path} holds {rows.shape}, not {(n, info.d + 2)} numbers")
    y = rows[:, -1].astype(np.int64)
    if y.min() < 0 or y.max() >= info.n_classes:
        raise DatasetError(f"{path} has classes beyond 0..{info.n_classes - 1}")
    return np.ascontiguousarray(rows[:, 1:-1]), y


def _read_splits(folder: Path, info: UCISet) -> list[Split]:
    """Read the splits, two lines of row indices each: selection, then four folds."""
    splits = []
    for name in ("conxuntos.dat", "conxuntos_kfold.dat"):
        lines = (folder / name).read_text(encoding="ascii").splitlines()
        rows = [np.array(line.split(), np.int64) for line in lines if line.strip()]
        splits += list(zip(rows[::2], rows[1::2], strict=True))
    for train, held_out in splits:
        both = np.concatenate([train, held_out])
        if not np.array_equal(np.sort(both), np.arange(info.n)):
            raise DatasetError(
                f"a split of UCI set {info.name} does not cover its rows"
            )
    return splits


def _zscore(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standardise as the authors did: n - 1 below the variance, constants to 0."""
    std = np.where(np.ptp(X, axis=0) == 0, np.inf, X.std(axis=0, ddof=1))
    return (X - X.mean(axis=0)) / std


def _faults(info: UCISet, scaling: str) -> tuple[str, ...]:
    """Word the known faults of a set, and what was done about them."""
    notes = []
    if info.raw and scaling == "per_file":
        notes.append(
            f"Published with a raw {info.raw} file beside a z-scored one; "
            f"the {info.raw} file was z-scored by its own mean and deviation."
        )
    elif info.raw:
        notes.append(
            f"The {info.raw} file is raw and the other z-scored: "
            "the two are not comparable."
        )
    return (*notes, *_OTHER_FAULTS.get(info.name, ()))


_UNCLEAR = (
    "For this set z-scoring each file is no clear repair, as the classes are mixed "
    "otherwise in its test file: do not rely on the test part.",
)
_OTHER_FAULTS = {
    "spect": _UNCLEAR,
    "spectf": _UNCLEAR,
    "conn-bench-vowel-deterding": (
        "The test file repeats the first 462 training rows: left out.",
    ),
    "connect-4": ("Two classes, loss against the rest, of the three outcomes.",),
}


@cache
def _sets() -> dict[str, UCISet]:
    text = (files("agop.datasets") / "uci121.csv").read_text(encoding="utf-8")
    return {row["name"]: _set(row) for row in csv.DictReader(text.splitlines())}


def _set(row: dict[str, str]) -> UCISet:
    name, n_test = row["name"], int(row["n_test"])
    known = {
        f"{name}_train_R.dat" if n_test else f"{name}_R.dat": row["data_sha256"],
        f"{name}_test_R.dat": row["test_sha256"],
        "conxuntos.dat": row["selection_sha256"],
        "conxuntos_kfold.dat": row["folds_sha256"],
    }
    archive = row["mirror"]
    return UCISet(
        name=name,
        n=int(row["n"]),
        n_test=n_test,
        d=int(row["d"]),
        n_classes=int(row["classes"]),
        mirrored=f"uci121/uci121_{archive}.tar.xz" if archive else None,
        rebuilt=row["status"] == "rebuilt",
        raw=row["raw"] or None,
        checksums={
            file: f"sha256:{digest}" for file, digest in known.items() if digest
        },
    )
