"""What a reader can download from the site beside its pages."""

import shutil
from pathlib import Path

from agop.book import labels as label_files
from agop.book import notebooks
from agop.book.address import Address
from agop.book.chapters import all_chapters
from agop.book.flatten import flatten
from agop.book.layout import SCALES, results_folder


def write_notebooks(root: Path, build: Path, address: Address) -> None:
    """Write every chapter as a plain notebook into ``html/notebooks``."""
    labels = label_files.read(build / label_files.FILE)
    for chapter in all_chapters(root):
        nb = flatten(chapter, labels, address)
        notebooks.write(nb, build / "html" / "notebooks" / f"{chapter.name}.ipynb")


def copy_records(root: Path, html: Path) -> None:
    """Copy the committed records, to which the scoreboard links."""
    for scale in SCALES:
        folder = results_folder(root, scale)
        if folder.is_dir():
            shutil.copytree(folder, html / "records" / scale, dirs_exist_ok=True)
