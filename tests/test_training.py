import copy
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from agop.networks import DeepLinear, FullyConnected
from agop.training import gradient_flow, train, train_many


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def network(seed=0, widths=(4, 9, 7, 3), activation="tanh", bias=True):
    return FullyConnected(widths, activation, bias, seed=seed, dtype=torch.float64)


def difference(net, other):
    pairs = zip(net.parameters(), other.parameters(), strict=True)
    return max((p - q).abs().max().item() for p, q in pairs)


X, Y = normal(50, 4), normal(50, 3, seed=1)
LABELS = Y.argmax(1)

# What train() must do, as one would write it with PyTorch's documented pieces.
OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "sgd decay": (torch.optim.SGD, {"weight_decay": 0.1}),
    "adam decay": (torch.optim.Adam, {"weight_decay": 0.1}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}),
}


@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_train_agrees_with_a_plain_loop(kind, loss, batch_size):
    net = network()
    reference = copy.deepcopy(net)
    make, options = OPTIMIZERS[kind]
    targets = Y if loss == "mse" else LABELS
    train(
        net,
        X,
        targets,
        lr=0.05,
        loss=loss,
        optimizer=kind.split()[0].replace("momentum", "sgd"),
        batch_size=batch_size,
        epochs=3,
        seed=7,
        **options,
    )

    optimizer = make(reference.parameters(), lr=0.05, foreach=False, **options)
    generator = torch.Generator().manual_seed(7)
    for _ in range(3):
        if batch_size is None:
            batches = [torch.arange(50)]
        else:
            order = torch.randperm(50, generator=generator)
            batches = [order[i : i + 16] for i in range(0, 50, 16)]
        for rows in batches:
            optimizer.zero_grad()
            outputs = reference(X[rows])
            if loss == "mse":
                F.mse_loss(outputs, Y[rows]).backward()
            else:
                F.cross_entropy(outputs, LABELS[rows]).backward()
            optimizer.step()
    assert difference(net, reference) < 1e-12


def test_one_step_by_hand():
    # f = X W^T: the gradient of the mean over entries is 2/(nC) (f - Y)^T X
    net = FullyConnected((4, 3), dtype=torch.float64)
    W = net.weights[0].detach().clone()
    gradient = 2 / (50 * 3) * (X @ W.T - Y).T @ X
    train(net, X, Y, lr=0.5, steps=1, weight_decay=0.2)
    expected = W - 0.5 * (gradient + 0.2 * W)
    torch.testing.assert_close(net.weights[0], expected, rtol=0, atol=1e-15)


def test_adamw_decay_is_decoupled_from_the_gradient():
    # With a vanishing gradient only the factor 1 - γλ is left.
    net = FullyConnected((4, 3), dtype=torch.float64)
    W = net.weights[0].detach().clone()
    train(net, X, net(X).detach(), lr=0.1, optimizer="adamw", steps=1, weight_decay=0.5)
    torch.testing.assert_close(net.weights[0], 0.95 * W)


def test_same_seed_same_bits_and_other_seed_other_batches():
    nets = [network() for _ in range(3)]
    state = torch.get_rng_state()
    for net, seed in zip(nets, (1, 1, 2), strict=True):
        train(net, X, Y, lr=0.1, batch_size=16, epochs=2, seed=seed)
    assert torch.equal(torch.get_rng_state(), state)
    assert difference(nets[0], nets[1]) == 0
    assert difference(nets[0], nets[2]) > 1e-6


def test_every_epoch_sees_every_sample_once():
    seen = []

    class Spy(nn.Module):
        def __init__(self):
            super().__init__()
            self.W = nn.Parameter(torch.ones(1, 1))

        def forward(self, X):
            if torch.is_grad_enabled():
                seen.append(X[:, 0].detach())
            return X @ self.W

    n = torch.arange(10.0)[:, None]
    train(Spy(), n, n, lr=1e-6, batch_size=4, epochs=2)
    assert [len(batch) for batch in seen] == [4, 4, 2, 4, 4, 2]
    first, second = torch.cat(seen[:3]), torch.cat(seen[3:])
    assert torch.equal(first.sort().values, n[:, 0])
    assert torch.equal(second.sort().values, n[:, 0])
    assert not torch.equal(first, second)


