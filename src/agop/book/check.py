"""Everything about the book that can be checked without running it."""

import re
from collections.abc import Iterator
from pathlib import Path

from agop.book import notebooks
from agop.book.chapters import all_chapters
from agop.book.layout import SCALES, BookError, Chapter
from agop.book.ledger import REPRODUCED, load_ledger
from agop.book.publish import _remedy
from agop.book.readme import readme_in_step
from agop.book.records import all_runs

_CLAIM = re.compile(r"""\.claim\(\s*["']([A-Z]\d+)["']""")


def problems(root: Path) -> Iterator[str]:
    """Yield one line for each thing out of order, naming its file."""
    chapters = all_chapters(root)
    for chapter in chapters:
        for scale in SCALES:
            try:
                notebooks.prepare(chapter, scale)
            except BookError as error:
                yield str(error)
        for path in (chapter.published, chapter.reference):
            yield from _out_of_step(chapter, path)
        yield from _claims_of(chapter)
    yield from _strays(root, chapters)
    yield from _records(root)
    if not readme_in_step(root):
        yield "README.md: a generated part is stale; run `agop book status --write`"


def _out_of_step(chapter: Chapter, path: Path) -> Iterator[str]:
    """Compare a committed notebook with the source at the notebook's scale."""
    name = chapter.shown(path)
    remedy = f"run `agop book {_remedy(chapter, path)}`"
    if not path.is_file():
        yield f"{name} is missing; {remedy}"
        return
    nb = notebooks.read(path)
    scale = nb.metadata.get("agop", {}).get("scale")
    if scale not in SCALES or (path == chapter.reference and scale != "ci"):
        yield f"{name}: its scale is {scale!r}; {remedy}"
        return
    try:
        expected = notebooks.prepare(chapter, scale)
    except BookError:
        return  # reported above
    difference = notebooks.code_difference(expected, nb)
    source = chapter.shown(chapter.source)
    if difference:
        yield f"{name} is stale: its code differs from {source}; {remedy}\n{difference}"
    elif notebooks.prose_differs(expected, nb):
        yield (
            f"{name} is stale: its text differs from {source}; run "
            f"`agop book refresh {chapter.name}`"
        )


def _claims_of(chapter: Chapter) -> Iterator[str]:
    """Compare the claims that a chapter calls with the ledger's."""
    ledger = load_ledger(chapter.root)
    for name in _CLAIM.findall(chapter.source.read_text(encoding="utf-8")):
        if name not in ledger:
            yield f"{chapter.shown(chapter.source)}: book/claims.toml has no {name}"


def _strays(root: Path, chapters: list[Chapter]) -> Iterator[str]:
    """Find files that belong to no chapter."""
    known = {chapter.name for chapter in chapters}
    patterns = ["book/*.ipynb", "tests/reference/*.ipynb", "book/params/*/*.yml"]
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            if path.stem not in known:
                yield f"{path.relative_to(root)} belongs to no chapter of _toc.yml"


def _records(root: Path) -> Iterator[str]:
    """Check the committed records against the ledger and the honesty rule."""
    ledger = load_ledger(root)
    for name, runs in all_runs(root).items():
        for scale, record in runs.items():
            where = f"data/results/{scale}/{name}.json"
            if name not in ledger:
                yield f"{where}: book/claims.toml has no {name}"
            elif ledger[name].chapter != record["chapter"]:
                yield f"{where}: {name} belongs to {ledger[name].chapter}"
            if record["verdict"] == REPRODUCED and not record["control"].strip():
                yield f"{where}: reproduced without a measured control"
