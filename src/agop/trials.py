"""The ansatz on one task: train by a recipe, measure every layer, keep the numbers."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agop import (
    ansatz,
    choices,
    features,
    networks,
    recipes,
    similarity,
    tasks,
    training,
)
from agop.ansatz import LayerFeatures, layer_features
from agop.choices import Choice, compare
from agop.datasets import load
from agop.recipes import Fitted, Recipe, fit, with_weights
from agop.similarity import cosine
from agop.store import ResultStore
from agop.tasks import Task, accuracy, make_task

CURVE_POINTS = 500  # gradient points of each moment of a curve


def ansatz_trial(
    task: Task,
    recipe: Recipe,
    *,
    seed: int = 0,
    choices: Sequence[Choice] = (Choice(),),
    fractions: Sequence[float] = (),
    points: int = 2000,
    rotate: bool = False,
    device: str = "cpu",
) -> dict[str, Any]:
    """Train a network and return how alike the feature matrices of its layers are.

    Parameters
    ----------
    task, recipe, seed, fractions, device
        As for `agop.recipes.fit`.
    choices : sequence of Choice
        Ways to measure; the first is used for the entries without a choice.
    points : int, default=2000
        Gradients are averaged over at most so many training rows, the first ones of
        a seeded permutation.
    rotate : bool, default=False
        Whether to compute the rotation null.

    Returns
    -------
    dict of numbers and (nested) lists of them, for JSON
        "found", "independent" and, with ``rotate``, "rotated": (choices, L), see
        `agop.choices.compare`.
        "initial": (L,), cosine of the increment with the NFM before training.
        "initial_null": (L,), the same with an unrelated layer for the initial one.
        "unrelated_initial": (L,), the same with an unrelated layer for the trained.
        "curve": for each fraction, "found", "initial" and "independent", (L,) each,
        by the first choice, over 500 points.
        "n", "d", "C", "steps", "train_accuracy", "test_accuracy", "seconds", and
        "diverged": if true, nothing but sizes is there besides.

    Examples
    --------
    >>> from agop.datasets import load
    >>> from agop.tasks import make_task
    >>> recipe = Recipe(width=16, depth=2, epochs=50)
    >>> trial = ansatz_trial(make_task(load("wine")), recipe)
    >>> len(trial["found"][0]), trial["diverged"]
    (2, False)
    """
    started = time.process_time()
    sizes = {"n": len(task.X), "d": task.d, "C": task.C}
    try:
        fitted = fit(task, recipe, seed=seed, fractions=fractions, device=device)
    except FloatingPointError:
        return {**sizes, "diverged": True}
    X = some_rows(task.X, points, seed)
    layers = _features(fitted, fitted.net.weights, X)
    result = {
        **sizes,
        "diverged": False,
        "steps": fitted.steps,
        **_accuracies(fitted, task),
        **_by_choice(layers, recipe.width, choices, seed, rotate),
        **_against_start(layers, recipe.width, seed),
        "curve": {
            str(f): _moment(fitted, f, X[:CURVE_POINTS], choices[0], seed)
            for f in fractions
        },
    }
    return {**result, "seconds": time.process_time() - started}


def trial_store(name: str, *, keep: bool = True) -> ResultStore:
    """Return the store ``name`` for trials, or with ``keep=False`` one without memory.

    An edit to any module that a trial runs through makes its results computed anew.
    """
    code = (ansatz, choices, features, networks, recipes, similarity, tasks, training)
    return ResultStore.named(name, (*code, sys.modules[__name__]), keep=keep)


def sweep(
    names: Sequence[str],
    recipe: Recipe,
    *,
    seeds: Sequence[int] = (0,),
    store: ResultStore | None = None,
    choices: Sequence[Choice] = (Choice(),),
    **options: Any,
) -> dict[tuple[str, int], dict[str, Any]]:
    """Return `ansatz_trial` for each data set and seed, by name and seed.

    Parameters
    ----------
    names : sequence of str
        Data sets of `agop.datasets.load`. A seed also fixes the test part where
        there is no official one.
    recipe : Recipe
    seeds : sequence of int
    store : ResultStore, optional
        Keeps each trial as soon as it is done, and has those of an earlier sweep.
    choices, options
        As for `ansatz_trial`.

    Examples
    --------
    >>> list(sweep(["iris", "wine"], Recipe(width=8, depth=1, epochs=1)))
    [('iris', 0), ('wine', 0)]
    """
    store = store or ResultStore(None)
    trials = {}
    for name, seed in product(names, seeds):

        def trial(name: str = name, seed: int = seed) -> dict[str, Any]:
            dtype = getattr(torch, recipe.dtype)
            task = make_task(load(name), seed=seed, dtype=dtype)
            return ansatz_trial(task, recipe, seed=seed, choices=choices, **options)

        settings = {
            "set": name,
            "seed": seed,
            "recipe": recipe.settings(),
            "choices": [asdict(choice) for choice in choices],
            **options,
        }
        trials[name, seed] = store.get(settings, trial)
    return trials


def some_rows(X: Tensor, points: int, seed: int) -> Tensor:
    """Return at most ``points`` rows of X, drawn without replacement."""
    generator = torch.Generator().manual_seed(seed)
    return X[torch.randperm(len(X), generator=generator)[:points]]


def _accuracies(fitted: Fitted, task: Task) -> dict[str, float]:
    device = fitted.net.weights[0].device
    with torch.no_grad():
        train, test = (
            accuracy(fitted.net(X.to(device)).cpu(), y)
            for X, y in ((task.X, task.y), (task.X_test, task.y_test))
        )
    return {"train_accuracy": train, "test_accuracy": test}


def _by_choice(
    layers: Sequence[LayerFeatures],
    units: int,
    choices: Sequence[Choice],
    seed: int,
    rotate: bool,
) -> dict[str, list[list[float]]]:
    tables = [
        compare(layer, choices, units=units, seed=seed, rotate=rotate)
        for layer in map(_on_cpu, layers)
    ]
    return {
        name: np.transpose([table[name] for table in tables]).tolist()
        for name in tables[0]
    }


def _against_start(
    layers: Sequence[LayerFeatures], units: int, seed: int
) -> dict[str, list[float]]:
    rng = np.random.default_rng([seed, 1])
    values: dict[str, list[float]] = {}
    for layer in map(_on_cpu, layers):
        V = rng.standard_normal((units, len(layer.nfm)))  # (k, d)
        for name, A, B in (
            ("initial", layer.increment, layer.initial),
            ("initial_null", layer.increment, V.T @ V),
            ("unrelated_initial", V.T @ V, layer.initial),
        ):
            values.setdefault(name, []).append(cosine(A, B))
    return values


def _moment(
    fitted: Fitted, fraction: float, X: Tensor, choice: Choice, seed: int
) -> dict[str, list[float]]:
    """Return the similarities of every layer at one moment of the training."""
    layers, units = _features(fitted, fitted.at(fraction), X), fitted.net.widths[1]
    table = _by_choice(layers, units, [choice], seed, rotate=False)
    return {
        "found": table["found"][0],
        "independent": table["independent"][0],
        "initial": _against_start(layers, units, seed)["initial"],
    }


def _features(
    fitted: Fitted, weights: Sequence[Tensor], X: Tensor
) -> list[LayerFeatures]:
    """Return the feature matrices of the network with these weights, in float64.

    Whatever it was trained in: the sixth root of a matrix of low rank would turn
    float32's spurious eigenvalues of 1e-7 into 0.07.
    """
    net = with_weights(fitted.net, [W.detach().double() for W in weights])
    return layer_features(net, [W.double() for W in fitted.initial], X)


def _on_cpu(layer: LayerFeatures) -> LayerFeatures:
    return LayerFeatures(*(m.cpu() for m in vars(layer).values()))
