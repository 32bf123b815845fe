"""Results are computed once, and anew when anything that decides them changes."""

import json
import types

import pytest

from agop.store import ResultStore


@pytest.fixture
def calls():
    return []


def counted(calls, value):
    def compute():
        calls.append(value)
        return {"value": value}

    return compute


def test_a_result_is_computed_once_and_read_by_another_store(tmp_path, calls):
    settings = {"set": "wine", "lr": 0.1}
    for _ in range(2):
        assert ResultStore(tmp_path).get(settings, counted(calls, 1)) == {"value": 1}
    assert calls == [1]
    assert ResultStore(tmp_path).has(settings)


def test_other_settings_are_another_result(tmp_path, calls):
    store = ResultStore(tmp_path)
    store.get({"a": 1, "b": 2}, counted(calls, 1))
    store.get({"b": 2, "a": 1}, counted(calls, 2))  # the same in another order
    store.get({"a": 1, "b": 3}, counted(calls, 3))
    assert calls == [1, 3]


def test_an_edit_of_the_code_computes_anew(tmp_path, calls, monkeypatch):
    source = ["x = 1"]
    monkeypatch.setattr("inspect.getsource", lambda module: source[0])
    module = types.ModuleType("m")
    ResultStore(tmp_path, [module]).get({}, counted(calls, 1))
    source[0] = "x = 2"
    assert ResultStore(tmp_path, [module]).get({}, counted(calls, 2)) == {"value": 2}


def test_nothing_is_kept_without_a_folder(calls):
    store = ResultStore(None)
    store.get({}, counted(calls, 1))
    assert not store.has({})
    assert store.get({}, counted(calls, 2)) == {"value": 2}


def test_a_computation_that_fails_leaves_no_file(tmp_path):
    def fail():
        raise FloatingPointError

    with pytest.raises(FloatingPointError):
        ResultStore(tmp_path).get({}, fail)
    with pytest.raises(TypeError):
        ResultStore(tmp_path).get({}, lambda: {"value": object()})
    assert list(tmp_path.iterdir()) == []


def test_a_first_result_has_the_types_of_a_second(tmp_path):
    store = ResultStore(tmp_path)
    first = store.get({}, lambda: {"pair": (1, float("inf")), "none": None})
    assert first == store.get({}, dict) == {"pair": [1, float("inf")], "none": None}


def test_the_cache_folder_holds_named_stores(tmp_path, monkeypatch):
    monkeypatch.setenv("AGOP_CACHE", str(tmp_path))
    ResultStore.named("sweep").get({"a": 1}, lambda: {"b": 2})
    (path,) = (tmp_path / "results" / "sweep").iterdir()
    kept = json.loads(path.read_text())
    assert (kept["settings"], kept["result"]) == ({"a": 1}, {"b": 2})
    assert ResultStore.named("sweep", keep=False).folder is None
