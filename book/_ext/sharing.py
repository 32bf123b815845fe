"""What other programs read of a page: its description, and how to show a link to it."""

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from agop.book.address import Address
from agop.book.extras import CARD

LENGTH = 200  # characters of a description that are shown


def description(doctree: nodes.document) -> str:
    """Return the beginning of a page's text, cut at a word."""
    for each in doctree.findall(nodes.paragraph):
        text = " ".join(each.astext().split())
        if len(text) >= 40:
            if len(text) <= LENGTH:
                return text
            return text[:LENGTH].rsplit(" ", 1)[0] + " …"
    return ""


def add_metadata(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Describe a page; with its address, once the site has one."""
    if doctree is None:
        return
    address = Address(app.config.html_theme_options.get("repository_url", ""))
    told = description(doctree)
    properties = {
        "og:title": app.env.titles[page].astext(),
        "og:type": "article",
        "og:site_name": str(app.config.html_title),
        "og:description": told,
    }
    tags = [f'<meta name="description" content="{escape(told)}">'] if told else []
    if address.repository and address.is_set:
        here = f"{address.site}{page}.html"
        tags.append(f'<link rel="canonical" href="{escape(here)}">')
        properties["og:url"] = here
        properties["og:image"] = f"{address.site}_static/{CARD}"
        properties["og:image:alt"] = "Title of the book beside a feature matrix"
        tags.append('<meta name="twitter:card" content="summary_large_image">')
    tags += [
        f'<meta property="{name}" content="{escape(value)}">'
        for name, value in properties.items()
        if value
    ]
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", add_metadata, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
