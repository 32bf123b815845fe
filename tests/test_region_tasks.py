import numpy as np
import pytest

from agop.datasets import Dataset, draw_faces, load
from agop.region_tasks import (
    drawn_objects,
    lipstick_task,
    paired_task,
    rows_above,
    star_task,
)
from agop.stars import PLUS, drawn_textures, marked_task


def objects(n=200, n_test=100, **options):
    return drawn_objects(n=n, n_test=n_test, side=16, **options)


def named_digits(side=8):
    """Digits whose pixels all hold the label plus one: classes can be read off."""
    y = np.arange(600) % 10
    X = np.repeat((y[:, None] + 1.0) / 10, side * side, axis=1)
    return Dataset("named", X, y, X[:200], y[:200])


def classes_of(task, X):
    """The class of the digit half, from its pixels."""
    right = X[:, task.regions["digit"]]
    return np.round(right.max(1) * 10).astype(int) - 1


def test_pairs_show_object_and_digit_of_the_class():
    task = paired_task(objects(), named_digits(), n=200, n_test=100)
    assert task.shape == (16, 32, 3)
    for X, y in ((task.X, task.y), (task.X_test, task.y_test)):
        assert np.bincount(y).tolist() == [len(y) // 10] * 10
        np.testing.assert_array_equal(classes_of(task, X), y)
    np.testing.assert_array_equal(task.Y.argmax(1), task.y)


def test_the_object_half_holds_images_of_the_class():
    things = objects(contrast=0.02, difference=0.2)
    task = paired_task(things, named_digits(), n=200, n_test=100)
    left = task.X_test.reshape(-1, 16, 32, 3)[:, :, :16]
    centres = [things.X[things.y == c].mean(0) / 255 for c in range(10)]
    for image, label in zip(left, task.y_test, strict=True):
        nearest = np.argmin([np.square(image - c).sum() for c in centres])
        assert nearest == label


def test_shuffled_digits_tell_nothing_and_swapped_ones_mislead():
    task = paired_task(objects(), named_digits(), n=200, n_test=100, informative=False)
    for X, y in ((task.X, task.y), (task.X_test, task.y_test)):
        shown = classes_of(task, X)
        assert np.bincount(shown).tolist() == np.bincount(y).tolist()
        assert (shown == y).mean() < 0.3
    task = paired_task(objects(), named_digits(), n=200, n_test=100, swapped_test=True)
    np.testing.assert_array_equal(classes_of(task, task.X), task.y)
    shown = classes_of(task, task.X_test)
    np.testing.assert_array_equal(shown, (task.y_test + 1) % 10)


def test_digits_are_repeated_or_framed_to_the_side_of_the_objects():
    digits = load("digits")
    task = paired_task(objects(), digits, n=10, n_test=10)
    half = task.X.reshape(-1, 16, 32, 3)[0, :, 16:]
    small = half[::2, ::2, 0]
    match = np.abs(digits.X.reshape(-1, 8, 8) / 16 - small).sum((1, 2))
    assert match.min() < 1e-5
    for i in range(16):
        for j in range(16):
            np.testing.assert_array_equal(half[i, j], small[i // 2, j // 2])
    framed = paired_task(objects(), named_digits(14), n=10, n_test=10)
    half = framed.X.reshape(-1, 16, 32, 3)[0, :, 16:, 0]
    assert (half[1:15, 1:15] > 0).all()
    assert half.sum() == pytest.approx(half[1:15, 1:15].sum())


def test_training_and_test_digits_are_different_rows():
    y = np.arange(100) % 10
    X = np.repeat(np.arange(1.0, 101)[:, None], 64, axis=1)  # each row its own value
    task = paired_task(objects(), Dataset("rows", X, y), n=50, n_test=20)
    digit = task.regions["digit"]
    first, second = (
        set(np.round(A[:, digit].max(1) * 100)) for A in (task.X, task.X_test)
    )
    assert len(first) == 50
    assert not first & second


def test_radius_centres_and_scales_by_the_training_part():
    raw = paired_task(objects(), named_digits(), n=100, n_test=50)
    task = paired_task(objects(), named_digits(), n=100, n_test=50, radius=7.0)
    np.testing.assert_allclose(task.X.mean(0), 0, atol=1e-5)
    norms = [float(x @ x) for x in task.X.astype(np.float64)]
    assert np.mean(norms) ** 0.5 == pytest.approx(7.0, rel=1e-5)
    np.testing.assert_allclose(task.scaled(raw.X_test), task.X_test, atol=1e-5)
    picture = task.image(task.X_test[3])
    np.testing.assert_allclose(picture.ravel(), raw.X_test[3], atol=1e-5)


def test_stars_are_those_of_the_marked_task():
    data = drawn_textures(n=(20, 20), n_test=10, side=16)
    task = star_task(data, counts=(15, 15), picture=PLUS, radius=None, seed=4)
    marked = marked_task(data, counts=(15, 15), picture=PLUS, seed=4)
    np.testing.assert_array_equal(task.X, marked.X)
    np.testing.assert_array_equal(task.X_test, marked.X_test)
    np.testing.assert_array_equal(task.regions["star"], marked.mask)
    np.testing.assert_array_equal(task.regions["photograph"], ~marked.mask)


def test_lipstick_is_the_label_and_make_up_agrees_at_the_rate():
    task = lipstick_task(n=300, n_test=100, size=16, rate=1.0, radius=None)
    assert task.y.mean() == pytest.approx(0.5, abs=0.08)
    bare = draw_faces(400, size=16, attributes={"lipstick": 0.0, "eye_makeup": 0.0})
    images = np.concatenate([task.X, task.X_test]).reshape(400, 16, 16, 3)
    changed = np.abs(images - bare.images / 255).max(3) > 1e-6  # same people, bare
    y = np.concatenate([task.y, task.y_test]).astype(bool)
    lips, eyes = bare.mask("lipstick"), bare.mask("eye_makeup")
    has = [(changed & part).any((1, 2)) for part in (lips, eyes)]
    np.testing.assert_array_equal(has[0], y)
    np.testing.assert_array_equal(has[1], y)  # rate 1: they agree in all


@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_rate_of_agreement(rate):
    task = lipstick_task(n=600, n_test=10, size=16, rate=rate, radius=None, seed=2)
    bare = draw_faces(
        610, size=16, attributes={"lipstick": 0.0, "eye_makeup": 0.0}, seed=2
    )
    images = task.X.reshape(600, 16, 16, 3)
    changed = np.abs(images - bare.images[:600] / 255).max(3) > 1e-6
    made_up = (changed & bare.mask("eye_makeup")[:600]).any((1, 2))
    # standard error of the rate: .02
    assert (made_up == task.y).mean() == pytest.approx(rate, abs=0.06)


def test_regions_are_where_the_attributes_show():
    task = lipstick_task(n=20, n_test=10, size=32)
    eyes, lips = (
        np.nonzero(task.regions[name].reshape(32, 32, 3).all(2))[0]
        for name in ("eyes", "lips")
    )
    assert eyes.max() < 17 < lips.min()  # eyes above the middle, lips below
    assert not (task.regions["eyes"] & task.regions["lips"]).any()
    above = rows_above(task.regions["lips"], task.shape)
    assert not (above & task.regions["lips"]).any()
    assert (above | ~task.regions["eyes"]).all()
    assert above.reshape(task.shape)[:, 0, 0].sum() == lips.min()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="'faces' or 'celeba'"):
        lipstick_task("cats", n=10, n_test=10)
    with pytest.raises(ValueError, match="are needed"):
        paired_task(objects(100), named_digits(), n=1000, n_test=10)
    with pytest.raises(ValueError, match="square grey"):
        paired_task(objects(), named_digits(20), n=10, n_test=10)


def test_photographs_have_the_box_of_the_lips_and_can_be_shuffled(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (60, 48, 48, 3), dtype=np.uint8)
    y = np.arange(60) % 2
    data = Dataset("photos", X[:40], y[:40], X[40:], y[40:])
    monkeypatch.setattr("agop.region_tasks.load_celeba", lambda *_, **__: data)
    task = lipstick_task("celeba", n=40, n_test=20, size=48, radius=None)
    np.testing.assert_allclose(task.X[7], X[7].ravel() / 255, rtol=1e-6)
    rows, columns = np.nonzero(task.regions["lips"].reshape(48, 48, 3).all(2))
    assert (rows.min(), rows.max() + 1) == (32, 38)  # half of 63 to 75
    assert (columns.min(), columns.max() + 1) == (15, 32)
    np.testing.assert_array_equal(task.y, y[:40])
    shuffled = lipstick_task("celeba", n=40, n_test=20, size=48, rate=0.5, radius=None)
    assert shuffled.y.sum() == 20
    assert (shuffled.y != task.y).any()
    np.testing.assert_array_equal(shuffled.y_test, y[40:])
