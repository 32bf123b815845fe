"""``{widget} deep-linear``: a drawing that a script makes movable.

Other widgets are outputs of chapters (see :func:`agop.book.widgets.show`); pages that
have any load the script.
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from agop.book import widgets


class Widget(SphinxDirective):
    """One widget, with its picture for readers without scripts."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        if self.arguments[0] != "deep-linear":
            raise self.error(f"there is no widget {self.arguments[0]}")
        return [nodes.raw("", widgets.deep_linear(), format="html")]


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
