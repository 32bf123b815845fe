"""Claim records: one small JSON file a claim and scale, with its provenance."""

import json
from pathlib import Path
from typing import Any

from agop.book.chapters import all_chapters
from agop.book.layout import SCALES, Chapter, results_folder, write_atomically

PAGE_REPORT = "page.json"
PUBLISHED = "published"  # the committed runs, of whatever scale
# What differs between two runs that measured the same.
CIRCUMSTANCES = (
    "seconds",
    "date",
    "commit",
    "versions",
    "device",
    "memory",
    "threads",
)

Record = dict[str, Any]


def write_record(folder: Path, record: Record) -> None:
    """Write one claim's record atomically."""
    text = json.dumps(record, indent=2, ensure_ascii=False, sort_keys=True)
    write_atomically(folder / f"{record['id']}.json", text + "\n")


def read_records(folder: Path) -> dict[str, Record]:
    """Return the records in ``folder`` by claim id; none if it does not exist."""
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else []
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in paths
        if path.name != PAGE_REPORT
    }


def same_measurement(one: Record, other: Record) -> bool:
    """Tell whether two records show the same, whatever their circumstances.

    ``values`` are left out: a residual of 2e-15 or 5e-15 is the same finding, and which
    of them comes out depends on the number of threads.
    """

    def essence(record: Record) -> Record:
        provenance = record.get("provenance", {})
        return {
            **{k: v for k, v in record.items() if k != "values"},
            "provenance": {
                k: v for k, v in provenance.items() if k not in CIRCUMSTANCES
            },
        }

    return essence(one) == essence(other)


def commit_records(chapter: Chapter, scale: str, *, keep_if_same: bool) -> None:
    """Bring a run's records into ``data/results/<scale>``, and drop outdated ones.

    With ``keep_if_same`` a record whose measurement has not changed keeps its date,
    so that refreshing the references twice changes nothing.
    """
    folder = results_folder(chapter.root, scale)
    fresh = read_records(chapter.run_records(scale))
    for name, old in read_records(folder).items():
        if old["chapter"] == chapter.name and name not in fresh:
            (folder / f"{name}.json").unlink()
        elif name in fresh and keep_if_same and same_measurement(old, fresh[name]):
            del fresh[name]
    for record in fresh.values():
        write_record(folder, record)


def all_runs(root: Path) -> dict[str, dict[str, Record]]:
    """Return claim id -> scale -> record, from the committed records."""
    runs: dict[str, dict[str, Record]] = {}
    for scale in SCALES:
        for name, record in read_records(results_folder(root, scale)).items():
            runs.setdefault(name, {})[scale] = record
    return runs


def runs_shown(root: Path, runs: str) -> dict[str, dict[str, Record]]:
    """Return the records behind a rendering: committed, or of the last runs.

    Parameters
    ----------
    runs : str
        ``"published"``, or the scale of the runs that are rendered.
    """
    if runs == PUBLISHED:
        return all_runs(root)
    found: dict[str, dict[str, Record]] = {}
    for chapter in all_chapters(root):
        for name, record in read_records(chapter.run_records(runs)).items():
            found[name] = {runs: record}
    return found
