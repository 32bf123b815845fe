"""``agop sweep``: what it refuses, what it writes."""

import csv
import json

import pytest

from agop.cli import main


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "sweep.jsonl"
    assert main(command(path)) == 0
    return path


def command(path, *more):
    options = ("--tables", "iris", "--methods", "laplace", "k-nn", "--workers", "0")
    return ["sweep", "run", str(path), *options, *more]


def test_an_existing_journal_is_not_overwritten_unasked(journal, capsys):
    before = journal.read_bytes()
    assert main(command(journal)) == 2
    assert "--resume" in capsys.readouterr().err
    assert main(command(journal, "--resume")) == 0
    assert "10 tasks done, 0 of them failed" in capsys.readouterr().out
    assert journal.read_bytes() == before


def test_the_table_has_a_provenance_beside_it(journal, tmp_path):
    output = tmp_path / "deep" / "small.csv"
    assert main(["sweep", "table", str(journal), "--output", str(output)]) == 0
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["table"], row["method"]) for row in rows] == [
        ("iris", "k-nn"),
        ("iris", "laplace"),
    ]
    assert len(rows[0]["parts"].split()) == 4
    found = json.loads(output.with_suffix(".json").read_text())
    assert found["name"] == "sweep small, 1 tables"
    assert found["methods"]["laplace"]["tasks"] == 5
    assert found["failed"] == {}
    assert set(found["versions"]) >= {"python", "torch", "scikit-learn"}


def test_the_table_goes_to_the_screen(journal, capsys):
    assert main(["sweep", "table", str(journal)]) == 0
    assert capsys.readouterr().out.startswith("table,method,accuracy")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table", "nowhere.jsonl"], "no journal"),
        (["run", "x.jsonl", "--methods", "oracle"], "method must be one of"),
        (["run", "x.jsonl", "--tables", "no-such-table"], "no-such-table"),
    ],
)
def test_mistakes_are_named(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_failed_task_is_reported(tmp_path, capsys, monkeypatch):
    from agop.tabular import kernel_methods

    def fail(*_):
        raise FloatingPointError("no digits left")

    monkeypatch.setattr(kernel_methods.Laplace, "candidates", fail)
    assert main(command(tmp_path / "sweep.jsonl")) == 0
    streams = capsys.readouterr()
    assert "iris laplace select: FloatingPointError: no digits left" in streams.err
    assert "1 of them failed" in streams.out


def test_methods_are_listed(capsys):
    assert main(["sweep", "methods"]) == 0
    assert "rfm-reused" in capsys.readouterr().out


def test_the_second_benchmark_writes_rows_and_provenance(tmp_path, capsys):
    output = tmp_path / "second.csv"
    options = ("--tables", "diabetes", "absent", "--methods", "laplace")
    arguments = ("--rows", "60", "--splits", "2", "--output", str(output))
    path = str(tmp_path / "second.jsonl")
    assert main(["sweep", "second", path, *options, *arguments]) == 0
    with output.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["table"], row["train"], row["splits"]) == ("diabetes", "60", "2")
    found = json.loads(output.with_suffix(".json").read_text())
    assert found["name"] == "sweep second, 1 tables"
    assert found["failed"] == ["absent laplace"]
    assert "absent laplace 0: ValueError" in capsys.readouterr().err
