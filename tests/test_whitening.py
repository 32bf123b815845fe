from functools import partial

import numpy as np
import pytest
import scipy.linalg
import torch
import torch.nn.functional as F
from torch import nn

from agop.features import nfm
from agop.linearization import relative_gap
from agop.networks import FullyConnected
from agop.training import train
from agop.whitening import (
    GramSGD,
    horizontal,
    polar,
    polar_newton_schulz,
    rotate_only,
    whiten,
)

SHAPES = [(4, 9), (6, 6), (9, 4)]  # fewer units than inputs, as many, more


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def rotation(k, seed):
    return torch.linalg.qr(draw(k, k, seed=seed)).Q


# --- Procrustes --------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_whitening_keeps_the_new_gram_matrix_and_rotation_the_old_one(shape):
    W, W_new = draw(*shape), draw(*shape, seed=1)
    assert relative_gap(nfm(whiten(W, W_new)), nfm(W_new)) < 1e-12
    assert relative_gap(nfm(rotate_only(W, W_new)), nfm(W)) < 1e-12
    assert relative_gap(nfm(whiten(W, W_new)), nfm(W)) > 0.1


@pytest.mark.parametrize("shape", SHAPES)
def test_no_rotation_comes_nearer(shape):
    W, W_new = draw(*shape), draw(*shape, seed=1)
    whitened, rotated = whiten(W, W_new), rotate_only(W, W_new)
    for seed in range(50):
        O = rotation(len(W), seed)  # noqa: E741
        assert (whitened - W).norm() < (O @ W_new - W).norm()
        assert (rotated - W_new).norm() < (O @ W - W_new).norm()


@pytest.mark.parametrize("shape", [(4, 9), (6, 6)])
def test_whitening_against_scipy(shape):
    W, W_new = draw(*shape), draw(*shape, seed=1)
    # scipy looks for R with W_new^T R near W^T, that is, R^T = Q
    R, _ = scipy.linalg.orthogonal_procrustes(W_new.numpy().T, W.numpy().T)
    assert relative_gap(whiten(W, W_new), R.T @ W_new.numpy()) < 1e-12


def test_polar_is_orthogonal_and_leaves_a_positive_factor():
    A = draw(5, 5)
    Q = polar(A)
    P = Q.T @ A
    assert relative_gap(Q.T @ Q, torch.eye(5, dtype=torch.float64)) < 1e-12
    assert relative_gap(P, P.T) < 1e-12
    assert torch.linalg.eigvalsh(P).min() > 0


# --- Newton-Schulz -----------------------------------------------------------


def test_newton_schulz_agrees_where_singular_values_are_not_small():
    A = polar(draw(5, 5)) @ torch.diag(torch.linspace(0.3, 1, 5, dtype=torch.float64))
    assert relative_gap(polar_newton_schulz(A), polar(A)) < 1e-12


def test_newton_schulz_acts_on_singular_values_alone():
    U, V = rotation(4, 1), rotation(4, 2)
    s = np.array([1.0, 0.1, 1e-3, 1e-6])
    expected = s / np.linalg.norm(s)
    for _ in range(10):
        expected = expected * (15 - 10 * expected**2 + 3 * expected**4) / 8
    found = polar_newton_schulz(U @ torch.diag(torch.tensor(s)) @ V.T)
    expected = U @ torch.diag(torch.tensor(expected)) @ V.T
    assert relative_gap(found, expected) < 1e-12


def test_ten_steps_change_the_gram_matrix_of_a_square_layer():
    """And of no layer that is clearly wider than tall, whatever the width."""
    for shape, converged in (((64, 64), False), ((64, 256), True)):
        W = draw(*shape)
        W_new = W + 1e-2 * draw(*shape, seed=1)
        approximate = whiten(W, W_new, factor=polar_newton_schulz)
        gap = relative_gap(nfm(approximate), nfm(W_new))
        assert (gap < 1e-9) == converged, (shape, gap)
        assert relative_gap(nfm(whiten(W, W_new)), nfm(W_new)) < 1e-12


# --- the horizontal gradient -------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_horizontal_gradient_is_orthogonal_to_every_rotation(shape):
    W, dW = draw(*shape), draw(*shape, seed=1)
    D = horizontal(W, dW)
    for seed in range(5):
        A = draw(len(W), len(W), seed=seed)
        spin = (A - A.T) @ W
        cosine = (D * spin).sum() / (D.norm() * spin.norm())
        assert abs(cosine) < 1e-12
        assert abs((dW * spin).sum() / (dW.norm() * spin.norm())) > 1e-6
    # and what was removed changes the Gram matrix at second order only
    removed = dW - D
    assert relative_gap(removed.T @ W, -(W.T @ removed)) < 1e-12


