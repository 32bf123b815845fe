"""Tables from a made-up mirror."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from agop.datasets import DatasetError, load, load_table, registry, table_names

from .layouts import md5


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Put a small file where a table of the mirror belongs."""

    def put(name, text):
        entries = dict(registry._entries())
        old = entries[f"table/{name}"]
        data = gzip.compress(text.encode())
        file = replace(old.mirror[0], checksum=md5(data))
        entries[f"table/{name}"] = replace(old, mirror=(file,))
        (tmp_path / "tabular").mkdir()
        (tmp_path / file.name).write_bytes(data)
        monkeypatch.setattr(registry, "_entries", lambda: entries)
        monkeypatch.setenv("AGOP_DATA", str(tmp_path))

    return put


def test_numbers_and_a_real_target(table):
    table("cpu_act", "lread\ttarget\tlwrite\n1.5\t90\t2\n3\t91.5\t4\n")
    data = load_table("cpu_act")
    assert data.X.tolist() == [[1.5, 2], [3, 4]]
    assert data.y.tolist() == [90, 91.5]
    assert data.feature_names == ("lread", "lwrite")
    assert (data.task, data.categorical) == ("regression", ())


def test_categories_are_coded_in_alphabetical_order(table):
    rows = ['0.2,"Ideal","E","SI2",326', '0.3,"Fair","D","SI2",327']
    table("diamonds", "\n".join(['"carat","cut","color","clarity","price"', *rows]))
    data = load_table("diamonds")
    assert data.X.tolist() == [[0.2, 1, 1, 0], [0.3, 0, 0, 0]]
    assert data.categorical == (1, 2, 3)
    assert data.categories == {1: ("Fair", "Ideal"), 2: ("D", "E"), 3: ("SI2",)}
    assert data.y.tolist() == [326, 327]


def test_classes(table):
    table("phoneme", "Aa\ttarget\n1\t1\n2\t0\n3\t1\n")
    data = load("table/phoneme")
    assert data.y.tolist() == [1, 0, 1]
    assert data.y.dtype == np.int64
    assert data.class_names == ("0", "1")


def test_without_a_header_the_target_is_last(table):
    table("elevators", "1,2,3\n4,5,6\n")
    data = load_table("elevators")
    assert (data.X.tolist(), data.y.tolist()) == ([[1, 2], [4, 5]], [3, 6])


def test_spaces_between_columns(table):
    table("abalone", "M .4 .3 .1 .5 .2 .1 .1 15\nF .5 .3 .1 .5 .2 .1 .1 7\n")
    data = load_table("abalone")
    assert data.X[:, 0].tolist() == [1, 0]
    assert data.feature_names[:2] == ("sex", "length")
    assert data.y.tolist() == [15, 7]


def test_the_leak_of_the_bike_table_is_dropped(table):
    table("bike", ",".join(map(str, range(18))) + "\n")
    data = load_table("bike")
    assert data.X.tolist() == [list(range(15))]
    assert data.y.tolist() == [17]
    assert "Dropped the last two features" in data.provenance.notes[0]


def test_without_a_mirror_every_table_says_what_it_needs():
    for name in table_names():
        with pytest.raises(
            DatasetError, match=r"needs tabular/.* AGOP_DATA is not set"
        ):
            load_table(name)


def test_an_unknown_name_suggests_another():
    with pytest.raises(ValueError, match="'diamond'; there is diamonds"):
        load_table("diamond")
