import os
import pickle

import numpy as np
import pytest

from agop.datasets.unpickle import unpickle_arrays


@pytest.mark.parametrize("protocol", [2, 4])
def test_arrays_and_plain_values_come_back(protocol):
    value = {"labels": [1, 2], "name": "x", "data": np.arange(6.0).reshape(2, 3)}
    if protocol == 2:  # Python 3 writes array bytes of old protocols by _codecs.encode
        value.pop("data")
    back = unpickle_arrays(pickle.dumps(value, protocol=protocol))
    assert back.keys() == value.keys()
    assert back["labels"] == [1, 2]
    if protocol == 4:
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
