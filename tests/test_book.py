"""The book as committed: in step with its sources, and honest."""

import re

from agop.book.chapters import all_chapters
from agop.book.check import problems
from agop.book.ledger import REPRODUCED
from agop.book.scoreboard import status


def test_nothing_is_stale_missing_or_unknown(root):
    assert list(problems(root)) == []


def test_nothing_is_reproduced_without_a_control_that_failed(root):
    for row in status(root):
        for scale, run in row["runs"].items():
            if run["verdict"] == REPRODUCED:
                assert run["control"], (row["id"], scale)
                assert run["provenance"]["versions"], (row["id"], scale)


def test_claims_called_by_a_chapter_are_in_its_records(root):
    """A claim in the text whose record is missing was never run."""
    recorded = {row["id"]: row["runs"] for row in status(root)}
    for chapter in all_chapters(root):
        source = chapter.source.read_text(encoding="utf-8")
        for name in re.findall(r'page\.claim\(\s*"([A-Z]\d+)"', source):
            assert "ci" in recorded[name], f"{chapter.name}: {name} has no ci record"


def test_cells_fit_a_screen(root):
    """No cell over 40 lines: chapters hold no algorithm."""
    for chapter in all_chapters(root):
        cells = re.findall(
            r"```\{code-cell\}[^\n]*\n(.*?)```", chapter.source.read_text(), re.DOTALL
        )
        for cell in cells:
            assert cell.count("\n") <= 42, f"{chapter.name}:\n{cell[:200]}"
