"""Stacks of deep linear networks against autograd, PyTorch's optimisers and SciPy."""

import copy
import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from agop.deep_linear import (
    alignment,
    descend,
    flow,
    imbalance,
    imbalance_norm,
    layer_gradients,
    minibatches,
    power_gap,
    product,
    squared_error,
    stack,
)
from agop.networks import DeepLinear
from agop.similarity import cosine, matrix_power
from agop.training import train


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


X, Y = normal(24, 6), normal(24, 3, seed=1)


def networks(depth, count=3, init="lecun_normal"):
    widths = (6, *range(5, 4 + depth), 3)  # all widths differ
    return [
        DeepLinear(widths, init=init, seed=seed, dtype=torch.float64)
        for seed in range(count)
    ]


def difference(W, nets):
    return max(
        (w[s] - v).abs().max().item()
        for s, net in enumerate(nets)
        for w, v in zip(W, net.weights, strict=True)
    )


def logistic(J):
    """Gradient of mean log(1 + exp(-y f)): a loss that is no squared error."""
    f = J @ X.mT  # (S, C, n)
    return -(Y.sign().mT * torch.sigmoid(-f * Y.sign().mT)) @ X / Y.numel()


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_gradients_agree_with_autograd(depth):
    nets = networks(depth)
    gradients = layer_gradients(stack(nets), squared_error(X, Y))
    for s, net in enumerate(nets):
        (net(X) - Y).square().mean().backward()
        for g, W in zip(gradients, net.weights, strict=True):
            torch.testing.assert_close(g[s], W.grad, rtol=0, atol=1e-13)


def test_gradients_of_another_loss_agree_with_autograd():
    nets = networks(3)
    gradients = layer_gradients(stack(nets), logistic)
    for s, net in enumerate(nets):
        torch.nn.functional.softplus(-Y.sign() * net(X)).mean().backward()
        for g, W in zip(gradients, net.weights, strict=True):
            torch.testing.assert_close(g[s], W.grad, rtol=0, atol=1e-13)


@pytest.mark.parametrize("gradient", [squared_error(X, Y), logistic])
def test_the_identity_behind_conservation(gradient):
    W = stack(networks(4))
    G = layer_gradients(W, gradient)
    for lower in range(3):
        left = W[lower + 1].mT @ G[lower + 1]
        torch.testing.assert_close(left, G[lower] @ W[lower].mT, rtol=0, atol=1e-13)


OPTIMIZERS = {
    "sgd": {},
    "sgd momentum": {"momentum": 0.9},
    "sgd decay": {"weight_decay": 0.1},
    "sgd momentum decay": {"momentum": 0.7, "weight_decay": 0.1},
    "adam decay": {"weight_decay": 0.1},
    "adamw decay": {"weight_decay": 0.1},
}


@pytest.mark.parametrize("batch_size", [None, 7])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_descend_agrees_with_train(kind, batch_size):
    nets, optimizer = networks(3), kind.split()[0]
    source = (
        minibatches(X, Y, batch_size, seed=4) if batch_size else squared_error(X, Y)
    )
    start, early, end = descend(
        stack(nets), source, [0, 5, 30], lr=0.02, optimizer=optimizer,
        **OPTIMIZERS[kind],
    )  # fmt: skip
    assert difference(start, nets) == 0
    for net in nets:
        history = train(
            net, X, Y, lr=0.02, optimizer=optimizer, batch_size=batch_size, steps=30,
            seed=4, snapshots=[5], **OPTIMIZERS[kind],
        )  # fmt: skip
        first = history.snapshots[5]["layers.0.weight"]
        assert min((w - first).abs().max() for w in early[0]) < 1e-11
    assert difference(end, nets) < 1e-10


