"""The registry of data sets: what exists, where, under which terms.

It is read from ``registry.toml`` beside this module.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class File:
    """A file of a data set.

    Parameters
    ----------
    name : its name in the cache, or its path below the local mirror.
    checksum : ``"md5:…"`` or ``"sha256:…"``; None where nobody published one.
    size : bytes, None if unknown.
    urls : addresses, tried in order; empty for files of a mirror.
    """

    name: str
    checksum: str | None = None
    size: int | None = None
    urls: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A data set of the registry.

    Parameters
    ----------
    name, title, licence, citation, homepage : text.
    rows : "60000 + 10000", training and official test rows.
    official : the files that its authors publish.
    mirror : the files that a local mirror (``AGOP_DATA``) holds instead.
    lossy : whether the files are lossy copies.
    notes : known faults, and what the loader does about them.
    reading : what the reader of a table must know (see ``tables.py``).
    """

    name: str
    title: str
    rows: str
    licence: str
    citation: str
    homepage: str = ""
    official: tuple[File, ...] = ()
    mirror: tuple[File, ...] = ()
    lossy: bool = False
    notes: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)

    def file(self, name: str) -> File:
        """Return the official or mirrored file of that name."""
        return next(f for f in (*self.official, *self.mirror) if f.name == name)


def names() -> tuple[str, ...]:
    """Return the names of all entries.

    >>> "mnist" in names()
    True
    """
    return tuple(_entries())


def entry(name: str) -> Entry:
    """Return one entry.

    Raises
    ------
    ValueError
        If there is no such entry; suggests names that look alike.

    >>> entry("mnist").rows
    '60000 + 10000'
    """
    entries = _entries()
    if name not in entries:
        raise ValueError(unknown("data set", name, entries))
    return entries[name]


def unknown(what: str, name: str, known: Mapping[str, Any]) -> str:
    """Word the message for a name that does not exist."""
    alike = get_close_matches(name, known, n=3) or sorted(known)
    return f"no {what} is named {name!r}; there is {', '.join(alike)}"


@cache
def _entries() -> dict[str, Entry]:
    text = (files("agop.datasets") / "registry.toml").read_text(encoding="utf-8")
    return {name: _entry(name, table) for name, table in tomllib.loads(text).items()}


def _entry(name: str, table: dict[str, Any]) -> Entry:
    table["official"] = _files(table.get("official", []))
    table["mirror"] = _files(table.get("mirror", []))
    table["notes"] = tuple(table.get("notes", []))
    return Entry(name=name, **table)


def _files(tables: list[dict[str, Any]]) -> tuple[File, ...]:
    return tuple(File(**{**t, "urls": tuple(t.get("urls", ()))}) for t in tables)
