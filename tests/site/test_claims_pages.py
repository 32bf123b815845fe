"""Scoreboard, errata and status: every row of the ledger, and a filter that filters."""

import json
import re

import pytest

from agop.book.chapters import all_chapters
from agop.book.ledger import load_ledger
from agop.book.records import all_runs


@pytest.fixture
def scoreboard(visit):
    return visit("book/scoreboard.html").page


def visible(page):
    return page.locator("table.claims-table tbody tr:visible").count()


def test_every_claim_has_a_row_with_a_link_to_where_it_is_tested(scoreboard, root):
    rows = scoreboard.eval_on_selector_all(
        "table.claims-table tbody tr",
        """all => all.map(row => ({
            id: row.querySelector("strong").textContent,
            links: [...row.querySelectorAll("a")].map(a => a.getAttribute("href")),
        }))""",
    )
    assert {row["id"] for row in rows} == set(load_ledger(root))
    runs = all_runs(root)
    for row in rows:
        if row["id"] not in runs:
            continue
        links = " ".join(row["links"])
        assert f"#claim-{row['id']}" in links, row
        for scale in runs[row["id"]]:
            assert f"records/{scale}/{row['id']}.json" in links, row


def test_records_are_served_as_they_are_committed(html, root):
    name, scales = next(iter(all_runs(root).items()))
    for scale, record in scales.items():
        served = (html / "records" / scale / f"{name}.json").read_text()
        assert json.loads(served) == record


def test_the_filter_filters_by_paper_verdict_and_words(scoreboard):
    total = visible(scoreboard)
    scoreboard.get_by_role("combobox", name="Verdict").select_option("erratum")
    errata = visible(scoreboard)
    assert 0 < errata < total
    scoreboard.get_by_role("combobox", name="Paper").select_option(
        "Tansley, Massart, Cartis"
    )
    assert visible(scoreboard) == 0
    assert not scoreboard.get_by_role("heading", name="Cha, Beagle").is_visible()
    scoreboard.get_by_role("combobox", name="Verdict").select_option("all")
    of_paper = visible(scoreboard)
    assert scoreboard.get_by_role("status").text_content().startswith(f"{of_paper} of")
    scoreboard.get_by_role("searchbox", name="Words").fill("imbalance")
    assert 0 < visible(scoreboard) < of_paper


def test_without_a_script_all_claims_are_there(browser, address, root):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/book/scoreboard.html")
    assert page.locator("form.claims-filter").count() == 0
    assert visible(page) == len(load_ledger(root))
    context.close()


def test_every_erratum_is_listed(visit, root):
    text = visit("book/errata.html").page.locator("main").inner_text()
    for claim in load_ledger(root).values():
        assert (f"{claim.id} ·" in text) == claim.id.startswith("E"), claim.id


def test_the_status_of_every_chapter_is_told(visit, root):
    page = visit("book/status.html").page
    rows = page.locator("table.run-status tbody tr").all_inner_texts()
    chapters = all_chapters(root)
    assert len(rows) == len(chapters)
    for row in rows:
        assert re.search(r"\d{4}-\d\d-\d\d", row), row
        assert re.search(r"torch \d", row), row
        assert re.search(r"\b(ci|laptop|paper)\b", row), row
