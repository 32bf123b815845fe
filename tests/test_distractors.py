import numpy as np
import pytest

from agop.datasets import Dataset, load
from agop.distractors import between_distractors, grey_images, photographs


def single(n=40, side=6):
    """Image i is constant i / n: each part of a triple names its row."""
    X = np.repeat(np.arange(1.0, n + 1) / n, side * side).reshape(n, -1)
    return Dataset("rows", X, np.arange(n) % 10)


def test_the_centre_is_the_digit_of_the_label():
    data = single()
    task = between_distractors(data, n=25, n_test=10)
    values = {}
    for name, X, y in (("train", task.X, task.y), ("test", task.X_test, task.y_test)):
        triples = X.reshape(len(X), 6, 18)
        rows = np.round(triples * 40).astype(int)[:, 0, [0, 6, 12]] - 1
        np.testing.assert_array_equal(data.y[rows[:, 1]], y)
        assert (np.ptp(triples[:, :, 6:12], axis=(1, 2)) == 0).all()
        assert len(set(rows[:, 1])) == len(rows)
        assert (rows[:, 0] != rows[:, 1]).any()
        values[name] = set(rows.ravel())
    assert not values["train"] & values["test"]


def test_mask_and_blank_sides():
    task = between_distractors(single(), n=20, n_test=5, distract=False)
    assert task.centre.reshape(task.shape).all(0).tolist() == (
        [False] * 6 + [True] * 6 + [False] * 6
    )
    assert not task.X[:, ~task.centre].any()
    assert (task.X[:, task.centre] > 0).all()


def test_pooling_averages_blocks():
    digits = load("digits")
    pooled = grey_images(digits, pool=2)
    first = digits.X[0].reshape(8, 8)
    for i in range(4):
        for j in range(4):
            block = first[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean() / 16
            assert pooled[0, i, j] == pytest.approx(block)


def test_photographs_are_rows_of_their_parts():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (30, 6, 6, 3), dtype=np.uint8)
    y = np.arange(30)
    data = Dataset("photos", images[:20], y[:20], images[20:], y[20:])
    task = photographs(data, n=12, n_test=8)
    for X, labels in ((task.X, task.y), (task.X_test, task.y_test)):
        np.testing.assert_allclose(X, images[labels].reshape(len(X), -1) / 255)
    assert task.centre.mean() == pytest.approx(1 / 3)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="at most 40"):
        between_distractors(single(), n=30, n_test=11)
    with pytest.raises(ValueError, match="pool=4"):
        between_distractors(single(), n=5, n_test=5, pool=4)
    with pytest.raises(ValueError, match="test part"):
        photographs(single(), n=5, n_test=5)
