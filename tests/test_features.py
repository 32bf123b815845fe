import copy
import itertools

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from agop.features import (
    agop,
    agop_finite_difference,
    layer_agops,
    nfm,
    pre_activation_grams,
)
from agop.networks import FullyConnected

ACTIVATIONS = {
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "sine": torch.sin,
    "gelu": F.gelu,
    "quadratic": lambda z: z**2,
    "identity": lambda z: z,
    F.softplus: F.softplus,  # a callable: slope by autograd
}
# wide input, narrow input, bottleneck, one hidden layer, linear model
SHAPES = [(30, 9, 8), (4, 11, 9, 7), (6, 9, 3, 9), (5, 12), (7,)]


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def network(widths, activation="relu", bias=True):
    return FullyConnected(
        widths, activation, bias, init="he_normal", seed=1, dtype=torch.float64
    )


def jacobians(net, X):
    """∂f/∂h of every layer at every sample, (n, C, d_l), layer by layer.

    The oracle: PyTorch's activations and differentiation, nothing of the package.
    """
    phi = ACTIVATIONS[net.activation]
    parameters = [
        (p.weight.detach(), None if p.bias is None else p.bias.detach())
        for p in net.layers
    ]

    def tail(h, first):
        for i, (W, b) in enumerate(parameters[first:], start=first):
            h = F.linear(h, W, b)
            h = phi(h) if i < len(parameters) - 1 else h
        return h

    out, h = [], X
    for i, (W, b) in enumerate(parameters):
        out.append(torch.func.vmap(torch.func.jacrev(lambda x, i=i: tail(x, i)))(h))
        h = phi(F.linear(h, W, b))
    return out


def mean_outer_product(J):
    return sum(j.T @ j for j in J) / len(J)


def centred(J):
    return J - J.mean(0)


