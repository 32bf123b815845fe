import numpy as np
import pytest

from agop.datasets import load, load_shipped
from agop.datasets.shipped import SHIPPED


@pytest.mark.parametrize(
    ("name", "shape", "first", "classes"),
    [  # sizes as scikit-learn documents them; the first row's first nonzero value
        ("digits", (1797, 64), 5.0, 10),
        ("iris", (150, 4), 5.1, 3),
        ("wine", (178, 13), 14.23, 3),
        ("breast_cancer", (569, 30), 17.99, 2),
        ("diabetes", (442, 10), 0.0380759, 0),
    ],
)
def test_each_set(name, shape, first, classes):
    data = load(name)
    assert data.X.shape == shape
    assert data.X[0][data.X[0] != 0][0] == pytest.approx(first, abs=1e-6)
    assert len(data.class_names) == classes
    assert len(data.feature_names) == shape[1]
    if classes:
        assert np.unique(data.y).tolist() == list(range(classes))


def test_they_need_neither_mirror_nor_network(monkeypatch):
    import socket

    monkeypatch.setattr(socket, "getaddrinfo", None)
    for name in SHIPPED:
        where = load_shipped(name).provenance
        assert where.source.startswith("shipped with scikit-learn 1.")
        assert all(len(sum_) == 71 for sum_ in where.files.values())


def test_an_unknown_name_suggests_another():
    with pytest.raises(ValueError, match="'digit'; there is digits"):
        load_shipped("digit")
