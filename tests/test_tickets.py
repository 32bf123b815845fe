import numpy as np
import pytest
import torch
from sklearn.feature_selection import mutual_info_classif

from agop.datasets import load_faces
from agop.features import agop
from agop.networks import FullyConnected
from agop.tasks import Task
from agop.tickets import (
    attribute_sets,
    coordinate_scores,
    mutual_information,
    restricted,
    top_coordinates,
)


def problem(n=300, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (X[:, 2] + 0.2 * rng.standard_normal(n) > 0).astype(np.int64)
    return X, y


def task(n=300, d=6):
    X, y = (torch.as_tensor(a) for a in problem(n, d))
    return Task("toy", X[:200], torch.eye(2)[y[:200]], y[:200], X[200:], y[200:])


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_top_coordinates_beat_all_others(share):
    scores = np.random.default_rng(1).random(40)
    mask = top_coordinates(scores, share)
    assert mask.sum() == round(share * 40)
    for j in range(40):  # by definition: fewer than count scores are larger
        assert mask[j] == (sum(s > scores[j] for s in scores) < mask.sum())


def test_ties_and_tiny_shares():
    assert top_coordinates(np.zeros(5), 0.4).tolist() == [True, True] + [False] * 3
    assert top_coordinates(np.arange(5.0), 1e-9).tolist() == [False] * 4 + [True]


def test_mutual_information_agrees_with_counting_by_hand():
    X, y = problem(d=3)
    bins, n = 4, len(X)
    for j, found in enumerate(mutual_information(X, y, bins=bins)):
        edges = np.linspace(X[:, j].min(), X[:, j].max(), bins + 1)
        total = 0.0
        for b in range(bins):
            upper = X[:, j] <= edges[b + 1] if b == bins - 1 else X[:, j] < edges[b + 1]
            inside = (X[:, j] >= edges[b]) & upper
            for c in (0, 1):
                joint = np.sum(inside & (y == c)) / n
                if joint:
                    both = inside.mean() * (y == c).mean()
                    total += joint * np.log(joint / both)
        assert found == pytest.approx(total, abs=1e-12)


def test_mutual_information_agrees_with_scikit_learn():
    X, y = problem(d=4)
    low, high = X.min(0), X.max(0)
    levels = np.minimum((8 * (X - low) / (high - low)).astype(int), 7)
    expected = mutual_info_classif(levels, y, discrete_features=True)
    np.testing.assert_allclose(mutual_information(X, y), expected, atol=1e-12)


def test_a_constant_coordinate_has_no_information():
    X, y = problem()
    X[:, 4] = 3.0
    found = mutual_information(X, y)
    assert found[4] == pytest.approx(0, abs=1e-12)
    assert found.argmax() == 2


def test_scores_are_the_diagonals():
    t = task()
    net = FullyConnected((6, 9, 8, 2), seed=1, dtype=torch.float64)
    start = FullyConnected((6, 9, 8, 2), seed=2, dtype=torch.float64).weights[0]
    found = coordinate_scores(net, start, t.X, t.y, seed=5)
    W = net.weights[0].detach()
    np.testing.assert_allclose(found["nfm"], (W.T @ W).diagonal())
    np.testing.assert_allclose(found["agop"], agop(net, t.X).diagonal(), rtol=1e-10)
    W0 = start.detach()
    np.testing.assert_allclose(found["initial weights"], (W0.T @ W0).diagonal())
    assert found["mutual information"].argmax() == 2
    again = coordinate_scores(net, start, t.X, t.y, seed=5)["random"]
    other = coordinate_scores(net, start, t.X, t.y, seed=6)["random"]
    np.testing.assert_array_equal(found["random"], again)
    assert (found["random"] != other).all()


def test_restriction_keeps_columns_labels_and_the_norm():
    t, mask = task(), np.array([True, False, True, False, False, False])
    cut = restricted(t, mask)
    assert cut.X.shape == (200, 2)
    ratio = cut.X / t.X[:, [0, 2]]
    assert torch.allclose(ratio, ratio[0, 0].expand_as(ratio))  # one factor
    assert torch.allclose(cut.X_test / t.X_test[:, [0, 2]], ratio[0, 0])
    before, after = (np.mean([float(x @ x) for x in a]) for a in (t.X, cut.X))
    assert after == pytest.approx(before)
    assert torch.equal(cut.y, t.y)
    assert torch.equal(cut.y_test, t.y_test)
    plain = restricted(t, mask, rescale=False)
    assert torch.equal(plain.X, t.X[:, [0, 2]])


def test_faces_of_all_attributes_are_those_of_the_loader():
    sets = attribute_sets("faces", ["smile", "hat"], n=12, n_test=8, size=16, seed=3)
    for name, found in sets.items():
        expected = load_faces(name, n_train=12, n_test=8, size=16, seed=3)
        for part in ("X", "y", "X_test", "y_test"):
            np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
        assert found.provenance == expected.provenance


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="at most 1"):
        top_coordinates([1.0, 2.0], 1.5)
    with pytest.raises(ValueError, match="share"):
        top_coordinates([1.0, 2.0], 0)
    with pytest.raises(ValueError, match="finite vector"):
        top_coordinates([np.nan, 1.0], 0.5)
    with pytest.raises(ValueError, match="bins"):
        mutual_information(np.eye(3), [0, 1, 0], bins=1)
    with pytest.raises(ValueError, match="at most 127"):
        mutual_information(np.eye(3), [0, 1, 0], bins=200)
    with pytest.raises(ValueError, match="mask must have shape"):
        restricted(task(), [True])
    zero = task()
    zero.X[:, 0] = 0
    with pytest.raises(ValueError, match="not zero"):
        restricted(zero, np.arange(6) == 0)
    with pytest.raises(ValueError, match="attribute"):
        attribute_sets("faces", ["moustache"], n=2, n_test=2, size=16)
