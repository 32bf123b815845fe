"""Sphinx extension of the book: claims tables, and pages made from runs.

Directives
----------
``{claims-table}``    every claim of the papers named, by their short names and ";"
``{claims-summary}``  verdicts counted for each paper, and the legend of verdicts
"""

import json
import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

from agop.book import labels
from agop.book.address import Address
from agop.book.chapters import all_chapters
from agop.book.cli import runs_shown
from agop.book.layout import SCALES, find_root, write_atomically
from agop.book.ledger import NOT_RUN
from agop.book.scoreboard import largest_verdict, markdown_summary, status
from agop.book.site import PUBLISHED


def _root(app: Sphinx) -> Path:
    return Path(os.environ.get("AGOP_ROOT") or find_root(Path(app.srcdir)))


def _rows(app: Sphinx) -> list[dict[str, Any]]:
    """Return the claims with the runs that this rendering shows."""
    root = _root(app)
    runs = runs_shown(root, os.environ.get("AGOP_RUNS", PUBLISHED))
    return status(root, runs)


def _cell(text: str) -> str:
    """Return ``text`` as it can stand in a table of Markdown."""
    for special in "\\|*_`<$~^":
        text = text.replace(special, "\\" + special)
    return text


class ClaimsTable(SphinxDirective):
    """A table of claims: what was reported, what came out here, the verdict."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        app = self.env.app
        written = {chapter.name for chapter in all_chapters(_root(app))}
        papers = {name.strip() for name in self.arguments[0].split(";")}
        rows = [row for row in _rows(app) if row["paper"] in papers]
        if unknown := papers - {row["paper"] for row in rows}:
            raise self.error(f"book/claims.toml has no claim of {sorted(unknown)}")
        lines = ["| claim | verdict | reported | here |", "| --- | --- | --- | --- |"]
        lines += [self._line(row, written) for row in rows]
        table = self.parse_text_to_nodes("\n".join(lines))
        for node in table:
            node["classes"] += ["claims-table"]
        return table

    def _line(self, row: dict[str, Any], written: set[str]) -> str:
        where = f"{row['where']}"
        if row["chapter"] in written:
            where = f"[{_cell(where)}]({row['chapter']})"
        else:
            where = _cell(where)
        claim = f"**{row['id']}** · {where} — {_cell(row['statement'])}"
        here = "; ".join(
            f"{scale}: {_cell(row['runs'][scale]['measured'])}"
            f" (control: {_cell(row['runs'][scale]['control'])})"
            for scale in reversed(SCALES)
            if scale in row["runs"]
        )
        verdict = largest_verdict(row)
        strong = verdict if verdict == NOT_RUN else f"**{verdict}**"
        return f"| {claim} | {strong} | {_cell(row['reported'])} | {here or '–'} |"


class ClaimsSummary(SphinxDirective):
    """Verdicts counted for each paper."""

    def run(self) -> list[nodes.Node]:
        app = self.env.app
        return self.parse_text_to_nodes(markdown_summary(_root(app), _rows(app)))


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
    """Replace the theme's addresses, which are those of the executed notebook."""
    if not Path(app.srcdir, f"{page}.ipynb").is_file():
        return
    chapter = page.split("/")[-1]
    address = Address(app.config.html_theme_options.get("repository_url", ""))
    for button in _all_buttons(context.get("header_buttons", [])):
        if button.get("label") == "download-source-button":
            button["url"] = context["pathto"](f"notebooks/{chapter}.ipynb", 1)
            button["tooltip"] = "Download a notebook that runs anywhere"
        elif "colab.research.google.com" in str(button.get("url")):
            button["url"] = address.colab(chapter)


def _all_buttons(buttons: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the buttons and those inside their groups."""
    return [b for each in buttons for b in (each, *each.get("buttons", ()))]


def _edit_the_source(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Let a chapter's edit button open its text, not the executed notebook."""
    notebook = Path(app.srcdir, f"{page}.ipynb")
    if notebook.is_file():
        context["page_source_suffix"] = ".md"


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
    app.add_directive("claims-table", ClaimsTable)
    app.add_directive("claims-summary", ClaimsSummary)
    app.connect("config-inited", _exclude_sources_of_runs)
    app.connect("config-inited", _no_dead_buttons)
    app.connect("build-finished", _write_labels)
    app.connect("html-page-context", _edit_the_source, priority=400)
    app.connect("html-page-context", _without_thebe, priority=900)
    app.connect("html-page-context", _point_at_notebooks, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
