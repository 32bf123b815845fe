"""The scoreboard's drawing says what the records say."""

import re
from xml.etree import ElementTree

from agop.book.charts import by_paper, verdict_chart


def row(paper, verdict):
    runs = {"ci": {"verdict": verdict}} if verdict else {}
    return {"paper": paper, "runs": runs}


ROWS = (
    [row("A & B 2024", "reproduced")] * 12
    + [row("A & B 2024", None)] * 3
    + [row("C 2025", "erratum"), row("D 2026", "trend only")]
)


def test_papers_with_few_claims_share_a_bar():
    counts = by_paper(ROWS)
    assert list(counts) == ["A & B 2024", "Follow-ups"]
    assert counts["A & B 2024"] == {"reproduced": 12, "not run here": 3}
    assert counts["Follow-ups"] == {"erratum": 1, "trend only": 1}


def test_bars_are_as_long_as_their_counts():
    svg = ElementTree.fromstring(verdict_chart(ROWS))
    bars = [e for e in svg if e.tag.endswith("rect") and e.get("height") == "30"]
    widths = [float(bar.get("width")) for bar in bars]
    unit = widths[0] / 12
    assert [round(w / unit, 1) for w in widths] == [12, 3, 1, 1]


def test_the_drawing_is_told_to_those_who_do_not_see_it():
    svg = ElementTree.fromstring(verdict_chart(ROWS))
    assert svg.get("role") == "img"
    label = svg.get("aria-label")
    assert "17 claims: 12 reproduced" in label
    assert "A & B 2024: 12 reproduced, 3 not run here" in label
    assert not re.search("NaN|inf", verdict_chart(ROWS))
