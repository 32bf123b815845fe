"""A trial's numbers against their parts, computed one by one."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from agop.ansatz import ansatz_similarity, layer_features
from agop.choices import Choice, all_choices
from agop.datasets import load
from agop.recipes import Recipe, fit, with_weights
from agop.similarity import cosine, independent_gram_null
from agop.store import ResultStore
from agop.tasks import accuracy, make_task
from agop.trials import ansatz_trial, some_rows, sweep, trial_store

TASK = make_task(load("wine"), dtype=torch.float64)
RECIPE = Recipe(width=12, depth=3, epochs=20, dtype="float64")


@pytest.fixture(scope="module")
def trial():
    return ansatz_trial(
        TASK,
        RECIPE,
        seed=2,
        choices=all_choices((1.0, 0.5)),
        fractions=(0.25, 1.0),
        points=100,
        rotate=True,
    )


def test_similarities_accuracies_and_curve(trial):
    fitted = fit(TASK, RECIPE, seed=2, fractions=(0.25,))
    X = some_rows(TASK.X, 100, 2)
    assert len(X) == 100
    layers = layer_features(fitted.net, fitted.initial, X)
    assert trial["found"][0] == pytest.approx([ansatz_similarity(f) for f in layers])
    centred_root = all_choices((1.0, 0.5)).index(Choice(0.5, centred=True))
    assert trial["found"][centred_root] == pytest.approx(
        [ansatz_similarity(f, power=0.5, centred=True) for f in layers]
    )
    assert trial["initial"] == pytest.approx(
        [cosine(f.increment, f.initial) for f in layers]
    )
    assert trial["test_accuracy"] == accuracy(fitted.net(TASK.X_test), TASK.y_test)
    quarter = with_weights(fitted.net, fitted.at(0.25))
    early = layer_features(quarter, fitted.initial, X)
    assert trial["curve"]["0.25"]["found"] == pytest.approx(
        [ansatz_similarity(f) for f in early]
    )
    assert trial["curve"]["1.0"]["found"] == pytest.approx(trial["found"][0])


def test_shapes_and_json(trial):
    assert np.shape(trial["rotated"]) == np.shape(trial["independent"]) == (32, 3)
    assert np.shape(trial["initial_null"]) == (3,)
    assert (trial["n"], trial["d"], trial["C"], trial["steps"]) == (142, 13, 3, 40)
    assert json.loads(json.dumps(trial)) == trial


def test_an_unrelated_layer_scores_as_independent_gram_matrices():
    values = [
        ansatz_trial(
            TASK, replace(RECIPE, max_steps=1, first_layer_std=1.0), seed=s, points=5
        )["unrelated_initial"][0]
        for s in range(30)
    ]
    null = independent_gram_null(13, 12, draws=200)
    assert np.mean(values) == pytest.approx(null.mean(), abs=4 * null.std() / 30**0.5)


def test_a_divergence_is_reported_and_not_raised():
    leaky = replace(RECIPE, activation="leaky_relu", lr=1e6)
    trial = ansatz_trial(TASK, leaky)
    assert trial == {"n": 142, "d": 13, "C": 3, "diverged": True}


def test_rows_are_drawn_without_replacement():
    X = torch.arange(50.0)[:, None]
    drawn = some_rows(X, 20, 0).flatten().tolist()
    assert len(set(drawn)) == 20
    assert sorted(some_rows(X, 80, 0).flatten().tolist()) == list(range(50))


def test_a_network_that_died_has_no_similarity():
    trial = ansatz_trial(TASK, replace(RECIPE, lr=1e6))  # every ReLU off for ever
    assert np.isnan(trial["found"]).all()


def test_a_sweep_goes_on_where_it_was_killed(tmp_path, monkeypatch):
    store, recipe = ResultStore(tmp_path), replace(RECIPE, epochs=1)
    done = sweep(["wine", "iris"], recipe, seeds=(0, 2), store=store)
    assert list(done) == [("wine", 0), ("wine", 2), ("iris", 0), ("iris", 2)]
    task = make_task(load("wine"), seed=2, dtype=torch.float64)
    alone = ansatz_trial(task, recipe, seed=2)
    assert done["wine", 2] == alone | {"seconds": done["wine", 2]["seconds"]}
    (victim, *_) = tmp_path.iterdir()
    victim.unlink()
    loaded = []

    def counting_load(name):
        loaded.append(name)
        return load(name)

    monkeypatch.setattr("agop.trials.load", counting_load)
    again = sweep(["wine", "iris"], recipe, seeds=(0, 2), store=store)
    assert len(loaded) == 1  # the one that was missing
    for key, trial in done.items():
        assert again[key] | {"seconds": 0} == trial | {"seconds": 0}
    sweep(["wine"], recipe, seeds=(0,), store=store, points=50)
    assert loaded[1:] == ["wine"]  # other options are another result


def test_the_store_of_trials_is_in_the_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AGOP_CACHE", str(tmp_path))
    assert trial_store("a-chapter").folder == tmp_path / "results" / "a-chapter"
    assert trial_store("a-chapter", keep=False).folder is None
