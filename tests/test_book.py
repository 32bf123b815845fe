"""The book as committed: in step with its sources, and honest."""

import re
import subprocess
import sys

import jupytext

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


def test_code_of_chapters_is_clean(root, tmp_path):
    """Ruff on the cells of every chapter, at the width that fits the page."""
    for chapter in all_chapters(root):
        cells = jupytext.read(chapter.source).cells
        code = [cell.source + "\n" for cell in cells if cell.cell_type == "code"]
        (tmp_path / f"{chapter.name}.py").write_text("\n".join(code), "utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet"]
    command += ["--select", "E,F,W", "--ignore", "E402,E30,E703"]
    command += ["--line-length", "79", "--output-format", "concise", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_paper_is_on_the_scoreboard(root):
    page = (root / "book" / "scoreboard.md").read_text(encoding="utf-8")
    tables = re.findall(r"\{claims-table\} (.*)", page)
    named = {name.strip() for table in tables for name in table.split(";")}
    assert named == {row["paper"] for row in status(root)}
