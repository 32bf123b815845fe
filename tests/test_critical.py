import pytest
import torch
import torch.nn.functional as F

from agop.critical import critical_point
from agop.networks import FullyConnected


@pytest.fixture
def problem():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(30, 3, dtype=torch.float64, generator=generator)
    return X, X[:, :2] * X[:, 1:]


def gradient_norm(net, X, Y, decay):
    value = F.mse_loss(net(X), Y)
    value = value + decay / 2 * sum(p.square().sum() for p in net.parameters())
    gradients = torch.autograd.grad(value, list(net.parameters()))
    return torch.cat([g.flatten() for g in gradients]).norm().item()


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_vanishes_to_rounding(problem, seed):
    X, Y = problem
    net = FullyConnected((3, 5, 2), "tanh", True, seed=seed, dtype=torch.float64)
    start = gradient_norm(net, X, Y, 0.01)
    norm = critical_point(net, X, Y, F.mse_loss, decay=0.01)
    assert norm < 1e-14 < start
    assert gradient_norm(net, X, Y, 0.01) == pytest.approx(norm, abs=1e-14)


def test_a_linear_model_rests_at_the_ridge_solution(problem):
    X, Y = problem
    net = FullyConnected((3, 2), dtype=torch.float64)
    critical_point(net, X, Y, F.mse_loss, decay=0.1)
    ridge = 0.1 / 2 * Y.numel() * torch.eye(3, dtype=torch.float64)
    expected = torch.linalg.solve(X.T @ X + ridge, X.T @ Y).T
    torch.testing.assert_close(net.weights[0].detach(), expected, rtol=1e-12, atol=0)


def test_the_callback_sees_the_weights_that_its_norm_belongs_to(problem):
    X, Y = problem
    net = FullyConnected((3, 5, 2), "tanh", dtype=torch.float64)
    seen = []

    def note(norm):
        seen.append((norm, gradient_norm(net, X, Y, 0.01)))

    critical_point(net, X, Y, F.mse_loss, decay=0.01, iterations=60, callback=note)
    assert len(seen) >= 4
    for told, measured in seen:
        assert told == pytest.approx(measured, rel=1e-6, abs=1e-14)


def test_newton_steps_never_leap_away(problem):
    X, Y = problem
    net = FullyConnected((3, 5, 2), "tanh", dtype=torch.float64, seed=1)
    told = []
    # one round of L-BFGS leaves the weights where a full Newton step leaps away
    critical_point(
        net, X, Y, F.mse_loss, decay=0.01, iterations=20, callback=told.append
    )
    assert told[1:] == sorted(told[1:], reverse=True)
    assert gradient_norm(net, X, Y, 0.01) == pytest.approx(told[-1], abs=1e-14)


def test_bad_arguments_are_named(problem):
    X, Y = problem
    net = FullyConnected((3, 2), dtype=torch.float64)
    with pytest.raises(ValueError, match="decay"):
        critical_point(net, X, Y, F.mse_loss, decay=-1.0)
    with pytest.raises(ValueError, match="iterations"):
        critical_point(net, X, Y, F.mse_loss, decay=0.1, iterations=0)
