"""A table as a task: checked columns, labels 0..C-1, and the splits it is scored on.

The UCI collection comes with its splits: one half against the other for choosing
hyper-parameters, then four independent 75/25 splits, or a test file. Other tables get
splits of the same kind, drawn with a seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from agop.datasets import Dataset, UCIDataset

SELECT = "select"  # the part on which hyper-parameters are chosen
N_FOLDS = 4

Rows = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from, and rows to be judged on.

    Attributes
    ----------
    X, y : arrays of shape (n, d) and (n,)
    X_test, y_test : arrays of shape (m, d) and (m,)
    C : int
        Number of classes of the whole table; a part may lack some.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]
    C: int

    def on_sphere(self) -> Split:
        """Return the split with every row divided by its Euclidean norm."""
        return replace(self, X=_unit(self.X), X_test=_unit(self.X_test))

    @property
    def has_zero_row(self) -> bool:
        """Whether a row has norm 0, so that it has no place on the sphere."""
        return any((~X.any(axis=1)).any() for X in (self.X, self.X_test))

    def at_most(self, n: int, m: int, *, seed: int = 0) -> Split:
        """Return at most n rows to learn from and m to be judged on, drawn once.

        >>> split = make_table("t", np.arange(40.0)[:, None], [0, 1] * 20).split(SELECT)
        >>> len(split.at_most(5, 3).y), len(split.at_most(5, 3).y_test)
        (5, 3)
        """
        rng = np.random.default_rng(seed)
        keep, held = (_some(rng, len(y), k) for y, k in ((self.y, n), (self.y_test, m)))
        return Split(
            self.X[keep], self.y[keep], self.X_test[held], self.y_test[held], self.C
        )


@dataclass(frozen=True, eq=False)
class TableTask:
    """A classification table with its splits; see `make_table` and `table_task`.

    Attributes
    ----------
    name : str
    X, y : arrays of shape (n, d) and (n,)
    C : int
        Number of classes.
    selection : (train, validation) row indices
    folds : pairs of (train, test) row indices
    X_test, y_test : arrays, or None
        A test file; the folds are then not used.
    scaled : bool
        Whether columns are scaled already. If not, each split standardises them by
        its own training rows.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    C: int
    selection: Rows
    folds: tuple[Rows, ...]
    X_test: NDArray[np.float64] | None = None
    y_test: NDArray[np.int64] | None = None
    scaled: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that are scored: ("test",), or ("fold1", …)."""
        if self.X_test is not None:
            return ("test",)
        return tuple(f"fold{k + 1}" for k in range(len(self.folds)))

    def split(self, part: str) -> Split:
        """Return the split of this name: "select", "fold1" …, or "test".

        Raises
        ------
        ValueError
            If the table has no such part.
        """
        if part not in (SELECT, *self.parts):
            raise ValueError(
                f"part must be {SELECT!r} or one of {self.parts}: {part!r}"
            )
        if part == "test":
            assert self.X_test is not None
            assert self.y_test is not None
            rows = (self.X, self.y, self.X_test, self.y_test)
        else:
            train, test = (
                self.selection if part == SELECT else self.folds[int(part[4:]) - 1]
            )
            rows = (self.X[train], self.y[train], self.X[test], self.y[test])
        split = Split(*rows, self.C)
        return split if self.scaled else _standardised(split)


def table_task(dataset: Dataset, *, seed: int = 0) -> TableTask:
    """Return a data set as a task.

    Parameters
    ----------
    dataset : Dataset
        With integer labels. A `UCIDataset` keeps the authors' splits and scaling;
        others are treated by `make_table`.
    seed : int, default=0
        Draws the splits of those others.

    Examples
    --------
    >>> from agop.datasets import load
    >>> table_task(load("wine")).parts
    ('fold1', 'fold2', 'fold3', 'fold4')
    """
    if not isinstance(dataset, UCIDataset):
        return make_table(dataset.name, dataset.X, dataset.y, seed=seed)
    X, y = check_table(dataset.X, dataset.y, dataset.name)
    return TableTask(
        name=dataset.name,
        X=X,
        y=y,
        C=len(dataset.class_names),
        selection=dataset.selection,
        folds=dataset.folds,
        X_test=dataset.X_test,
        y_test=dataset.y_test,
        scaled=True,
    )


def make_table(name: str, X: ArrayLike, y: ArrayLike, *, seed: int = 0) -> TableTask:
    """Return a table with splits like those of the UCI collection, drawn with a seed.

    One half against the other for choosing hyper-parameters, and four independent
    splits of 75 against 25 %, all in proportion to the classes where each class has
    two rows or more. Each split standardises the columns by its own training rows; a
    column that is constant there becomes 0 there, and so says nothing.

    Parameters
    ----------
    name : str
    X : array-like of shape (n, d), numbers without gaps
    y : array-like of shape (n,), labels of any kind
    seed : int, default=0

    Raises
    ------
    TypeError, ValueError
        See `check_table`.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> task = make_table("signs", X, np.where(X[:, 0] > 0, "up", "down"))
    >>> task.C, len(task.split("fold1").y)
    (2, 30)
    """
    X, labels = check_table(X, y, name)
    classes, y = np.unique(labels, return_inverse=True)
    rng = np.random.default_rng(seed)
    half, *folds = (
        _draw(y, share, int(rng.integers(2**31))) for share in (0.5, *[0.25] * N_FOLDS)
    )
    return TableTask(name, X, y.astype(np.int64), len(classes), half, tuple(folds))


def check_table(
    X: ArrayLike, y: ArrayLike, name: str = "table"
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return X and y as arrays, or say what is wrong with the table.

    Raises
    ------
    TypeError
        If a column holds text.
    ValueError
        If values are missing or infinite, the shapes do not fit, there are fewer than
        4 rows, or only one class.

    Examples
    --------
    >>> check_table([[1.0], [2.0], [None], [3.0]], [0, 1, 0, 1])
    Traceback (most recent call last):
    ValueError: table: X has missing or infinite values in 1 of 4 rows (first in
    column 0); fill them or drop the rows before
    """
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"{name}: X must have shape (n, d), got {X.shape}")
    numbers = _as_numbers(X, name)
    bad = ~np.isfinite(numbers)
    if bad.any():
        raise ValueError(
            f"{name}: X has missing or infinite values in {bad.any(1).sum()} of "
            f"{len(X)} rows (first in column {int(bad.any(0).argmax())}); fill them "
            "or drop the rows before"
        )
    y = np.asarray(y)
    if y.shape != (len(X),):
        raise ValueError(f"{name}: y must have shape ({len(X)},), got {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name}: y has missing labels; drop those rows before")
    if len(X) < 4:
        raise ValueError(f"{name}: at least 4 rows are needed for splits, got {len(X)}")
    if len(np.unique(y)) < 2:
        raise ValueError(f"{name}: y holds the single class {y[0]!r}; two are needed")
    return numbers, y


