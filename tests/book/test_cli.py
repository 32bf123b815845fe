import json
import subprocess
import sys

import pytest

from agop.cli import main


def test_unknown_chapter_is_refused_with_the_right_names(tiny_book, capsys):
    assert main(["book", "run", "ones"]) == 1
    error = capsys.readouterr().err
    assert error == "agop book run: no such chapter: ones; _toc.yml lists one\n"


def test_wrong_parameter_is_refused_before_anything_runs(tiny_book, capsys):
    (tiny_book / "book/params/ci/one.yml").write_text("m: 3\n")
    assert main(["book", "run"]) == 1
    assert (
        "unknown parameters ['m']; the chapter has ['n', 's" in capsys.readouterr().err
    )


def test_check_lists_what_is_missing(tiny_book, capsys):
    assert main(["book", "check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("book/one.ipynb is missing; run `agop book publish")
    assert lines[1].startswith("tests/reference/one.ipynb is missing; run `agop book g")
    assert "README.md: a generated part is stale" in lines[2]


def test_status_as_json(tiny_book, capsys):
    assert main(["book", "status", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    keys = {"id", "paper", "where", "statement", "reported", "chapter", "runs"}
    assert [row["id"] for row in rows] == ["R01", "R02"]
    assert set(rows[0]) == keys


def test_status_as_text(tiny_book, capsys):
    assert main(["book", "status"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["R01", "Fig.", "1", "not", "run", "here"]
    assert out.endswith("2 claims: 2 not run here\n")


def test_strays_are_found(tiny_book, capsys):
    (tiny_book / "book/params/ci/old.yml").write_text("")
    main(["book", "check"])
    assert "book/params/ci/old.yml belongs to no chapter" in capsys.readouterr().out


def test_render_needs_runs(tiny_book, capsys):
    (tiny_book / "_config.yml").write_text("title: x\n")
    assert main(["book", "render"]) == 1
    assert "book/one.ipynb is missing: nothing to render" in capsys.readouterr().err


def test_outside_a_book(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("agop.book.layout.__file__", str(tmp_path / "layout.py"))
    monkeypatch.chdir(tmp_path)
    assert main(["book", "status"]) == 1
    assert "run this from a clone" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["book"], ["nonsense"]])
def test_usage_errors(argv):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2


def test_a_reader_that_stops_early_is_no_error(tiny_book):
    command = f"{sys.executable} -m agop.cli book status --json | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
