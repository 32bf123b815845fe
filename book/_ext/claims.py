"""Pages about claims and runs: tables made from the ledger and the records.

Directives
----------
``{claims-table}``    every claim of the papers named, by their short names and ";"
``{claims-summary}``  verdicts counted for each paper
``{claims-chart}``    the same as a drawing
``{errata-list}``     what is printed and what is right, for the papers named
``{run-status}``      when, where and with what each chapter was run
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from agop.book import notebooks
from agop.book.chapters import all_chapters
from agop.book.charts import verdict_chart
from agop.book.durations import durations, in_words
from agop.book.layout import SCALES, find_root
from agop.book.records import PUBLISHED, runs_shown
from agop.book.scoreboard import largest_verdict, markdown_summary, status

_CLAIM = re.compile(r"^([A-Z]\d+) · ", re.MULTILINE)  # the first line of its block
Row = dict[str, Any]


def book_root(app: Sphinx) -> Path:
    return Path(os.environ.get("AGOP_ROOT") or find_root(Path(app.srcdir)))


def claim_rows(app: Sphinx) -> list[Row]:
    """Return the claims with the runs that this rendering shows."""
    root = book_root(app)
    return status(root, runs_shown(root, os.environ.get("AGOP_RUNS", PUBLISHED)))


# --- Nodes ----------------------------------------------------------------------------


def paragraph(*parts: str | nodes.Node, classes: Sequence[str] = ()) -> nodes.paragraph:
    """Return a paragraph of texts and nodes."""
    made = [nodes.Text(part) if isinstance(part, str) else part for part in parts]
    return nodes.paragraph("", "", *made, classes=list(classes))


def chip(verdict: str) -> nodes.inline:
    """Return a verdict as a small coloured word."""
    return nodes.inline("", verdict, classes=["verdict", nodes.make_id(verdict)])


def place(claim: str, text: str, what: str) -> nodes.reference:
    """Return a link to where a chapter tests a claim; resolved when all is read."""
    return nodes.reference("", text, refuri="", agop_claim=claim, agop_what=what)


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[nodes.Node | Sequence[nodes.Node]]],
    widths: Sequence[int] = (),
) -> nodes.table:
    """Return a table; a cell is a node or several, widths are shares."""
    group = nodes.tgroup(cols=len(titles))
    group += [nodes.colspec(colwidth=w) for w in widths or [1] * len(titles)]
    head = nodes.row()
    head += [nodes.entry("", paragraph(title)) for title in titles]
    body = nodes.tbody()
    for row in rows:
        line = nodes.row()
        for cell in row:
            line += nodes.entry("", *([cell] if isinstance(cell, nodes.Node) else cell))
        body += line
    group += [nodes.thead("", head), body]
    classes = ["colwidths-given"] if widths else []
    return nodes.table("", group, classes=classes)


# --- Directives -----------------------------------------------------------------------


class OfPapers(SphinxDirective):
    """A directive about the claims of the papers named in its argument."""

    required_arguments = 1
    final_argument_whitespace = True

    def chosen(self) -> list[Row]:
        papers = {name.strip() for name in self.arguments[0].split(";")}
        rows = [row for row in claim_rows(self.env.app) if row["paper"] in papers]
        if unknown := papers - {row["paper"] for row in rows}:
            raise self.error(f"book/claims.toml has no claim of {sorted(unknown)}")
        return rows


class ClaimsTable(OfPapers):
    """A table of claims: what was reported, what came out here, the verdict."""

    def run(self) -> list[nodes.Node]:
        rows = [
            (
                [
                    paragraph(
                        nodes.strong("", row["id"]),
                        " · ",
                        place(row["id"], row["where"], "section"),
                    ),
                    paragraph(row["statement"]),
                ],
                paragraph(chip(largest_verdict(row))),
                paragraph(row["reported"]),
                list(_results(row)) or paragraph("–"),
            )
            for row in self.chosen()
        ]
        titles = ["claim", "verdict", "reported", "here, and its control"]
        made = table(titles, rows, (28, 17, 19, 36))
        made["classes"] += ["claims-table"]
        return [made]


def _results(row: Row) -> Iterator[nodes.Node]:
    """Yield what came out at each scale, with its control, record and code."""
    for scale in reversed(SCALES):
        if scale not in row["runs"]:
            continue
        run = row["runs"][scale]
        record = f"../records/{scale}/{row['id']}.json"
        yield paragraph(
            nodes.strong("", f"{scale}: "),
            f"{run['measured']}. ",
            nodes.emphasis("", "Control: "),
            f"{run['control']}. ",
            nodes.reference("", "record", refuri=record),
            " · ",
            place(row["id"], "code", "cell"),
        )


class ErrataList(OfPapers):
    """What a paper or a released script has, and what is right."""

    def run(self) -> list[nodes.Node]:
        made: list[nodes.Node] = []
        for row in self.chosen():
            if row["id"].startswith("E"):
                made += self._entry(row)
        return made or [paragraph("None so far.")]

    def _entry(self, row: Row) -> list[nodes.Node]:
        head = paragraph(
            nodes.strong("", f"{row['id']} · {row['where']} "),
            chip(largest_verdict(row)),
            classes=["erratum-head"],
        )
        shown = list(_results(row)) or [
            paragraph("Found by reading; no cell shows it yet.")
        ]
        parts = (
            ("As published", [paragraph(row["reported"])]),
            ("Correct", [paragraph(row["statement"])]),
            ("Shown by", shown),
        )
        entries = [
            nodes.definition_list_item(
                "", nodes.term("", name), nodes.definition("", *body)
            )
            for name, body in parts
        ]
        return [head, nodes.definition_list("", *entries, classes=["erratum"])]


class ClaimsSummary(SphinxDirective):
    """Verdicts counted for each paper."""

    def run(self) -> list[nodes.Node]:
        app = self.env.app
        text = markdown_summary(book_root(app), claim_rows(app))
        made = self.parse_text_to_nodes(text)
        for node in made:
            node["classes"] += ["claims-summary"]
        return made


class ClaimsChart(SphinxDirective):
    """Verdicts of each paper as bars."""

    def run(self) -> list[nodes.Node]:
        drawing = verdict_chart(claim_rows(self.env.app))
        return [
            nodes.raw("", f'<div class="drawing-frame">{drawing}</div>', format="html")
        ]


class RunStatus(SphinxDirective):
    """Scale, date, duration, device, versions and commit of the runs shown."""

    def run(self) -> list[nodes.Node]:
        app = self.env.app
        rows, times = [], []
        for chapter in all_chapters(book_root(app)):
            nb = notebooks.read(Path(app.srcdir, "book", f"{chapter.name}.ipynb"))
            about = nb.metadata.get("agop", {})
            title = nb.cells[0].source.splitlines()[0].lstrip("# ")
            link = nodes.reference("", title, refuri=f"{chapter.name}.html")
            packages = about.get("versions", {})
            told = ", ".join(f"{name} {number}" for name, number in packages.items())
            rows.append(
                [
                    paragraph(link),
                    *(paragraph(str(about.get(key, "–"))) for key in ("scale", "date")),
                    paragraph(in_words(about.get("seconds"))),
                    paragraph(str(about.get("device", "–"))),
                    paragraph(memory_in_words(about.get("memory", {}))),
                    paragraph(nodes.literal("", str(about.get("commit", "–")))),
                    paragraph(told or "–"),
                ]
            )
            taken = durations(chapter)
            cells = [paragraph(in_words(taken.get(scale))) for scale in SCALES]
            times.append([paragraph(link.deepcopy()), *cells])
        head = ["chapter", "scale", "date", "duration", "device", "peak memory"]
        runs = table([*head, "commit", "versions"], rows)
        runs["classes"] += ["run-status"]
        return [
            nodes.rubric("", "The runs that the pages show"),
            runs,
            nodes.rubric("", "Duration at each scale"),
            table(["chapter", *SCALES], times),
        ]


def memory_in_words(memory: dict[str, float]) -> str:
    """Return the largest memory a run held, of the processor and of a GPU."""
    names = {"cpu_mib": "", "gpu_mib": " on the GPU"}
    told = [
        f"{memory[key] / 1024:.1f} GiB{name}"
        for key, name in names.items()
        if key in memory
    ]
    return ", ".join(told) or "not recorded"


# --- Where a claim is tested ----------------------------------------------------------


def mark_claims(app: Sphinx, doctree: nodes.document) -> None:
    """Give every cell that tests a claim an address, and note its section."""
    places = _places(app.env)
    for cell in doctree.findall(nodes.container):
        if "cell" not in cell["classes"]:
            continue
        _, *outputs = list(cell.findall(nodes.literal_block)) or [None]
        for claim in _CLAIM.findall("\n".join(o.astext() for o in outputs)):
            parent = cell.parent
            while parent is not None and not isinstance(parent, nodes.section):
                parent = parent.parent
            cell["ids"].append(f"claim-{claim}")
            section = parent["ids"][0] if parent is not None else ""
            places[claim] = (app.env.docname, section)


def _places(env: Any) -> dict[str, tuple[str, str]]:
    if not hasattr(env, "agop_places"):
        env.agop_places = {}
    found: dict[str, tuple[str, str]] = env.agop_places
    return found


def merge_places(app: Sphinx, env: Any, docnames: Any, other: Any) -> None:
    """Bring together what parallel readers found."""
    _places(env).update(_places(other))


def resolve_places(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn links to claims into links to chapters, or into plain words."""
    for link in list(doctree.findall(nodes.reference)):
        claim = link.get("agop_claim")
        if not claim:
            continue
        if claim not in _places(app.env):
            link.replace_self(nodes.Text(link.astext()))
            continue
        page, section = _places(app.env)[claim]
        anchor = section if link["agop_what"] == "section" else f"claim-{claim}"
        target = app.builder.get_relative_uri(docname, page)
        link["refuri"] = f"{target}#{anchor}"
        link["internal"] = True


def add_filter(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Load the filter's script where there is something to filter."""
    if page == "book/scoreboard":
        app.add_js_file("scoreboard.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("claims-table", ClaimsTable)
    app.add_directive("claims-summary", ClaimsSummary)
    app.add_directive("claims-chart", ClaimsChart)
    app.add_directive("errata-list", ErrataList)
    app.add_directive("run-status", RunStatus)
    app.connect("doctree-read", mark_claims)
    app.connect("env-merge-info", merge_places)
    app.connect("doctree-resolved", resolve_places)
    app.connect("html-page-context", add_filter, priority=450)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
