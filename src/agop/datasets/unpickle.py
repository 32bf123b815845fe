"""Read pickles that hold nothing but arrays and plain values."""

import io
import pickle
from typing import Any

import numpy as np

# What numpy itself writes into a pickle of an array, under its old and new name.
_reconstruct = np.empty(0).__reduce__()[0]
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            message = f"the pickle asks for {module}.{name}, which no array needs"
            raise pickle.UnpicklingError(message) from None


def unpickle_arrays(data: bytes) -> Any:
    """Unpickle arrays, numbers, text, lists and dictionaries, and nothing else.

    Pickles of Python 2 are read, their byte strings as latin-1 text. Verify the
    checksum of `data` first: this is the second lock, not the first.

    Raises
    ------
    pickle.UnpicklingError
        If the pickle refers to any other class or function.

    >>> import pickle
    >>> unpickle_arrays(pickle.dumps({"labels": [1, 2]}))
    {'labels': [1, 2]}
    """
    return _ArrayUnpickler(io.BytesIO(data), encoding="latin1").load()
