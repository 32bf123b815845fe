"""Every baseline learns what can be learnt, also where a part lacks classes."""

import importlib.util

import numpy as np
import pytest

from agop.tabular.baselines import BASELINES, MLP, Boosting, GaussianSVM
from agop.tabular.tables import SELECT, Split, make_table

OPTIONAL = {"xgboost": "xgboost", "xrfm": "xrfm"}
CHEAP = {"mlp", "boosting"}  # one point of the grid is enough for these


def available(build):
    module = OPTIONAL.get(build.name)
    missing = module is not None and importlib.util.find_spec(module) is None
    return pytest.param(
        build, marks=pytest.mark.skipif(missing, reason=f"no {module}"), id=build.name
    )


def rings(n=160, seed=0):
    """Two classes that no line separates: inside and outside a circle."""
    X = np.random.default_rng(seed).standard_normal((n, 2))
    return X, (np.linalg.norm(X, axis=1) > 1.18).astype(int)


@pytest.mark.parametrize("build", [available(b) for b in BASELINES])
def test_baselines_beat_the_larger_class(build, monkeypatch):
    X, y = rings()
    if build.name == "logistic":
        y = (X @ [1.0, -2.0] > 0).astype(int)
    if build.name in CHEAP:
        first = {k: v[:1] for k, v in build.grid.items()}
        monkeypatch.setattr(build, "grid", first)
    task, method = make_table("t", X, y), build()
    select = task.split(SELECT)
    chosen = method.select(select)
    assert 0.75 < chosen["validation"] <= 1
    score = method.score(chosen, task.split("fold1"), select)
    assert score.accuracy > 0.75


@pytest.mark.parametrize("build", [available(b) for b in BASELINES])
def test_a_part_may_lack_classes(build):
    X, y = rings(60)
    few = Split(X[:40], np.where(y[:40], 5, 2), X[40:], np.where(y[40:], 5, 2), 7)
    point = {k: v[0] for k, v in build.grid.items()}
    assert build().score(point, few, few).accuracy > 0.4
    one = Split(X[:40], np.full(40, 3), X[40:], np.full(20, 3), 7)
    assert build().score(point, one, one).accuracy == 1


def test_rounds_of_boosting_are_those_of_shorter_fits():
    X, y = rings(80)
    split = make_table("t", X, y).split(SELECT)
    method = Boosting()
    for candidate in list(method.candidates(split))[:2]:
        alone = method.score(candidate.chosen, split, split)
        assert alone.accuracy == candidate.validation


def test_gamma_is_in_units_of_the_dimension():
    X, y = rings(40)
    split = Split(X, y, X, y, 2)
    assert GaussianSVM().build(split, C=1.0, gamma=3.0).gamma == 1.5


def test_seeds_are_fixed():
    X, y = rings(60)
    split = make_table("t", X, y).split(SELECT)
    point = {"hidden_layer_sizes": (128,), "alpha": 1e-4}
    first, again = (MLP().score(point, split, split) for _ in range(2))
    assert first == again
