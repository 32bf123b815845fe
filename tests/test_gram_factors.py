"""Factors against the matrices that they stand for."""

import numpy as np
import pytest
import torch

from agop.ansatz import layer_features
from agop.gram_factors import GramFactor, first_layer_factors, upper_features
from agop.networks import FullyConnected
from agop.similarity import cosine, pearson


def factors(rng, d=7):
    return GramFactor(rng.standard_normal((3, d)) + 1), GramFactor(
        rng.standard_normal((2, d)) + 1
    )


@pytest.mark.parametrize("off", [False, True])
@pytest.mark.parametrize(("name", "dense"), [("cosine", cosine), ("pearson", pearson)])
def test_similarities_are_those_of_the_matrices(name, dense, off):
    for seed in range(5):
        A, B = factors(np.random.default_rng(seed))
        found = getattr(A, name)(B, off_diagonal=off)
        expected = dense(A.dense(), B.dense(), off_diagonal=off)
        assert found == pytest.approx(expected, abs=1e-12)
        assert found == pytest.approx(getattr(B, name)(A, off_diagonal=off), abs=1e-12)


def test_diagonal_and_top_eigenvector():
    A, _ = factors(np.random.default_rng(0))
    assert torch.allclose(A.diagonal(), A.dense().diagonal(), atol=1e-12)
    expected = np.linalg.eigh(A.dense().numpy())[1][:, -1]
    found = A.top_eigenvector().numpy()
    assert found[np.abs(found).argmax()] > 0
    assert abs(found @ expected) == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("centred", [False, True])
def test_the_first_layer_of_a_network(centred):
    net, start = (
        FullyConnected((9, 6, 5, 3), "tanh", seed=s, dtype=torch.float64)
        for s in (0, 1)
    )
    X = torch.randn(30, 9, dtype=torch.float64)
    found = first_layer_factors(net, start.weights[0], X, centred=centred)
    layer = layer_features(net, start.weights, X)[0]
    expected = {
        "nfm": layer.nfm,
        "increment": layer.increment,
        "initial": layer.initial,
        "agop": layer.agop_centred if centred else layer.agop,
    }
    for name, M in expected.items():
        # K^{1/2} squared is K up to the rounding of an eigendecomposition
        assert torch.allclose(found[name].dense(), M, atol=1e-12), name


def test_bad_arguments():
    with pytest.raises(ValueError, match="R must be"):
        GramFactor([1.0, 2.0])
    with pytest.raises(ValueError, match="3 and 2"):
        GramFactor([[1.0, 2, 3]]).cosine(GramFactor([[1.0, 2]]))


def test_upper_features_are_the_layer_features_but_the_first():
    net, start = (
        FullyConnected((9, 6, 5, 4, 3), "tanh", seed=s, dtype=torch.float64)
        for s in (0, 1)
    )
    X = torch.randn(30, 9, dtype=torch.float64)
    expected = layer_features(net, start.weights, X)[1:]
    found = upper_features(net, start.weights, X)
    assert len(found) == len(expected) == 2
    for mine, theirs in zip(found, expected, strict=True):
        for name, matrix in vars(theirs).items():
            assert torch.allclose(getattr(mine, name), matrix, atol=1e-13), name
