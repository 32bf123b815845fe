"""A journal is whole whatever happened to its writer."""

import pytest

from agop.tabular.journal import Journal, read_records


def test_records_come_back_in_order(tmp_path):
    path = tmp_path / "deep" / "sweep.jsonl"
    with Journal(path) as journal:
        for k in range(3):
            journal.append({"k": k, "name": "ä"})
    assert [r["k"] for r in read_records(path)] == [0, 1, 2]
    with Journal(path) as journal:
        journal.append({"k": 3})
    assert [r["k"] for r in read_records(path)] == [0, 1, 2, 3]


def test_every_possible_cut_leaves_whole_records(tmp_path):
    path = tmp_path / "sweep.jsonl"
    with Journal(path) as journal:
        journal.append({"k": 0})
        journal.append({"k": 1})
    content = path.read_bytes()
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        whole = content[:length].count(b"\n")
        assert len(list(read_records(path))) == whole
        with Journal(path) as journal:
            journal.append({"k": "new"})
        found = [r["k"] for r in read_records(path)]
        assert found == [*range(whole), "new"]


def test_two_writers_are_refused(tmp_path):
    path = tmp_path / "sweep.jsonl"
    with (
        Journal(path),
        pytest.raises(RuntimeError, match="another sweep"),
        Journal(path),
    ):
        pass


def test_a_record_is_there_before_append_returns(tmp_path):
    path = tmp_path / "sweep.jsonl"
    with Journal(path) as journal:
        journal.append({"k": 0})
        assert len(list(read_records(path))) == 1


def test_no_file_is_no_record(tmp_path):
    assert list(read_records(tmp_path / "none.jsonl")) == []
