import numpy as np
import pytest

from agop.deep_rfm import deep_rfm
from agop.neural_collapse import variability_ratio
from agop.similarity import haar


def sample(n=60, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (X[:, 0] > 0).astype(int)
    return X, 2.0 * np.eye(2)[y] - 1, y


def laplace_agop(X, Y, bandwidth, ridge=0.0):
    """Second implementation: kernel and gradients by loops."""
    n, d = X.shape
    distance = np.array([[np.linalg.norm(a - b) for b in X] for a in X])
    A = np.linalg.solve(np.exp(-distance / bandwidth) + ridge * np.eye(n), Y)
    total = np.zeros((d, d))
    for p in range(n):
        J = np.zeros((Y.shape[1], d))
        for i in range(n):
            if i != p:
                slope = -np.exp(-distance[p, i] / bandwidth) / bandwidth
                J += np.outer(A[i], slope * (X[p] - X[i]) / distance[p, i])
        total += J.T @ J
    return total / n


def test_one_layer_against_loops():
    X, Y, _ = sample(n=25)
    (layer,) = deep_rfm(X, Y, layers=1, width=9, bandwidth=2.0)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(layer.X, unit, atol=1e-12)
    A = laplace_agop(unit, Y, 2.0)
    np.testing.assert_allclose(layer.M, A / A.max(), atol=1e-8)
    np.testing.assert_allclose(layer.XM @ layer.XM.T, unit @ layer.M @ unit.T)
    # The random step: one W, and its positive part.
    W = np.random.default_rng(0).standard_normal((9, 6)) / np.sqrt(6)
    np.testing.assert_allclose(layer.output, np.maximum(layer.XM @ W.T, 0), atol=1e-12)


def test_layers_follow_each_other_and_learning_can_be_left_out():
    X, Y, _ = sample()
    first, second = deep_rfm(X, Y, layers=2, width=30)
    norms = np.linalg.norm(first.output, axis=1, keepdims=True)
    np.testing.assert_allclose(second.X, first.output / norms)
    (plain,) = deep_rfm(X, Y, layers=1, width=30, learn=False)
    assert (np.eye(6) == plain.M).all()
    np.testing.assert_allclose(plain.XM, plain.X)
    assert not np.allclose(plain.output, first.output)


def test_learned_step_reduces_variation_where_labels_depend_on_one_direction():
    X, Y, y = sample(n=200)
    (layer,) = deep_rfm(X, Y, layers=1, width=10)
    assert layer.M[0, 0] == 1  # the largest entry: the direction of the labels
    assert variability_ratio(layer.XM, y) < 0.7 * variability_ratio(layer.X, y)


def test_seeds_and_bad_input():
    X, Y, _ = sample(n=20)
    one, two, other = (
        deep_rfm(X, Y, layers=1, width=8, seed=s)[0].output for s in (0, 0, 1)
    )
    assert (one == two).all()
    assert not np.allclose(one, other)
    with pytest.raises(ValueError, match="as many rows"):
        deep_rfm(X, Y[:-1], layers=1, width=8)
    X[3] = 0
    with pytest.raises(ValueError, match="row 3 is zero at the input of layer 0"):
        deep_rfm(X, Y, layers=1, width=8)


@pytest.mark.parametrize(("width", "seed"), [(9, 0), (4, 3)])
def test_options_reach_the_step_they_name(width, seed):
    """Bandwidth, ridge, activation, width and seed, against the steps by hand."""
    X, Y, _ = sample(n=15)
    options = {"bandwidth": 0.7, "ridge": 0.3, "activation": "identity"}
    (layer,) = deep_rfm(X, Y, layers=1, width=width, seed=seed, **options)
    A = laplace_agop(layer.X, Y, 0.7, ridge=0.3)
    np.testing.assert_allclose(layer.M, A / A.max(), atol=1e-8)
    W = np.random.default_rng(seed).standard_normal((width, 6)) / np.sqrt(6)
    np.testing.assert_allclose(layer.output, layer.XM @ W.T, atol=1e-12)


def test_scale_of_samples_and_rotations_do_not_matter_to_the_learned_step():
    X, Y, y = sample(n=40)
    Q = haar(6, np.random.default_rng(2))
    scales = np.random.default_rng(3).uniform(0.5, 5, (40, 1))
    (plain,), (moved,) = (
        deep_rfm(Z, Y, layers=1, width=5) for Z in (X, scales * X @ Q)
    )
    # M is divided by its largest entry, which depends on the axes: compare shapes.
    turned = Q.T @ plain.M @ Q
    np.testing.assert_allclose(moved.M, turned / turned.max(), atol=1e-8)
    assert variability_ratio(moved.XM, y) == pytest.approx(
        variability_ratio(plain.XM, y)
    )
