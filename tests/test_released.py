"""The script's errors, against loops and automatic differentiation that make them."""

from itertools import product

import pytest
import torch

from agop.features import agop, layer_agops
from agop.networks import FullyConnected
from agop.released import (
    ERRORS,
    copy_middle_layers,
    released_agop,
    released_similarities,
)
from agop.similarity import cosine

ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}
X = torch.randn(20, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def networks(activation):
    """A network and another in the place of its start."""
    widths = (6, 7, 7, 7, 7, 2)
    return (
        FullyConnected(widths, activation, seed=s, dtype=torch.float64) for s in (1, 2)
    )


def by_hand(net, start, layer, in_place, late, relu):
    """What the script does, step by step on matrices."""
    phi = ACTIVATIONS[net.activation]
    W = [w.detach().clone() for w in net.weights]
    if in_place:
        W[layer] = W[layer] - start.weights[layer].detach()
    h = X
    last = layer + 1 if late and layer >= 2 else layer  # layers applied to X
    for i in range(last):
        z = h @ W[i].T
        h = torch.relu(z) if relu and i == last - 1 else phi(z)

    def rest(h):
        for w in W[layer:-1]:
            h = phi(h @ w.T)
        return h @ W[-1].T

    return agop(rest, h)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("errors", [*product((False, True), repeat=3)])
def test_each_combination_of_errors(activation, errors):
    net, start = networks(activation)
    for layer in range(4):
        found = released_agop(
            net, start.weights, X, layer, **dict(zip(ERRORS, errors, strict=True))
        )
        assert torch.allclose(found, by_hand(net, start, layer, *errors), atol=1e-13)


def test_without_errors_it_is_the_agop_and_the_network_stays_as_it_is():
    net, start = networks("tanh")
    before = [w.detach().clone() for w in net.weights]
    off = dict.fromkeys(ERRORS, False)
    right = layer_agops(net, X, centred=True)
    for layer in range(4):
        found = released_agop(net, start.weights, X, layer, centred=True, **off)
        assert torch.allclose(found, right[layer], atol=1e-13)
        released_agop(net, start.weights, X, layer)
    assert all(torch.equal(a, b) for a, b in zip(before, net.weights, strict=True))


def test_where_an_error_cannot_matter():
    net, start = networks("relu")
    off = dict.fromkeys(ERRORS, False)
    right = layer_agops(net, X)
    for layer in (0, 1):
        late = released_agop(
            net, start.weights, X, layer, **off | {"one_layer_late": True}
        )
        assert torch.allclose(late, right[layer], atol=1e-13)
    for layer in range(4):
        relu = released_agop(
            net, start.weights, X, layer, **off | {"relu_inputs": True}
        )
        assert torch.allclose(relu, right[layer], atol=1e-13)
    zero = [torch.zeros_like(w) for w in net.weights]
    same = released_agop(net, zero, X, 1, **off | {"subtract_in_place": True})
    assert torch.allclose(same, right[1], atol=1e-13)


def test_copies_of_the_middle_layers():
    net = FullyConnected((6, 5, 5, 5, 5, 2), seed=3)
    first, second, last = (net.weights[i].detach().clone() for i in (0, 1, -1))
    copy_middle_layers(net)
    for i in (1, 2, 3):
        assert torch.equal(net.weights[i], second)
    assert torch.equal(net.weights[0], first)
    assert torch.equal(net.weights[-1], last)
    with pytest.raises(ValueError, match="equally wide"):
        copy_middle_layers(FullyConnected((6, 5, 4, 2)))


@pytest.mark.parametrize("layer", [-1, 4])
def test_hidden_layers_alone(layer):
    net, start = networks("relu")
    with pytest.raises(ValueError, match=r"0\.\.3"):
        released_agop(net, start.weights, X, layer)


def test_what_each_error_does():
    net, start = networks("tanh")
    found = released_similarities(net, start.weights, X)
    assert list(found) == [
        "as the paper defines it",
        *ERRORS,
        "as released, all three",
    ]
    assert max(found["as the paper defines it"]["gap"]) < 1e-12
    right = layer_agops(net, X)
    for layer in range(4):
        W, W0 = net.weights[layer].detach(), start.weights[layer].detach()
        increment = (W - W0).T @ (W - W0)
        for variant, errors in (
            ("relu_inputs", (False, False, True)),
            ("as released, all three", (True, True, True)),
        ):
            wrong = by_hand(net, start, layer, *errors)
            gap = float((wrong - right[layer]).norm() / right[layer].norm())
            assert found[variant]["gap"][layer] == pytest.approx(gap, abs=1e-12)
            expected = cosine(increment, wrong)
            assert found[variant]["cosine"][layer] == pytest.approx(expected)
