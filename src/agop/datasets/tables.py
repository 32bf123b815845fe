"""Tables of the Grinsztajn et al. benchmark, in their original forms."""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agop.datasets.dataset import Table
from agop.datasets.registry import Entry, entry, names, unknown
from agop.datasets.storage import locate

_PREFIX = "table/"


def table_names() -> tuple[str, ...]:
    """Return the names that `load_table` takes.

    >>> "diamonds" in table_names()
    True
    """
    return tuple(n.removeprefix(_PREFIX) for n in names() if n.startswith(_PREFIX))


def load_table(name: str) -> Table:
    """Load a table from a local mirror.

    X is (n, d) float64; a categorical column holds codes 0, 1, … of its values in
    alphabetical order. y is (n,), float64 for regression and int64 for classes.
    They are not the OpenML-transformed tables of the published suites.

    Parameters
    ----------
    name : one of `table_names`.

    Raises
    ------
    ValueError
        If there is no such table.
    DatasetError
        If there is no local mirror (``AGOP_DATA``) with that table.
    """
    if name not in table_names():
        raise ValueError(unknown("table", name, dict.fromkeys(table_names())))
    found = locate(entry(_PREFIX + name))
    (path,) = found.paths.values()
    header, rows = _read(path, found.entry)
    reading = found.entry.reading
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    target = columns.pop(reading.get("target", header[-1]))
    for leak in reading.get("drop", ()):
        del columns[leak]
    X, categories = _encode(columns, reading.get("categorical", ()))
    y, class_names = _target(target, reading["task"])
    return Table(
        name=found.entry.name,
        X=X,
        y=y,
        feature_names=tuple(columns),
        class_names=class_names,
        provenance=found.provenance(),
        categorical=tuple(categories),
        categories=categories,
        task=reading["task"],
    )


def _read(path: Path, table: Entry) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns, and the rows as text."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter=table.reading["delimiter"]))
    if table.reading["header"]:
        return rows[0], rows[1:]
    numbered = [f"f{j + 1}" for j in range(len(rows[0]))]
    return table.reading.get("columns", numbered), rows


def _encode(
    columns: dict[str, Any], categorical: tuple[str, ...]
) -> tuple[NDArray[np.float64], dict[int, tuple[str, ...]]]:
    """Return (n, d) numbers, and the values of each categorical column."""
    X = np.empty((len(next(iter(columns.values()))), len(columns)))  # (n, d)
    categories = {}
    for j, (name, values) in enumerate(columns.items()):
        if name in categorical:
            kinds, X[:, j] = np.unique(values, return_inverse=True)
            categories[j] = tuple(str(kind) for kind in kinds)
        else:
            X[:, j] = np.asarray(values, np.float64)
    return X, categories


def _target(values: Any, task: str) -> tuple[NDArray[Any], tuple[str, ...]]:
    if task == "regression":
        return np.asarray(values, np.float64), ()
    kinds, y = np.unique(values, return_inverse=True)
    return y.astype(np.int64), tuple(str(kind) for kind in kinds)
