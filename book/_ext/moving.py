"""``{widget} NAME``: a drawing that a script makes movable.

NAME is ``deep-linear``, or the stem of a file in ``data/widgets`` with the frames of a
training run (see :func:`agop.book.widgets.scrub`).
"""

import json
from typing import Any

from claims import book_root
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from agop.book import widgets


class Widget(SphinxDirective):
    """One widget, with its picture for readers without scripts."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name == "deep-linear":
            return [nodes.raw("", widgets.deep_linear(), format="html")]
        path = book_root(self.env.app) / "data" / "widgets" / f"{name}.json"
        if not path.is_file():
            raise self.error(
                f"there is no widget {name}: data/widgets has no such file"
            )
        data = json.loads(path.read_text(encoding="utf-8"))
        return [nodes.raw("", widgets.scrub(data), format="html")]


def add_script(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Load the script on pages that have a widget."""
    raws = doctree.findall(nodes.raw) if doctree is not None else ()
    if any('class="widget"' in raw.astext() for raw in raws):
        app.add_js_file("widgets.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("widget", Widget)
    app.connect("html-page-context", add_script, priority=450)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