def _as_numbers(X: NDArray[Any], name: str) -> NDArray[np.float64]:
    """X as float64; a None becomes nan, and text is refused."""
    try:
        return np.array(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        text = [
            j for j in range(X.shape[1]) if any(isinstance(v, str) for v in X[:, j])
        ]
        raise TypeError(
            f"{name}: X holds text in columns {text}; code categories as numbers or "
            "indicators before (`agop.datasets.load_table` does it for its tables)"
        ) from error


def _draw(y: NDArray[np.int64], share: float, seed: int) -> Rows:
    """Row indices of a split, in proportion to the classes where that is possible."""
    n, C = len(y), len(np.unique(y))
    enough = np.bincount(y).min() > 1 and min(share * n, (1 - share) * n) >= C
    train, test = train_test_split(
        np.arange(n),
        test_size=share,
        random_state=seed,
        stratify=y if enough else None,
    )
    return np.sort(train), np.sort(test)


def _standardised(split: Split) -> Split:
    scaler = StandardScaler().fit(split.X)
    return replace(
        split, X=scaler.transform(split.X), X_test=scaler.transform(split.X_test)
    )


def _unit(X: NDArray[np.float64]) -> NDArray[np.float64]:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _some(rng: np.random.Generator, n: int, k: int) -> slice | NDArray[np.int64]:
    """At most k of n rows in increasing order."""
    return slice(None) if n <= k else np.sort(rng.choice(n, k, replace=False))
