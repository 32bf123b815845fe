import pytest
import torch

from agop.ansatz import ansatz_similarity, layer_features
from agop.networks import FullyConnected
from agop.similarity import cosine, matrix_power, pearson


@pytest.fixture
def trained():
    """Two different networks standing for one before and after training."""
    widths = (5, 7, 6, 2)
    net = FullyConnected(widths, "tanh", seed=1, dtype=torch.float64)
    start = FullyConnected(widths, "tanh", seed=2, dtype=torch.float64)
    X = torch.randn(9, 5, generator=torch.Generator().manual_seed(0)).double()
    return net, start, X


def jacobian_agop(net, X, layer):
    """AGOP with respect to the input of one layer, a sample at a time."""
    h = net.hidden(X)[layer]
    jacobians = [
        torch.autograd.functional.jacobian(lambda x: net.forward_from(x, layer), row)
        for row in h
    ]
    return torch.stack([J.T @ J for J in jacobians]).mean(0), jacobians


@pytest.mark.parametrize("layer", [0, 1])
def test_every_matrix_against_its_definition(trained, layer):
    net, start, X = trained
    W, W0 = net.weights[layer].detach(), start.weights[layer].detach()
    found = layer_features(net, start.weights, X)[layer]
    A, jacobians = jacobian_agop(net, X, layer)
    mean = torch.stack(jacobians).mean(0)  # (C, d_l)
    close = {"rtol": 1e-12, "atol": 1e-14}
    torch.testing.assert_close(found.nfm, W.T @ W, **close)
    torch.testing.assert_close(found.initial, W0.T @ W0, **close)
    torch.testing.assert_close(found.increment, (W - W0).T @ (W - W0), **close)
    torch.testing.assert_close(found.agop, A, **close)
    torch.testing.assert_close(found.agop_centred, A - mean.T @ mean, **close)


def test_the_output_layer_is_left_out(trained):
    net, start, X = trained
    assert len(layer_features(net, start.weights, X)) == 2


def test_each_choice_changes_the_number(trained):
    net, start, X = trained
    layer = layer_features(net, start.weights, X)[1]
    numbers = [
        ansatz_similarity(layer),
        ansatz_similarity(layer, power=0.5),
        ansatz_similarity(layer, subtract_initial=False),
        ansatz_similarity(layer, centred=True),
        ansatz_similarity(layer, similarity=pearson),
    ]
    assert len({round(number, 6) for number in numbers}) == len(numbers)
    expected = cosine(layer.nfm, matrix_power(layer.agop_centred, 0.5))
    assert expected == ansatz_similarity(
        layer, power=0.5, subtract_initial=False, centred=True
    )


def test_initial_weights_must_match(trained):
    net, start, X = trained
    with pytest.raises(ValueError, match=r"initial must hold weights of shapes"):
        layer_features(net, list(start.weights)[:-1], X)
