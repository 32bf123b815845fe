import numpy as np
import pytest
import torch
from sklearn.model_selection import train_test_split

from agop.datasets import Dataset, load
from agop.tasks import accuracy, make_task


def table(n=60, C=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(5.0, 3.0, (n, 4))
    X[:, 3] = 7.0  # a constant feature
    return Dataset("table", X, np.arange(n) % C)


def images(n=20):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (n, 2, 3, 1), dtype=np.uint8)
    return Dataset("images", X, np.arange(n) % 2, X[:4], np.arange(4) % 2)


def test_both_parts_are_scaled_by_the_training_rows():
    data = table()
    task = make_task(data, dtype=torch.float64)
    rows, test_rows = train_test_split(
        np.arange(60), test_size=0.2, random_state=0, stratify=data.y
    )
    mean, std = data.X[rows].mean(0), data.X[rows].std(0)
    std[3] = 1.0  # the constant feature keeps its scale
    np.testing.assert_allclose(task.X, (data.X[rows] - mean) / std, atol=1e-12)
    np.testing.assert_allclose(
        task.X_test, (data.X[test_rows] - mean) / std, atol=1e-12
    )


def test_targets_are_one_hot_and_classes_in_proportion():
    task = make_task(table())
    assert task.Y.sum(1).eq(1).all()
    assert task.Y.argmax(1).eq(task.y).all()
    assert torch.bincount(task.y_test).tolist() == [4, 4, 4]
    assert (task.d, task.C) == (4, 3)


def test_images_are_flattened_and_their_test_part_kept():
    task = make_task(images())
    assert task.X.shape == (20, 6)
    assert 0 <= task.X.min() <= task.X.max() <= 1
    assert task.X_test.equal(task.X[:4])


def test_fewer_rows_on_request_and_seeded():
    whole = make_task(images())
    few, again, other = (make_task(images(), n=10, seed=s) for s in (0, 0, 1))
    assert len(few.X) == 10
    assert torch.bincount(few.y).tolist() == [5, 5]
    assert few.X.equal(again.X)
    assert not few.X.equal(other.X)
    assert len(whole.X) == 20


def test_bad_requests_are_named():
    with pytest.raises(ValueError, match=r"n must be in 1..20, the rows of images"):
        make_task(images(), n=21)
    with pytest.raises(ValueError, match="diabetes: y must hold integer labels"):
        make_task(load("diabetes"))


def test_a_class_of_one_row_does_not_stop_the_split():
    data = table(10)
    task = make_task(Dataset("rare", data.X, np.array([0] * 9 + [1])))
    assert len(task.X) == 8
    assert task.C == 2


def test_accuracy_by_hand():
    scores = torch.tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    assert accuracy(scores, torch.tensor([1, 0, 0, 0])) == 0.75
