"""The parameters cell: read its names, and write one scale's values into it."""

import ast
from typing import Any

import yaml
from nbformat import NotebookNode

from agop.book.layout import SCALES, BookError, Chapter

TAG = "parameters"


def parameters_cell(nb: NotebookNode, shown: str) -> NotebookNode:
    """Return the one cell tagged ``parameters``.

    Raises
    ------
    BookError
        If there is no such cell or more than one.
    """
    cells = [c for c in nb.cells if TAG in c.metadata.get("tags", [])]
    if len(cells) != 1:
        raise BookError(f"{shown}: {len(cells)} cells are tagged {TAG!r}, not one")
    return cells[0]


def assignments(source: str, shown: str) -> dict[str, ast.expr]:
    """Return the value node of each ``name = literal`` in the cell.

    Raises
    ------
    BookError
        If the cell holds anything but such assignments.
    """
    found: dict[str, ast.expr] = {}
    for node in ast.parse(source).body:
        if not (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
        ):
            raise BookError(
                f"{shown}: line {node.lineno} of the parameters cell is not "
                "of the form `name = value`"
            )
        found[node.targets[0].id] = node.value
    return found


def read_values(chapter: Chapter, scale: str) -> dict[str, Any]:
    """Return the values for ``scale`` from ``book/params/<scale>/<chapter>.yml``.

    Raises
    ------
    BookError
        If the scale is unknown, or the file is missing or no flat mapping.
    """
    if scale not in SCALES:
        raise BookError(f"no such scale: {scale}; there are {', '.join(SCALES)}")
    path = chapter.params(scale)
    if not path.is_file():
        raise BookError(f"{chapter.shown(path)} is missing")
    values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    if not isinstance(values, dict):
        raise BookError(f"{chapter.shown(path)}: not a mapping of names to values")
    return {**values, "scale": scale}


def write_values(source: str, values: dict[str, Any], chapter: Chapter) -> str:
    """Return the cell with ``values`` in place of its own, comments kept.

    Raises
    ------
    BookError
        If a value has no place in the cell; the message lists the right names.
    """
    nodes = assignments(source, chapter.shown(chapter.source))
    unknown = sorted(set(values) - set(nodes))
    if unknown:
        raise BookError(
            f"{chapter.shown(chapter.params(values['scale']))}: unknown parameters "
            f"{unknown}; the chapter has {sorted(nodes)}"
        )
    lines = source.splitlines(keepends=True)
    starts = [sum(len(line.encode()) for line in lines[:i]) for i in range(len(lines))]
    text = source.encode()  # ast counts columns in bytes
    for name in sorted(values, key=lambda name: -nodes[name].lineno):
        node = nodes[name]
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        text = text[:first] + literal(values[name]).encode() + text[last:]
    return text.decode()


def literal(value: Any) -> str:
    """Return ``value`` as Python source in the book's style (double quotes)."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        inner = ", ".join(literal(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)
