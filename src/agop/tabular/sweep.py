"""Many methods on many tables: tasks, their order, and a loop that survives.

A task is one part of one method on one table: choosing the hyper-parameters
("select"), or scoring a fold or the test file with them. The loop keeps every worker
busy, smallest tables first, and writes each record as it comes, so that whatever has
been done at any moment is a complete statement about the smaller tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from threadpoolctl import threadpool_limits

from agop.datasets import load
from agop.datasets.uci import uci_info

from .executors import Inline
from .journal import Journal, Record, failure, measured, read_records
from .methods import code_of, method_named
from .tables import SELECT, TableTask, table_task

ATTEMPTS = 2  # a task whose worker died is tried once more


class Key(NamedTuple):
    """What identifies a task."""

    table: str
    method: str
    part: str


@dataclass(frozen=True)
class Table:
    """A table in a sweep, known by its size before it is loaded."""

    name: str
    rows: int


def find_tables(names: Iterable[str], max_rows: int | None = None) -> list[Table]:
    """Return the tables of at most `max_rows` rows, smallest first.

    Examples
    --------
    >>> [table.name for table in find_tables(["wine", "iris", "uci/adult"], 200)]
    ['iris', 'wine']
    """
    found = [Table(name, _rows(name)) for name in names]
    kept = [t for t in found if max_rows is None or t.rows <= max_rows]
    return sorted(kept, key=lambda t: (t.rows, t.name))


def _rows(name: str) -> int:
    """Rows of the training file."""
    if name.startswith("uci/"):
        return uci_info(name.removeprefix("uci/")).n
    return len(load(name).y)


class Plan:
    """Which tasks there are, which of them are done, and which can start.

    Parameters
    ----------
    tables : sequence of Table
        In the order of treatment.
    methods : sequence of str
        Each after the one whose hyper-parameters it takes over.

    Raises
    ------
    ValueError
        If a method is unknown, or lacks the one that it depends on.
    """

    def __init__(self, tables: Sequence[Table], methods: Sequence[str]) -> None:
        for k, name in enumerate(methods):
            before = method_named(name).selects_as
            if before is not None and before not in methods[:k]:
                raise ValueError(f"the method {name!r} needs {before!r} before it")
        self.done: dict[Key, Record] = {}
        self._pairs = [
            (table, name)
            for table in tables
            for name in methods
            if table.rows <= method_named(name).max_rows
        ]
        self._given: set[Key] = set()

    def add(self, record: Record) -> None:
        """Count a record as done, and hand its task out no more."""
        key = Key(record["table"], record["method"], record["part"])
        self.done[key] = record
        self._given.add(key)

    def next(self) -> tuple[Key, dict[str, Any]] | None:
        """Return the first task that can start, with its hyper-parameters."""
        for table, name in self._pairs:
            for key, chosen in self._ready(table.name, name):
                if key not in self._given:
                    self._given.add(key)
                    return key, chosen
        return None

    def give_back(self, key: Key) -> None:
        """Hand a task out again."""
        self._given.discard(key)

    def _ready(self, table: str, name: str) -> Iterator[tuple[Key, dict[str, Any]]]:
        selector = method_named(name).selects_as or name
        selection = Key(table, selector, SELECT)
        if selector == name:
            yield selection, {}
        record = self.done.get(selection)
        if record is not None and record["status"] == "done":
            for part in record["parts"]:
                yield Key(table, name, part), record["chosen"]

    def work(self) -> float:
        """Work of all tasks in a rough unit, for the progress bar."""
        return sum(_work(table.rows) for table, _ in self._pairs)

    def work_done(self) -> float:
        """Work of the tasks that are done, in the same unit."""
        total = 0.0
        for table, name in self._pairs:
            method = method_named(name)
            selection = self.done.get(
                Key(table.name, method.selects_as or name, SELECT)
            )
            if selection is None:
                continue
            failed = selection["status"] != "done"
            parts = (
                [] if failed else [Key(table.name, name, p) for p in selection["parts"]]
            )
            if method.selects_as is None:
                parts.append(Key(table.name, name, SELECT))
            total += _work(table.rows) * sum(p in self.done for p in parts) / len(parts)
        return total


def _work(rows: int) -> float:
    return (300 + rows) ** 2


def run_sweep(
    plan: Plan,
    path: Path,
    executor: Executor | None = None,
    *,
    workers: int = 1,
    threads: int = 1,
    retry_failed: bool = False,
    renew: Callable[[], Executor] | None = None,
    progress: Callable[[Plan, Record | None], object] = lambda plan, record: None,
) -> dict[Key, Record]:
    """Run all tasks of the plan that the journal at `path` does not have yet.

    Parameters
    ----------
    plan : Plan
    path : Path
        Journal; records of other sources or versions in it do not count.
    executor : concurrent.futures.Executor, optional
        Where tasks run: processes here, a cluster, or (default) this very process.
    workers : int
        Tasks in flight at a time.
    threads : int
        Threads of each task.
    retry_failed : bool
        Whether to run failed tasks again.
    renew : callable, optional
        Returns a new executor after one that broke because a worker died.
    progress : callable
        Called with the plan and each new record; first with None.

    Returns
    -------
    dict
        Every record of the plan by its key.
    """
    executor = executor or Inline()
    attempts: dict[Key, int] = {}
    running: dict[Future[Record], Key] = {}
    with Journal(path) as journal:
        for record in current_records(path):
            if record["status"] == "done" or not retry_failed:
                plan.add(record)
        progress(plan, None)
        while True:
            while len(running) < workers and (task := plan.next()) is not None:
                key, chosen = task
                attempts[key] = attempts.get(key, 0) + 1
                running[executor.submit(run_task, *key, chosen, threads)] = key
            if not running:
                return plan.done
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            broken = False
            for future in finished:
                key = running.pop(future)
                record, died = _outcome(future, key)
                broken |= died
                if died and attempts[key] < ATTEMPTS:
                    plan.give_back(key)
                    continue
                journal.append(record)
                plan.add(record)
                progress(plan, record)
            if broken and renew is not None:
                for key in running.values():  # they died with the executor
                    attempts[key] -= 1
                    plan.give_back(key)
                running, executor = {}, renew()


def _outcome(future: Future[Record], key: Key) -> tuple[Record, bool]:
    """The record of a finished future, and whether its worker died."""
    error = future.exception()
    if error is None:
        return future.result(), False
    record = {**key._asdict(), "code": code_of(key.method), **failure(error)}
    return record, isinstance(error, BrokenExecutor)


def current_records(path: Path) -> list[Record]:
    """Return the records of a journal that the present sources would produce."""
    records, codes = [], {}
    for record in read_records(path):
        name = record["method"]
        if name not in codes:
            codes[name] = code_of(name)
        if record["code"] == codes[name]:
            records.append(record)
    return records


def run_task(
    table: str, method: str, part: str, chosen: dict[str, Any], threads: int = 1
) -> Record:
    """Run one task, in whatever process; a failure becomes its record.

    Returns
    -------
    dict
        "table", "method", "part", "status" ("done" or "failed"), "code", "wall" and
        "cpu" (seconds, of this task with loading the table); then "chosen" and
        "parts" after a selection, "accuracy" and "notes" after a score, or "error".
    """
    key = Key(table, method, part)

    def work() -> Record:
        torch.set_num_threads(threads)
        with threadpool_limits(threads):
            return {"status": "done", **_run(key, chosen)}

    return {**key._asdict(), "code": code_of(method), **measured(work)}


def _run(key: Key, chosen: dict[str, Any]) -> dict[str, Any]:
    task, method = _task(key.table), method_named(key.method)
    selection = task.split(SELECT)
    if key.part == SELECT:
        return {
            "rows": len(task.y),
            "columns": task.X.shape[1],
            "classes": task.C,
            "parts": list(task.parts),
            "chosen": method.select(selection),
        }
    score = method.score(chosen, task.split(key.part), selection)
    return {"accuracy": score.accuracy, "notes": score.notes}


@lru_cache(maxsize=1)
def _task(name: str) -> TableTask:
    """The table of this and, most often, of the next task."""
    return table_task(load(name))
