import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from agop.networks import ACTIVATIONS, DeepLinear, FullyConnected, resolve_activation

# PyTorch's own functions, so that a wrong entry in ACTIVATIONS can't agree with itself.
REFERENCE = {
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "sine": torch.sin,
    "gelu": F.gelu,
    "quadratic": lambda z: z**2,
    "identity": lambda z: z,
}


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_slope_is_the_derivative_of_the_value(name):
    # includes 0 (the kink of ReLU) and both tails
    z = torch.linspace(-4, 4, 81, dtype=torch.float64).requires_grad_()
    value = REFERENCE[name](z)
    (slope,) = torch.autograd.grad(value.sum(), z)
    activation = resolve_activation(name)
    torch.testing.assert_close(activation.value(z), value, rtol=0, atol=1e-15)
    torch.testing.assert_close(activation.slope(z.detach()), slope, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_slope_of_a_callable_agrees_with_the_formula_even_without_grad(name):
    z = torch.linspace(-4, 4, 80, dtype=torch.float64)
    with torch.no_grad():
        slope = resolve_activation(REFERENCE[name]).slope(z)
    expected = resolve_activation(name).slope(z)
    torch.testing.assert_close(slope, expected, rtol=0, atol=1e-14)


def test_activation_may_be_a_module():
    z = torch.linspace(-2, 2, 9, dtype=torch.float64)
    slope = resolve_activation(nn.Softplus()).slope(z)
    torch.testing.assert_close(slope, torch.sigmoid(z))
    assert FullyConnected((3, 4, 2), nn.Softplus())(torch.ones(1, 3)).shape == (1, 2)


@pytest.mark.parametrize(
    "coupled",
    [
        lambda z: z.softmax(-1),
        lambda z: z - z.mean(),
        lambda z: z.cumsum(-1),
        lambda z: z.sum(-1),
        lambda z: F.layer_norm(z, z.shape[-1:]),
    ],
)
def test_activation_that_is_not_elementwise_is_refused(coupled):
    with pytest.raises(ValueError, match="elementwise"):
        FullyConnected((3, 4, 2), coupled)


def test_shapes_and_absence_of_biases():
    net = FullyConnected((5, 7, 6, 2))
    assert [tuple(W.shape) for W in net.weights] == [(7, 5), (6, 7), (2, 6)]
    assert len(list(net.parameters())) == 3
    assert len(list(FullyConnected((5, 7, 6, 2), bias=True).parameters())) == 6
    assert [h.shape[1] for h in net.hidden(torch.ones(4, 5))] == [5, 7, 6]


@pytest.mark.parametrize("bias", [False, True])
def test_hidden_are_the_inputs_of_the_layers(bias):
    net = FullyConnected((5, 7, 6, 3), "tanh", bias, dtype=torch.float64)
    X = torch.randn(
        4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    h = X
    for i, layer in enumerate(net.layers):
        assert torch.equal(net.hidden(X)[i], h)
        assert torch.equal(net.forward_from(h, i), net(X))
        z = h @ layer.weight.T + (layer.bias if bias else 0)
        if i < 2:
            torch.testing.assert_close(
                net.slopes(X)[i], 1 - z.tanh() ** 2, rtol=0, atol=1e-14
            )
        h = z.tanh()
    torch.testing.assert_close(net(X), z, rtol=0, atol=1e-14)


def test_default_initialisation_is_that_of_pytorch():
    net = FullyConnected((50, 40, 30), bias=True, seed=3, dtype=torch.float64)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        reference = [nn.Linear(50, 40).double(), nn.Linear(40, 30).double()]
        torch.manual_seed(3)
        for layer in reference:
            layer.reset_parameters()
    for ours, theirs in zip(net.layers, reference, strict=True):
        torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-12, atol=0)
        torch.testing.assert_close(ours.bias, theirs.bias, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("init", "std"),
    [
        ("torch", 3e4**-0.5),
        ("lecun_normal", 1e-2),
        ("he_normal", 2e-4**0.5),
        (0.3, 0.3),
    ],
)
def test_standard_deviation_of_the_weights(init, std):
    net = FullyConnected((10_000, 20, 1), init=init)
    W = net.weights[0].detach()
    # the std of 2e5 draws has relative standard error 1/sqrt(4e5) = 0.0016
    assert abs(W.std().item() / std - 1) < 0.008
    assert abs(W.mean().item()) < 5 * std / 2e5**0.5


def test_normal_initialisations_start_biases_at_zero():
    net = FullyConnected((4, 5, 2), bias=True, init="he_normal")
    assert all((layer.bias == 0).all() for layer in net.layers)


def test_first_layer_std_concerns_the_first_layer_only():
    net = FullyConnected((300, 200, 200, 1), first_layer_std=1e-4)
    assert abs(net.weights[0].std().item() / 1e-4 - 1) < 0.02
    assert abs(net.weights[1].std().item() * 600**0.5 - 1) < 0.02


def test_middle_layers_are_independent():
    net = FullyConnected((100, 100, 100, 100), first_layer_std=1.0)
    W = torch.stack([W.detach().flatten() for W in net.weights])
    off_diagonal = torch.corrcoef(W) - torch.eye(3)
    assert off_diagonal.abs().max() < 5 / 100  # 5 standard errors


def test_seed_alone_fixes_the_weights():
    state = torch.get_rng_state()
    double = FullyConnected((4, 6, 2), seed=1, dtype=torch.float64)
    single = FullyConnected((4, 6, 2), seed=1, dtype=torch.float32)
    other = FullyConnected((4, 6, 2), seed=2, dtype=torch.float32)
    assert torch.equal(torch.get_rng_state(), state)
    for a, b, c in zip(double.weights, single.weights, other.weights, strict=True):
        assert torch.equal(a.float(), b)
        assert not torch.equal(b, c)


def test_network_can_be_copied_and_pickled():
    net = FullyConnected((4, 6, 2), "leaky_relu")
    X = torch.ones(2, 4)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(twin(X), net(X))


def test_representation_tells_the_architecture():
    assert "(4, 6, 2)" in repr(FullyConnected((4, 6, 2)))
    assert "'tanh'" in repr(FullyConnected((4, 6, 2), "tanh"))


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({"widths": (3,)}, ValueError, "widths"),
        ({"widths": (3, 0, 1)}, ValueError, "widths"),
        ({"widths": (3, 2.0, 1)}, TypeError, "widths"),
        ({"activation": "rele"}, ValueError, "relu"),
        ({"activation": 3}, TypeError, "activation"),
        ({"init": "xavier"}, ValueError, "init"),
        ({"init": -1.0}, ValueError, "init"),
        ({"first_layer_std": -1.0}, ValueError, "first_layer_std"),
    ],
)
def test_bad_arguments_are_named(kwargs, error, match):
    with pytest.raises(error, match=match):
        FullyConnected(**{"widths": (3, 4, 1), **kwargs})


