import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from agop.deep_linear import flow, product, squared_error, stack
from agop.linear_rfm import (
    agop_power,
    complete_matrix,
    depth_to_power,
    linear_rfm,
    metric_ridge,
    schatten,
)
from agop.networks import DeepLinear
from agop.similarity import matrix_power


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


X = normal(30, 5)
Y = X @ normal(5, 3, seed=1) + 0.1 * normal(30, 3, seed=2)


def test_schatten_norms_with_names():
    J = normal(2, 3, 5)
    torch.testing.assert_close(schatten(J, 2.0), J.square().sum((1, 2)))
    torch.testing.assert_close(schatten(J, 1.0), torch.linalg.matrix_norm(J, "nuc"))


@pytest.mark.parametrize("power", [0.5, 0.75, 1.0])
def test_power_of_the_agop(power):
    theta = normal(5, 5)
    expected = matrix_power(theta.T @ theta + 0.1 * torch.eye(5), power)
    found = agop_power(theta, power, smoothing=0.1)
    torch.testing.assert_close(found, expected.to(theta))
    low = agop_power(normal(2, 3, 5), power, smoothing=0.1)  # stacked, C < d
    assert torch.linalg.eigvalsh(low).min() == pytest.approx(0.1**power)


def test_metric_ridge_is_kernel_ridge_and_minimises_its_objective():
    F = normal(5, 5, seed=3)
    M, ridge = F @ F.T, 0.7
    theta = metric_ridge(X, Y, M, ridge)
    kernel = X @ M @ X.T + ridge * torch.eye(30)  # n equations instead of d
    torch.testing.assert_close(theta, Y.T @ torch.linalg.inv(kernel) @ X @ M)
    gradient = (theta @ X.T - Y.T) @ X + ridge * theta @ torch.linalg.inv(M)
    assert gradient.abs().max() < 1e-9


def test_metric_ridge_stays_in_the_range_of_a_singular_metric():
    M = torch.diag(torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0])).to(X)
    theta = metric_ridge(X, Y, M, 0.5)
    few = X[:, :2]
    expected = torch.linalg.solve(few.T @ few + 0.5 * torch.eye(2), few.T @ Y).T
    torch.testing.assert_close(theta[:, :2], expected)
    assert torch.equal(theta[:, 2:], torch.zeros(3, 3).to(X))


@pytest.mark.parametrize("power", [0.5, 2 / 3])
def test_fixed_points_are_critical_for_the_schatten_penalty(power):
    # a general-purpose optimiser on the squared error + (2 μ / p) ‖Θ‖_p^p
    ridge, p = 0.5, 2 - 2 * power
    smoothing = [*torch.logspace(0, -14, 60).tolist(), *[0.0] * 100]
    path = linear_rfm(X, Y, power=power, ridge=ridge, smoothing=smoothing)
    assert (path[-1] - path[-2]).abs().max() < 1e-12

    def objective(flat):
        theta = torch.from_numpy(flat).view(3, 5)
        penalty = 2 * ridge / p * schatten(theta, p)
        return float((X @ theta.T - Y).square().sum() + penalty)

    end = path[-1].flatten().numpy()
    found = minimize(objective, end + 1e-3, method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(found.x, end, rtol=0, atol=1e-4)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_trained_linear_network_is_a_fixed_point_of_its_power_only(depth):
    decay = 0.05
    nets = [DeepLinear((5, *[6] * (depth - 1), 3), init="torch", seed=s,
                       dtype=torch.float64) for s in range(2)]  # fmt: skip
    gradient = squared_error(X, Y)
    (end,) = flow(stack(nets), gradient, [150.0], step=0.1, weight_decay=decay)
    power, p = depth_to_power(depth)
    assert p == pytest.approx(2 - 2 * power)
    for J in product(end):

        def step(s, J=J):
            again = metric_ridge(X, Y, agop_power(J, s), decay * Y.numel() / 2)
            return ((again - J).norm() / J.norm()).item()

        assert step(power) < 1e-6
        assert min(step(power + 0.15), step(power - 0.15)) > 1e-3


def test_a_lost_direction_needs_smoothing():
    first, later = linear_rfm(X, Y, power=0.5, ridge=1.0, smoothing=[0.0, 0.0])
    span = torch.linalg.svd(first).Vh[3:]  # orthogonal to the first fit
    assert (later @ span.T).abs().max() < 1e-12
    _, smooth = linear_rfm(X, Y, power=0.5, ridge=1.0, smoothing=[0.1, 0.1])
    assert (smooth @ span.T).abs().max() > 1e-3


def test_completion_solves_each_row():
    truth = normal(6, 5) @ normal(5, 5, seed=1)
    seen = torch.rand(6, 5, generator=torch.Generator().manual_seed(0)) < 0.6
    smoothing = [1.0, 0.3]
    completed = complete_matrix(truth, seen, power=0.75, smoothing=smoothing, ridge=0.1)
    M = torch.eye(5).to(truth)
    for epsilon in smoothing:  # row by row, on the observed entries only
        theta = torch.zeros_like(truth)
        for i, row in enumerate(seen):
            block = M[row][:, row] + 0.1 * torch.eye(int(row.sum()))
            theta[i] = torch.linalg.solve(block, truth[i, row]) @ M[row]
        A = theta.T @ theta
        A = A / torch.linalg.eigvalsh(A)[-1]
        M = matrix_power(A + epsilon * torch.eye(5), 0.75)
    torch.testing.assert_close(completed, theta)


def test_completion_recovers_low_rank_and_not_full_rank():
    smoothing = torch.logspace(0, -8, 100).tolist()
    truth = torch.stack([normal(20, 1) @ normal(1, 20, seed=1), normal(20, 20)])
    seen = torch.rand(2, 20, 20, generator=torch.Generator().manual_seed(0)) < 0.5
    error = complete_matrix(truth, seen, power=1.0, smoothing=smoothing) - truth
    unseen = (error.square() * ~seen).sum((1, 2)) / (truth.square() * ~seen).sum((1, 2))
    assert unseen[0] < 1e-6
    assert unseen[1] > 0.5


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: metric_ridge(X, Y, torch.eye(3), 1.0), "M must have shape"),
        (lambda: metric_ridge(X, Y, torch.eye(5), 0.0), "ridge"),
        (lambda: complete_matrix(Y, Y > 9.0, power=1.0, smoothing=[]), "smoothing"),
        (lambda: complete_matrix(Y, Y, power=1.0, smoothing=[1.0]), "observed"),
        (lambda: schatten(Y, 0.0), "p must"),
    ],
)
def test_bad_arguments_are_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()
