import numpy as np
import pytest

from agop.datasets import Dataset
from agop.stars import (
    BLACK,
    PLUS,
    STAR,
    WHITE,
    YELLOW,
    drawn_textures,
    marked_task,
    paint,
    place,
)


def small(seed=0):
    return drawn_textures(n=(30, 12), n_test=40, side=16, seed=seed)


def options(**changes):
    return {"counts": (20, 6), "picture": PLUS, "top": 2, "left": 5} | changes


def test_the_star_has_the_pixels_that_the_released_loader_sets():
    # (row, first column, last column + 1), as read in dataset.py of the repository
    # aradha/deep_neural_feature_ansatz at 2736023
    runs = [(3, 10, 11), (4, 9, 12), (5, 7, 14), (6, 8, 13), (7, 9, 12), (8, 8, 13)]
    runs += [(9, 8, 10), (9, 11, 13)]
    expected = np.zeros((96, 96), dtype=bool)
    for row, start, stop in runs:
        expected[row, start:stop] = True
    np.testing.assert_array_equal(place(STAR, 96, 96), expected)


def test_paint_changes_the_mark_and_nothing_else():
    data = small()
    mask = place(PLUS, 16, 16)
    bright = data.y == 1
    X = paint(data.X, bright, mask)
    for image, original, lit in zip(X, data.X, bright, strict=True):
        for i in range(16):
            for j in range(16):
                wanted = original[i, j] / 255
                if mask[i, j]:
                    wanted = YELLOW if lit else BLACK
                np.testing.assert_allclose(image[i, j], wanted, atol=1e-7)


def test_task_has_the_counts_the_mask_and_the_whole_test_part():
    data = small()
    task = marked_task(data, **options())
    assert np.bincount(task.y).tolist() == [20, 6]
    assert task.X.shape == (26, 16 * 16 * 3)
    assert task.X.dtype == np.float32
    assert task.X_test.shape == (80, 768)
    assert task.mask.sum() == 5 * 3
    np.testing.assert_array_equal(task.y_test, data.y_test)
    # the mark tells the class, in every image
    corner = task.X[:, task.mask].reshape(26, 5, 3)
    np.testing.assert_array_equal(corner[:, :, 0].min(1), task.y)
    assert not corner[:, :, 2].any()


def test_uninformative_colours_are_independent_of_the_label():
    task = marked_task(small(), **options(informative=False, bright_colour=WHITE))
    for X, y in ((task.X, task.y), (task.X_test, task.y_test)):
        bright = X[:, task.mask].min(1)
        assert set(bright) == {0.0, 1.0}
        for label in (0, 1):  # both colours in each class
            assert 0 < bright[y == label].mean() < 1


def test_seeds_fix_the_draw():
    data = small()
    same = [marked_task(data, **options(seed=s)).X for s in (1, 1, 2)]
    np.testing.assert_array_equal(same[0], same[1])
    assert not np.array_equal(same[0], same[2])


def test_textures_differ_by_class_as_much_as_asked():
    data = drawn_textures(n=(400, 400), n_test=1, side=8, difference=0.05)
    means = [data.X[data.y == label].mean(0) / 255 for label in (0, 1)]
    pattern = (means[1] - means[0]) / 2
    # 400 images a class of noise 0.25: standard error of each pixel .009
    assert pattern.std() == pytest.approx(0.05, abs=0.015)
    assert (data.X / 255).std() == pytest.approx(0.25, abs=0.03)


def test_bad_input_is_named():
    data = small()
    with pytest.raises(ValueError, match="does not fit"):
        place(STAR, 96, 96, top=90)
    with pytest.raises(ValueError, match="class 1"):
        marked_task(data, **options(counts=(20, 13)))
    with pytest.raises(ValueError, match="test part"):
        marked_task(Dataset("bare", data.X, data.y), **options())
    mask = place(PLUS, 16, 16)
    with pytest.raises(ValueError, match="images must have shape"):
        paint(data.X[..., 0], data.y == 1, mask)
    with pytest.raises(ValueError, match="bright must have shape"):
        paint(data.X, np.array([True]), mask)