def error(A, B, scale):
    return ((A - B).abs().max() / scale.abs().max()).item()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("C", [1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_layer_agrees_with_autograd(activation, bias, C, shape):
    net, X = network((*shape, C), activation, bias), normal(40, shape[0])
    expected = jacobians(net, X)
    for centre, chunk_size in [(False, 10_000), (True, 7), (False, 1), (True, 64)]:
        agops = layer_agops(net, X, centred=centre, chunk_size=chunk_size)
        grams = pre_activation_grams(net, X, centred=centre, chunk_size=chunk_size)
        assert len(agops) == len(grams) == len(expected) == len(shape)
        for W, A, K, J in zip(net.weights, agops, grams, expected, strict=True):
            raw = mean_outer_product(J)
            wanted = mean_outer_product(centred(J)) if centre else raw
            assert error(A, wanted, raw) <= 1e-12
            assert error(W.detach().T @ K @ W.detach(), wanted, raw) <= 1e-12


@pytest.mark.parametrize("n", [3, 200])
def test_every_layer_agrees_with_autograd_whichever_form_is_cheaper(n):
    # few samples make the products W^T K W the dear part, many the rows
    for widths in itertools.product([3, 20], repeat=3):
        net, X = network((*widths, 4), "gelu"), normal(n, widths[0])
        for A, J in zip(layer_agops(net, X), jacobians(net, X), strict=True):
            assert error(A, mean_outer_product(J), A) <= 1e-12


def test_generic_agop_agrees_with_the_sweep():
    net, X = network((6, 9, 8, 3), "sine"), normal(40, 6)
    h = net.hidden(X)
    for centre in (False, True):
        for i, A in enumerate(layer_agops(net, X, centred=centre)[:-1]):
            B = agop(lambda h, i=i: net.forward_from(h, i), h[i], centred=centre)
            assert error(A, B, A) <= 1e-12


def test_centred_is_raw_minus_mean_outer_products():
    net, X = network((6, 9, 8, 3), "tanh"), normal(40, 6)
    raw, centre = layer_agops(net, X), layer_agops(net, X, centred=True)
    for A, B, J in zip(raw, centre, jacobians(net, X), strict=True):
        m = J.mean(0)  # (C, d)
        expected = A - sum(torch.outer(m[c], m[c]) for c in range(3))
        assert error(B, expected, A) <= 1e-13
    assert (centre[-1] == 0).all()  # the output layer is linear in its input


def test_outputs_are_summed_not_averaged():
    net, X = network((6, 9, 8, 1)), normal(40, 6)
    twice = network((6, 9, 8, 2))
    for layer, source in zip(twice.layers, net.layers, strict=True):
        repeats = len(layer.weight) // len(source.weight)
        layer.weight.data = source.weight.data.repeat(repeats, 1)
        layer.bias.data = source.bias.data.repeat(repeats)
    for A, B in zip(layer_agops(net, X), layer_agops(twice, X), strict=True):
        assert error(2 * A, B, B) <= 1e-14


def test_layers_selects_in_the_order_asked():
    net, X = network((6, 9, 8, 3)), normal(40, 6)
    every = layer_agops(net, X)
    for layers in ([0], [-1], [1], [2, 0], [1, 1], (0, 1, -1)):
        chosen = layer_agops(net, X, layers=layers)
        assert len(chosen) == len(layers)
        for i, A in zip(layers, chosen, strict=True):
            assert error(A, every[i], A) <= 1e-14


def test_rotating_the_inputs_rotates_the_agop():
    net, X = network((6, 9, 8, 3), "tanh"), normal(40, 6)
    Q = torch.linalg.qr(normal(6, 6, seed=5)).Q
    rotated = copy.deepcopy(net)
    rotated.layers[0].weight.data = net.weights[0].data @ Q.T
    first = layer_agops(net, X)
    second = layer_agops(rotated, X @ Q.T)
    assert error(second[0], Q @ first[0] @ Q.T, first[0]) <= 1e-13
    assert error(second[1], first[1], first[1]) <= 1e-13


def test_order_of_the_samples_does_not_matter():
    net, X = network((6, 9, 8, 3), "tanh"), normal(40, 6)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    for A, B in zip(layer_agops(net, X), layer_agops(net, X[order]), strict=True):
        assert error(A, B, A) <= 1e-14


def test_agops_are_symmetric_positive_semi_definite():
    net, X = network((30, 9, 8, 3)), normal(40, 30)
    for A in layer_agops(net, X):
        assert error(A, A.T, A) <= 1e-14
        assert torch.linalg.eigvalsh(A).min() >= -1e-14 * A.abs().max()


def test_float32_agrees_with_float64_for_a_smooth_activation():
    net, X = network((6, 9, 8, 3), "gelu"), normal(200, 6)
    single = layer_agops(net.float(), X)
    for A, B in zip(single, layer_agops(net.double(), X), strict=True):
        assert A.dtype == torch.float32
        assert error(A, B, B) <= 1e-5


def addmm_flops(total, A, B, **kwargs):
    return 2 * A[0] * A[1] * B[1]


def flops(f):
    # The counter that ships with PyTorch knows addmm but not its in-place form.
    mapping = {torch.ops.aten.addmm_: addmm_flops}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        f()
    return counter.get_total_flops()


def test_cost_is_one_forward_and_one_backward_sweep():
    n, C, widths = 64, 5, (32, 48, 48, 48)
    net, X = network((*widths, C)), normal(64, 32)
    pairs = list(itertools.pairwise(widths))
    forward = 2 * n * sum(d * k for d, k in pairs)
    backward = 2 * n * C * sum(d * k + d * d for d, k in pairs)
    output = 4 * C * 48 * 48  # W^T I W
    assert flops(lambda: layer_agops(net, X)) <= forward + backward + output

    jacobian = sum(
        flops(lambda i=i: agop(lambda h: net.forward_from(h, i), net.hidden(X)[i]))
        for i in range(4)
    )
    assert jacobian > 1.5 * flops(lambda: layer_agops(net, X))


def test_cost_of_the_input_layer_and_of_the_top_layer():
    n, C, k, d = 500, 5, 32, 400
    net, X = network((d, k, C)), normal(n, d)
    forward = 2 * n * d * k
    # one hidden layer: K = (W_out^T W_out) * (Φ'^T Φ'), then W^T K W; no factor C
    closed_form = 2 * n * k * k + 2 * C * k * k + 2 * (k * k * d + k * d * d)
    cost = flops(lambda: layer_agops(net, X, layers=[0]))
    assert cost == forward + closed_form
    deep = network((d, k, k, C))
    wide = flops(lambda: layer_agops(deep, normal(n, d), layers=[0]))
    # no row is ever brought to the d inputs: less than one product of nC rows with W_1
    assert wide < 2 * n * C * k * d


def test_cost_of_inputs_slightly_narrower_than_the_layer():
    # Up to the rows' Gram, either d^2 or k^2, the sweep costs the same: but the Gram of
    # the d inputs needs k d more to get there.
    n, C, d, k = 5000, 5, 26, 32
    net, X = network((d, k, k, C)), normal(n, d)
    forward = 2 * n * (d * k + k * k)
    at_inputs = 2 * n * C * (k * k + k * d + d * d)
    assert flops(lambda: layer_agops(net, X, layers=[0])) < forward + at_inputs


def test_symmetric_products_skip_the_lower_blocks():
    n, k = 64, 1024
    net = FullyConnected((8, k, 1), dtype=torch.float32)
    cost = flops(lambda: pre_activation_grams(net, normal(n, 8), layers=[0]))
    rest = 2 * n * 8 * k + 2 * k * k  # forward pass, W_out^T W_out
    # three levels of halving leave (1 + 1/8) / 2 of the product; syrk would leave 1/2
    assert cost - rest == 2 * n * k * k * 9 / 16


def test_wide_layers_agree_with_autograd_and_are_exactly_symmetric():
    # widths beyond one block, and odd
    net, X = network((301, 517, 270, 2), "tanh"), normal(30, 301)
    for K, W, J in zip(
        pre_activation_grams(net, X), net.weights, jacobians(net, X), strict=True
    ):
        assert torch.equal(K, K.T)
        A, W = mean_outer_product(J), W.detach()
        assert error(W.T @ K @ W, A, A) <= 1e-12


class LargestTensor(TorchDispatchMode):
    """Number of entries of the largest new tensor made by any operation."""

    def __init__(self):
        super().__init__()
        self.entries = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            tensors = [a for a in args if isinstance(a, torch.Tensor)]
            storages = {a.untyped_storage().data_ptr() for a in tensors}
            if out.untyped_storage().data_ptr() not in storages:  # else it's a view
                self.entries = max(self.entries, out.numel())
        return out


@pytest.mark.parametrize("centre", [False, True])
def test_memory_does_not_grow_with_the_number_of_samples(centre):
    net = network((12, 16, 16, 3))
    largest = []
    for n in (200, 2000):
        # float32 samples: converting them all at once would show
        X = normal(n, 12).float()
        with LargestTensor() as sweep:
            layer_agops(net, X, centred=centre, chunk_size=64)
        with LargestTensor() as generic:
            agop(net, X, centred=centre, chunk_size=64)
        largest.append((sweep.entries, generic.entries))
    assert largest[0] == largest[1]
    assert max(largest[0]) <= 64 * 16


def test_analysis_leaves_the_network_as_it_was():
    net, X = network((6, 9, 8, 3)), normal(40, 6)
    net(X).sum().backward()
    net.layers[1].weight.requires_grad_(False)
    X.requires_grad_()
    state = copy.deepcopy(net.state_dict())
    gradients = [p.grad for p in net.parameters()]
    values = [g.clone() for g in gradients]
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            results = [
                *layer_agops(net, X),
                *pre_activation_grams(net, X, centred=True),
                agop(net, X),
                nfm(net.weights[0], torch.ones_like(net.weights[0])),
            ]
            assert torch.is_grad_enabled() == enabled
        assert not any(result.requires_grad for result in results)
    for name, value in net.state_dict().items():
        assert torch.equal(value, state[name])
    for p, g, v in zip(net.parameters(), gradients, values, strict=True):
        assert p.grad is g
        assert torch.equal(g, v)
    assert [W.requires_grad for W in net.weights] == [True, False, True]
    assert X.grad is None
    assert net.training


def test_agop_evaluates_a_module_in_eval_mode_and_restores_each_mode():
    net = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2)
    )
    net[1].eval()  # a mixed state, as when fine-tuning
    state = copy.deepcopy(net.state_dict())
    X = normal(20, 4)
    A = agop(net, X)
    assert [module.training for module in net] == [True, False, True, True]
    for name, value in net.state_dict().items():
        assert torch.equal(value, state[name])
    net.eval()
    assert torch.equal(A, agop(net, X))
    W = net[3].weight @ torch.diag((1 + net[1].eps) ** -0.5 * torch.ones(8))
    W = (W @ net[0].weight).detach()
    torch.testing.assert_close(A, W.T @ W, rtol=1e-5, atol=1e-6)


