import numpy as np
import pytest
import torch

from agop.features import agop, nfm
from agop.networks import FullyConnected
from agop.progress import (
    Progress,
    first_layer_diagonals,
    follow_network,
    follow_rfm,
    mass_share,
)
from agop.rfm import RFMClassifier
from agop.stars import PLUS, drawn_textures, marked_task
from agop.target_linearity import target_linearity
from agop.training import train


def marked(seed=0):
    data = drawn_textures(n=(30, 12), n_test=20, side=8, seed=seed)
    return marked_task(data, counts=(24, 8), picture=PLUS, top=1, left=1)


def network(seed=0):
    return FullyConnected((192, 12, 10, 2), seed=seed, dtype=torch.float64)


def test_diagonals_are_those_of_the_matrices():
    net, task = network(), marked()
    X = torch.as_tensor(task.X, dtype=torch.float64)
    nfm_diagonal, agop_diagonal = first_layer_diagonals(net, X)
    torch.testing.assert_close(nfm_diagonal, nfm(net.weights[0]).diagonal())
    torch.testing.assert_close(agop_diagonal, agop(net, X).diagonal())


def test_mass_share_is_a_ratio_of_sums():
    mask = np.array([True, False, True, False])
    assert mass_share([1.0, 2.0, 3.0, 4.0], mask) == pytest.approx(0.4)
    with pytest.raises(ValueError, match="one shape"):
        mass_share([1.0, 2.0], mask)


def test_network_is_trained_and_measured_as_by_hand():
    task, net, by_hand = marked(), network(), network()
    run = follow_network(net, task, lr=1e-3, steps=20, every=10)
    X, X_test = (torch.as_tensor(x, dtype=torch.float64) for x in (task.X, task.X_test))
    Y = torch.eye(2, dtype=torch.float64)[task.y]
    train(by_hand, X, Y, lr=1e-3, optimizer="adam", steps=20)
    with torch.no_grad():
        f, f_test = by_hand(X).numpy(), by_hand(X_test).numpy()
        H = torch.relu(torch.relu(X_test @ by_hand.weights[0].T) @ by_hand.weights[1].T)
    assert run.steps == [0, 10, 20]
    assert run.train[-1] == pytest.approx((f.argmax(1) == task.y).mean())
    assert run.test[-1] == pytest.approx((f_test.argmax(1) == task.y_test).mean())
    diagonal = nfm(by_hand.weights[0]).diagonal().numpy()
    np.testing.assert_allclose(run.diagonals[-1], diagonal, rtol=1e-9)
    assert run.nfm_share[-1] == pytest.approx(
        diagonal[task.mask].sum() / diagonal.sum()
    )
    A = agop(by_hand, X).diagonal().numpy()
    assert run.agop_share[-1] == pytest.approx(A[task.mask].sum() / A.sum())
    # one-hot targets of two classes are one target and its complement
    labels = task.y_test.astype(float)
    assert run.linearity[-1] == pytest.approx(target_linearity(H, labels), abs=1e-9)


def test_rfm_is_measured_after_every_fit():
    task = marked()
    options = {"diagonal": True, "ridge": 1e-3}
    run = follow_rfm(RFMClassifier(n_iter=2, **options), task)
    for t in range(3):
        machine = RFMClassifier(n_iter=t, **options).fit(task.X, task.y)
        assert run.train[t] == machine.score(task.X, task.y)
        assert run.test[t] == machine.score(task.X_test, task.y_test)
        np.testing.assert_allclose(run.diagonals[t], machine.M_, rtol=1e-9)
        share = machine.feature_importances_[task.mask].sum()
        assert run.nfm_share[t] == pytest.approx(share)
    assert run.steps == [0, 1, 2]
    assert run.agop_share == run.nfm_share[1:]


def test_first_says_when_the_level_is_never_reached():
    with pytest.raises(ValueError, match="level"):
        Progress(train=[0.2, 0.5]).first(0.9)
