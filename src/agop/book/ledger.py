"""The claims ledger: what each paper says, read from ``book/claims.toml``."""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from agop.book.layout import BookError

KINDS = ("identity", "bound", "trend", "value")
REPRODUCED, TREND_ONLY = "reproduced", "trend only"
NOT_REPRODUCED, ERRATUM = "not reproduced", "erratum"
UNINFORMATIVE, NOT_RUN = "uninformative", "not run here"
VERDICTS = (REPRODUCED, TREND_ONLY, NOT_REPRODUCED, ERRATUM, UNINFORMATIVE, NOT_RUN)


@dataclass(frozen=True)
class Paper:
    """One paper: its bibliography key and how the book names it."""

    key: str
    short: str
    title: str
    year: int
    arxiv: str = ""
    authors: str = ""


@dataclass(frozen=True)
class Claim:
    """One figure, table, theorem or quoted number of a paper."""

    id: str
    paper: Paper
    where: str
    statement: str
    reported: str
    kind: str
    chapter: str
    needs: tuple[str, ...] = field(default=())
    reported_source: str = ""


@cache
def load_ledger(root: Path) -> dict[str, Claim]:
    """Return every claim by its id, in the order of the file.

    Raises
    ------
    BookError
        If a row lacks a key, has one too many, repeats an id, or names an unknown
        paper or kind.
    """
    raw = tomllib.loads((root / "book" / "claims.toml").read_text(encoding="utf-8"))
    papers = {key: _paper(key, row) for key, row in raw["papers"].items()}
    claims: dict[str, Claim] = {}
    for row in raw["claim"]:
        claim = _claim(row, papers)
        if claim.id in claims:
            raise BookError(f"book/claims.toml: {claim.id} stands there twice")
        claims[claim.id] = claim
    return claims


def _paper(key: str, row: dict) -> Paper:
    try:
        return Paper(key=key, **row)
    except TypeError as error:
        raise BookError(f"book/claims.toml: papers.{key}: {error}") from None


def _claim(row: dict, papers: dict[str, Paper]) -> Claim:
    name = row.get("id", "a claim without id")
    try:
        paper = papers[row["paper"]]
        claim = Claim(**{**row, "paper": paper, "needs": tuple(row.get("needs", ()))})
    except (KeyError, TypeError) as error:
        raise BookError(f"book/claims.toml: {name}: {error}") from None
    if claim.kind not in KINDS:
        raise BookError(
            f"book/claims.toml: {name}: kind {claim.kind!r} is none of {KINDS}"
        )
    return claim


def verdict(
    holds: bool, control_holds: bool, *, direction: bool = False, erratum: bool = False
) -> str:
    """Return the verdict on one claim from what was measured.

    Parameters
    ----------
    holds : bool
        Whether the chapter's stated rule holds for the median seed.
    control_holds : bool
        Whether the same rule holds where it must not.
    direction : bool
        Whether at least the claimed direction holds.
    erratum : bool
        Whether the claim concerns a printed statement or released script that
        ``holds`` shows to need the correction given.

    Examples
    --------
    >>> verdict(True, False)
    'reproduced'
    >>> verdict(True, True)
    'uninformative'
    >>> verdict(False, False, direction=True)
    'trend only'
    """
    if control_holds:
        return UNINFORMATIVE
    if holds:
        return ERRATUM if erratum else REPRODUCED
    return TREND_ONLY if direction else NOT_REPRODUCED
