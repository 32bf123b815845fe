"""A matrix of results with its names: from a sweep, or from a reader's own file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .metrics import (
    adtm,
    average_accuracy,
    check_matrix,
    friedman_rank,
    pma,
    share_near_best,
)

MISSING = ("", "--", "-", "?", "na", "nan", "null")


@dataclass(frozen=True)
class Results:
    """Accuracies of methods on tables.

    Attributes
    ----------
    tables : N names
    methods : J names
    accuracies : array of shape (N, J), NaN where there is no result
    """

    tables: tuple[str, ...]
    methods: tuple[str, ...]
    accuracies: NDArray[np.float64]

    def column(self, method: str) -> NDArray[np.float64]:
        """Accuracies of one method, (N,).

        Raises
        ------
        ValueError
            If there is no such method.
        """
        if method not in self.methods:
            raise ValueError(f"method must be one of {self.methods}, got {method!r}")
        return self.accuracies[:, self.methods.index(method)]

    def of(self, methods: Sequence[str], *, complete: bool = True) -> Results:
        """Some of the methods; with `complete`, on the tables that all of them have.

        >>> results = Results(("a", "b"), ("x", "y"), np.array([[1.0, np.nan], [1, 0]]))
        >>> results.of(["y", "x"]).tables
        ('b',)
        """
        X = np.stack([self.column(method) for method in methods], axis=1)
        known = ~np.isnan(X)
        rows = np.flatnonzero(known.all(1) if complete else known.any(1))
        return Results(tuple(self.tables[i] for i in rows), tuple(methods), X[rows])

    def metrics(self) -> dict[str, NDArray[np.float64]]:
        """Every metric of the paper by its name, (J,) each."""
        X = self.accuracies
        return {
            "average accuracy": average_accuracy(X),
            "P90": share_near_best(X, 0.90),
            "P95": share_near_best(X, 0.95),
            "PMA": pma(X),
            "Friedman rank": friedman_rank(X),
            "ADTM": adtm(X),
            "ADTM as printed": adtm(X, as_printed=True),
        }


def from_rows(rows: Iterable[Mapping[str, Any]]) -> Results:
    """Return results given one row a table and method, as `summarise` makes them.

    >>> from_rows([{"table": "t", "method": "m", "accuracy": "0.5"}]).accuracies
    array([[0.5]])
    """
    cells = {(row["table"], row["method"]): float(row["accuracy"]) for row in rows}
    tables = tuple(dict.fromkeys(table for table, _ in cells))
    methods = tuple(dict.fromkeys(method for _, method in cells))
    X = np.full((len(tables), len(methods)), np.nan)
    for (table, method), value in cells.items():
        X[tables.index(table), methods.index(method)] = value
    return Results(tables, methods, check_matrix(X))


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read the file that ``agop sweep table`` writes: one row a table and method."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_matrix(path: Path, *, delimiter: str = ",") -> Results:
    """Read a reader's own matrix, such as the one of 179 classifiers on 121 tables.

    A header with the names of the methods, then a line a table: its name and one
    accuracy a method. Percentages are divided by 100 if any value exceeds 1; an
    empty cell or one of ``-- - ? NA NaN`` is missing.

    Parameters
    ----------
    path : Path
    delimiter : str, default=","

    Raises
    ------
    ValueError
        If a line has the wrong length, a cell is no number, or a name comes twice;
        the message names the line.
    """
    with Path(path).open(newline="", encoding="utf-8") as file:
        header, *lines = [
            line for line in csv.reader(file, delimiter=delimiter) if line
        ]
    methods = tuple(name.strip() for name in header[1:])
    tables, rows = [], []
    for number, (name, *cells) in enumerate(lines, start=2):
        if len(cells) != len(methods):
            raise ValueError(
                f"{path}, line {number}: {len(cells)} cells for {len(methods)} methods"
            )
        tables.append(name.strip())
        rows.append([_cell(text, f"{path}, line {number}") for text in cells])
    for kind, names in (("table", tables), ("method", methods)):
        twice = {name for name in names if list(names).count(name) > 1}
        if twice:
            raise ValueError(f"{path}: {kind} {sorted(twice)[0]!r} comes twice")
    X = np.array(rows, dtype=np.float64)
    return Results(
        tuple(tables), methods, check_matrix(X / 100 if np.nanmax(X) > 1 else X)
    )


def _cell(text: str, where: str) -> float:
    if text.strip().lower() in MISSING:
        return float("nan")
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"{where}: {text!r} is no number") from error
