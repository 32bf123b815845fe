"""The methods by their names, and what decides their results."""

from __future__ import annotations

import hashlib
import inspect
import sys
from functools import cache
from importlib.metadata import version

from . import kernel_methods, protocol, tables
from .baselines import BASELINES
from .kernel_methods import NTK, RFM, Laplace, ReusedRFM
from .protocol import Method

METHODS: dict[str, Method] = {
    method.name: method
    for method in (RFM(), Laplace(), ReusedRFM(), NTK(), *(B() for B in BASELINES))
}


def method_named(name: str) -> Method:
    """Return the method of this name.

    >>> method_named("laplace").name
    'laplace'

    Raises
    ------
    ValueError
        If there is none.
    """
    if name not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {name!r}")
    return METHODS[name]


@cache
def code_of(name: str) -> str:
    """Return a digest of the sources and versions that decide a method's results."""
    own = sys.modules[type(method_named(name)).__module__]
    parts = [inspect.getsource(module) for module in (tables, protocol, own)]
    package = "torch" if own is kernel_methods else "scikit-learn"
    text = "".join([*parts, package, version(package)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
