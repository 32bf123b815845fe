"""Load any data set by its name."""

from collections.abc import Callable
from functools import partial
from typing import Any

from agop.datasets.celeba import load_celeba
from agop.datasets.cifar10 import (
    load_cifar10,
    load_cifar10_first4000,
    load_cifar10_jpeg,
)
from agop.datasets.dataset import Dataset
from agop.datasets.faces import load_faces
from agop.datasets.mnist import load_mnist
from agop.datasets.registry import unknown
from agop.datasets.shipped import SHIPPED, load_shipped
from agop.datasets.stl10 import load_stl10, load_stl10_airplane_truck
from agop.datasets.svhn import load_svhn
from agop.datasets.tables import load_table, table_names
from agop.datasets.uci import load_uci, uci_names

_LOADERS: dict[str, Callable[..., Dataset]] = {
    "mnist": load_mnist,
    "cifar10": load_cifar10,
    "cifar10-first4000": load_cifar10_first4000,
    "cifar10-jpeg": load_cifar10_jpeg,
    "stl10": load_stl10,
    "stl10-airplane-truck": load_stl10_airplane_truck,
    "svhn": load_svhn,
    "celeba": load_celeba,
    "faces": load_faces,
    **{name: partial(load_shipped, name) for name in SHIPPED},
    **{f"table/{name}": partial(load_table, name) for name in table_names()},
    **{f"uci/{name}": partial(load_uci, name) for name in uci_names()},
}


def load(name: str, **options: Any) -> Dataset:
    """Load a data set by its name, with the options of its own loader.

    Parameters
    ----------
    name : a name of the registry; ``"uci/<set>"`` for one of the 121 UCI sets.
    options : what that loader takes, such as ``attribute="Smiling"`` for ``"celeba"``
        or ``attribute="smile"`` for the drawn ``"faces"``.

    Raises
    ------
    ValueError
        If there is no such data set.
    DatasetError
        If its files are not to be had, or are not what they should be.

    >>> load("wine").class_names
    ('class_0', 'class_1', 'class_2')
    """
    if name not in _LOADERS:
        raise ValueError(unknown("data set", name, _LOADERS))
    return _LOADERS[name](**options)