def test_each_network_has_its_own_numbers():
    nets = networks(3, 4)
    options = {"lr": [0.1, 0.02, 0.02, 0.02], "weight_decay": [0.0, 0.3, 0.0, 0.0],
               "momentum": [0.0, 0.0, 0.9, 0.0]}  # fmt: skip
    W = stack(nets)
    tensors = {k: torch.tensor(v, dtype=torch.float64) for k, v in options.items()}
    (end,) = descend(W, squared_error(X, Y), [20], **tensors)
    for s, net in enumerate(nets):
        train(net, X, Y, steps=20, **{k: v[s] for k, v in options.items()})
    assert difference(end, nets) < 1e-12
    assert difference(W, networks(3, 4)) == 0  # the start is left alone


def test_flow_agrees_with_another_integrator():
    # SciPy's method of order 8 with step control, on autograd's gradients
    net, decay, t = networks(3, 1)[0], 0.1, 3.0
    shapes = [W.shape for W in net.weights]

    def velocity(_, theta):
        parts = torch.from_numpy(theta).split([s.numel() for s in shapes])
        W = [p.view(s).requires_grad_() for p, s in zip(parts, shapes, strict=True)]
        loss = (X @ (W[2] @ W[1] @ W[0]).T - Y).square().mean()
        penalty = decay / 2 * sum(w.square().sum() for w in W)
        return -np.concatenate(
            [g.flatten().numpy() for g in torch.autograd.grad(loss + penalty, W)]
        )

    start = np.concatenate([W.detach().flatten().numpy() for W in net.weights])
    other = solve_ivp(velocity, (0, t), start, "DOP853", rtol=1e-12, atol=1e-12).y[
        :, -1
    ]
    (end,) = flow(
        stack([net]), squared_error(X, Y), [t], step=0.005, weight_decay=decay
    )
    ours = np.concatenate([w.flatten().numpy() for w in end])
    np.testing.assert_allclose(ours, other, rtol=0, atol=1e-9)


def test_flow_is_of_fourth_order():
    W, gradient = stack(networks(3)), squared_error(X, Y)
    ends = {h: flow(W, gradient, [2.0], step=h)[0][0] for h in (0.1, 0.05, 0.01)}
    coarse, fine = ((ends[h] - ends[0.01]).abs().max() for h in (0.1, 0.05))
    assert 12 < coarse / fine < 20


