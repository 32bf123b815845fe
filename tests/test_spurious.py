import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from agop.features import agop
from agop.networks import FullyConnected
from agop.rfm import RFMClassifier
from agop.spurious import (
    detect,
    gradient_mass,
    labels_of,
    patches,
    replaced,
    top_pixels,
)


def samples(n=40, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)


def test_mass_of_a_network_is_the_diagonal_by_automatic_differentiation():
    X, _ = samples()
    net = FullyConnected((6, 9, 8, 3), "tanh", seed=1, dtype=torch.float64)
    expected = agop(net, torch.as_tensor(X)).diagonal()
    np.testing.assert_allclose(gradient_mass(net, X), expected, rtol=1e-10)


def test_mass_of_any_module_is_that_diagonal_too():
    X, _ = samples()
    torch_net = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    expected = agop(torch_net, torch.as_tensor(X)).diagonal()
    for chunk_size in (7, 1000):
        found = gradient_mass(torch_net, X, chunk_size=chunk_size)
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_mass_of_an_rfm_is_the_diagonal_of_its_closed_form():
    X, y = samples()
    machine = RFMClassifier(n_iter=1).fit(X, y)
    found = gradient_mass(machine, X, chunk_size=9)
    np.testing.assert_allclose(found, machine.agop().diagonal(), rtol=1e-8)


def test_mass_of_a_model_that_only_predicts_is_estimated():
    X, y = samples(200)
    model = LogisticRegression().fit(X, y)
    p = model.predict_proba(X)[:, 1]
    # d p / d x_j = p (1 - p) w_j, and minus that for the other class
    expected = 2 * np.mean((p * (1 - p)) ** 2) * model.coef_[0] ** 2
    np.testing.assert_allclose(gradient_mass(model, X), expected, rtol=0.02)


def test_detect_agrees_with_a_loop_over_samples_and_coordinates():
    X, y = samples(60, 12, seed=3)
    net = FullyConnected((12, 16, 2), seed=2, dtype=torch.float64)
    shape, template = (2, 2, 3), X[5]
    regions = patches(shape, 1)
    found = {f.region: f for f in detect(net, X, y, regions, template=template)}
    diagonal = agop(net, torch.as_tensor(X)).diagonal().numpy()

    def accuracy(rows):
        hits = 0
        for row, label in zip(rows, y, strict=True):
            hits += int(net(torch.as_tensor(row)[None]).argmax() == label)
        return hits / len(y)

    for k in range(4):  # the pixel at row k // 2, column k % 2 has three channels
        rows = X.copy()
        for row in rows:
            for j in range(3 * k, 3 * k + 3):
                row[j] = template[j]
        finding = found[f"{k // 2}-{k % 2}"]
        mass = diagonal[3 * k : 3 * k + 3].sum() / diagonal.sum()
        assert finding.mass == pytest.approx(mass)
        assert finding.area == 0.25
        assert finding.accuracy == pytest.approx(accuracy(rows))
        assert finding.lost == pytest.approx(accuracy(X) - accuracy(rows))


def test_detect_ranks_by_mass_and_leaves_the_samples_alone():
    X, _ = samples()
    before = X.copy()
    regions = {"no": np.arange(6) == 5, "yes": np.arange(6) == 0}
    found = detect(lambda X: X[:, 0] > 0, X, X[:, 0] > 0, regions,
                   template=X[0], importance=np.eye(6)[0])  # fmt: skip
    assert [f.region for f in found] == ["yes", "no"]
    assert found[0].lost > 0.2
    assert found[1].lost == 0
    np.testing.assert_array_equal(X, before)


def test_labels_of_each_kind_of_model():
    X, y = samples()
    tree = LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(labels_of(tree)(X), tree.predict(X))
    net = FullyConnected((6, 4, 3), seed=0, dtype=torch.float64)
    expected = net(torch.as_tensor(X)).detach().numpy().argmax(1)
    np.testing.assert_array_equal(labels_of(net)(X), expected)
    with pytest.raises(TypeError, match="predict"):
        labels_of(3)


@pytest.mark.parametrize(("shape", "side"), [((4, 6, 3), 2), ((5, 7), 3)])
def test_patches_are_squares_that_cover_all_once(shape, side):
    found = patches(shape, side)
    total = sum(mask.astype(int) for mask in found.values())
    np.testing.assert_array_equal(total, np.ones(np.prod(shape), dtype=int))
    for name, mask in found.items():
        i, j = map(int, name.split("-"))
        rows, columns = np.nonzero(mask.reshape(shape).reshape(*shape[:2], -1).all(2))
        assert rows.min() == i * side
        assert columns.min() == j * side
        assert max(np.ptp(rows), np.ptp(columns)) < side


def test_top_pixels_take_all_channels_of_a_pixel():
    rng = np.random.default_rng(0)
    values = rng.random((5, 4, 3)) + 2
    found = top_pixels(values.ravel(), (5, 4, 3), 0.9).reshape(5, 4, 3)
    low, high = values.min(), values.max()
    for i in range(5):
        for j in range(4):
            wanted = any((v - low) / (high - low) > 0.9 for v in values[i, j])
            assert (found[i, j] == wanted).all()
    assert 0 < found.mean() < 1


def test_replaced_changes_the_region_only():
    X, _ = samples()
    mask = np.arange(6) < 2
    found = replaced(X, mask, X[3])
    np.testing.assert_array_equal(found[:, :2], np.tile(X[3, :2], (40, 1)))
    np.testing.assert_array_equal(found[:, 2:], X[:, 2:])


def test_bad_input_is_named():
    X, y = samples()
    mask = np.ones(6, dtype=bool)
    with pytest.raises(ValueError, match="y must have shape"):
        detect(len, X, y[:3], {"all": mask}, template=X[0])
    with pytest.raises(ValueError, match="at least one region"):
        detect(len, X, y, {}, template=X[0])
    with pytest.raises(ValueError, match="mask and template"):
        replaced(X, mask[:2], X[0])
    with pytest.raises(ValueError, match="n > 0"):
        gradient_mass(nn.Linear(6, 1), X[0])
    with pytest.raises(TypeError, match="estimator that predicts"):
        gradient_mass(object(), X)
    with pytest.raises(ValueError, match="between 0 and 1"):
        top_pixels(np.arange(12.0), (2, 2, 3), 1.5)
    with pytest.raises(ValueError, match="constant"):
        top_pixels(np.ones(12), (2, 2, 3))
    with pytest.raises(ValueError, match="fit the shape"):
        top_pixels(np.ones(11), (2, 2, 3))