def test_history_is_what_the_snapshots_give():
    net, V, T = network(), normal(20, 4, seed=2), normal(20, 3, seed=3)
    snapshots = (0, 10, 25)
    history = train(
        net, X, Y, lr=0.1, batch_size=16, steps=25, record_every=10,
        snapshots=snapshots, X_val=V, Y_val=T,
    )  # fmt: skip
    assert history.steps == [0, 10, 20, 25]
    assert set(history.snapshots) == set(snapshots)
    probe = network(seed=5)
    for step, state in history.snapshots.items():
        probe.load_state_dict(state)
        i = history.steps.index(step)
        with torch.no_grad():
            for inputs, targets, losses, accuracies in [
                (X, Y, history.losses, history.accuracies),
                (V, T, history.val_losses, history.val_accuracies),
            ]:
                f = probe(inputs)
                assert losses[i] == pytest.approx(((f - targets) ** 2).mean().item())
                hits = sum(
                    int(f[p].argmax() == targets[p].argmax()) for p in range(len(f))
                )
                assert accuracies[i] == pytest.approx(hits / len(f))
    assert difference(probe, net) == 0  # the last snapshot is the trained network


def test_default_record_is_about_a_hundred_measures():
    history = train(network(), X, Y, lr=0.01, steps=1000)
    assert len(history.steps) == 101
    assert (history.steps[0], history.steps[-1]) == (0, 1000)


def test_single_output_accepts_flat_targets_and_has_no_accuracy():
    net = network(widths=(4, 8, 1))
    twin = copy.deepcopy(net)
    history = train(net, X, Y[:, 0], lr=0.1, steps=5)
    train(twin, X.numpy(), Y[:, :1].numpy(), lr=0.1, steps=5)
    assert difference(net, twin) == 0
    assert np.isnan(history.accuracies).all()


def test_classes_and_one_hot_targets_are_the_same():
    net, twin = network(), network()
    one_hot = F.one_hot(LABELS, 3)
    first = train(net, X, LABELS, loss="cross_entropy", lr=0.1, steps=5)
    second = train(twin, X, one_hot, loss="cross_entropy", lr=0.1, steps=5)
    assert difference(net, twin) == 0
    assert first.losses == second.losses


def test_stop_when_takes_a_threshold_or_a_callable():
    options = {"lr": 0.3, "steps": 400, "record_every": 5}
    full = train(network(), X, X[:, :3], **options)
    threshold = full.losses[20]
    stopped = train(network(), X, X[:, :3], stop_when=threshold, **options)
    assert stopped.steps[-1] == full.steps[20]
    assert stopped.losses == full.losses[:21]
    called = train(
        network(), X, X[:, :3], stop_when=lambda h: len(h.steps) == 4, **options
    )
    assert called.steps == [0, 5, 10, 15]


def test_callback_sees_the_network_at_the_recorded_steps():
    norms = {}

    def callback(step, net):
        norms[step] = net.weights[0].norm().item()

    history = train(
        network(), X, Y, lr=0.1, steps=7, record_every=3, snapshots=(6,),
        callback=callback,
    )  # fmt: skip
    assert list(norms) == [0, 3, 6, 7]
    assert norms[6] == history.snapshots[6]["layers.0.weight"].norm().item()


def test_frozen_layers_stay_and_gradients_are_cleared_also_without_grad():
    net = network()
    net.layers[0].requires_grad_(False)
    before = copy.deepcopy(net)
    with torch.no_grad():
        train(net, X, Y, lr=0.1, steps=3)
    assert torch.equal(net.weights[0], before.weights[0])
    assert not torch.equal(net.weights[1], before.weights[1])
    assert all(p.grad is None for p in net.parameters())


def test_dropout_acts_on_updates_and_not_on_measures():
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)).double()
    before = copy.deepcopy(net)
    history = train(net, X, Y, lr=0.1, steps=3, snapshots=(3,))
    assert net.training
    assert net[1].num_batches_tracked == 3  # updates only
    f = net.eval()(X)
    assert history.losses[-1] == pytest.approx(((f - Y) ** 2).mean().item())
    assert difference(net, before) > 0


def test_callable_optimizer():
    net, twin = network(), network()
    train(net, X, Y, lr=0.01, steps=5, optimizer="adam")
    train(twin, X, Y, lr=0.01, steps=5, optimizer=torch.optim.Adam)
    assert difference(net, twin) < 1e-14
    other = network()
    factory = partial(torch.optim.Adam, betas=(0.5, 0.9))
    train(other, X, Y, lr=0.01, steps=5, optimizer=factory)
    assert difference(net, other) > 1e-4


def test_divergence_is_an_error():
    with pytest.raises(FloatingPointError, match="diverged"):
        train(network(activation="relu"), X, Y, lr=1e6, steps=50)


