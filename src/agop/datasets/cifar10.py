"""CIFAR-10: 60,000 small photographs of ten classes, in three forms."""

import io
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agop.datasets.checksums import verify
from agop.datasets.dataset import Dataset
from agop.datasets.errors import DatasetError
from agop.datasets.images import read_npz
from agop.datasets.registry import entry
from agop.datasets.storage import locate
from agop.datasets.unpickle import unpickle_arrays

CLASS_NAMES = (
    "airplane", "automobile", "bird", "cat", "deer",
    "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip

Labelled = tuple[NDArray[Any], NDArray[np.int64]]


def load_cifar10(*, download: bool = True) -> Dataset:
    """Load CIFAR-10: X (50000, 32, 32, 3) and X_test (10000, 32, 32, 3), uint8.

    The official file is a tar of pickles. Its checksum is verified before anything is
    read from it, and the pickles may hold nothing but arrays and plain values.

    Parameters
    ----------
    download : whether the file may be downloaded (170 MB).

    Raises
    ------
    DatasetError
        If the file is not to be had, or is not what it should be.
    """
    found = locate(entry("cifar10"), "official", download)
    ((name, archive),) = found.paths.items()
    if checksum := found.entry.file(name).checksum:
        verify(archive, checksum)  # each time: a stamp is too little for a pickle
    parts = _read_batches(archive)
    train = [parts[f"data_batch_{k}"] for k in range(1, 6)]
    X_test, y_test = parts["test_batch"]
    return Dataset(
        name="cifar10",
        X=np.concatenate([X for X, _ in train]),
        y=np.concatenate([y for _, y in train]),
        X_test=X_test,
        y_test=y_test,
        class_names=CLASS_NAMES,
        provenance=found.provenance(),
    )


def load_cifar10_first4000() -> Dataset:
    """Load the first 4000 training images of CIFAR-10, exact, from a local mirror.

    X is (4000, 32, 32, 3), uint8; there is no test part. Not to be mixed with
    `load_cifar10_jpeg` in one experiment.

    Raises
    ------
    DatasetError
        If there is no local mirror with that file.
    """
    found = locate(entry("cifar10-first4000"))
    (path,) = found.paths.values()
    X, y = read_npz(path)
    name = "cifar10-first4000"
    where = found.provenance()
    return Dataset(name, X, y, class_names=CLASS_NAMES, provenance=where)


def load_cifar10_jpeg() -> Dataset:
    """Load CIFAR-10 from the JPEG copies of a local mirror: lossy, all 60,000.

    X is (50000, 32, 32, 3), X_test (10000, 32, 32, 3), uint8. **The rows are sorted by
    class**, unlike the official ones: shuffle them. Not to be mixed with exact
    images in one experiment, as the artefacts would tell the two apart.

    Raises
    ------
    DatasetError
        If there is no local mirror with those files.
    """
    found = locate(entry("cifar10-jpeg"))
    (X_a, y_a), (X_b, y_b), (X_test, y_test) = map(_read_jpegs, found.paths.values())
    y = np.concatenate([y_a, y_b])
    order = np.argsort(y, kind="stable")  # one run of each class, in official order
    return Dataset(
        name="cifar10-jpeg",
        X=np.concatenate([X_a, X_b])[order],
        y=y[order],
        X_test=X_test,
        y_test=y_test,
        class_names=CLASS_NAMES,
        provenance=found.provenance("The rows are sorted by class."),
    )


def _read_batches(archive: Path) -> dict[str, Labelled]:
    """Read the batches of the verified official archive, without unpacking it."""
    batches = {}
    with tarfile.open(archive, "r|gz") as tar:
        for member in tar:
            name = PurePosixPath(member.name).name
            file = tar.extractfile(member)  # None for a folder
            if file is not None and "_batch" in name:
                batches[name] = _images(unpickle_arrays(file.read()), name)
    return batches


def _images(batch: dict[str, Any], name: str) -> Labelled:
    data = np.asarray(batch["data"])  # (n, 3 * 32 * 32): channel, row, column
    if data.dtype != np.uint8 or data.shape[1:] != (3072,):
        raise DatasetError(
            f"{name} holds {data.dtype} {data.shape}, not uint8 (n, 3072)"
        )
    images = data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)  # (n, 32, 32, 3)
    return np.ascontiguousarray(images), np.asarray(batch["labels"], np.int64)


def _read_jpegs(path: Path) -> Labelled:
    """Decode the JPEG files that an npz holds end to end."""
    from PIL import Image

    with np.load(path, allow_pickle=False) as file:
        data, offsets, labels = file["data"], file["offsets"], file["labels"]
    images = np.empty((len(labels), 32, 32, 3), np.uint8)
    for k in range(len(labels)):
        jpeg = data[offsets[k] : offsets[k + 1]].tobytes()
        images[k] = np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))
    return images, labels.astype(np.int64)
