"""Image sets from made-up files in the official layouts."""

import gzip
import os
import pickle

import numpy as np
import pytest

from agop.datasets import (
    ChecksumError,
    DatasetError,
    DownloadError,
    load,
    load_celeba,
    load_cifar10,
    load_mnist,
    load_stl10,
    load_stl10_airplane_truck,
    load_svhn,
)
from agop.datasets.registry import entry
from agop.datasets.storage import locate

from .layouts import (
    celeba_files,
    cifar_archive,
    cifar_batch,
    idx,
    mat,
    mnist_files,
    pixels,
    stl_archive,
)

# MNIST


def test_mnist(publish):
    publish("mnist", mnist_files())
    data = load_mnist()
    assert np.array_equal(data.X[..., 0], pixels(5, 28, 28))
    assert np.array_equal(data.X_test[..., 0], pixels(3, 28, 28, seed=1))
    assert (data.y.tolist(), data.y_test.tolist()) == ([0, 1, 2, 3, 4], [0, 1, 2])
    assert data.X.flags.writeable  # torch.from_numpy warns of read-only arrays
    assert data.provenance.source == "official download"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            gzip.compress(b"\x00\x00\x0d\x01" + b"\x00\x00\x00\x01" + b"\x00"),
            "not an idx file",
        ),
        (gzip.compress(gzip.decompress(idx(pixels(5)))[:-1]), "holds 4 values"),
    ],
    ids=["type", "length"],
)
def test_mnist_refuses_other_files(publish, wrong, message):
    publish("mnist", mnist_files() | {"train-labels-idx1-ubyte.gz": wrong})
    with pytest.raises(DatasetError, match=message):
        load_mnist()


# CIFAR-10


def test_cifar10(publish):
    publish("cifar10", {"cifar-10-python.tar.gz": cifar_archive()})
    data = load_cifar10()
    assert (data.X.shape, data.X_test.shape) == ((20, 32, 32, 3), (4, 32, 32, 3))
    assert data.y[:8].tolist() == [0, 9, 0, 1, 1, 9, 0, 1]
    flat, _ = cifar_batch(2)
    # by the definition of the format: 1024 red, 1024 green, 1024 blue, row by row
    assert data.X[8, 3, 17, 2] == flat[0, 2 * 1024 + 3 * 32 + 17]
    assert data.X_test[1, 31, 0, 1] == cifar_batch(5)[0][1, 1024 + 31 * 32]


def test_cifar10_unpickles_nothing_before_the_checksum_matched(
    publish, server, monkeypatch, cache
):
    archive = cifar_archive()  # once: gzip writes the time into it
    publish("cifar10", {"cifar-10-python.tar.gz": archive})
    read = []
    monkeypatch.setattr("agop.datasets.cifar10.unpickle_arrays", read.append)
    server.files["cifar-10-python.tar.gz"] = cifar_archive(extra=b"tampered with")
    with pytest.raises(DownloadError, match="expected md5"):
        load_cifar10()
    path = cache / "cifar10/cifar-10-python.tar.gz"
    path.write_bytes(b"put there by hand")
    with pytest.raises(ChecksumError):
        load_cifar10()
    # verified once, and then changed without a trace: size and time are the same
    path.write_bytes(archive)
    locate(entry("cifar10"))
    stat = path.stat()
    path.write_bytes(bytes(stat.st_size))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(ChecksumError):
        load_cifar10()
    assert read == []


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('it ran')",)


def test_cifar10_refuses_a_pickle_with_code_even_if_the_checksum_matches(publish):
    archive = cifar_archive(data_batch_3=pickle.dumps(Evil()))
    publish("cifar10", {"cifar-10-python.tar.gz": archive})
    with pytest.raises(pickle.UnpicklingError, match=r"builtins\.exec"):
        load_cifar10()


# STL-10


def test_stl10(publish, cache):
    publish("stl10", {"stl10_binary.tar.gz": stl_archive()})
    data = load_stl10()
    raw = pixels(5, 3, 96, 96)
    assert data.X.shape == (5, 96, 96, 3)
    assert data.X[2, 10, 70, 1] == raw[2, 1, 70, 10]  # the file runs down the columns
    assert data.y.tolist() == [0, 9, 1, 0, 9]
    assert np.array_equal(data.X_test, data.X[::-1])
    assert not list(cache.rglob("unlabeled_X.bin"))


def test_stl10_two_classes_are_cut_from_the_ten(publish):
    publish("stl10", {"stl10_binary.tar.gz": stl_archive()})
    ten, two = load_stl10(), load_stl10_airplane_truck()
    assert np.array_equal(two.X, ten.X[[0, 1, 3, 4]])
    assert two.y.tolist() == [0, 1, 0, 1]
    assert two.y_test.tolist() == [1, 0, 1, 0]
    assert two.provenance.source == "official download"


# SVHN


def test_svhn(publish):
    train, test = pixels(4, 32, 32, 3), pixels(2, 32, 32, 3, seed=1)
    publish(
        "svhn",
        {
            "train_32x32.mat": mat(train, [1, 10, 9, 10]),
            "test_32x32.mat": mat(test, [5, 10]),
        },
    )
    data = load_svhn()
    assert np.array_equal(data.X, train)
    assert np.array_equal(data.X_test, test)
    assert data.y.tolist() == [1, 0, 9, 0]
    assert data.y_test.tolist() == [5, 0]


# CelebA


def test_celeba(publish):
    publish("celeba", celeba_files())
    data = load_celeba("Smiling", size=8)
    assert data.X.shape == (4, 8, 8, 3)  # the fifth face is for validation
    assert data.X[:, 4, 4, 0].tolist() == [10, 30, 50, 70]
    assert data.y.tolist() == [0, 1, 0, 1]
    assert data.X_test[:, 4, 4, 0].tolist() == [110, 130]
    assert data.y_test.tolist() == [1, 0]
    assert data.class_names == ("not Smiling", "Smiling")


def test_celeba_balanced_takes_as_many_of_each(publish):
    publish("celeba", celeba_files())
    data = load("celeba", attribute="Bald", size=8, n_train=4, balanced=True)
    assert data.y.tolist() == [1, 0]  # there is one bald face only
    two = load_celeba("Smiling", size=8, n_train=2, balanced=True)
    assert two.X[:, 4, 4, 0].tolist() == [10, 30]
    assert load_celeba("Bald", size=8, n_train=3).y.tolist() == [1, 0, 0]


def test_celeba_names_its_attributes(publish):
    publish("celeba", celeba_files())
    with pytest.raises(ValueError, match="'Angry'; it has Bald, Smiling"):
        load_celeba("Angry")
    with pytest.raises(ValueError, match="n_train is 0"):
        load_celeba("Bald", n_train=0)
