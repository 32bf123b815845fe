import pytest
import torch
import torch.nn.functional as F
from torch import nn

from agop.critical import critical_point
from agop.features import nfm
from agop.linearization import (
    VirtualPath,
    covariance_step,
    fact,
    gram_step,
    homogeneous_slope,
    layer_uses,
    linear_readout,
    relative_gap,
    surrogate,
    surrogate_slope,
)
from agop.networks import FullyConnected
from agop.training import train

TOLERANCE = 1e-12
WIDTHS = (5, 7, 6, 3)


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def network(activation="gelu", bias=True, seed=0, widths=WIDTHS):
    return FullyConnected(widths, activation, bias, seed=seed, dtype=torch.float64)


def targets(loss, n=20):
    Y = draw(n, 3, seed=1)
    return Y.argmax(1) if loss is F.cross_entropy else Y


def by_autograd(net, X, Y, loss):
    """Gradients of one layer after the other, from the layer's input upwards."""
    for layer, W in enumerate(net.weights):
        h = net.hidden(X)[layer].detach().requires_grad_()
        value = loss(net.forward_from(h, layer), Y)
        dW, dH = torch.autograd.grad(value, (W, h))
        yield W.detach(), h.detach(), dW, dH


class Tied(nn.Module):
    """One square layer, used twice."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 5, dtype=torch.float64)
        self.readout = nn.Linear(5, 3, dtype=torch.float64)
        with torch.no_grad():
            self.layer.weight.copy_(draw(5, 5, seed=2))
            self.readout.weight.copy_(draw(3, 5, seed=3))

    def forward(self, X):
        return self.readout(torch.tanh(self.layer(torch.tanh(self.layer(X)))))


class Residual(Tied):
    """One square layer on a side path of the identity."""

    def forward(self, X):
        return self.readout(X + torch.tanh(self.layer(X)))


# --- what a layer sees and gets back -----------------------------------------


@pytest.mark.parametrize("loss", [F.mse_loss, F.cross_entropy])
@pytest.mark.parametrize("n", [20, 4, 1])
def test_uses_against_autograd_layer_by_layer(loss, n):
    net, X, Y = network(), draw(20, 5)[:n], targets(loss)[:n]
    uses = layer_uses(net, X, Y, loss)
    for use, (W, h, dW, dH) in zip(uses, by_autograd(net, X, Y, loss), strict=True):
        torch.testing.assert_close(use.H, h, rtol=0, atol=0)
        assert relative_gap(use.dW, dW) < TOLERANCE
        assert relative_gap(use.dH, dH) < TOLERANCE
        assert relative_gap(W.T @ dW, dH.T @ h) < TOLERANCE  # the equation itself


@pytest.mark.parametrize("kind", [Tied, Residual])
def test_the_equation_holds_over_uses_and_not_over_total_gradients(kind):
    net, X, Y = kind(), draw(20, 5), targets(F.mse_loss)
    W = net.layer.weight
    x = X.clone().requires_grad_()
    dW, dX = torch.autograd.grad(F.mse_loss(net(x), Y), (W, x))
    uses = [u for u in layer_uses(net, X, Y, F.mse_loss) if u.layer is net.layer]
    assert len(uses) == (2 if kind is Tied else 1)
    assert relative_gap(sum(u.dW for u in uses), dW) < TOLERANCE
    assert relative_gap(W.T @ dW, sum(u.dH.T @ u.H for u in uses)) < TOLERANCE
    assert relative_gap(W.T @ dW, dX.T @ X) > 0.1  # the gradient through everything


def test_positions_of_a_sequence_count_as_samples():
    layer = nn.Linear(5, 3, dtype=torch.float64)
    X, Y = draw(4, 6, 5), draw(4, 6, 3, seed=1)
    (use,) = layer_uses(layer, X, Y, F.mse_loss)
    assert use.H.shape == (24, 5)
    assert use.G.shape == (24, 3)
    (dW,) = torch.autograd.grad(F.mse_loss(layer(X), Y), layer.weight)
    assert relative_gap(use.dW, dW) < TOLERANCE


def test_a_use_keeps_the_weights_of_its_moment():
    net, X, Y = network(), draw(20, 5), targets(F.mse_loss)
    use = layer_uses(net, X, Y, F.mse_loss)[0]
    dH = use.dH
    with torch.no_grad():
        use.layer.weight.mul_(2)
    assert torch.equal(use.dH, dH)


def test_uses_leave_no_hooks_and_no_gradients():
    net, X, Y = network(), draw(20, 5), targets(F.mse_loss)
    layer_uses(net, X, Y, F.mse_loss)
    assert all(not layer._forward_hooks for layer in net.layers)
    assert all(p.grad is None for p in net.parameters())
    with pytest.raises(ValueError, match=r"at least one nn\.Linear"):
        layer_uses(nn.Identity(), X, X, F.mse_loss)


def test_relative_gap_needs_equal_shapes():
    with pytest.raises(ValueError, match="same shape"):
        relative_gap(torch.ones(2, 1), torch.ones(2))


# --- one step ----------------------------------------------------------------


@pytest.mark.parametrize("loss", [F.mse_loss, F.cross_entropy])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_gram_step_against_the_optimiser(loss, decay):
    net, X, Y, step = network(), draw(20, 5), targets(loss), 0.5
    uses = layer_uses(net, X, Y, loss)
    before = [W.detach().clone() for W in net.weights]
    optimiser = torch.optim.SGD(net.parameters(), lr=step, weight_decay=decay)
    loss(net(X), Y).backward()
    optimiser.step()
    for use, old, new in zip(uses, before, net.weights, strict=True):
        found = gram_step(use, step=step, decay=decay)
        found_without_square = found - step**2 * use.dW.T @ use.dW
        assert relative_gap(found, nfm(new) - nfm(old)) < TOLERANCE
        assert relative_gap(found_without_square, nfm(new) - nfm(old)) > 1e-3


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.Adam(p, lr=0.1),
    ],
    ids=["momentum", "adam"],
)
def test_gram_step_is_not_that_of_momentum_or_adam(make):
    net, X, Y = network(), draw(20, 5), targets(F.mse_loss)
    optimiser = make(net.parameters())
    for _ in range(5):
        uses = layer_uses(net, X, Y, F.mse_loss)
        old = net.weights[0].detach().clone()
        optimiser.zero_grad()
        F.mse_loss(net(X), Y).backward()
        optimiser.step()
    found = gram_step(uses[0], step=0.1)
    assert relative_gap(found, nfm(net.weights[0]) - nfm(old)) > 0.1


def test_covariance_step_against_a_loop():
    H, dH = draw(9, 4), draw(9, 4, seed=1)
    expected = torch.zeros(4, 4, dtype=torch.float64)
    for h, g in zip(H, dH, strict=True):
        expected += torch.outer(h - 0.3 * g, h - 0.3 * g) - torch.outer(h, h)
    assert relative_gap(covariance_step(H, dH, step=0.3), expected) < TOLERANCE


def test_gram_and_covariance_steps_differ_by_two_squares():
    net, X, Y, step = network(), draw(20, 5), targets(F.mse_loss), 0.7
    for use in layer_uses(net, X, Y, F.mse_loss):
        gram = gram_step(use, step=step)
        covariance = covariance_step(use.H, use.dH, step=step)
        squares = step**2 * (use.dW.T @ use.dW - use.dH.T @ use.dH)
        assert relative_gap(covariance + squares, gram) < TOLERANCE
        assert relative_gap(covariance, gram) > 1e-3


# --- many steps --------------------------------------------------------------


def test_virtual_path_and_the_telescoped_gram_matrix():
    net, X, Y, lr, steps = network(), draw(20, 5), targets(F.mse_loss), 0.2, 7
    twin = network()
    path = VirtualPath(X, Y, F.mse_loss, step=lr, keep={0, steps})
    W0 = net.weights[0].detach().clone()
    train(net, X, Y, lr=lr, steps=steps, record_every=1, callback=path)

    moved, squares = X.clone(), torch.zeros(5, 5, dtype=torch.float64)
    for _ in range(steps):  # the same by hand
        x = X.clone().requires_grad_()
        value = F.mse_loss(twin(x), Y)
        dX, *dtheta = torch.autograd.grad(value, (x, *twin.parameters()))
        dW = dtheta[0]
        moved, squares = moved - lr * dX, squares + lr**2 * dW.T @ dW
        with torch.no_grad():
            for p, g in zip(twin.parameters(), dtheta, strict=True):
                p -= lr * g
    assert set(path.points) == {0, steps}
    assert relative_gap(path.points[steps], moved) < TOLERANCE
    gram = nfm(net.weights[0]) - nfm(W0)
    shift = moved - X
    exact = shift.T @ X + X.T @ shift + squares
    assert relative_gap(exact, gram) < TOLERANCE
    accumulated = moved.T @ moved - X.T @ X
    assert relative_gap(accumulated - shift.T @ shift + squares, gram) < TOLERANCE
    assert relative_gap(accumulated, gram) > 1e-3


# --- at rest -----------------------------------------------------------------


@pytest.mark.parametrize("loss", [F.mse_loss, F.cross_entropy])
def test_fact_at_a_critical_point_and_not_before(loss):
    net, X, Y, decay = network("tanh", bias=False), draw(20, 5), targets(loss), 0.02
    gaps = []
    for iterations in (20, 300):
        steps = 20 if iterations == 300 else 0
        critical_point(
            net, X, Y, loss, decay=decay, iterations=iterations, newton_steps=steps
        )
        gaps.append(
            [
                relative_gap(fact(use.H, use.dH, decay=decay), nfm(use.layer.weight))
                for use in layer_uses(net, X, Y, loss)
            ]
        )
    assert max(gaps[1]) < TOLERANCE
    assert min(gaps[0]) > 1e-3


# --- the surrogate -----------------------------------------------------------


def surrogate_by_loops(H, W, Y):
    Z = H @ W.T
    gram = torch.stack([torch.stack([z @ v for v in Z]) for z in Z])  # (n, n)
    return torch.stack([y @ gram @ y for y in Y.T]).mean()


def test_surrogate_and_its_slope_against_loops_and_autograd():
    net, X, Y = network(), draw(20, 5), targets(F.mse_loss)
    for use in layer_uses(net, X, Y, F.mse_loss):
        W = use.layer.weight.detach()
        expected = surrogate_by_loops(use.H, W, Y).item()
        assert surrogate(use.H, W, Y) == pytest.approx(expected, rel=1e-12)
        step = torch.zeros((), dtype=torch.float64, requires_grad=True)
        moved = surrogate_by_loops(use.H, W - step * use.dW, Y)
        (slope,) = torch.autograd.grad(moved, step)
        assert surrogate_slope(use.H, use.dH, Y) == pytest.approx(
            slope.item(), rel=1e-11
        )


def slopes(activation, seed=0):
    net = network(activation, bias=False, seed=seed, widths=(5, 7, 6, 1))
    X = draw(20, 5, seed=seed)
    y = X[:, :1] * X[:, 1:2] + X[:, :1]
    uses = layer_uses(net, X, y, F.mse_loss)
    f, g = net(X), -uses[-1].G
    return [
        (surrogate_slope(u.H, u.dH, y), homogeneous_slope(u.H, f, g, y)) for u in uses
    ]


def test_the_printed_slope_is_exact_for_a_linear_function_of_the_input():
    for exact, printed in slopes("identity"):
        assert printed == pytest.approx(exact, rel=1e-11)
    exact, printed = slopes("relu")[-1]  # the output layer
    assert printed == pytest.approx(exact, rel=1e-11)


def test_the_printed_slope_is_not_exact_below():
    exact, printed = slopes("relu")[0]
    assert abs(printed / exact - 1) > 1e-2


def test_the_printed_slope_against_the_kernel_matrix():
    H, f, g, y = draw(8, 3), draw(8, seed=1), draw(8, seed=2), draw(8, 1, seed=3)
    expected = 2 * (f @ y[:, 0]) * (y[:, 0] @ (H @ H.T) @ g)
    assert homogeneous_slope(H, f, g, y) == pytest.approx(expected.item(), rel=1e-12)


def test_shapes_of_targets_are_checked():
    H = draw(8, 3)
    with pytest.raises(ValueError, match=r"Y must have shape \(8, C\)"):
        surrogate(H, draw(2, 3), draw(8))
    with pytest.raises(ValueError, match="f must hold one number"):
        homogeneous_slope(H, draw(8, 2), draw(8), draw(8))


# --- the best linear readout -------------------------------------------------


def test_linear_readout_against_the_normal_equations_and_lstsq():
    H, Y = draw(20, 6), draw(20, 2, seed=1)
    ridge = 0.3 * torch.eye(6, dtype=torch.float64)
    expected = H @ torch.linalg.inv(H.T @ H + ridge) @ H.T @ Y
    assert relative_gap(linear_readout(H, Y, ridge=0.3), expected) < TOLERANCE
    expected = H @ torch.linalg.lstsq(H, Y).solution
    assert relative_gap(linear_readout(H, Y), expected) < TOLERANCE


def test_linear_readout_of_dependent_and_of_many_features():
    H, Y = draw(20, 6), draw(20, 2, seed=1)
    repeated = torch.cat([H, H, torch.zeros(20, 1, dtype=torch.float64)], 1)
    assert relative_gap(linear_readout(repeated, Y), linear_readout(H, Y)) < 1e-11
    assert relative_gap(linear_readout(draw(20, 25), Y), Y) < 1e-11
