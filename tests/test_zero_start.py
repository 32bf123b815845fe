import numpy as np
import pytest
import torch

from agop.features import agop, nfm
from agop.networks import FullyConnected
from agop.similarity import proportionality_gap
from agop.zero_start import (
    TwoLayerLinear,
    descend,
    two_layer_path,
    two_step_limit,
    zero_first_layer,
)

N, D, K, LR = 6, 4, 30, 0.02


def data(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


def by_hand(A, X, y, steps, train_A):
    """The updates as the paper prints them: columns are samples."""
    X, k = X.T, A.shape[1]
    B = np.zeros((k, len(X)))
    for _ in range(steps):
        r = y[None] - A @ B @ X / np.sqrt(k)  # (1, n)
        dA, dB = r @ X.T @ B.T / np.sqrt(k), A.T @ r @ X.T / np.sqrt(k)
        A, B = A + LR * dA * train_A, B + LR * dB
    return A, B


@pytest.mark.parametrize("train_A", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 20])
def test_descend_is_the_update_of_the_propositions(train_A, steps):
    X, y = data()
    net = TwoLayerLinear(D, K, train_A=train_A)
    A, B = by_hand(net.A.detach().numpy(), X, y, steps, train_A)
    path = descend(net, X, y, lr=LR, steps=steps)
    assert len(path) == steps + 1
    assert not path[0]["B"].any()
    np.testing.assert_allclose(path[-1]["A"], A, rtol=1e-12)
    np.testing.assert_allclose(path[-1]["B"], B, rtol=0, atol=1e-13)


@pytest.mark.parametrize("train_A", [False, True])
def test_closed_form_is_where_descent_goes(train_A):
    X, y = data()
    net = TwoLayerLinear(D, K, train_A=train_A, spread=1.3)
    initial = net.A.detach().clone()
    path = two_layer_path(X, y, lr=LR, steps=50, mass=net.mass, train_A=train_A, k=K)
    for t, state in enumerate(descend(net, X, y, lr=LR, steps=50)):
        A, B = path.alpha[t] * initial, initial.T @ path.v[t][None] / K**0.5
        torch.testing.assert_close(state["A"], A, rtol=0, atol=1e-12)
        torch.testing.assert_close(state["B"], B, rtol=0, atol=1e-12)
        net.load_state_dict(state)
        torch.testing.assert_close(path.nfm(t), nfm(net.B), rtol=0, atol=1e-12)
        gradient = agop(net, torch.zeros(1, D, dtype=torch.float64))
        torch.testing.assert_close(path.agop(t), gradient, rtol=0, atol=1e-12)


def test_only_a_trained_outer_layer_moves():
    X, y = data()
    fixed = two_layer_path(X, y, lr=LR, steps=5, k=K)
    moved = two_layer_path(X, y, lr=LR, steps=5, train_A=True, k=K)
    limit = two_layer_path(X, y, lr=LR, steps=5, train_A=True)
    assert (fixed.alpha == 1).all()
    assert (moved.alpha[2:] > 1).all()  # step 1 has no pull on A, as B = 0
    assert moved.alpha[1] == 1
    assert torch.equal(limit.v, fixed.v)


def test_two_step_limit_is_the_second_point_of_the_limiting_path():
    X, y = data()
    limit = two_step_limit(X, y, lr=LR)
    path = two_layer_path(X, y, lr=LR, steps=2, train_A=True)
    torch.testing.assert_close(limit, path.nfm(2), rtol=1e-12, atol=0)
    net = TwoLayerLinear(D, 400_000, train_A=True)
    descend(net, X, y, lr=LR, steps=2)
    # four standard deviations of the mean of the squares of 400 000 normal numbers
    assert (nfm(net.B) - limit).norm() < 4 * (2 / 400_000) ** 0.5 * limit.norm()
    S, M = torch.tensor(X.T @ X), path.nfm(1)
    printed = 4 * LR**2 * M + LR**2 * S @ M @ S
    assert (limit - printed).norm() > 0.5 * limit.norm()


@pytest.mark.parametrize("activation", ["tanh", "sine", "sigmoid", "gelu"])
def test_one_sample_keeps_the_first_layer_proportional(activation):
    X, y = data(n=1)
    net = zero_first_layer(
        FullyConnected((D, 9, 8, 1), activation, seed=1, init=1.0, dtype=torch.float64)
    )
    upper = net.weights[1].clone()
    descend(net, X, y, lr=0.1, steps=10)
    Z = torch.from_numpy(data(n=5, seed=1)[0])
    assert proportionality_gap(nfm(net.weights[0]), agop(net, Z)) < 1e-12
    assert torch.equal(net.weights[1], upper)
    two = zero_first_layer(FullyConnected((D, 9, 8, 1), activation, seed=1, init=1.0))
    descend(two, *data(n=2), lr=0.1, steps=10)
    assert proportionality_gap(nfm(two.weights[0]), agop(two, Z)) > 1e-3


def test_spread_is_the_standard_deviation_of_A():
    net = TwoLayerLinear(2, 100_000, spread=3.0)
    assert net.mass == pytest.approx(9, rel=4 * (2 / 100_000) ** 0.5)
    assert not net.A.requires_grad
    assert not torch.equal(net.A, TwoLayerLinear(2, 100_000, spread=3.0, seed=1).A)


def test_bad_input_names_the_argument():
    X, y = data()
    with pytest.raises(ValueError, match=r"y must have shape \(6,\)"):
        two_layer_path(X, y[:5], lr=LR, steps=1)
    with pytest.raises(ValueError, match="steps"):
        descend(TwoLayerLinear(D, K), X, y, lr=LR, steps=0)
    with pytest.raises(ValueError, match="spread"):
        TwoLayerLinear(D, K, spread=0.0)
    with pytest.raises(TypeError, match="k must be"):
        TwoLayerLinear(D, 2.5)