@pytest.mark.parametrize(
    ("kwargs", "raised", "match"),
    [
        ({"lr": 0.0}, ValueError, "lr"),
        ({"loss": "mae"}, ValueError, "loss"),
        ({"optimizer": "lbfgs"}, ValueError, "optimizer"),
        ({"optimizer": "adam", "momentum": 0.9}, ValueError, "momentum"),
        ({"optimizer": torch.optim.Adam, "weight_decay": 1}, ValueError, "callable"),
        ({"weight_decay": -1.0}, ValueError, "weight_decay"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"steps": None}, ValueError, "epochs or steps"),
        ({"epochs": 3}, ValueError, "epochs or steps"),
        ({"record_every": 0}, ValueError, "record_every"),
        ({"snapshots": [9]}, ValueError, "snapshots"),
        ({"X_val": X}, ValueError, "together"),
        ({"X_val": X, "Y_val": Y[:, :2]}, ValueError, "Y_val"),
        ({"X": X[:, 0]}, ValueError, "X must"),
        ({"X": X.log()}, ValueError, "finite"),
        ({"Y": Y.log()}, ValueError, "Y must be finite"),
        ({"Y": [["a"]]}, TypeError, "Y must be"),
        ({"Y": Y[:-1]}, ValueError, "Y must have shape"),
        ({"Y": Y[:, 0]}, ValueError, "Y must have shape"),
        ({"loss": "cross_entropy", "Y": LABELS + 1}, ValueError, "classes"),
        ({"loss": "cross_entropy", "Y": Y[:, 0]}, TypeError, "integer"),
        ({"net": nn.Flatten()}, ValueError, "parameters"),
    ],
)
def test_bad_arguments_are_named(kwargs, raised, match):
    arguments = {"net": network(), "X": X, "Y": Y, "lr": 0.1, "steps": 4, **kwargs}
    with pytest.raises(raised, match=match):
        train(**arguments)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 16},
        {"batch_size": 16, "optimizer": "adam", "weight_decay": 0.1},
        {"momentum": 0.9, "loss": "cross_entropy"},
        {"batch_size": 16, "optimizer": "adamw", "loss": "cross_entropy"},
    ],
    ids=str,
)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_train_many_equals_training_each_alone(options, activation):
    nets = [network(seed, activation=activation) for seed in range(4)]
    for net in nets:
        net.layers[1].bias.requires_grad_(False)
    alone = copy.deepcopy(nets)
    targets = LABELS if options.get("loss") == "cross_entropy" else Y
    common = {
        "lr": 0.02, "epochs": 10, "record_every": 7, "snapshots": (0, 6),
        "X_val": X[:9], "Y_val": targets[:9], **options,
    }  # fmt: skip
    seeds = [3, 1, 4, 1]
    histories = train_many(nets, X, targets, seeds=seeds, **common)
    for net, reference, history, seed in zip(
        nets, alone, histories, seeds, strict=True
    ):
        expected = train(reference, X, targets, seed=seed, **common)
        assert difference(net, reference) < 1e-10
        assert history.steps == expected.steps
        for name in ("losses", "accuracies", "val_losses", "val_accuracies"):
            np.testing.assert_allclose(
                getattr(history, name), getattr(expected, name), rtol=1e-10
            )
        for step, state in expected.snapshots.items():
            for name, value in state.items():
                torch.testing.assert_close(
                    history.snapshots[step][name], value, rtol=0, atol=1e-10
                )
    assert difference(nets[1], nets[3]) > 1e-3  # same batches, other initial weights
    assert all(p.grad is None for net in nets for p in net.parameters())


def test_train_many_takes_other_modules():
    def convolution(seed):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return nn.Sequential(
                nn.Conv1d(1, 3, 2), nn.Tanh(), nn.Flatten(), nn.Linear(9, 3)
            ).double()

    nets = [convolution(seed) for seed in range(3)]
    alone = copy.deepcopy(nets)
    train_many(nets, X[:, None], Y, lr=0.1, steps=5)
    for net, reference in zip(nets, alone, strict=True):
        train(reference, X[:, None], Y, lr=0.1, steps=5)
        assert difference(net, reference) < 1e-12


@pytest.mark.parametrize(
    ("nets", "options", "match"),
    [
        ([], {}, "at least one"),
        ([network(), network(widths=(4, 5, 3))], {}, "same architecture"),
        ([network(), network(activation="relu")], {}, "same architecture"),
        ([nn.BatchNorm1d(4).double()], {}, "buffers"),
        ([network(), network()], {"seeds": [0]}, "seeds"),
    ],
)
def test_train_many_names_bad_arguments(nets, options, match):
    with pytest.raises(ValueError, match=match):
        train_many(nets, X, Y, lr=0.1, steps=2, **options)


