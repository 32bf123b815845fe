"""The OpenML suites of Grinsztajn et al. (2022), from OpenML itself.

The suites hold the tables as that benchmark transformed them (balanced classes, no
missing values, logarithms of some targets). scikit-learn's fetcher reads a table and
keeps it in the cache of this project; who belongs to a suite is asked of OpenML.
"""

import json
import re
from typing import Any
from urllib.error import HTTPError, URLError

import numpy as np
from numpy.typing import NDArray

from agop.datasets.dataset import Provenance, Table
from agop.datasets.download import download
from agop.datasets.errors import DatasetError, DownloadError
from agop.datasets.registry import File
from agop.datasets.storage import OFFICIAL, cache_dir, lock

#: Number of a suite by its task and by the columns that its tables keep.
SUITES = {
    ("classification", "numeric"): 337,
    ("regression", "numeric"): 336,
    ("regression", "all"): 335,
    ("classification", "all"): 334,
}
_STUDY = "https://www.openml.org/api/v1/json/study/{}"


def suite_tables(suite: int) -> tuple[int, ...]:
    """Return the OpenML data numbers of a suite's tables.

    Raises
    ------
    ValueError
        If `suite` is none of `SUITES`.
    DatasetError
        If OpenML does not answer, or answers with something else.
    """
    if suite not in SUITES.values():
        known = ", ".join(map(str, sorted(SUITES.values())))
        raise ValueError(f"suite must be one of {known}; got {suite!r}")
    path = cache_dir() / "openml" / f"study-{suite}.json"
    with lock(path):
        if not path.is_file():
            download(File(path.name, urls=(_STUDY.format(suite),)), path)
    try:
        study = json.loads(path.read_text(encoding="utf-8"))["study"]
        return tuple(int(number) for number in study["data"]["data_id"])
    except (KeyError, TypeError, ValueError) as error:
        path.unlink()  # or every later call would read it again
        raise DatasetError(
            f"OpenML's answer for suite {suite} lists no data"
        ) from error


def load_openml(data_id: int) -> Table:
    """Load one table of OpenML by its number.

    X is (n, d) float64 with categorical columns as codes 0, 1, … in the order that
    OpenML declares; y is (n,), int64 codes of a nominal target, else float64. Columns
    that OpenML marks as row identifiers or to be ignored are left out.

    Raises
    ------
    ValueError
        If `data_id` is not a positive integer.
    DownloadError
        If OpenML does not answer, has no such table, or its bytes are damaged.
    DatasetError
        If the table has text columns or several targets.
    """
    if not isinstance(data_id, int) or isinstance(data_id, bool) or data_id < 1:
        raise ValueError(f"data_id must be a positive integer, got {data_id!r}")
    found = _fetch(data_id)
    y, class_names = _target(found, data_id)
    names = tuple(found.feature_names)
    categories = {
        names.index(name): tuple(map(str, values))
        for name, values in found.categories.items()
        if name in names
    }
    return Table(
        name=f"openml/{data_id}",
        X=np.asarray(found.data, np.float64),
        y=y,
        feature_names=names,
        class_names=class_names,
        provenance=_provenance(found, data_id),
        categorical=tuple(sorted(categories)),
        categories=categories,
        task="classification" if class_names else "regression",
    )


def _fetch(data_id: int) -> Any:
    from sklearn.datasets import fetch_openml

    try:
        with lock(cache_dir() / "openml" / str(data_id)):
            return fetch_openml(
                data_id=data_id,
                as_frame=False,
                parser="liac-arff",
                data_home=str(cache_dir()),
            )
    except (HTTPError, URLError, TimeoutError, ConnectionError) as error:
        raise DownloadError(f"OpenML table {data_id}: {error}") from error
    except ValueError as error:  # scikit-learn's word for all else, checksums too
        kind = DownloadError if "checksum" in str(error) else DatasetError
        raise kind(f"OpenML table {data_id}: {error}") from error


def _target(found: Any, data_id: int) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Numbers as they are; labels as codes in alphabetical order."""
    if found.target is None or np.ndim(found.target) != 1:
        raise DatasetError(f"OpenML table {data_id} has not one target column")
    if found.target.dtype != object:
        return np.asarray(found.target, np.float64), ()
    kinds, y = np.unique(np.asarray(found.target, str), return_inverse=True)
    return y.astype(np.int64), tuple(map(str, kinds))


def _provenance(found: Any, data_id: int) -> Provenance:
    """The bytes are those whose MD5 OpenML publishes: scikit-learn checks it."""
    name = re.sub(r"\W+", "_", found.details["name"])
    files = {f"{name}.arff": f"md5:{found.details['md5_checksum']}"}
    return Provenance(f"openml/{data_id}", OFFICIAL, files)
