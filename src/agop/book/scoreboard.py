"""The state of every claim, as data and as tables."""

from collections import Counter
from pathlib import Path
from typing import Any

from agop.book.layout import SCALES
from agop.book.ledger import NOT_RUN, VERDICTS, load_ledger
from agop.book.records import Record, all_runs

Runs = dict[str, dict[str, Record]]


def status(root: Path, runs: Runs | None = None) -> list[dict[str, Any]]:
    """Return one object a claim, in the ledger's order.

    Parameters
    ----------
    root : Path
        The book's folder.
    runs : mapping, optional
        Claim id -> scale -> record; the committed records by default.
    """
    runs = all_runs(root) if runs is None else runs
    kept = ("verdict", "measured", "control", "provenance")
    return [
        {
            "id": claim.id,
            "paper": claim.paper.short,
            "where": claim.where,
            "statement": claim.statement,
            "reported": claim.reported,
            "chapter": claim.chapter,
            "runs": {
                scale: {key: record[key] for key in kept}
                for scale, record in runs.get(claim.id, {}).items()
            },
        }
        for claim in load_ledger(root).values()
    ]


def largest_verdict(row: dict[str, Any]) -> str:
    """Return the verdict at the largest scale that a claim was run at."""
    for scale in reversed(SCALES):
        if scale in row["runs"]:
            return str(row["runs"][scale]["verdict"])
    return NOT_RUN


def summary_line(rows: list[dict[str, Any]]) -> str:
    """Return the counts of verdicts in one sentence.

    >>> summary_line([{"runs": {"ci": {"verdict": "reproduced"}}}, {"runs": {}}])
    '2 claims: 1 reproduced, 1 not run here'
    """
    counts = Counter(map(largest_verdict, rows))
    told = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
    return f"{len(rows)} claims: {told}"


def text_table(rows: list[dict[str, Any]]) -> str:
    """Return the scoreboard as plain text, a line a claim."""
    lines = []
    for row in rows:
        scales = ", ".join(
            f"{scale}: {row['runs'][scale]['verdict']}"
            for scale in SCALES
            if scale in row["runs"]
        )
        lines.append(f"{row['id']:<5}{row['where']:<28.27}{scales or NOT_RUN}")
    return "\n".join([*lines, "", summary_line(rows)])


def markdown_summary(root: Path, rows: list[dict[str, Any]] | None = None) -> str:
    """Return a table in Markdown: verdicts counted for each paper."""
    rows = status(root) if rows is None else rows
    papers = list(dict.fromkeys(row["paper"] for row in rows))
    used = [name for name in VERDICTS if any(largest_verdict(r) == name for r in rows)]
    lines = [
        "| paper | claims | " + " | ".join(used) + " |",
        "| --- " * (len(used) + 2) + "|",
    ]
    for paper in papers:
        mine = [row for row in rows if row["paper"] == paper]
        counts = Counter(map(largest_verdict, mine))
        cells = " | ".join(str(counts[name]) for name in used)
        lines.append(f"| {paper} | {len(mine)} | {cells} |")
    return "\n".join(lines)