def linear(depth, init="balanced", seed=0):
    widths = (8, *[10] * (depth - 1), 5)
    return DeepLinear(widths, init=init, scale=0.8, seed=seed, dtype=torch.float64)


XL = normal(40, 8)
YL = XL @ normal(8, 5, seed=1) / 3


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("init", ["balanced", "lecun_normal"])
def test_flow_conserves_the_imbalance(depth, init):
    # depth counts weight matrices, L <= 3 hidden layers
    net = linear(depth, init)
    before = net.imbalance()
    start = copy.deepcopy(net)
    history = gradient_flow(net, XL, YL, t=20.0)
    # far from where it started, so that there was something to break
    assert difference(net, start) > 0.1
    assert history.losses[-1] < 0.1 * history.losses[0]
    for D, D0 in zip(net.imbalance(), before, strict=True):
        assert (D - D0).abs().max() <= 1e-8


@pytest.mark.parametrize("depth", [2, 3])
def test_decay_shrinks_the_imbalance_exponentially(depth):
    net = linear(depth, "lecun_normal")
    before, decay, t = net.imbalance(), 0.05, 10.0
    gradient_flow(net, XL, YL, t=t, weight_decay=decay)
    for D, D0 in zip(net.imbalance(), before, strict=True):
        torch.testing.assert_close(
            D, float(np.exp(-2 * decay * t)) * D0, rtol=0, atol=1e-8
        )


@pytest.mark.parametrize("depth", [2, 3])
def test_balanced_flow_keeps_theorem_3_1_and_gradient_descent_does_not(depth):
    def gap(net):
        W, J = net.weights[0].detach(), net.product().detach()
        A, power = J.T @ J, torch.linalg.matrix_power(W.T @ W, depth)
        return ((A - power).norm() / A.norm()).item()

    net = linear(depth)
    gradient_flow(net, XL, YL, t=20.0)
    assert gap(net) < 1e-8
    coarse, fine = linear(depth), linear(depth)
    train(coarse, XL, YL, lr=0.2, steps=100)
    train(fine, XL, YL, lr=0.1, steps=200)
    assert gap(coarse) > 1e-4
    assert gap(coarse) / gap(fine) == pytest.approx(2, rel=0.3)  # O(γ)


def test_flow_is_the_limit_of_gradient_descent():
    flow = linear(3)
    gradient_flow(flow, XL, YL, t=2.0, weight_decay=0.3)
    gaps = []
    for steps in (100, 200):
        descent = linear(3)
        train(descent, XL, YL, lr=2.0 / steps, steps=steps, weight_decay=0.3)
        gaps.append(difference(descent, flow))
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.1)
    assert gaps[1] < 0.01


def test_flow_is_of_fourth_order():
    nets = {step: linear(3) for step in (0.4, 0.2, 0.005)}
    for step, net in nets.items():
        gradient_flow(net, XL, YL, t=2.0, step=step, weight_decay=0.3)
    coarse, fine = (difference(nets[step], nets[0.005]) for step in (0.4, 0.2))
    assert 12 < coarse / fine < 20


def test_flow_history_and_callback():
    net, times = linear(2), []
    history = gradient_flow(
        net, XL, YL, t=1.0, step=0.3, record_every=2, snapshots=(0, 4),
        callback=lambda step, _: times.append(step / 4),
    )  # fmt: skip
    assert history.steps == [0, 2, 4]  # 4 steps of 0.25
    assert times == [0.0, 0.5, 1.0]
    loss = ((net(XL) - YL) ** 2).mean().item()
    assert history.losses[-1] == pytest.approx(loss)
    assert torch.equal(history.snapshots[4]["layers.0.weight"], net.weights[0])
    assert all(W.requires_grad and W.grad is None for W in net.weights)


@pytest.mark.parametrize(
    ("kwargs", "raised", "match"),
    [
        ({"net": network()}, TypeError, "DeepLinear"),
        ({"t": 0.0}, ValueError, "t must"),
        ({"step": -0.1}, ValueError, "step"),
        ({"weight_decay": -0.1}, ValueError, "weight_decay"),
        ({"Y": YL[:, 0]}, ValueError, "Y must"),
    ],
)
def test_flow_names_bad_arguments(kwargs, raised, match):
    with pytest.raises(raised, match=match):
        gradient_flow(**{"net": linear(2), "X": XL, "Y": YL, "t": 1.0, **kwargs})
