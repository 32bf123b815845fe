"""RFM, Laplace and NTK on tables against plain loops; what leaks and what does not."""

import numpy as np
import pytest
import torch

from agop.kernels import NeuralTangentKernel, kernel_matrix
from agop.tabular import kernel_methods
from agop.tabular.kernel_methods import (
    BANDWIDTH,
    NTK,
    RFM,
    RIDGES,
    Frame,
    Laplace,
    ReusedRFM,
    fit_and_score,
    learn_factor,
    rfm_path,
    ridge_path,
)
from agop.tabular.protocol import Candidate, evaluate, first_best, hits
from agop.tabular.tables import SELECT, Split, make_table


def data(n=40, d=4, C=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.arange(n) % C


def as_frame(X, y, C=3):
    half = len(X) // 2
    return Frame.of(Split(X[:half], y[:half], X[half:], y[half:], C))


def algorithm_1(X, T, ridge, updates, diagonal):
    """The algorithm as printed: M formed, gradients by a loop over pairs."""
    n, d = X.shape
    M = np.eye(d)
    for t in range(updates + 1):
        diff = X[:, None] - X[None]  # (n, n, d)
        D = np.sqrt(np.maximum(np.einsum("ijd,de,ije->ij", diff, M, diff), 0))
        A = np.linalg.solve(np.exp(-D / BANDWIDTH) + ridge * np.eye(n), T)
        if t == updates:
            return M, A
        new = np.zeros((d, d))
        for p in range(n):
            J = np.zeros((T.shape[1], d))
            for i in range(n):
                if D[p, i] > 0:
                    slope = -np.exp(-D[p, i] / BANDWIDTH) / (BANDWIDTH * D[p, i])
                    J += slope * np.outer(A[i], M @ diff[p, i])
            new += J.T @ J / n
        M = np.diag(new.diagonal()) if diagonal else new
    return None


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("ridge", [0.1, 0.001])
def test_the_path_is_algorithm_1(ridge, diagonal):
    X, y = data()
    frame = as_frame(X, y)
    machines = {
        machine.t: machine
        for r, kind, machine in rfm_path(frame.x, frame.T, ridges=(1.0, ridge))
        if r == ridge and (kind == diagonal or machine.t == 0)
    }
    assert sorted(machines) == [0, 1, 2, 3, 4]
    for t in (0, 1, 3):
        M, A = algorithm_1(frame.x.numpy(), frame.T.numpy(), ridge, t, diagonal)
        R = machines[t].R
        ours = torch.diag(R.square()) if R.ndim == 1 else R @ R.T
        assert np.abs(ours.numpy() - M).max() <= 1e-9 * np.abs(M).max()
        assert np.abs(machines[t].A.numpy() - A).max() <= 1e-9 * np.abs(A).max()


def test_path_visits_the_grid_once():
    X, y = data()
    frame = as_frame(X, y)
    visits = [(r, kind, m.t) for r, kind, m in rfm_path(frame.x, frame.T)]
    assert len(visits) == len(set(visits)) == 5 * (1 + 2 * 4)


def test_learn_factor_is_the_paths_machine():
    X, y = data()
    frame = as_frame(X, y)
    chosen = {"ridge": 0.01, "diagonal": True, "updates": 2}
    (wanted,) = (
        m.R
        for r, kind, m in rfm_path(frame.x, frame.T)
        if (r, kind, m.t) == (0.01, True, 2)
    )
    assert torch.allclose(learn_factor(frame.x, frame.T, chosen), wanted, rtol=1e-9)


@pytest.mark.parametrize("n", [30, 260])  # below and above EIGEN_ROWS
def test_ridge_path_solves_every_system(n):
    g = torch.Generator().manual_seed(0)
    X = torch.randn(n, 3, dtype=torch.float64, generator=g)
    T = torch.randn(n, 2, dtype=torch.float64, generator=g)
    K = kernel_matrix("laplace", X)
    before = K.clone()
    for ridge, A in zip(RIDGES, ridge_path(K, T, RIDGES), strict=True):
        eye = torch.eye(n, dtype=K.dtype)
        assert torch.allclose(A, torch.linalg.solve(K + ridge * eye, T), atol=1e-9)
    assert torch.equal(K, before)


def test_the_first_fit_is_the_laplace_kernel():
    """E25: five iterations are five fits, and the first has learnt nothing."""
    task = make_table("t", *data(80))
    rfm, laplace = (
        {
            (c.chosen["sphere"], c.chosen["ridge"]): c.validation
            for c in method.candidates(task.split(SELECT))
            if c.chosen.get("updates", 0) == 0
        }
        for method in (RFM(), Laplace())
    )
    assert rfm == laplace
    updates = {c.chosen["updates"] for c in RFM().candidates(task.split(SELECT))}
    assert updates == {0, 1, 2, 3, 4}


def test_scores_without_update_are_laplaces():
    task = make_table("t", *data(80))
    select, fold = task.split(SELECT), task.split("fold2")
    chosen = {"sphere": True, "ridge": 0.1, "diagonal": False, "updates": 0}
    for method in (RFM(), ReusedRFM()):
        score = method.score(chosen, fold, select)
        assert score == Laplace().score(chosen, fold, select)


def test_small_tables_choose_between_full_and_diagonal(monkeypatch):
    split = make_table("t", *data(80)).split(SELECT)
    assert len(list(RFM().candidates(split))) == 2 * 5 * (1 + 2 * 4)
    monkeypatch.setattr(kernel_methods, "DIAGONAL_BELOW", 80)
    kinds = {c.chosen["diagonal"] for c in RFM().candidates(split)}
    assert kinds == {False}


def test_simple_candidates_come_first():
    split = make_table("t", *data(80)).split(SELECT)
    updates = [c.chosen["updates"] for c in RFM().candidates(split)]
    assert updates == sorted(updates)
    assert next(iter(RFM().candidates(split))).chosen["ridge"] == max(RIDGES)


@pytest.mark.parametrize("method", [RFM(), Laplace(), NTK()])
def test_a_zero_row_keeps_tables_off_the_sphere(method):
    X, y = data(20)
    X[3] = 0
    split = Split(X[:10], y[:10], X[10:], y[10:], 3)
    assert {c.chosen["sphere"] for c in method.candidates(split)} == {False}


def test_ntk_grid_against_plain_solves():
    X, y = data(30)
    split = Split(X[:20], y[:20], X[20:], y[20:], 3)
    x, x_test = torch.from_numpy(X[:20]), torch.from_numpy(X[20:])
    T = torch.eye(3, dtype=x.dtype)[torch.from_numpy(y[:20])]
    for candidate in NTK().candidates(split):
        chosen = candidate.chosen
        if chosen["sphere"]:
            continue
        kernel = NeuralTangentKernel(chosen["depth"])
        K = kernel_matrix(kernel, x) + chosen["ridge"] * torch.eye(20, dtype=x.dtype)
        F = kernel_matrix(kernel, x_test, x) @ torch.linalg.solve(K, T)
        assert candidate.validation == hits(F.numpy(), y[20:])


def test_the_iterative_solver_scores_as_the_dense_one(monkeypatch):
    X, y = data(400, seed=1)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    frame = as_frame(X, y, C=2)
    dense = fit_and_score(kernel_methods.LaplaceKernel(), frame, None, 10.0, 0.01)
    monkeypatch.setattr(kernel_methods, "DENSE_ROWS", 100)
    large = fit_and_score(kernel_methods.LaplaceKernel(), frame, None, 10.0, 0.01)
    assert large.accuracy == pytest.approx(dense.accuracy, abs=0.011)  # 2 of 200 rows
    assert large.notes["residual"] <= 1e-3
    assert dense.notes == {}


def test_large_tables_learn_from_some_of_their_rows(monkeypatch):
    task = make_table("t", *data(120))
    seen = []
    original = kernel_methods.rfm_path
    monkeypatch.setattr(
        kernel_methods,
        "rfm_path",
        lambda x, T, **options: seen.append(len(x)) or original(x, T, **options),
    )
    monkeypatch.setattr(kernel_methods, "SELECT_ROWS", 25)
    monkeypatch.setattr(kernel_methods, "LEARN_ROWS", 35)
    RFM().select(task.split(SELECT))
    chosen = {"sphere": False, "ridge": 0.1, "diagonal": False, "updates": 1}
    RFM().score(chosen, task.split("fold1"), task.split(SELECT))
    assert seen == [25, 25, 35]


# Leakage.

CHOSEN = {"sphere": False, "ridge": 0.1, "diagonal": False, "updates": 2}


def test_what_is_refitted_does_not_see_the_selection_split():
    task, other = (make_table("t", *data(80, seed=s)) for s in (0, 1))
    fold = task.split("fold1")
    scores = [RFM()._learn(CHOSEN, fold) for _ in range(2)]
    assert torch.equal(*scores)
    ours = RFM().score(CHOSEN, fold, task.split(SELECT))
    assert ours == RFM().score(CHOSEN, fold, other.split(SELECT))


def test_reuse_learns_on_the_selection_split():
    task, other = (make_table("t", *data(80, seed=s)) for s in (0, 1))
    fold = task.split("fold1")
    factors = []
    for source in (task, other):
        method = ReusedRFM()
        learn = method._learn(CHOSEN, source.split(SELECT))
        factors.append(learn)
    assert not torch.allclose(*factors)
    frame = Frame.of(fold)
    again = fit_and_score(kernel_methods.LaplaceKernel(), frame, factors[1], 10.0, 0.1)
    assert again == ReusedRFM().score(CHOSEN, fold, other.split(SELECT))


def test_reuse_finds_labels_that_are_noise():
    """P8: on pure noise, M learnt on rows of the test part scores above chance."""
    chosen = {"sphere": False, "ridge": 0.1, "diagonal": False, "updates": 4}
    gaps = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        task = make_table("noise", rng.standard_normal((100, 100)), [0, 1] * 50)
        folds, select = [task.split(part) for part in task.parts], task.split(SELECT)
        reused, refitted = (
            np.mean([m.score(chosen, fold, select).accuracy for fold in folds])
            for m in (ReusedRFM(), RFM())
        )
        gaps.append(reused - refitted)
    # .149 was measured for these sizes by another implementation. With ridge 10, or
    # none chosen but M = I, nothing is learnt and nothing leaks.
    assert np.mean(gaps) > 0.05


# The protocol.


def test_ties_go_to_the_first():
    candidates = [Candidate({"k": k}, v) for k, v in ((1, 0.2), (2, 0.7), (3, 0.7))]
    assert first_best(candidates) == candidates[1]
    with pytest.raises(ValueError, match="empty"):
        first_best([])


def test_evaluate_scores_every_part():
    task = make_table("t", *data(60))
    chosen, scores = evaluate(Laplace(), task)
    assert set(chosen) == {"sphere", "ridge", "validation"}
    select = task.split(SELECT)
    assert scores == [
        Laplace().score(chosen, task.split(part), select).accuracy
        for part in task.parts
    ]


def test_separable_classes_are_learnt_by_all():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.standard_normal((60, 2)) + 8.0 * y[:, None]
    for method in (RFM(), Laplace(), NTK(), ReusedRFM()):
        task = make_table("t", X, y)
        select = task.split(SELECT)
        chosen = RFM().select(select) if method.selects_as else method.select(select)
        scores = [method.score(chosen, task.split(p), select)[0] for p in task.parts]
        assert min(scores) > 0.9
