"""Where the book's files are: sources, runs, references, records."""

import os
from dataclasses import dataclass
from pathlib import Path

SCALES = ("ci", "laptop", "paper")


class BookError(Exception):
    """A mistake that the author can mend; its message names the file."""


def find_root(start: Path | None = None) -> Path:
    """Return the folder that holds ``book/claims.toml``.

    Looked for in ``start`` (the current folder by default) and its parents, then
    around this file, where a clone or an editable installation has it.

    Raises
    ------
    BookError
        If no such folder is found.
    """
    here = Path(start or Path.cwd()).resolve()
    for folder in (here, *here.parents, *Path(__file__).resolve().parents):
        if (folder / "book" / "claims.toml").is_file():
            return folder
    raise BookError(
        f"book/claims.toml is neither in {here} nor above it: "
        "run this from a clone of the book"
    )


@dataclass(frozen=True)
class Chapter:
    """One chapter's files, all named after its source's stem."""

    name: str
    root: Path

    @property
    def source(self) -> Path:
        """The text that people edit."""
        return self.root / "book" / f"{self.name}.md"

    @property
    def published(self) -> Path:
        """The run that the site shows."""
        return self.root / "book" / f"{self.name}.ipynb"

    @property
    def reference(self) -> Path:
        """The run at ci scale that nbval compares with."""
        return self.root / "tests" / "reference" / f"{self.name}.ipynb"

    def params(self, scale: str) -> Path:
        """The values of the chapter's parameters at one scale."""
        return self.root / "book" / "params" / scale / f"{self.name}.yml"

    def run(self, scale: str) -> Path:
        """The last complete run at one scale."""
        return self.root / "_build" / "run" / scale / f"{self.name}.ipynb"

    def run_records(self, scale: str) -> Path:
        """The claim records that this run wrote, one file a claim."""
        return self.run(scale).with_suffix("") / "records"

    def shown(self, path: Path) -> str:
        """Return ``path`` as people read it: relative to the root."""
        return os.path.relpath(path, self.root)


def results_folder(root: Path, scale: str) -> Path:
    """Return where committed claim records of one scale are."""
    return root / "data" / "results" / scale


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` so that ``path`` is only ever absent, old, or complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
