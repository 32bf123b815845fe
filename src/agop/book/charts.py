"""Drawings of the site that need no plotting library: SVG, written by hand.

Text takes the colour of the page, so that a drawing reads in light and in dark mode.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from agop.book.ledger import (
    ERRATUM,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    TREND_ONLY,
    UNINFORMATIVE,
    VERDICTS,
)
from agop.book.scoreboard import largest_verdict, summary_line

# Okabe and Ito's hues, apart for colour-blind readers; ink on each at 4.5 : 1 or more.
FILL = {
    REPRODUCED: "#0072B2",
    TREND_ONLY: "#56B4E9",
    NOT_REPRODUCED: "#D55E00",
    ERRATUM: "#E69F00",
    UNINFORMATIVE: "#CC79A7",
    NOT_RUN: "#d9d9d9",
}
INK = {**dict.fromkeys(VERDICTS, "#111"), REPRODUCED: "#fff"}
WIDTH, LEFT, BAR, GAP = 720, 190, 30, 14
FEW = 10  # papers with fewer claims share one bar


def by_paper(rows: Iterable[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Count verdicts for each paper; those with few claims together."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row["paper"], Counter())[largest_verdict(row)] += 1
    large = {name: c for name, c in counts.items() if c.total() >= FEW}
    small = [c for name, c in counts.items() if c.total() < FEW]
    if small:
        large["Follow-ups"] = sum(small, Counter())
    return large


def verdict_chart(rows: Sequence[dict[str, Any]]) -> str:
    """Return stacked bars of verdicts, one bar a paper, as an SVG element."""
    counts = by_paper(rows)
    longest = max(count.total() for count in counts.values())
    scale = (WIDTH - LEFT - 40) / longest
    used = [name for name in VERDICTS if any(count[name] for count in counts.values())]
    parts, top = _legend(used)
    for paper, count in counts.items():
        middle = top + BAR / 2 + 5
        parts.append(
            f'<text x="{LEFT - 10}" y="{middle:g}" text-anchor="end">'
            f"{escape(paper)}</text>"
        )
        x = float(LEFT)
        for name in used:
            width = count[name] * scale
            if not width:
                continue
            parts.append(
                f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{BAR}" '
                f'fill="{FILL[name]}" stroke="#fff"/>'
            )
            if width > 8 * len(str(count[name])) + 2:
                parts.append(
                    f'<text x="{x + width / 2:.1f}" y="{middle:g}" fill="{INK[name]}" '
                    f'text-anchor="middle">{count[name]}</text>'
                )
            x += width
        top += BAR + GAP
    told = "; ".join(
        f"{paper}: "
        + ", ".join(f"{count[name]} {name}" for name in used if count[name])
        for paper, count in counts.items()
    )
    return (
        f'<svg class="drawing" viewBox="0 0 {WIDTH} {top}" role="img" '
        f'aria-label="{escape(f"{summary_line(list(rows))}. By paper: {told}.")}" '
        'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="14" '
        f'fill="currentColor">{"".join(parts)}</svg>'
    )


def _legend(names: Sequence[str]) -> tuple[list[str], int]:
    """Return the legend's elements and where it ends."""
    parts, x = [], 0
    for name in names:
        parts.append(
            f'<rect x="{x}" y="2" width="14" height="14" fill="{FILL[name]}"/>'
            f'<text x="{x + 20}" y="14">{escape(name)}</text>'
        )
        x += 36 + 7 * len(name)
    return parts, 34
