"""Splits, scaling without leakage, and tables that are broken."""

import numpy as np
import pytest

from agop.datasets import UCIDataset
from agop.tabular.tables import SELECT, check_table, make_table, table_task


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [20, 12, 8])
    return make_table("t", rng.standard_normal((40, 3)) * [1, 10, 100] + 5, y, seed=1)


def test_parts_have_the_sizes_of_the_collection(task):
    assert task.parts == ("fold1", "fold2", "fold3", "fold4")
    assert len(task.split(SELECT).y) == 20
    for part in task.parts:
        split = task.split(part)
        assert (len(split.y), len(split.y_test), split.C) == (30, 10, 3)
        assert np.bincount(split.y_test).tolist() == [5, 3, 2]


def test_splits_are_disjoint_and_differ(task):
    for train, test in (task.selection, *task.folds):
        assert sorted([*train, *test]) == list(range(40))
    tests = {tuple(test) for _, test in task.folds}
    assert len(tests) == 4


def test_scaling_knows_the_training_rows_only(task):
    split = task.split("fold1")
    assert split.X.mean(0) == pytest.approx(np.zeros(3), abs=1e-12)
    assert split.X.std(0) == pytest.approx(np.ones(3))
    _, test = task.folds[0]
    moved = task.X.copy()
    moved[test] += 1000.0
    other = make_table("t", moved, task.y, seed=1).split("fold1")
    assert np.array_equal(other.X, split.X)
    assert not np.array_equal(other.X_test, split.X_test)


def test_a_column_constant_in_training_says_nothing():
    X = np.random.default_rng(0).standard_normal((40, 2))
    X[:, 1] = 7.0
    split = make_table("t", X, [0, 1] * 20).split("fold1")
    assert not split.X[:, 1].any()
    assert not split.X_test[:, 1].any()


def test_rare_classes_do_not_stop_the_draw():
    y = [0] * 20 + [1] * 19 + [2]
    task = make_table("t", np.arange(40.0)[:, None], y)
    assert task.split("fold1").C == 3
    many = make_table("t", np.arange(30.0)[:, None], np.repeat(np.arange(15), 2))
    assert len(many.split(SELECT).y) == 15


def test_the_seed_decides_the_draw():
    X, y = np.arange(40.0)[:, None], [0, 1] * 20
    first, same, other = (make_table("t", X, y, seed=s) for s in (0, 0, 1))
    assert np.array_equal(first.folds[0][1], same.folds[0][1])
    assert not np.array_equal(first.folds[0][1], other.folds[0][1])


def uci(**test):
    rows = np.arange(8)
    return UCIDataset(
        name="uci/t",
        X=np.arange(16.0).reshape(8, 2),
        y=np.array([0, 1] * 4),
        class_names=("0", "1"),
        selection=(rows[:4], rows[4:]),
        folds=((rows[2:], rows[:2]),),
        **test,
    )


def test_the_authors_splits_and_scaling_are_kept():
    task = table_task(uci())
    assert task.parts == ("fold1",)
    assert np.array_equal(task.split("fold1").X, task.X[2:])


def test_a_test_file_takes_the_place_of_the_folds():
    task = table_task(uci(X_test=np.ones((3, 2)), y_test=np.array([0, 0, 1])))
    assert task.parts == ("test",)
    split = task.split("test")
    assert (len(split.y), len(split.y_test)) == (8, 3)
    with pytest.raises(ValueError, match="fold1"):
        task.split("fold1")


def test_on_the_sphere_rows_have_norm_one(task):
    split = task.split(SELECT).on_sphere()
    assert np.linalg.norm(split.X, axis=1) == pytest.approx(np.ones(20))
    assert not split.has_zero_row


def test_a_zero_row_is_seen_on_either_side():
    X = np.eye(4)
    X[0] = 0
    task = table_task(uci(X_test=X[:, :2], y_test=np.array([0, 1, 0, 1])))
    assert task.split("test").has_zero_row
    assert not table_task(uci()).split("fold1").has_zero_row


def test_at_most_draws_rows_with_their_labels():
    X = np.arange(40.0)[:, None]
    split = make_table("t", X, (X[:, 0] > 19).astype(int)).split(SELECT)
    few = split.at_most(7, 100, seed=3)
    assert len(few.y) == 7
    assert len(few.y_test) == 20
    label = dict(zip(split.X[:, 0], split.y, strict=True))
    assert [label[x] for x in few.X[:, 0]] == few.y.tolist()
    assert np.array_equal(few.y, split.at_most(7, 100, seed=3).y)


GOOD = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([[1.0, np.nan], *GOOD[1:]], [0, 1] * 2, ValueError, "1 of 4 rows.*column 1"),
        ([[1.0, None], *GOOD[1:].tolist()], [0, 1] * 2, ValueError, "missing"),
        ([[np.inf, 1.0], *GOOD[1:]], [0, 1] * 2, ValueError, "infinite"),
        (GOOD, [1, 1, 1, 1], ValueError, "single class"),
        (GOOD[:1], [1], ValueError, "at least 4 rows"),
        (GOOD[0], [1, 0], ValueError, "shape"),
        (GOOD, [0, 1], ValueError, r"shape \(4,\)"),
        (GOOD, [0.0, np.nan, 1, 1], ValueError, "labels"),
        (
            [["red", 1], ["blue", 2], ["red", 3], ["x", 4]],
            [0, 1] * 2,
            TypeError,
            "text",
        ),
    ],
)
def test_broken_tables_say_what_is_wrong(X, y, error, message):
    X = np.array(X, dtype=object) if error is TypeError else X
    with pytest.raises(error, match=message):
        check_table(X, y, "t")
    with pytest.raises(error, match="t: "):
        make_table("t", X, y)


def test_text_columns_are_counted():
    X = np.array([[1, "a"], [2, "b"], [3, "a"], [4, "c"]], dtype=object)
    with pytest.raises(TypeError, match=r"columns \[1\]"):
        check_table(X, [0, 1, 0, 1])
