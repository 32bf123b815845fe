"""A recipe says what is built and trained; nothing else decides it."""

from dataclasses import replace

import pytest
import torch

from agop.datasets import load
from agop.networks import FullyConnected
from agop.recipes import Recipe, copy_weights, fit, with_weights
from agop.tasks import make_task
from agop.training import train

TASK = make_task(load("wine"), dtype=torch.float64)
RECIPE = Recipe(width=12, depth=3, epochs=4, batch_size=50, dtype="float64")


def test_a_fit_is_the_training_that_the_recipe_describes():
    fitted = fit(TASK, RECIPE, seed=3, fractions=(0.0, 0.5))
    net = FullyConnected(
        (13, 12, 12, 12, 3), seed=3, first_layer_std=1e-4, dtype=torch.float64
    )
    start = copy_weights(net)
    history = train(
        net, TASK.X, TASK.Y, lr=0.1, batch_size=50, epochs=4, seed=3, snapshots=[6]
    )
    for mine, theirs in zip(fitted.net.weights, net.weights, strict=True):
        assert torch.equal(mine, theirs)
    for mine, theirs, kept in zip(fitted.initial, start, fitted.at(0), strict=True):
        assert torch.equal(mine, theirs)
        assert torch.equal(kept, theirs)
    assert fitted.steps == history.steps[-1] == 12
    assert torch.equal(fitted.at(0.5)[1], history.snapshots[6]["layers.1.weight"])


@pytest.mark.parametrize(
    "change",
    [
        {"width": 13},
        {"depth": 2},
        {"activation": "tanh"},
        {"init": 0.3},
        {"first_layer_std": None},
        {"optimizer": "adam"},
        {"lr": 0.2},
        {"batch_size": 40},
        {"epochs": 5},
        {"max_steps": 3},
        {"freeze_first": True},
    ],
)
def test_every_part_of_a_recipe_changes_the_network(change):
    one, other = (fit(TASK, r).net for r in (RECIPE, replace(RECIPE, **change)))
    assert one.widths != other.widths or not torch.equal(one(TASK.X), other(TASK.X))


def test_a_frozen_first_layer_stays_and_the_others_move():
    fitted = fit(TASK, replace(RECIPE, freeze_first=True, first_layer_std=None))
    moved = [
        not torch.equal(W, W0)
        for W, W0 in zip(fitted.net.weights, fitted.initial, strict=True)
    ]
    assert moved == [False, True, True, True]


def test_steps_are_capped():
    assert Recipe(epochs=500).steps(129) == 1000
    assert Recipe(epochs=500, max_steps=700).steps(129) == 700
    assert Recipe(epochs=500, max_steps=700).steps(128) == 500


def test_with_weights_makes_any_part_of_a_network():
    net = RECIPE.network(d=13, C=3, seed=1)
    h = net.hidden(TASK.X)
    part = with_weights(net, net.weights[2:])
    assert torch.equal(part(h[2]), net(TASK.X))
    with torch.no_grad():
        part.weights[0].zero_()
    assert net.weights[2].any()  # copies, not views


def test_with_weights_refuses_what_does_not_fit():
    net = FullyConnected((3, 4, 5, 2))
    with pytest.raises(ValueError, match="do not chain"):
        with_weights(net, [net.weights[0], net.weights[2]])
    with pytest.raises(ValueError, match="no biases"):
        with_weights(FullyConnected((3, 4, 2), bias=True), net.weights)
