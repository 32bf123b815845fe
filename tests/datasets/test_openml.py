"""OpenML's layout, served on loopback through scikit-learn's own fetcher."""

import json

import numpy as np
import pytest
from sklearn.datasets import _openml

from agop.datasets import DatasetError, DownloadError
from agop.datasets import openml as module
from agop.datasets.openml import SUITES, load_openml, suite_tables

from .layouts import md5

ARFF = """@relation small
@attribute id numeric
@attribute size numeric
@attribute colour {red, blue, green}
@attribute label {yes, no}
@data
1,0.5,green,yes
2,1.5,red,no
3,2.5,blue,yes
"""


def feature(index, name, kind="numeric", target="false", identifier="false"):
    return {
        "index": str(index),
        "name": name,
        "data_type": kind,
        "is_target": target,
        "is_ignore": "false",
        "is_row_identifier": identifier,
        "number_of_missing_values": "0",
    }


@pytest.fixture
def site(server, monkeypatch):
    """A table of that layout under the number 7; returns what is served."""

    def put(arff=ARFF, target="label", checksum=None):
        kinds = {"id": "numeric", "size": "numeric", "colour": "nominal"}
        kinds["label"] = "nominal"
        features = [
            feature(i, n, k, str(n == target).lower(), str(n == "id").lower())
            for i, (n, k) in enumerate(kinds.items())
        ]
        about = {
            "id": "7",
            "name": "small",
            "version": "1",
            "description": "",
            "format": "ARFF",
            "status": "active",
            "url": f"{server.url}data/v1/download/7",
            "md5_checksum": checksum or md5(arff.encode()).removeprefix("md5:"),
        }
        quality = [{"name": "NumberOfInstances", "value": "3.0"}]
        serve("7", {"data_set_description": about})
        serve("features/7", {"data_features": {"feature": features}})
        serve("qualities/7", {"data_qualities": {"quality": quality}})
        server.files["data/v1/download/7"] = arff.encode()

    def serve(name, content):
        server.files[f"api/v1/json/data/{name}"] = json.dumps(content).encode()

    here = f"{server.url}api/v1/json"
    monkeypatch.setattr(_openml, "_DATA_INFO", here + "/data/{}")
    monkeypatch.setattr(_openml, "_DATA_FEATURES", here + "/data/features/{}")
    monkeypatch.setattr(_openml, "_DATA_QUALITIES", here + "/data/qualities/{}")
    monkeypatch.setattr(module, "_STUDY", here + "/study/{}")
    return put


def test_classes_categories_and_identifiers(site, server, cache):
    site()
    table = load_openml(7)
    assert table.feature_names == ("size", "colour")
    assert table.X.tolist() == [[0.5, 2], [1.5, 0], [2.5, 1]]
    assert table.categorical == (1,)
    assert table.categories == {1: ("red", "blue", "green")}
    assert table.y.tolist() == [1, 0, 1]
    assert table.class_names == ("no", "yes")
    assert table.task == "classification"
    assert table.provenance.source == "official download"
    assert table.provenance.files == {"small.arff": md5(ARFF.encode())}
    count = len(server.requests)
    load_openml(7)
    assert len(server.requests) == count  # the second time from the cache
    assert any(cache.rglob("*.gz"))


def test_a_number_as_the_target(site):
    site(target="size")
    table = load_openml(7)
    assert table.y.tolist() == [0.5, 1.5, 2.5]
    assert table.y.dtype == np.float64
    assert (table.task, table.class_names) == ("regression", ())
    assert table.feature_names == ("colour", "label")
    assert table.categorical == (0, 1)


@pytest.mark.filterwarnings("ignore:Invalid cache")
def test_damaged_bytes_are_refused(site):
    site(checksum="0" * 32)
    with pytest.raises(DownloadError, match=r"OpenML table 7: .*md5 checksum"):
        load_openml(7)


@pytest.mark.filterwarnings("ignore:A network error occurred")
def test_a_table_that_is_not_there(site, monkeypatch):
    monkeypatch.setattr(_openml.time, "sleep", lambda seconds: None)
    with pytest.raises(DownloadError, match=r"OpenML table 8: .*404"):
        load_openml(8)


def test_a_table_without_one_target(site):
    site(target="none")
    with pytest.raises(DatasetError, match="7 has not one target"):
        load_openml(7)


@pytest.mark.parametrize("number", [0, -1, "7", 7.0, True])
def test_a_number_is_asked_for(number):
    with pytest.raises(ValueError, match="data_id must be a positive integer"):
        load_openml(number)


def test_who_belongs_to_a_suite_is_asked_once(site, server):
    study = {"study": {"id": "337", "data": {"data_id": ["44089", "44120"]}}}
    server.files["api/v1/json/study/337"] = json.dumps(study).encode()
    assert suite_tables(SUITES["classification", "numeric"]) == (44089, 44120)
    assert suite_tables(337) == (44089, 44120)
    assert [name for name, _ in server.requests] == ["api/v1/json/study/337"]


def test_an_answer_without_data_is_not_kept(site, server):
    server.files["api/v1/json/study/336"] = b'{"error": "busy"}'
    for _ in range(2):
        with pytest.raises(DatasetError, match="suite 336 lists no data"):
            suite_tables(336)
    assert len(server.requests) == 2


def test_other_suites_are_refused():
    with pytest.raises(ValueError, match="suite must be one of 334, 335, 336, 337"):
        suite_tables(99)
