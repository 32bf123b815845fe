"""Image tasks: scaling, classes, and which rows they hold."""

import numpy as np
import pytest
import torch

from agop.datasets import Dataset, draw_faces, load
from agop.image_tasks import image_task, load_images


def made_up(n=60):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, 4, 4, 3)).astype(np.uint8)
    labels = np.arange(n) % 3
    return Dataset("made-up", images, labels, images[:9] // 2, labels[:9])


def test_training_images_have_mean_zero_and_the_radius_and_test_images_follow():
    data = made_up()
    task = image_task(data, n=40, n_test=9, radius=3.0, seed=1, dtype=torch.float64)
    assert task.X.mean(0).abs().max() < 1e-12
    assert task.X.square().sum(1).mean().sqrt() == pytest.approx(3, abs=1e-12)
    # Undo the scaling by two rows and find every row in the data again.
    flat = data.X.reshape(60, -1).astype(float)
    chosen = np.random.default_rng(1).permutation(60)[:40]
    mean = flat[chosen].mean(0)
    scale = 3 / np.sqrt(((flat[chosen] - mean) ** 2).sum(1).mean())
    assert np.allclose(task.X.numpy(), (flat[chosen] - mean) * scale)
    assert torch.equal(task.y, torch.as_tensor(data.y[chosen]))
    assert torch.equal(task.Y.argmax(1), task.y)
    test = data.X_test.reshape(9, -1).astype(float)
    assert np.allclose(
        np.sort(task.X_test.numpy().sum(1)), np.sort(((test - mean) * scale).sum(1))
    )


def test_two_classes_become_0_and_1():
    task = image_task(load("digits"), "4-9", n=10**6, n_test=10**6)
    everything = load("digits").y
    total = len(task.y) + len(task.y_test)
    assert total == np.isin(everything, (4, 9)).sum()
    ones = int(task.y.sum()) + int(task.y_test.sum())
    assert ones == (everything == 9).sum()
    assert task.C == 2
    assert task.name == "digits 4-9"


def test_all_classes_without_a_pair():
    assert image_task(load("digits"), n=100, n_test=50).C == 10


def test_faces_are_drawn_to_order():
    data = load_images("faces", "hat", n=30, n_test=20, size=16, seed=5)
    faces = draw_faces(50, size=16, seed=5)
    assert np.array_equal(data.X, faces.images[:30])
    task = image_task(data, "hat", n=30, n_test=20)
    assert (len(task.X), len(task.X_test), task.C) == (30, 20, 2)
    assert task.name == "faces/hat"


def test_celeba_is_asked_for_balanced(monkeypatch):
    asked = {}
    monkeypatch.setattr(
        "agop.image_tasks.load", lambda name, **o: asked.update(o, name=name)
    )
    load_images("celeba", "Eyeglasses", n=10, n_test=5, size=96)
    assert asked == {
        "name": "celeba",
        "attribute": "Eyeglasses",
        "balanced": True,
        "n_train": 10,
        "n_test": 5,
        "size": 96,
    }


def test_a_class_that_is_not_there():
    with pytest.raises(ValueError, match="'2-7'"):
        image_task(made_up(), "2-7", n=10, n_test=5)
