"""What a method has to do: choose its hyper-parameters once, then be scored.

The protocol is that of Radhakrishnan et al. (2024), App. B: every hyper-parameter is
chosen on the selection split, by validation accuracy; with these the method is then
learnt afresh on the training rows of each fold (or of the training file) and scored
on the rest. Nothing that was learnt on the selection split is used again, its rows
being among those of the folds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tables import SELECT, Split, TableTask

Chosen = dict[str, Any]  # what JSON can hold


class Candidate(NamedTuple):
    """Hyper-parameters and their accuracy on the validation rows."""

    chosen: Chosen
    validation: float


class Score(NamedTuple):
    """Accuracy on the test rows, and what else is worth a record."""

    accuracy: float
    notes: dict[str, Any]


class Method(ABC):
    """A classification method with its grid."""

    #: Under which it is found in results.
    name: ClassVar[str]

    #: Beyond this many rows of a table the method is not run.
    max_rows: ClassVar[int] = 10**9

    #: The method whose choice of hyper-parameters it takes over.
    selects_as: ClassVar[str | None] = None

    def select(self, split: Split) -> Chosen:
        """Return the best hyper-parameters of the grid, with "validation".

        Ties go to the candidate that comes first: grids go from simple to flexible.
        """
        best = first_best(self.candidates(split))
        return {**best.chosen, "validation": best.validation}

    @abstractmethod
    def candidates(self, split: Split) -> Iterable[Candidate]:
        """Every point of the grid, learnt on the split and validated."""

    @abstractmethod
    def score(self, chosen: Chosen, fold: Split, selection: Split) -> Score:
        """Learn on the fold with these hyper-parameters and score its test rows.

        `selection` is the split they were chosen on; a method without leakage does
        not look at it.
        """


def first_best(candidates: Iterable[Candidate]) -> Candidate:
    """Return the first of the candidates with the highest validation accuracy.

    Examples
    --------
    >>> first_best([Candidate({"k": 1}, 0.5), Candidate({"k": 3}, 0.5)]).chosen
    {'k': 1}
    """
    best = None
    for candidate in candidates:
        if best is None or candidate.validation > best.validation:
            best = candidate
    if best is None:
        raise ValueError("the grid is empty")
    return best


def evaluate(method: Method, task: TableTask) -> tuple[Chosen, list[float]]:
    """Run the whole protocol of one method on one table.

    Returns
    -------
    chosen : dict
    accuracies : list of float
        One for each part of the task.
    """
    selection = task.split(SELECT)
    chosen = method.select(selection)
    scores = [
        method.score(chosen, task.split(part), selection).accuracy
        for part in task.parts
    ]
    return chosen, scores


def hits(scores: NDArray[Any], y: NDArray[np.int64]) -> float:
    """Return the share of rows whose largest score is at the label.

    >>> hits(np.eye(3), np.array([0, 1, 1]))
    0.666...
    """
    return float((scores.argmax(1) == y).mean())