@pytest.mark.parametrize("widths", [(6, 8, 4), (4, 10, 7, 9, 5), (5, 3, 6, 4)])
def test_balanced_initialisation(widths):
    net = DeepLinear(widths, scale=1.5, seed=2, dtype=torch.float64)
    assert len(net.imbalance()) == len(widths) - 2
    assert max(D.abs().max().item() for D in net.imbalance()) < 1e-14
    for W in net.weights:
        assert torch.linalg.matrix_norm(W.detach(), 2).item() == pytest.approx(1.5)
        assert torch.linalg.matrix_rank(W.detach()) == min(widths)


@pytest.mark.parametrize("widths", [(6, 8, 4), (4, 10, 7, 9, 5)])
def test_balanced_network_satisfies_theorem_3_1(widths):
    net = DeepLinear(widths, dtype=torch.float64)
    W, J = net.weights[0].detach(), net.product().detach()
    power = torch.linalg.matrix_power(W.T @ W, len(net.weights))
    torch.testing.assert_close(J.T @ J, power, rtol=0, atol=1e-13)


def test_balanced_products_have_the_same_spectrum_at_every_depth():
    shallow = DeepLinear((6, 4), seed=3, dtype=torch.float64).product()
    deep = DeepLinear((6, 8, 7, 9, 4), seed=3, dtype=torch.float64).product()
    torch.testing.assert_close(
        torch.linalg.svdvals(deep), torch.linalg.svdvals(shallow), rtol=1e-12, atol=0
    )


def test_unbalanced_initialisation_and_scale():
    net = DeepLinear((6, 8, 4), init="lecun_normal", dtype=torch.float64)
    half = DeepLinear((6, 8, 4), init="lecun_normal", scale=0.5, dtype=torch.float64)
    W, V = (W.detach() for W in net.weights)
    (D,) = net.imbalance()
    torch.testing.assert_close(D, V.T @ V - W @ W.T)
    assert D.abs().max() > 0.1
    assert torch.equal(half.weights[0], 0.5 * W)


def test_deep_linear_network_is_its_product():
    net = DeepLinear((4, 6, 5, 3), init="torch", dtype=torch.float64)
    product = net(torch.eye(4, dtype=torch.float64)).T
    torch.testing.assert_close(product, net.product(), rtol=0, atol=1e-15)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_scale_must_be_positive(scale):
    with pytest.raises(ValueError, match="scale"):
        DeepLinear((3, 4, 2), scale=scale)
