"""What the README shows of the book's state: generated, never typed."""

import re
from pathlib import Path

from agop.book.chapters import all_chapters
from agop.book.charts import verdict_chart
from agop.book.durations import durations, in_words
from agop.book.layout import SCALES, write_atomically
from agop.book.ledger import NOT_RUN
from agop.book.scoreboard import largest_verdict, markdown_summary, status

PICTURE = Path("data") / "results" / "verdicts.svg"
SUMMARY = "<!-- claims summary: generated -->", "<!-- end of claims summary -->"
CHAPTERS = "<!-- chapters: generated -->", "<!-- end of chapters -->"


def chapter_table(root: Path) -> str:
    """Return a table in Markdown: chapters, claims run of those due, and run times."""
    rows = status(root)
    shown = SCALES[:2]
    lines = [
        f"| chapter | claims run | {' | '.join(f'`{scale}`' for scale in shown)} |",
        "| --- | --- | --- | --- |",
    ]
    for chapter in all_chapters(root):
        text = chapter.source.read_text(encoding="utf-8")
        title = re.search(r"^# (.+)$", text, re.MULTILINE)
        mine = [row for row in rows if row["chapter"] == chapter.name]
        run = sum(largest_verdict(row) != NOT_RUN for row in mine)
        taken = durations(chapter)
        lines.append(
            f"| [{title[1] if title else chapter.name}](book/{chapter.name}.md) "
            f"| {f'{run} of {len(mine)}' if mine else '–'} "
            f"| {' | '.join(in_words(taken.get(scale)) for scale in shown)} |"
        )
    return "\n".join(lines)


def _as_it_should_be(root: Path) -> dict[Path, str]:
    """Return the text of every generated file."""
    text = (root / "README.md").read_text(encoding="utf-8")
    for (start, end), block in (
        (SUMMARY, markdown_summary(root)),
        (CHAPTERS, chapter_table(root)),
    ):
        new = f"{start}\n{block}\n{end}"
        pattern = re.escape(start) + ".*?" + re.escape(end)
        text = re.sub(pattern, lambda match, new=new: new, text, flags=re.DOTALL)  # type: ignore[misc]
    ground = '<rect width="100%" height="100%" fill="#fff"/>'
    drawing = verdict_chart(status(root)).replace("currentColor", "#111")
    picture = drawing.replace(">", f">{ground}", 1) + "\n"
    return {root / "README.md": text, root / PICTURE: picture}


def readme_in_step(root: Path) -> bool:
    """Tell whether the README's tables and picture are what the records say."""
    return all(
        path.is_file() and path.read_text(encoding="utf-8") == text
        for path, text in _as_it_should_be(root).items()
    ) and SUMMARY[0] in (root / "README.md").read_text(encoding="utf-8")


def write_readme(root: Path) -> None:
    """Bring the README's tables and picture up to date."""
    for path, text in _as_it_should_be(root).items():
        write_atomically(path, text)
