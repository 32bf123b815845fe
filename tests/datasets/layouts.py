"""Small files in the layouts that the authors of the data publish."""

import gzip
import hashlib
import io
import struct
import tarfile
import zipfile

import numpy as np
from PIL import Image
from scipy.io import savemat


def md5(data: bytes) -> str:
    return "md5:" + hashlib.md5(data).hexdigest()


def tar_of(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    """Return a tar archive with these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def pixels(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


# MNIST: gzipped idx


def idx(array):
    head = struct.pack(f">BBBB{array.ndim}i", 0, 0, 8, array.ndim, *array.shape)
    return gzip.compress(head + array.tobytes())


def mnist_files():
    return {
        "train-images-idx3-ubyte.gz": idx(pixels(5, 28, 28)),
        "train-labels-idx1-ubyte.gz": idx(np.arange(5, dtype=np.uint8)),
        "t10k-images-idx3-ubyte.gz": idx(pixels(3, 28, 28, seed=1)),
        "t10k-labels-idx1-ubyte.gz": idx(np.arange(3, dtype=np.uint8)),
    }


# CIFAR-10: a tar of pickles that Python 2 wrote


def python2_pickle(data, labels):
    """Write what Python 2 did, opcode by opcode: protocol 2, bytes as str."""
    n, d = data.shape

    def text(s):
        return b"U" + bytes([len(s)]) + s.encode("ascii")

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"
        + text("b")
        + b"\x87R(K\x01"
        + b"J" + struct.pack("<i", n) + b"J" + struct.pack("<i", d) + b"\x86"
        + b"cnumpy\ndtype\n" + text("u1") + b"K\x00K\x01\x87R(K\x03" + text("|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + b"T" + struct.pack("<i", n * d) + data.tobytes() + b"tb"
    )  # fmt: skip
    numbers = b"](" + b"".join(b"K" + bytes([k]) for k in labels) + b"e"
    return b"\x80\x02}(" + text("data") + array + text("labels") + numbers + b"u."


def cifar_batch(k):
    return pixels(4, 3072, seed=k), [k, 9, 0, 1]


def cifar_archive(**more):
    names = [f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]
    files = {n: python2_pickle(*cifar_batch(k)) for k, n in enumerate(names)}
    files |= {"batches.meta": b"not read", "readme.html": b"not read", **more}
    return tar_of({f"cifar-10-batches-py/{n}": data for n, data in files.items()})


# STL-10: a tar of raw bytes, column by column, classes from 1

STL_LABELS = np.array([1, 10, 2, 1, 10], np.uint8)


def stl_archive():
    images = pixels(5, 3, 96, 96)
    return tar_of(
        {
            "stl10_binary/unlabeled_X.bin": b"left out",
            "stl10_binary/train_X.bin": images.tobytes(),
            "stl10_binary/train_y.bin": STL_LABELS.tobytes(),
            "stl10_binary/test_X.bin": images[::-1].tobytes(),
            "stl10_binary/test_y.bin": STL_LABELS[::-1].tobytes(),
        }
    )


# SVHN: Matlab files, samples last, the digit 0 written as 10


def mat(images, labels):
    buffer = io.BytesIO()
    X = images.transpose(1, 2, 3, 0)  # (32, 32, 3, n)
    savemat(buffer, {"X": X, "y": np.array(labels, np.uint8)[:, None]})
    return buffer.getvalue()


# CelebA: a zip of JPEG files and two text files

FACES = [  # brightness, Bald, Smiling, part
    (10, 1, -1, 0), (30, -1, 1, 0), (50, -1, -1, 0), (70, -1, 1, 0), (90, -1, -1, 1),
    (110, -1, 1, 2), (130, -1, -1, 2),
]  # fmt: skip


def celeba_files():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        for k, (grey, *_) in enumerate(FACES):
            face = io.BytesIO()
            Image.new("RGB", (178, 218), (grey,) * 3).save(face, "JPEG")
            zipped.writestr(f"img_align_celeba/{k + 1:06d}.jpg", face.getvalue())
    rows = [f"{k + 1:06d}.jpg {b:2d} {s:2d}" for k, (_, b, s, _) in enumerate(FACES)]
    parts = [f"{k + 1:06d}.jpg {face[3]}" for k, face in enumerate(FACES)]
    attributes = "\n".join([str(len(FACES)), "Bald Smiling ", *rows, ""])
    return {
        "img_align_celeba.zip": buffer.getvalue(),
        "list_attr_celeba.txt": attributes.encode(),
        "list_eval_partition.txt": ("\n".join(parts) + "\n").encode(),
    }


# UCI: text files


def dat(X, y):
    head = "\t".join(["", *(f"f{j + 1}" for j in range(X.shape[1])), "clase"])
    rows = [
        "\t".join([str(k + 1), *(f"{v:g}" for v in x), str(label)])
        for k, (x, label) in enumerate(zip(X, y, strict=True))
    ]
    return "\n".join([head, *rows, ""]).encode()


def splits(n, pairs, seed):
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(pairs):
        rows = rng.permutation(n)
        cut = n // 2 if pairs == 1 else 3 * n // 4
        lines += [" ".join(map(str, r)) + " " for r in (rows[:cut], rows[cut:])]
    return "\n".join([*lines, ""]).encode()


def features(n, d, seed):
    return np.round(np.random.default_rng(seed).normal(5, 3, (n, d)), 3)