def test_flow_keeps_what_was_asked_for():
    W, gradient = stack(networks(2)), squared_error(X, Y)
    start, middle, end = flow(W, gradient, [0.0, 0.7, 2.0], step=0.05)
    assert all(torch.equal(a, b) for a, b in zip(start, W, strict=True))
    (straight,) = flow(W, gradient, [2.0], step=0.05)
    torch.testing.assert_close(end[0], straight[0], rtol=0, atol=1e-7)
    (rest,) = flow(middle, gradient, [1.3], step=0.05)
    torch.testing.assert_close(end[1], rest[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("gradient", [squared_error(X, Y), logistic])
@pytest.mark.parametrize("depth", [2, 3])
def test_imbalance_decays_at_twice_the_rate_of_each_network(depth, gradient):
    W, t = stack(networks(depth)), 5.0
    decay = torch.tensor([0.0, 0.1, 0.4], dtype=torch.float64)
    (end,) = flow(W, gradient, [t], step=0.005, weight_decay=decay)
    assert (end[0] - W[0]).abs().amax() > 0.05  # something moved
    for D, D0 in zip(imbalance(end), imbalance(W), strict=True):
        expected = torch.exp(-2 * decay * t)[:, None, None] * D0
        torch.testing.assert_close(D, expected, rtol=0, atol=1e-8)


def test_one_step_changes_the_imbalance_at_second_order_only():
    W, eta, decay = stack(networks(4)), 0.1, 0.3
    G = layer_gradients(W, squared_error(X, Y))
    (end,) = descend(W, squared_error(X, Y), [1], lr=eta, weight_decay=decay)
    for i, (D, D0) in enumerate(zip(imbalance(end), imbalance(W), strict=True)):
        second = G[i + 1].mT @ G[i + 1] - G[i] @ G[i].mT
        expected = (1 - eta * decay) ** 2 * D0 + eta**2 * second
        torch.testing.assert_close(D, expected, rtol=0, atol=1e-13)


def test_measures_agree_with_those_of_one_network():
    nets = networks(3)
    W = stack(nets)
    for s, net in enumerate(nets):
        J, W1 = net.product().detach(), net.weights[0].detach()
        A, gram = J.T @ J, W1.T @ W1
        torch.testing.assert_close(product(W)[s], J)
        for D, own in zip(imbalance(W), net.imbalance(), strict=True):
            torch.testing.assert_close(D[s], own)
        gap = torch.linalg.norm(A - gram @ gram @ gram)
        assert power_gap(W, relative=False)[s].item() == pytest.approx(gap.item())
        relative = gap / torch.linalg.norm(A)
        assert power_gap(W)[s].item() == pytest.approx(relative.item())
        stacked = torch.cat([D.flatten() for D in net.imbalance()]).norm()
        assert imbalance_norm(W)[s].item() == pytest.approx(stacked.item())
        for power in (None, 1.0, 0.5):
            # A has rank 3 of 6, and a root of its rounded zeros is no zero
            expected = cosine(gram, matrix_power(A, power or 1 / 3))
            assert alignment(W, power)[s].item() == pytest.approx(expected, abs=1e-5)


def test_balanced_weights_have_no_gap():
    W = stack(networks(4, init="balanced"))
    assert power_gap(W).max() < 1e-12
    assert (1 - alignment(W)).abs().max() < 1e-12
    assert (1 - alignment(W, 1 / 3)).min() > 1e-4


def test_minibatches_follow_seeded_permutations():
    order = torch.randperm(24, generator=torch.Generator().manual_seed(9))
    J = normal(2, 3, 6)
    first = next(minibatches(X, Y, 5, seed=9))(J)
    torch.testing.assert_close(first, squared_error(X[order[:5]], Y[order[:5]])(J))
    batches = minibatches(X, Y, 5, seed=9)
    epoch = [next(batches)(J) for _ in range(5)]  # 5, 5, 5, 5 and 4 rows
    weights = [5 / 24] * 4 + [4 / 24]
    mean = sum(w * g for w, g in zip(weights, epoch, strict=True))
    torch.testing.assert_close(mean, squared_error(X, Y)(J))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda W, g: flow(W, g, []), "times"),
        (lambda W, g: flow(W, g, [2.0, 1.0]), "times"),
        (lambda W, g: flow(W, g, [1.0], step=0.0), "step"),
        (lambda W, g: flow(W, g, [1.0], weight_decay=-1.0), "weight_decay"),
        (lambda W, g: descend(W, g, [1], lr=torch.ones(2)), "lr must .* 3 networks"),
        (lambda W, g: descend(W, g, [1], lr=math.nan), "lr"),
        (lambda W, g: descend(W, g, [3, 1], lr=0.1), "steps"),
        (lambda W, g: descend(W, g, [1], lr=0.1, optimizer="lion"), "optimizer"),
        (lambda W, g: descend(W, g, [1], lr=0.1, optimizer="adam", momentum=0.9),
         "momentum"),
        (lambda W, g: stack([]), "at least one"),
        (lambda W, g: stack([*networks(2), *networks(3)]), "same widths"),
        (lambda W, g: squared_error(X, Y[:5]), "X and Y"),
        (lambda W, g: alignment(W, -1.0), "power"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(call, match):
    with pytest.raises(ValueError, match=match):
        call(stack(networks(2)), squared_error(X, Y))


def test_divergence_is_named():
    with pytest.raises(FloatingPointError, match="before step 400"):
        descend(stack(networks(3)), squared_error(X, Y), [400], lr=50.0)


def test_a_stack_is_a_copy():
    nets = networks(2)
    before = copy.deepcopy(nets)
    stack(nets)[0].zero_()
    assert difference(stack(before), nets) == 0
