"""What Sphinx numbered and named: labels, for texts that leave Sphinx behind.

The book's Sphinx extension writes them after each rendering, so that a downloaded
notebook says "Theorem 3.1" where the page does.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "labels.json"
# Sphinx's names of the things it counts, and how the book calls them.
KINDS = {"displaymath": "", "figure": "Fig."}


@dataclass(frozen=True)
class Label:
    """One thing that a text can refer to."""

    kind: str  # "theorem", "figure", "displaymath", "section", "page", "term"
    text: str  # its title; empty for what only has a number
    number: str  # "3.1"; empty for what has none
    page: str  # "book/grokking"
    anchor: str

    @property
    def shown(self) -> str:
        """How a text refers to it.

        >>> Label("theorem", "", "3.1", "book/depth", "thm-depth").shown
        'Theorem 3.1'
        >>> Label("displaymath", "", "3.1", "book/depth", "equation-eq").shown
        '(3.1)'
        """
        if self.kind == "displaymath":
            return f"({self.number})"
        if not self.number or self.kind == "page":
            return self.text
        return f"{KINDS.get(self.kind, self.kind.capitalize())} {self.number}"


@dataclass
class Labels:
    """All labels of the book, by name; and numbers in order, for what has no name."""

    named: dict[str, Label] = field(default_factory=dict)
    ordered: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def find(self, name: str) -> Label:
        """Return a label; KeyError if the book has none of this name."""
        return self.named[name.strip()]


def collect(env: Any) -> list[dict[str, str]]:
    """Return the labels that a Sphinx environment holds, ready for JSON."""
    rows: list[dict[str, str]] = []

    def add(name: str, kind: str, text: str, number: Any, page: str, to: str) -> None:
        shown = ".".join(map(str, number or ()))
        label = Label(kind, text, shown, page, to)
        rows.append({"name": name, **vars(label)})

    for page, title in sorted(env.titles.items()):
        number = env.toc_secnumbers.get(page, {}).get("")
        add(f"page:{page}", "page", title.astext(), number, page, "")
    standard = env.domaindata["std"]
    for name, (page, anchor, title) in sorted(standard["labels"].items()):
        if page.startswith("book/"):
            add(name, "section", str(title), None, page, anchor)
    for (kind, name), (page, anchor) in sorted(standard["objects"].items()):
        if kind == "term":
            add(f"term:{name}", "term", name, None, page, anchor)
    for page, kinds in sorted(env.toc_fignumbers.items()):
        for kind, numbers in kinds.items():
            for anchor, number in numbers.items():
                name = anchor.removeprefix("equation-")
                add(name, kind, "", number, page, anchor)
    return rows


def read(path: Path) -> Labels:
    """Read what :func:`collect` returned, from a file."""
    labels = Labels()
    for row in json.loads(path.read_text(encoding="utf-8")):
        name = row.pop("name")
        label = Label(**row)
        labels.named[name] = label  # a number takes the place of a bare title
        labels.ordered.setdefault((label.page, label.kind), []).append(label.number)
    return labels
