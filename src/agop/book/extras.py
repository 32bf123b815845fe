"""What a reader can download from the site beside its pages."""

from pathlib import Path

from agop.book import labels as label_files
from agop.book import notebooks
from agop.book.address import Address
from agop.book.chapters import all_chapters
from agop.book.flatten import flatten
from agop.book.records import runs_shown, write_record


def write_notebooks(root: Path, build: Path, address: Address) -> None:
    """Write every chapter as a plain notebook into ``html/notebooks``."""
    labels = label_files.read(build / label_files.FILE)
    for chapter in all_chapters(root):
        nb = flatten(chapter, labels, address)
        notebooks.write(nb, build / "html" / "notebooks" / f"{chapter.name}.ipynb")


def copy_records(root: Path, runs: str, html: Path) -> None:
    """Copy the records behind the pages, to which the scoreboard links."""
    for name, by_scale in runs_shown(root, runs).items():
        for scale, record in by_scale.items():
            write_record(html / "records" / scale, {**record, "id": name})
