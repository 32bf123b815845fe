"""What ``agop sweep run``, ``table``, ``second`` and ``methods`` do."""

import argparse
import csv
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from tqdm import tqdm

from agop.datasets.uci import uci_info, uci_names

from .executors import cluster, local_processes
from .grinsztajn import (
    SECOND_FIELDS,
    describe_second,
    expand,
    run_second,
    summarise_second,
)
from .journal import Record, read_records
from .methods import METHODS
from .summary import describe, summarise
from .sweep import Plan, current_records, find_tables, run_sweep
from .termination import sigterm_interrupts, stop_workers

FIELDS = (
    "table",
    "method",
    "accuracy",
    "parts",
    "rows",
    "columns",
    "classes",
    "wall",
    "cpu",
    "chosen",
)


def run(args: argparse.Namespace) -> int:
    """Run the tasks that the journal lacks."""
    if args.journal.is_file() and args.journal.stat().st_size and not args.resume:
        raise ValueError(f"{args.journal} is there already; add --resume to go on")
    plan = Plan(find_tables(_names(args.tables), args.max_rows), args.methods)
    executor, renew, workers = None, None, max(1, args.workers)
    pools: list[Executor] = []  # the last one is in use

    def pool() -> Executor:
        pools.append(local_processes(args.workers, args.threads))
        return pools[-1]

    if args.scheduler:
        executor, workers = cluster(args.scheduler)
        pools.append(executor)
    elif args.workers > 0:
        executor, renew = pool(), pool
    with tqdm(total=plan.work(), bar_format=_BAR) as bar, sigterm_interrupts():
        try:
            run_sweep(
                plan,
                args.journal,
                executor,
                workers=workers,
                threads=args.threads,
                retry_failed=args.retry_failed,
                renew=renew,
                progress=lambda plan, record: _show(bar, plan, record),
            )
        except KeyboardInterrupt:
            for last in pools[-1:]:
                stop_workers(last)
            raise
    failed = [r for r in plan.done.values() if r["status"] == "failed"]
    for record in failed:
        where = " ".join(record[k] for k in ("table", "method", "part"))
        sys.stderr.write(f"failed: {where}: {record['error']}\n")
    sys.stdout.write(f"{len(plan.done)} tasks done, {len(failed)} of them failed\n")
    return 0


_BAR = "{percentage:3.0f}%|{bar:20}| {elapsed}, {remaining} left {postfix}"


def _show(bar: Any, plan: Plan, record: Record | None) -> None:
    if record is None:  # what an earlier run has done says nothing about the speed
        bar.initial = bar.n = plan.work_done()
    else:
        bar.set_postfix_str(f"{record['table']} {record['method']}", refresh=False)
        bar.update(plan.work_done() - bar.n)


def _names(names: list[str]) -> list[str]:
    every = [f"uci/{name}" for name in uci_names() if uci_info(name).mirrored]
    return [n for name in names for n in (every if name == "uci" else [name])]


def table(args: argparse.Namespace) -> int:
    """Write a row for each table and method, as CSV."""
    if not args.journal.is_file():
        raise ValueError(f"there is no journal {args.journal}")
    records = current_records(args.journal) or list(read_records(args.journal))
    _write(args.output, FIELDS, summarise(records), records, describe)
    return 0


def second(args: argparse.Namespace) -> int:
    """Run the second benchmark's missing runs, and write its rows."""
    run_second(
        expand(args.tables),
        args.methods,
        args.journal,
        train_rows=args.rows,
        most_splits=args.splits,
        numeric_only=args.numeric,
        progress=_tell,
    )
    records = list(read_records(args.journal))
    rows = summarise_second(records)
    _write(args.output, SECOND_FIELDS, rows, records, describe_second)
    return 0


def _tell(record: Record) -> None:
    where = " ".join(str(record[k]) for k in ("table", "method", "split"))
    sys.stderr.write(f"{where}: {record.get('error', record['status'])}\n")


def _write(
    output: Path | None,
    fields: Sequence[str],
    rows: list[dict[str, Any]],
    records: list[Record],
    about: Callable[[str, Sequence[Record]], dict[str, Any]],
) -> None:
    """Rows as CSV to a file with its provenance beside it, or to the screen."""
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("w", newline="") if output else _screen() as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    if output:
        text = json.dumps(about(output.stem, records), indent=2)
        output.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")


class _screen:
    """Standard output as a file that stays open."""

    def __enter__(self) -> Any:
        return sys.stdout

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()


def methods(args: argparse.Namespace) -> int:
    """List the methods, each with the first line of its docstring."""
    for name, method in METHODS.items():
        summary = (type(method).__doc__ or "").splitlines()[0]
        sys.stdout.write(f"{name:<12} {summary}\n")
    return 0