def test_agop_restores_the_mode_after_an_error():
    class Broken(nn.Module):
        def forward(self, X):
            raise RuntimeError("broken")

    net = Broken()
    with pytest.raises(RuntimeError, match="broken"):
        agop(net, normal(3, 2))
    assert net.training


def test_agop_of_a_polynomial():
    X = normal(50, 2)
    A = agop(lambda X: torch.stack([X[:, 0] * X[:, 1], 3 * X[:, 1]], 1), X)
    x, y = X.T
    expected = torch.stack([y @ y, x @ y, x @ y, x @ x + 9 * 50]).reshape(2, 2) / 50
    assert error(A, expected, A) <= 1e-14


def test_agop_flattens_images_and_accepts_numpy():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.LazyLinear(3))
    X = normal(11, 1, 5, 5)
    net(X.float())
    A = agop(net, X.numpy(), chunk_size=7)
    assert A.shape == (25, 25)
    J = torch.func.vmap(torch.func.jacrev(lambda x: net(x[None])[0]))(X.float())
    expected = mean_outer_product(J.reshape(11, 3, 25))
    assert error(A, expected, expected) <= 1e-5


@pytest.mark.parametrize(
    ("f", "X", "raised", "match"),
    [
        (3, normal(4, 2), TypeError, "callable"),
        (torch.sum, normal(4, 2), ValueError, "one row per row"),
        (lambda X: X.repeat(2, 1), normal(4, 2), ValueError, "one row per row"),
        (torch.square, torch.ones(4, 2, dtype=torch.int64), TypeError, "floating"),
        (torch.square, torch.ones(4), ValueError, "X must have one row"),
        (torch.square, torch.ones(0, 2), ValueError, "at least one sample"),
        (torch.square, [["a", "b"]], TypeError, "X must be"),
        (torch.square, torch.full((2, 2), torch.nan), ValueError, "finite"),
    ],
)
def test_agop_names_bad_arguments(f, X, raised, match):
    with pytest.raises(raised, match=match):
        agop(f, X)


