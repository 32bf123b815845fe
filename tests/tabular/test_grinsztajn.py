"""The second benchmark: parts, columns, targets, choice, records."""

import json

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import r2_score

from agop.datasets import Table
from agop.kernels import kernel_matrix
from agop.tabular import grinsztajn
from agop.tabular.grinsztajn import (
    JUDGED,
    Encoder,
    Parts,
    Target,
    choose,
    draw_parts,
    number_of_splits,
    run_second,
    second_table,
    summarise_second,
)
from agop.tabular.journal import read_records
from agop.tabular.second_methods import LEARNERS

N = 60
RNG = np.random.default_rng(0)


def small(task="regression", n=N):
    """Two columns of numbers around one of three categories, which matters most."""
    X = np.column_stack(
        [RNG.exponential(size=n), RNG.integers(0, 3, n), RNG.uniform(size=n)]
    )
    value = 3.0 * (X[:, 1] == 1) + 0.1 * X[:, 2]
    y = value if task == "regression" else (value > 1).astype(np.int64)
    names = () if task == "regression" else ("low", "high")
    return Table(
        "small", X, y, feature_names=("a", "kind", "b"), class_names=names,
        categorical=(1,), categories={1: ("x", "y", "z")}, task=task,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """A grid of one point keeps the forest quick."""
    grid = {"max_features": (1.0,), "min_samples_leaf": (1,)}
    monkeypatch.setattr(LEARNERS["forest"], "grid", grid, raising=False)


PARTS = Parts(np.arange(30), np.arange(30, 40), np.arange(40, 60))


@pytest.mark.parametrize(
    ("n", "cap", "sizes"),
    [(1000, 10_000, (700, 90, 210)), (200_000, 10_000, (10_000, JUDGED, JUDGED))],
)
def test_parts_have_the_sizes_of_the_benchmark(n, cap, sizes):
    parts = draw_parts(n, cap, 0)
    assert tuple(map(len, parts)) == sizes
    assert len(np.unique(np.concatenate(parts))) == sum(sizes)


def test_parts_depend_on_the_seed_alone():
    first, again, other = (draw_parts(100, 50, seed) for seed in (0, 0, 1))
    assert (first.train == again.train).all()
    assert (first.train != other.train).any()


def test_the_ends_of_the_number_of_splits():
    found = [number_of_splits(n) for n in (6001, 6000, 3001, 3000, 1001, 1000)]
    assert found == [1, 2, 2, 3, 3, 5]


@pytest.mark.parametrize(("n", "cap", "word"), [(9, 100, "n must"), (99, 3, "train_")])
def test_too_few_rows_are_refused(n, cap, word):
    with pytest.raises(ValueError, match=word):
        draw_parts(n, cap, 0)


def test_numbers_become_gaussian_by_ranks_of_the_training_rows():
    table = small()
    X, X_val, _ = Encoder(table, "none").encode(PARTS)
    assert X.shape == (30, 2)
    ranks = table.X[:30, 0].argsort().argsort() / 29  # by hand
    inner = (ranks > 0) & (ranks < 1)
    assert X[inner, 0] == pytest.approx(norm.ppf(ranks[inner]), abs=1e-9)
    moved = Table(
        "moved", np.vstack([table.X[:30], 99 + table.X[30:]]), table.y,
        categorical=(1,), categories=table.categories,
    )  # fmt: skip
    X_moved, val_moved, _ = Encoder(moved, "none").encode(PARTS)
    assert (X_moved == X).all()  # other rows have no say
    assert np.abs(val_moved - X_val).max() > 1


def test_categories_as_indicators_as_codes_or_not_at_all():
    table = small()
    kinds = table.X[30:40, 1].astype(int)
    ones = Encoder(table).encode(PARTS)[1]
    assert ones.shape == (10, 5)
    assert (ones[:, 2:] == np.eye(3)[kinds]).all()
    codes = Encoder(table, "codes")
    assert (codes.encode(PARTS)[1][:, 2] == kinds).all()
    assert codes.coded == [2]
    assert Encoder(table).coded == Encoder(table, "none").coded == []


def test_a_category_that_training_rows_lack_has_its_place():
    table = small()
    table.X[:30, 1] = 0
    table.X[30:40, 1] = 2
    assert (Encoder(table).encode(PARTS)[1][:, 2:] == [0, 0, 1]).all()
    for method in LEARNERS:
        if method != "xgboost":
            assert np.isfinite(choose(table, PARTS, method).test)


def test_unknown_ways_and_empty_tables_are_refused():
    with pytest.raises(ValueError, match="categories must be"):
        Encoder(small(), "hashes")
    X = RNG.integers(0, 2, (N, 1)).astype(float)
    only = Table("only", X, X[:, 0], categorical=(0,), categories={0: ("a", "b")})
    with pytest.raises(ValueError, match="only: no column is left"):
        Encoder(only, "none").encode(PARTS)
    assert Encoder(only).encode(PARTS)[0].shape == (30, 2)


@pytest.mark.parametrize("log", [False, True])
def test_a_target_is_undone(log):
    y = RNG.normal(3, 10, 50)
    target = Target.of(y, log=log)
    assert target.back(target.forward(y)) == pytest.approx(y)
    z = target.forward(y)
    assert np.sign(z) == pytest.approx(np.sign(y - y.mean()))
    if not log:
        assert (z.mean(), z.std()) == pytest.approx((0, 1))


def test_a_constant_target_is_no_division_by_zero():
    assert Target.of(np.full(5, 7.0), log=False).forward(np.full(2, 7.0)).tolist() == [
        0,
        0,
    ]


def test_the_laplace_kernel_is_chosen_as_by_hand():
    """Kernel ridge regression solved here, all ridges, without logarithm."""
    table = small()
    X, X_val, X_test = Encoder(table).encode(PARTS)
    y, y_val, y_test = (table.y[rows] for rows in PARTS)
    z = (y - y.mean()) / y.std()
    scores = []
    for ridge in (0.1, 0.01, 0.001):
        K = kernel_matrix("laplace", X, bandwidth=10.0).numpy()
        A = np.linalg.solve(K + ridge * np.eye(30), z)
        F, F_test = (
            kernel_matrix("laplace", Q, X, bandwidth=10.0).numpy() @ A
            for Q in (X_val, X_test)
        )
        back = [f * y.std() + y.mean() for f in (F, F_test)]
        scores.append((r2_score(y_val, back[0]), r2_score(y_test, back[1]), ridge))
    learner = LEARNERS["laplace"]
    found = [chosen["ridge"] for chosen, _ in learner.regress(X, z, [])]
    assert found == [0.1, 0.01, 0.001]
    value, test, ridge = max(scores)
    best = choose(table, PARTS, "laplace")
    if best.chosen["log"]:
        assert best.validation > value
    else:
        assert best.validation == pytest.approx(value)
        assert best.test == pytest.approx(test)
        assert best.chosen["ridge"] == ridge


def test_the_choice_looks_at_validation_rows_only():
    table = small()
    before = choose(table, PARTS, "rfm")
    table.y[40:] = RNG.normal(size=20)
    after = choose(table, PARTS, "rfm")
    assert (after.chosen, after.validation) == (before.chosen, before.validation)
    assert after.test != before.test


@pytest.mark.parametrize("method", ["rfm", "laplace", "forest", "boosting"])
def test_classes_are_learnt_from_the_category(method):
    table = small("classification", 200)  # leaves of boosting hold 20 rows
    parts = draw_parts(200, 120, 0)
    assert choose(table, parts, method).test >= 0.9
    without = choose(table, parts, method, numeric_only=True)
    assert without.test < 0.9


def test_labels_need_not_be_in_a_row():
    table = small("classification")
    table.y[table.y == 1] = 5
    assert choose(table, PARTS, "laplace").test >= 0.9


def test_unknown_methods_are_named():
    with pytest.raises(ValueError, match="method must be one of rfm"):
        choose(small(), PARTS, "oracle")


@pytest.fixture
def journal(tmp_path, monkeypatch):
    def load(name):
        if name == "absent":
            raise ValueError("there is no such table")
        return small()

    monkeypatch.setattr(grinsztajn, "second_table", load)
    path = tmp_path / "second.jsonl"
    run_second(["absent", "small"], ["laplace"], path, train_rows=30)
    return path


def test_a_run_is_recorded_resumed_and_summarised(journal):
    before = journal.read_bytes()
    run_second(["absent", "small"], ["laplace"], journal, train_rows=30)
    assert journal.read_bytes() == before
    records = list(read_records(journal))
    assert [r["status"] for r in records] == ["failed"] + 5 * ["done"]
    assert "no such table" in records[0]["error"]
    (row,) = summarise_second(records)
    assert (row["table"], row["splits"], row["train"]) == ("small", 5, 30)
    assert row["score"] == pytest.approx(np.mean([r["score"] for r in records[1:]]))
    assert json.loads(row["chosen"]).keys() == {"log", "ridge"}


def test_a_suite_stands_for_its_tables(monkeypatch):
    monkeypatch.setattr(grinsztajn, "suite_tables", {336: (7, 8)}.__getitem__)
    found = grinsztajn.expand(["diabetes", "suite/336"])
    assert found == ["diabetes", "openml/7", "openml/8"]


def test_shipped_tables_need_no_download():
    diabetes, cancer = second_table("diabetes"), second_table("breast_cancer")
    assert (diabetes.task, cancer.task) == ("regression", "classification")
    assert diabetes.y.dtype == np.float64
