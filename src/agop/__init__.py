"""How networks learn features: AGOP, the neural feature ansatz, and RFMs.

The public names live in one module each and are loaded on first use, so that
``import agop`` costs nothing and the book's tools run without torch.

>>> import agop
>>> "RFMRegressor" in dir(agop)
True
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

try:
    __version__ = version("agop")
except PackageNotFoundError:  # a source tree on sys.path, not installed
    __version__ = "0.0.0"

_HOME = {
    "FullyConnected": "networks",
    "DeepLinear": "networks",
    "nfm": "features",
    "layer_agops": "features",
    "agop": "features",
    "agop_finite_difference": "features",
    "cosine": "similarity",
    "pearson": "similarity",
    "matrix_power": "similarity",
    "train": "training",
    "train_many": "training",
    "gradient_flow": "training",
    "pre_activation_grams": "features",
    "independent_gram_null": "similarity",
    "rotation_null": "similarity",
    "layer_features": "ansatz",
    "ansatz_similarity": "ansatz",
    "RFMRegressor": "rfm",
    "RFMClassifier": "rfm",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Load a public name from its module the first time it is asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'agop' has no attribute {name!r}")
    return getattr(import_module(f"agop.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