def test_horizontal_gradient_with_dead_units():
    """Rows of zeros: rotations among them move nothing, and 0/0 must not appear."""
    W, dW = draw(5, 8), draw(5, 8, seed=1)
    W[3:] = 0
    assert torch.equal(horizontal(W, dW)[3:].isfinite(), torch.ones(2, 8).bool())
    assert relative_gap(horizontal(W, W), W) < 1e-12  # a change of scale stays


def test_horizontal_gradient_against_a_sylvester_solver():
    W, dW = draw(5, 8), draw(5, 8, seed=1)
    K, N = (W @ W.T).numpy(), (dW @ W.T - W @ dW.T).numpy()
    S = torch.tensor(scipy.linalg.solve_sylvester(K, K, N))
    assert relative_gap(horizontal(W, dW), dW - S @ W) < 1e-12


@pytest.mark.parametrize("shape", SHAPES)
def test_a_whitened_step_is_the_horizontal_one_to_first_order(shape):
    W, dW = draw(*shape), draw(*shape, seed=1)
    gaps, plain = [], []
    for step in (1e-3, 1e-4):
        whitened = whiten(W, W - step * dW)
        gaps.append(float((whitened - (W - step * horizontal(W, dW))).norm()))
        plain.append(float((whitened - (W - step * dW)).norm()))
    assert gaps[0] / gaps[1] == pytest.approx(100, rel=0.05)
    assert plain[0] / plain[1] == pytest.approx(10, rel=0.05)


# --- the optimiser -----------------------------------------------------------


def test_one_step_by_hand_on_matrices_filters_and_biases():
    net = nn.Sequential(
        nn.Conv2d(2, 3, 3, dtype=torch.float64), nn.Flatten(), nn.Linear(12, 4).double()
    )
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(draw(*p.shape, seed=i))
    X, Y = draw(5, 2, 4, 4, seed=9), draw(5, 4, seed=10)
    before = [p.detach().clone() for p in net.parameters()]
    F.mse_loss(net(X), Y).backward()
    GramSGD(net.parameters(), lr=0.1).step()
    for old, new in zip(before, net.parameters(), strict=True):
        expected = old - 0.1 * new.grad
        if old.dim() > 1:
            expected = whiten(old.flatten(1), expected.flatten(1)).view_as(old)
        assert relative_gap(new, expected) < 1e-12


def test_the_identity_as_correction_is_plain_descent():
    X = draw(30, 4)
    Y = X[:, :2] ** 2
    nets = [FullyConnected((4, 8, 2), seed=0, dtype=torch.float64) for _ in range(3)]
    keep = partial(GramSGD, momentum=0.9, correct=lambda W, W_new: W_new)
    train(nets[0], X, Y, lr=0.05, steps=20, momentum=0.9)
    train(nets[1], X, Y, lr=0.05, steps=20, optimizer=keep)
    train(nets[2], X, Y, lr=0.05, steps=20, optimizer=partial(GramSGD, momentum=0.9))
    plain, same, whitened = (net.weights[0] for net in nets)
    assert relative_gap(same, plain) < 1e-12
    assert relative_gap(whitened, plain) > 1e-3


def test_rotation_only_never_moves_a_gram_matrix():
    X = draw(30, 4)
    net = FullyConnected((4, 8, 2), seed=0, dtype=torch.float64)
    before = [nfm(W) for W in net.weights]
    start = F.mse_loss(net(X), X[:, :2]).item()
    history = train(
        net,
        X,
        X[:, :2],
        lr=0.1,
        steps=50,
        optimizer=partial(GramSGD, correct=rotate_only),
    )
    assert history.losses[-1] < 0.9 * start  # it does learn something
    for old, W in zip(before, net.weights, strict=True):
        assert relative_gap(nfm(W), old) < 1e-10


def test_parameters_without_gradient_stay():
    frozen, free = (nn.Parameter(draw(3, 3, seed=s)) for s in (0, 1))
    before = frozen.detach().clone()
    free.grad = draw(3, 3, seed=2)
    GramSGD([frozen, free], lr=0.1).step()
    assert torch.equal(frozen, before)