@pytest.mark.parametrize(
    ("kwargs", "raised", "match"),
    [
        ({"net": nn.Linear(6, 2)}, TypeError, r"agop\(\)"),
        ({"X": normal(4, 5)}, ValueError, r"\(n, 6\)"),
        ({"X": normal(4, 6).log()}, ValueError, "finite"),
        ({"layers": [3]}, ValueError, "layers"),
        ({"layers": [-4]}, ValueError, "layers"),
        ({"layers": []}, ValueError, "layers"),
        ({"chunk_size": 0}, ValueError, "chunk_size"),
        ({"chunk_size": 1.5}, TypeError, "chunk_size"),
    ],
)
def test_layer_agops_names_bad_arguments(kwargs, raised, match):
    arguments = {"net": network((6, 9, 8, 3)), "X": normal(4, 6), **kwargs}
    with pytest.raises(raised, match=match):
        layer_agops(**arguments)


def test_nfm_is_the_gram_of_the_change_and_changes_nothing():
    W, W0 = normal(5, 3), normal(5, 3, seed=1)
    before = W.clone(), W0.clone()
    expected = torch.zeros(3, 3, dtype=torch.float64)
    for row, row0 in zip(W, W0, strict=True):
        expected += torch.outer(row - row0, row - row0)
    torch.testing.assert_close(nfm(W, W0), expected)
    torch.testing.assert_close(nfm(W.numpy()), W.T @ W)
    assert torch.equal(W, before[0])
    assert torch.equal(W0, before[1])


def test_nfm_names_bad_arguments():
    with pytest.raises(ValueError, match="W must be"):
        nfm(normal(3))
    with pytest.raises(ValueError, match="W0 must have"):
        nfm(normal(3, 2), normal(1, 2))


def smooth(X):
    return torch.stack([torch.sin(X[:, 0]) * X[:, 1], torch.exp(0.3 * X[:, 2])], 1)


def predict_smooth(X):
    return smooth(torch.from_numpy(X)).numpy()


