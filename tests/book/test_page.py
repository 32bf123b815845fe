import json

import numpy as np
import pytest

from agop.book import Page
from agop.book.layout import BookError, find_root
from agop.book.ledger import load_ledger, verdict
from agop.book.page import _rounded
from agop.book.records import read_records, same_measurement


@pytest.fixture
def page(tiny_book, monkeypatch):
    monkeypatch.setenv("AGOP_RECORDS", str(tiny_book / "records"))
    return Page("one", scale="ci", seed=7)


def claim(page, **changes):
    """Make the claim and return the verdict on record."""
    call = {"measured": "3", "control": "-1", "holds": True, "control_holds": False}
    page.claim("R01", **{**call, **changes})
    return read_records(page._records)["R01"]["verdict"]


@pytest.mark.parametrize(
    ("holds", "control_holds", "more", "expected"),
    [
        (True, False, {}, "reproduced"),
        (False, False, {}, "not reproduced"),
        (False, False, {"direction": True}, "trend only"),
        (True, False, {"erratum": True}, "erratum"),
        (True, True, {}, "uninformative"),
        (False, True, {"direction": True}, "uninformative"),
    ],
)
def test_verdicts(page, holds, control_holds, more, expected):
    assert claim(page, holds=holds, control_holds=control_holds, **more) == expected
    assert verdict(holds, control_holds, **more) == expected


def test_the_majority_of_seeds_decides(page, capsys):
    assert claim(page, holds=[True, True, False]) == "reproduced"
    assert "the rule holds for 2 of 3 seeds" in capsys.readouterr().out
    assert claim(page, holds=[True, False]) == "not reproduced"
    assert claim(page, holds=np.array([True, True, True]).tolist()) == "reproduced"
    assert "the rule holds for all of 3 seeds" in capsys.readouterr().out


def test_the_block_shows_both_numbers_and_fits_the_page(page, capsys):
    claim(page, measured="a long story " * 12)
    text = capsys.readouterr().out
    assert text.startswith("R01 · Fig. 1 · Someone 2024\n  The sum is positive.\n")
    assert "control    -1; fails, as it must" in text
    assert max(map(len, text.splitlines())) <= 79


def test_the_record_holds_what_the_block_shows(page, tiny_book):
    claim(page, values={"total": 3.14159, "each": np.array([1.23456, 2.0])})
    record = read_records(tiny_book / "records")["R01"]
    assert record["verdict"] == "reproduced"
    assert record["values"] == {"total": 3.14, "each": [1.23, 2.0]}
    assert record["provenance"]["seed"] == 7
    assert json.loads((tiny_book / "records" / "page.json").read_text())["versions"]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"control": " "}, "control is empty"),
        ({"measured": ""}, "measured is empty"),
        ({"holds": []}, "holds is empty"),
    ],
)
def test_no_claim_without_measurement_and_control(page, changes, match):
    with pytest.raises(ValueError, match=match):
        claim(page, **changes)


def test_claims_belong_to_one_chapter(page):
    with pytest.raises(ValueError, match="R02 to the chapter 'two', not to 'one'"):
        page.claim("R02", measured="1", control="0", holds=True, control_holds=False)
    with pytest.raises(KeyError, match="no claim 'X99'"):
        page.claim("X99", measured="1", control="0", holds=True, control_holds=False)


def test_unknown_scale_is_refused(tiny_book):
    with pytest.raises(ValueError, match="scale must be one of"):
        Page("one", scale="huge", seed=0)


@pytest.mark.parametrize(
    ("before", "after", "match"),
    [
        ('id = "R02"', 'id = "R01"', "R01 stands there twice"),
        ('kind = "trend"', 'kind = "guess"', "R02: kind 'guess' is none of"),
        ('where = "Fig. 2"', "", "R02: .*where"),
        ('paper = "someone2024"', 'paper = "nobody"', "R01: 'nobody'"),
    ],
)
def test_a_broken_ledger_is_named(tiny_book, before, after, match):
    path = tiny_book / "book" / "claims.toml"
    path.write_text(path.read_text().replace(before, after))
    load_ledger.cache_clear()
    with pytest.raises(BookError, match=match):
        load_ledger(tiny_book)


def test_the_root_is_found_from_any_folder(tiny_book, monkeypatch):
    assert find_root(tiny_book / "book" / "params") == tiny_book


def test_rounding_keeps_what_is_no_fraction():
    assert _rounded({"n": 123456, "ok": True, "x": 0.00012345}) == {
        "n": 123456,
        "ok": True,
        "x": 0.000123,
    }


def test_benchmarks_are_read_from_their_records(page, tiny_book):
    with pytest.raises(FileNotFoundError, match=r"bench_speed\.py --output"):
        page.benchmark("speed")
    folder = tiny_book / "data" / "results" / "benchmarks"
    folder.mkdir(parents=True)
    (folder / "speed.json").write_text('{"ratio": 2.5}')
    assert page.benchmark("speed") == {"ratio": 2.5}


def test_what_counts_as_the_same_measurement():
    one = {
        "measured": "below 1e-12",
        "values": {"gap": 2e-15},
        "provenance": {"seed": 0},
    }
    rounding = {**one, "values": {"gap": 5e-15}}
    later = {**one, "provenance": {"seed": 0, "date": "2000-01-01", "threads": 2}}
    assert same_measurement(one, rounding)
    assert same_measurement(one, later)
    assert not same_measurement(one, {**one, "measured": "below 1e-3"})
    assert not same_measurement(one, {**one, "provenance": {"seed": 1}})


def test_sweeps_are_read_from_their_records(page, tiny_book):
    with pytest.raises(FileNotFoundError, match="agop sweep table"):
        page.sweep("uci")
    folder = tiny_book / "data" / "results" / "sweeps"
    folder.mkdir(parents=True)
    (folder / "uci.csv").write_text("table,accuracy\niris,0.9\n")
    (folder / "uci.json").write_text('{"name": "sweep uci"}')
    rows, found = page.sweep("uci")
    assert rows == [{"table": "iris", "accuracy": "0.9"}]
    assert found == {"name": "sweep uci"}
