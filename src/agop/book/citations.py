"""Citations in the book's author-year style, for texts outside Sphinx."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pybtex.database import parse_file
from pybtex.richtext import Text


def read_references(path: Path) -> Mapping[str, Any]:
    """Return the entries of ``references.bib`` by key."""
    entries: Mapping[str, Any] = parse_file(str(path)).entries
    return entries


def _plain(text: str) -> str:
    return str(Text.from_latex(text))


def authors(entry: Any) -> list[str]:
    """Return the authors' last names."""
    people = entry.persons.get("author") or entry.persons.get("editor") or ()
    return [
        _plain(" ".join([*person.prelast_names, *person.last_names]))
        for person in people
    ]


def short_authors(entry: Any) -> str:
    """Return "A", "A and B" or "A et al."."""
    names = authors(entry)
    if len(names) > 2:
        return f"{names[0]} et al."
    return " and ".join(names)


def link(entry: Any) -> str:
    """Return where a work can be read: its DOI, arXiv number or address, or ""."""
    fields = entry.fields
    if "doi" in fields:
        return f"https://doi.org/{fields['doi']}"
    if fields.get("archiveprefix", "").lower() == "arxiv":
        return f"https://arxiv.org/abs/{fields['eprint']}"
    return str(fields.get("url", ""))


def cite(references: Mapping[str, Any], keys: Iterable[str], style: str) -> str:
    """Return a citation, in the text ("t") or in brackets ("p")."""
    told = []
    for key in keys:
        entry = references[key.strip()]
        who, year = short_authors(entry), entry.fields["year"]
        text = f"{who} ({year})" if style == "t" else f"{who}, {year}"
        told.append(f"[{text}]({link(entry)})" if link(entry) else text)
    return ", ".join(told) if style == "t" else f"({'; '.join(told)})"


def full_entry(entry: Any) -> str:
    """Return one line of a list of references."""
    fields = entry.fields
    where = fields.get("journal") or fields.get("booktitle") or ""
    people = entry.persons.get("author") or entry.persons.get("editor") or ()
    parts = [
        ", ".join(_plain(str(Text.from_latex(_name(p)))) for p in people),
        f"*{_plain(fields['title'])}*",
        _plain(where),
        fields["year"],
    ]
    text = ". ".join(part.rstrip(".") for part in parts if part) + "."
    return f"{text} <{link(entry)}>" if link(entry) else text


def _name(person: Any) -> str:
    given = [*person.first_names, *person.middle_names]
    return " ".join([*given, *person.prelast_names, *person.last_names])
