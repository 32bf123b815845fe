"""Data sets: a registry, verified files, and loaders that say where data came from.

>>> from agop.datasets import load
>>> digits = load("digits")
>>> digits
Dataset('digits', X (1797, 64) float64, no official test part)
>>> list(digits.provenance.files)
['digits.csv.gz']
"""

from agop.datasets.catalogue import load
from agop.datasets.celeba import load_celeba
from agop.datasets.cifar10 import (
    load_cifar10,
    load_cifar10_first4000,
    load_cifar10_jpeg,
)
from agop.datasets.dataset import Dataset, Provenance, Table, UCIDataset
from agop.datasets.errors import (
    ChecksumError,
    DatasetError,
    DownloadError,
    UnsafeArchiveError,
)
from agop.datasets.faces import ATTRIBUTES, Faces, agreeing, draw_faces, load_faces
from agop.datasets.mnist import load_mnist
from agop.datasets.openml import load_openml, suite_tables
from agop.datasets.shipped import load_shipped
from agop.datasets.stl10 import load_stl10, load_stl10_airplane_truck
from agop.datasets.svhn import load_svhn
from agop.datasets.tables import load_table, table_names
from agop.datasets.uci import UCISet, load_uci, uci_info, uci_names

__all__ = [
    "ATTRIBUTES",
    "ChecksumError",
    "Dataset",
    "DatasetError",
    "DownloadError",
    "Faces",
    "Provenance",
    "Table",
    "UCIDataset",
    "UCISet",
    "UnsafeArchiveError",
    "agreeing",
    "draw_faces",
    "load",
    "load_celeba",
    "load_cifar10",
    "load_cifar10_first4000",
    "load_cifar10_jpeg",
    "load_faces",
    "load_mnist",
    "load_openml",
    "load_shipped",
    "load_stl10",
    "load_stl10_airplane_truck",
    "load_svhn",
    "load_table",
    "load_uci",
    "suite_tables",
    "table_names",
    "uci_info",
    "uci_names",
]