@pytest.mark.parametrize("centre", [False, True])
def test_finite_difference_converges_at_second_order(centre):
    X = normal(40, 3)
    exact = agop(smooth, X, centred=centre).numpy()
    coarse, fine = (
        np.abs(
            agop_finite_difference(predict_smooth, X, step=step, centred=centre) - exact
        ).max()
        for step in (0.02, 0.01)
    )
    assert coarse / fine == pytest.approx(4, rel=0.02)
    assert fine < 1e-4


def test_finite_difference_is_exact_for_a_quadratic():
    X = normal(30, 2)
    A = agop_finite_difference(lambda X: X[:, 0] * X[:, 1] + X[:, 0] ** 2, X, step=0.7)
    exact = agop(lambda X: X[:, 0] * X[:, 1] + X[:, 0] ** 2, X).numpy()
    np.testing.assert_allclose(A, exact, rtol=1e-12)


def test_finite_difference_of_a_step_function_grows_as_one_over_the_step():
    # f = 1[x > 0] at a uniform grid on [-1, 1]: a share h of the points sees the jump,
    # so the estimate is h (1 / 2h)^2 = 1 / 4h. The second feature is irrelevant.
    x = (np.arange(20_000) + 0.5) / 10_000 - 1
    X = np.stack([x, np.ones_like(x)], 1)
    for step in (0.05, 0.1, 0.2):
        A = agop_finite_difference(
            lambda X: (X[:, 0] > 0).astype(float), X, step=step, scale=[1.0, 1.0]
        )
        expected = np.diag([1 / (4 * step), 0.0])
        np.testing.assert_allclose(A, expected, rtol=1e-3)


def test_finite_difference_steps_in_units_of_the_scale():
    X = normal(30, 2).numpy() * [1.0, 100.0]
    seen = []

    def predict(X):
        seen.append(X)
        return X.sum(1)

    agop_finite_difference(predict, X, step=0.1)
    offsets = np.concatenate(seen).reshape(30, 4, 2) - X[:, None]
    np.testing.assert_allclose(offsets[0, :2], np.diag(0.1 * X.std(0)), atol=1e-12)
    seen.clear()
    agop_finite_difference(predict, np.ones((2, 2)), step=0.1)  # constant features
    np.testing.assert_allclose(seen[0][0], [1.1, 1.0])


def test_finite_difference_takes_chunks_and_a_random_forest():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    forest = RandomForestClassifier(20, random_state=0).fit(X, X[:, 0] > 0)
    sizes = []

    def predict(X):
        sizes.append(len(X))
        return forest.predict_proba(X)

    A = agop_finite_difference(predict, X, step=0.5, chunk_size=50)
    assert max(sizes) == 48  # 8 points of 6 probes
    assert sum(sizes) == 60 * 6
    whole = agop_finite_difference(forest.predict_proba, X, step=0.5)
    np.testing.assert_allclose(A, whole, rtol=1e-12)
    assert A.argmax() == 0  # the feature that decides
    one = agop_finite_difference(lambda X: forest.predict_proba(X)[:, 1], X, step=0.5)
    np.testing.assert_allclose(A, 2 * one, rtol=1e-12)  # probabilities sum to 1


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"X": np.ones(3)}, "X must be"),
        ({"X": np.full((2, 2), np.nan)}, "X must be"),
        ({"X": np.ones((0, 2))}, "X must be"),
        ({"step": 0.0}, "step"),
        ({"scale": [1.0]}, "scale"),
        ({"scale": [1.0, 0.0]}, "scale"),
        ({"predict": lambda X: X[:1]}, "predict must return"),
        ({"predict": lambda X: np.array(["cat"] * len(X))}, "predict must return"),
    ],
)
def test_finite_difference_names_bad_arguments(kwargs, match):
    arguments = {"predict": lambda X: X.sum(1), "X": np.ones((3, 2)), **kwargs}
    with pytest.raises(ValueError, match=match):
        agop_finite_difference(**arguments)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_network_on_a_gpu_with_samples_on_the_cpu():
    net, X = network((6, 9, 8, 3)), normal(40, 6)
    expected = layer_agops(net, X)
    for A, B in zip(layer_agops(net.cuda(), X), expected, strict=True):
        assert A.is_cuda
        assert error(A.cpu(), B, B) <= 1e-12
    assert error(agop(net, X).cpu(), expected[0], expected[0]) <= 1e-12
