"""Notebooks made from chapter sources, compared with them, and cleaned."""

import difflib
from copy import deepcopy
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode

from agop.book.layout import BookError, Chapter, write_atomically
from agop.book.parameters import parameters_cell, read_values, write_values

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# Pictures are never compared (they differ between font and library versions), so a
# reference need not carry them.
PICTURES = ("image/png", "image/jpeg")


def prepare(chapter: Chapter, scale: str) -> NotebookNode:
    """Return the chapter as an unexecuted notebook with the scale's values in it.

    Raises
    ------
    BookError
        If the source is missing, has no single parameters cell, or the scale's file
        names a parameter that the chapter lacks.
    """
    if not chapter.source.is_file():
        raise BookError(f"{chapter.shown(chapter.source)} is missing")
    nb = jupytext.read(chapter.source)
    values = read_values(chapter, scale)
    cell = parameters_cell(nb, chapter.shown(chapter.source))
    cell.source = write_values(cell.source, values, chapter)
    for number, each in enumerate(nb.cells):
        each.id = f"c{number:03d}"
    nb.metadata = NotebookNode(
        kernelspec=NotebookNode(KERNEL),
        agop=NotebookNode(chapter=chapter.name, scale=scale),
    )
    return nb


def normalise(nb: NotebookNode) -> NotebookNode:
    """Return ``nb`` without what changes from run to run: times, ids, stderr.

    Execution counts stay: nbval treats a cell with outputs and no count as unrun.
    """
    nb = deepcopy(nb)
    nb.metadata = NotebookNode(
        {k: v for k, v in nb.metadata.items() if k in ("kernelspec", "agop")}
    )
    nb.nbformat, nb.nbformat_minor = 4, 5
    for number, cell in enumerate(nb.cells):
        cell.id = f"c{number:03d}"
        tags = cell.metadata.get("tags")
        mystnb = cell.metadata.get("mystnb")
        cell.metadata = NotebookNode(
            {k: v for k, v in (("tags", tags), ("mystnb", mystnb)) if v}
        )
        if cell.cell_type == "code":
            cell.outputs = _merged(
                [o for o in cell.outputs if o.get("name") != "stderr"]
            )
    return nb


def _merged(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring pieces of stdout: where it breaks is a matter of timing."""
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and last.output_type == output.output_type == "stream":
            last.text += output.text
        else:
            joined.append(output)
    return joined


def without_pictures(nb: NotebookNode) -> NotebookNode:
    """Return ``nb`` with image data dropped, and outputs to be ignored emptied."""
    nb = deepcopy(nb)
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            cell.outputs = []
        for output in cell.outputs:
            for kind in PICTURES:
                output.get("data", {}).pop(kind, None)
    return nb


def read(path: Any) -> NotebookNode:
    """Read a committed notebook."""
    return nbformat.read(path, as_version=4)


def write(nb: NotebookNode, path: Any) -> None:
    """Validate ``nb`` and write it atomically."""
    nbformat.validate(nb)
    write_atomically(path, nbformat.writes(nb) + "\n")


def code_difference(expected: NotebookNode, found: NotebookNode) -> str:
    """Return a unified diff of the code cells, empty when they agree."""

    def code(nb: NotebookNode) -> list[str]:
        return [
            f"{line}\n"
            for number, cell in enumerate(nb.cells)
            if cell.cell_type == "code"
            for line in (f"# cell {number}", *cell.source.splitlines())
        ]

    return "".join(
        difflib.unified_diff(code(expected), code(found), "source", "notebook", n=1)
    )


def prose_differs(expected: NotebookNode, found: NotebookNode) -> bool:
    """Tell whether the text cells (or their order) differ."""

    def shape(nb: NotebookNode) -> list[tuple[str, str]]:
        return [(c.cell_type, c.source) for c in nb.cells if c.cell_type != "code"]

    return shape(expected) != shape(found)


def with_outputs_of(source: NotebookNode, run: NotebookNode) -> NotebookNode:
    """Return ``source`` carrying the outputs of ``run``, whose code is the same."""
    nb = deepcopy(source)
    executed = iter([c for c in run.cells if c.cell_type == "code"])
    for cell in (c for c in nb.cells if c.cell_type == "code"):
        done = next(executed)
        cell.outputs, cell.execution_count = done.outputs, done.execution_count
    nb.metadata = run.metadata
    return normalise(nb)
