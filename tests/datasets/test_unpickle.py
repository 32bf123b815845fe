import os
import pickle

import numpy as np
import pytest

from agop.datasets.unpickle import unpickle_arrays


def test_arrays_and_plain_values_come_back():
    value = {"labels": [1, 2], "name": "x", "data": np.arange(6.0).reshape(2, 3)}
    back = unpickle_arrays(pickle.dumps(value))
    assert back.keys() == value.keys()
    assert (back["labels"], back["name"]) == ([1, 2], "x")
    assert np.array_equal(back["data"], value["data"])


class Runs:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("function", "args"),
    [(os.mkdir, ("made",)), (eval, ("1",)), (np.fromfile, ("x",)), (getattr, (1, "a"))],
)
def test_anything_else_is_refused_before_it_runs(function, args, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps({"data": Runs(function, *args)})
    with pytest.raises(pickle.UnpicklingError, match="which no array needs"):
        unpickle_arrays(data)
    assert list(tmp_path.iterdir()) == []
