"""torchvision as the second implementation: its checksums, and its readers."""

import gzip
import io
import tarfile
import zipfile

import numpy as np
import pytest

from agop.datasets import load, registry

from . import layouts as made_up

tv = pytest.importorskip("torchvision").datasets


def sums(name):
    return {f.name: f.checksum for f in registry.entry(name).official}


def urls(name):
    return {u for f in registry.entry(name).official for u in f.urls}


def test_checksums_and_addresses_are_torchvisions():
    mnist = tv.MNIST
    assert sums("mnist") == {name: f"md5:{md5}" for name, md5 in mnist.resources}
    assert urls("mnist") == {m + n for m in mnist.mirrors for n, _ in mnist.resources}
    for name, cls in (("cifar10", tv.CIFAR10), ("stl10", tv.STL10)):
        assert sums(name) == {cls.filename: f"md5:{cls.tgz_md5}"}
        assert urls(name) == {cls.url}
    parts = [tv.SVHN.split_list[split] for split in ("train", "test")]
    assert sums("svhn") == {file: f"md5:{md5}" for _, file, md5 in parts}
    assert urls("svhn") == {url for url, _, _ in parts}
    faces = {file: (f"md5:{md5}", id) for id, md5, file in tv.CelebA.file_list}
    for file in registry.entry("celeba").official:
        checksum, id_ = faces[file.name]
        assert file.checksum == checksum
        assert f"id={id_}&" in file.urls[0]


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """Let torchvision take made-up files."""
    for module in ("mnist", "cifar", "stl10", "svhn", "celeba"):
        target = f"torchvision.datasets.{module}.check_integrity"
        monkeypatch.setattr(target, lambda *args: True)


def untar(data, folder):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(folder, filter="data")


def test_mnist(publish, tmp_path):
    files = made_up.mnist_files()
    publish("mnist", files)
    raw = tmp_path / "MNIST/raw"
    raw.mkdir(parents=True)
    for name, data in files.items():
        (raw / name.removesuffix(".gz")).write_bytes(gzip.decompress(data))
    ours = load("mnist")
    for train, X, y in ((True, ours.X, ours.y), (False, ours.X_test, ours.y_test)):
        theirs = tv.MNIST(tmp_path, train=train)
        assert np.array_equal(X[..., 0], theirs.data.numpy())
        assert np.array_equal(y, theirs.targets.numpy())


def test_cifar10(publish, tmp_path, monkeypatch):
    monkeypatch.setattr(tv.CIFAR10, "_load_meta", lambda self: None)
    archive = made_up.cifar_archive()
    publish("cifar10", {"cifar-10-python.tar.gz": archive})
    untar(archive, tmp_path)
    ours = load("cifar10")
    for train, X, y in ((True, ours.X, ours.y), (False, ours.X_test, ours.y_test)):
        theirs = tv.CIFAR10(tmp_path, train=train)
        assert np.array_equal(X, theirs.data)
        assert y.tolist() == theirs.targets


def test_stl10(publish, tmp_path):
    archive = made_up.stl_archive()
    publish("stl10", {"stl10_binary.tar.gz": archive})
    untar(archive, tmp_path)
    ours = load("stl10")
    for split, X, y in (("train", ours.X, ours.y), ("test", ours.X_test, ours.y_test)):
        theirs = tv.STL10(tmp_path, split=split)
        assert np.array_equal(X.transpose(0, 3, 1, 2), theirs.data)
        assert np.array_equal(y, theirs.labels)


def test_svhn(publish, tmp_path):
    files = {
        "train_32x32.mat": made_up.mat(made_up.pixels(4, 32, 32, 3), [1, 10, 9, 10]),
        "test_32x32.mat": made_up.mat(made_up.pixels(2, 32, 32, 3, seed=1), [5, 10]),
    }
    publish("svhn", files)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    ours = load("svhn")
    for split, X, y in (("train", ours.X, ours.y), ("test", ours.X_test, ours.y_test)):
        theirs = tv.SVHN(tmp_path, split=split)
        assert np.array_equal(X.transpose(0, 3, 1, 2), theirs.data)
        assert np.array_equal(y, theirs.labels)


def test_celeba(publish, tmp_path, monkeypatch):
    files = made_up.celeba_files()
    publish("celeba", files)
    folder = tmp_path / "celeba"
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    zipfile.ZipFile(folder / "img_align_celeba.zip").extractall(folder)
    for name in ("identity_CelebA", "list_bbox_celeba", "list_landmarks_align_celeba"):
        rows = "".join(f"{k:06d}.jpg 1\n" for k in range(1, 8))
        head = "" if name.startswith("identity") else "7\nx\n"
        (folder / f"{name}.txt").write_text(head + rows)
    ours = load("celeba", attribute="Smiling", size=16)
    for split, X, y in (("train", ours.X, ours.y), ("test", ours.X_test, ours.y_test)):
        theirs = tv.CelebA(tmp_path, split=split)
        column = theirs.attr_names.index("Smiling")
        assert y.tolist() == theirs.attr[:, column].tolist()
        assert [theirs[k][0].getpixel((89, 109))[0] for k in range(len(y))] == (
            X[:, 8, 8, 0].tolist()
        )
