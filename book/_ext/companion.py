"""Sphinx extension of the book: pages made from runs, and what leads away from them."""

import json
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from agop.book import labels
from agop.book.address import Address
from agop.book.layout import write_atomically


def _exclude_sources_of_runs(app: Sphinx, config: Config) -> None:
    """Where a chapter's run lies beside its source, the run is the page."""
    for notebook in Path(app.srcdir, "book").glob("*.ipynb"):
        config.exclude_patterns.append(f"book/{notebook.stem}.md")


def _no_dead_buttons(app: Sphinx, config: Config) -> None:
    """While the repository's address is a placeholder, offer no link to it."""
    options = config.html_theme_options
    if Address(options.get("repository_url", "")).is_set:
        return
    for name in ("repository", "issues", "edit_page", "source"):
        options[f"use_{name}_button"] = False
    options["launch_buttons"] = {}
    options.pop("repository_url")


def _write_labels(app: Sphinx, error: Exception | None) -> None:
    """Keep what was numbered, for the notebooks that readers download."""
    if error is None and app.builder.name == "html":
        text = json.dumps(labels.collect(app.env), indent=1, ensure_ascii=False)
        write_atomically(Path(app.outdir).parent / labels.FILE, text)


def _point_at_notebooks(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Replace the theme's addresses, which are those of sources; drop the others'."""
    is_chapter = Path(app.srcdir, f"{page}.ipynb").is_file()
    name = page.split("/")[-1]
    address = Address(app.config.html_theme_options.get("repository_url", ""))
    for group in context.get("header_buttons", []):
        for button in list(group.get("buttons", ())):
            if button.get("label") == "download-source-button":
                button["url"] = context["pathto"](f"notebooks/{name}.ipynb", 1)
                button["tooltip"] = "Download a notebook that runs anywhere"
                if not is_chapter:
                    group["buttons"].remove(button)
            elif "colab.research.google.com" in str(button.get("url")):
                button["url"] = address.colab(name)


def _edit_the_source(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Let a chapter's edit button open its text, not the executed notebook."""
    notebook = Path(app.srcdir, f"{page}.ipynb")
    if notebook.is_file():
        context["page_source_suffix"] = ".md"


def _mend_body(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Fetch pictures when they come into view; name the items of a list as such."""
    body = context.get("body", "")
    body = body.replace("<img ", '<img loading="lazy" ')
    context["body"] = body.replace('role="doc-biblioentry"', 'role="listitem"')


def _without_thebe(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Drop the scripts of a live-code service: unused, remote, and loaded twice."""
    for name in ("script_files", "css_files"):
        context[name] = [
            file
            for file in context.get(name, ())
            if "thebe" not in f"{file} {getattr(file, 'attributes', '')}".lower()
        ]


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("claims")
    app.setup_extension("moving")
    app.setup_extension("sharing")
    app.connect("config-inited", _exclude_sources_of_runs)
    app.connect("config-inited", _no_dead_buttons)
    app.connect("build-finished", _write_labels)
    app.connect("html-page-context", _edit_the_source, priority=400)
    app.connect("html-page-context", _without_thebe, priority=900)
    app.connect("html-page-context", _mend_body)
    app.connect("html-page-context", _point_at_notebooks, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
