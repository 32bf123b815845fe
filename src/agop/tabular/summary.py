"""From the records of a sweep to one row a table and method."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from .journal import Record
from .tables import SELECT


def summarise(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return one row for each table and method that is complete, in a fixed order.

    The accuracy is the mean over folds, or that on the test file. "wall" and "cpu"
    are sums over the selection (for a method that takes one over: without it) and the
    parts.

    Examples
    --------
    >>> select = {"table": "t", "method": "m", "part": "select", "status": "done",
    ...           "parts": ["fold1", "fold2"], "chosen": {"k": 1}, "rows": 8,
    ...           "columns": 2, "classes": 2, "wall": 1.0, "cpu": 1.0}
    >>> folds = [{"table": "t", "method": "m", "part": part, "status": "done",
    ...           "accuracy": value, "wall": 1.0, "cpu": 0.5}
    ...          for part, value in (("fold1", 0.5), ("fold2", 1.0))]
    >>> (row,) = summarise([select, *folds])
    >>> row["accuracy"], row["wall"], row["cpu"]
    (0.75, 3.0, 2.0)
    """
    done = {
        (r["table"], r["method"], r["part"]): r
        for r in records
        if r["status"] == "done"
    }
    selections = {key[:2]: r for key, r in done.items() if key[2] == SELECT}
    sizes = {table: selection for (table, _), selection in selections.items()}
    rows = []
    for table, method in sorted({key[:2] for key in done}):
        selection = selections.get((table, method))
        if table not in sizes:
            continue
        keys = [(table, method, part) for part in sizes[table]["parts"]]
        if not all(key in done for key in keys):
            continue
        scores = [done[key] for key in keys]
        spent = scores if selection is None else [selection, *scores]
        rows.append(
            {
                "table": table,
                "method": method,
                "accuracy": round(float(np.mean([r["accuracy"] for r in scores])), 6),
                "parts": " ".join(f"{r['accuracy']:.6f}" for r in scores),
                **{k: sizes[table][k] for k in ("rows", "columns", "classes")},
                "wall": round(sum(r["wall"] for r in spent), 3),
                "cpu": round(sum(r["cpu"] for r in spent), 3),
                "chosen": json.dumps(selection["chosen"]) if selection else "",
            }
        )
    return rows


def describe(name: str, records: Sequence[Record]) -> dict[str, Any]:
    """Return what a reader must know of a sweep besides its rows.

    "tables" and "tasks" count the complete rows of each method and its tasks; "wall"
    and "cpu" are its seconds in all, failed tasks among them; "code" is the digest of
    the sources (see `agop.tabular.methods.code_of`).
    """
    rows = summarise(records)
    totals: dict[str, dict[str, Any]] = {}
    for method in sorted({r["method"] for r in records}):
        own = [r for r in records if r["method"] == method]
        totals[method] = {
            "tables": sum(row["method"] == method for row in rows),
            "tasks": len(own),
            "wall": round(sum(r.get("wall", 0.0) for r in own), 1),
            "cpu": round(sum(r.get("cpu", 0.0) for r in own), 1),
            "code": own[0]["code"],
        }
    failed = Counter(r["method"] for r in records if r["status"] == "failed")
    return {
        **origin(name, rows),
        "methods": totals,
        "failed": dict(failed),
    }


def origin(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the committed rows are, the kind of machine, and the versions.

    >>> about = origin("uci", [{"table": "iris"}, {"table": "iris"}])
    >>> about["name"], about["source"]
    ('sweep uci, 1 tables', 'committed rows in data/results/sweeps/uci.csv')
    """
    packages = ("agop", "numpy", "scikit-learn", "torch")
    return {
        "name": f"sweep {name}, {len({row['table'] for row in rows})} tables",
        "source": f"committed rows in data/results/sweeps/{name}.csv",
        "device": f"CPU ({platform.machine()}, {os.cpu_count()} cores)",
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in packages},
        },
    }
