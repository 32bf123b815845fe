"""Which chapters the book has, in the order of its table of contents."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from agop.book.layout import BookError, Chapter


def _files(node: Any) -> Iterator[str]:
    """Yield every ``file:`` entry of a table of contents, depth first."""
    if isinstance(node, dict):
        if "file" in node:
            yield node["file"]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _files(child)


def _is_notebook(source: Path) -> bool:
    """Tell a chapter (with a kernel in its header) from a plain page."""
    head = source.read_text(encoding="utf-8").split("\n---", 1)[0]
    return head.startswith("---") and "kernelspec:" in head


def all_chapters(root: Path) -> list[Chapter]:
    """Return the chapters that ``_toc.yml`` lists, in its order."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    pages = [Path(name) for name in _files(toc)]
    return [
        Chapter(page.stem, root)
        for page in pages
        if (root / page).with_suffix(".md").is_file()
        and _is_notebook((root / page).with_suffix(".md"))
    ]


def pages(root: Path) -> list[str]:
    """Return the stems of all pages, the first one included, in their order."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    return [Path(name).stem for name in (toc["root"], *_files(toc))]


def choose(root: Path, names: Iterable[str]) -> list[Chapter]:
    """Return the named chapters, or all of them when no name is given.

    Raises
    ------
    BookError
        If a name is no chapter; the message lists those that are.
    """
    chapters = {chapter.name: chapter for chapter in all_chapters(root)}
    wanted = [Path(name).stem for name in names]
    unknown = [name for name in wanted if name not in chapters]
    if unknown:
        raise BookError(
            f"no such chapter: {', '.join(unknown)}; _toc.yml lists "
            f"{', '.join(chapters) or 'none'}"
        )
    return [chapters[name] for name in wanted] or list(chapters.values())
