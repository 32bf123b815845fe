"""Results of long computations, kept one small file each, found by their settings.

A sweep over a hundred data sets that is killed loses the set it was at, no more: run
again, it reads what is there and goes on. Nothing is kept when no folder is given.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from agop.datasets.storage import cache_dir


class ResultStore:
    """Compute each result once, and read it from then on.

    A result is found again only by the same settings, the same sources of the modules
    that compute it, and the same version of torch: an edit to any of them computes
    it anew.

    Parameters
    ----------
    folder : Path or None
        Where to keep results; None keeps nothing and computes every time.
    code : sequence of modules
        Those whose sources decide the result.

    Examples
    --------
    >>> import tempfile
    >>> store = ResultStore(Path(tempfile.mkdtemp()))
    >>> store.get({"n": 3}, lambda: {"square": 9})
    {'square': 9}
    >>> store.get({"n": 3}, lambda: {"square": "not computed again"})
    {'square': 9}
    """

    def __init__(self, folder: Path | None, code: Sequence[ModuleType] = ()) -> None:
        self.folder = folder
        self._circumstances = {
            "code": hashlib.sha256(
                "".join(inspect.getsource(module) for module in code).encode()
            ).hexdigest(),
            "torch": version("torch"),
        }

    @classmethod
    def named(
        cls, name: str, code: Sequence[ModuleType] = (), *, keep: bool = True
    ) -> ResultStore:
        """Return the store ``name`` in the cache folder, or one that keeps nothing.

        The cache folder is ``AGOP_CACHE``, or else the platform's own; deleting
        ``results/<name>`` in it is safe and starts afresh.
        """
        return cls(cache_dir() / "results" / name if keep else None, code)

    def get(
        self, settings: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the result for these settings, from its file or by ``compute()``.

        Settings and result must be what JSON can hold; tuples come back as lists,
        whether the result was computed or read.

        Raises
        ------
        TypeError
            If they hold anything else.
        """
        described = {"settings": settings, **self._circumstances}
        path = self._path(described)
        if path is not None and path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))["result"]
        text = json.dumps({**described, "result": compute()})
        if path is not None:
            _write(path, text)
        return json.loads(text)["result"]

    def has(self, settings: Mapping[str, Any]) -> bool:
        """Return whether the result for these settings is there already."""
        path = self._path({"settings": settings, **self._circumstances})
        return path is not None and path.is_file()

    def _path(self, described: Mapping[str, Any]) -> Path | None:
        if self.folder is None:
            return None
        text = json.dumps(described, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"


def _write(path: Path, text: str) -> None:
    """Write so that ``path`` is only ever absent or complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
