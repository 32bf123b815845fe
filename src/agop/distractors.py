"""A digit between two others: only the one in the centre counts (Fig. 13A).

Street-view house numbers are like this by nature. `between_distractors` makes such a
task from any set of single digits, so that the same question can be asked where the
photographs are not to be had.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agop._validation import check_integer
from agop.datasets import Dataset


@dataclass(frozen=True, eq=False)
class CentreTask:
    """Images whose centre tells the class, flattened.

    Attributes
    ----------
    X, X_test : float64 arrays of shape (n, d) and (m, d), in [0, 1]
    y, y_test : int64 arrays of shape (n,) and (m,)
    centre : bool array of shape (d,)
        True in the middle third of the columns.
    shape : (height, width) or (height, width, 3)
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]
    centre: NDArray[np.bool_]
    shape: tuple[int, ...]


def grey_images(data: Dataset, *, pool: int = 1) -> NDArray[np.float64]:
    """Return the images of ``data`` as (n, height, width) in [0, 1].

    Rows that are flat vectors become squares; blocks of ``pool`` by ``pool`` pixels
    are averaged.

    Raises
    ------
    ValueError
        If the images are neither square nor grey, or ``pool`` does not divide them.
    """
    X = np.asarray(data.X, dtype=np.float64).reshape(len(data.X), -1)
    side = round(X.shape[1] ** 0.5)
    pool = check_integer(pool, "pool")
    if side * side != X.shape[1] or side % pool:
        raise ValueError(
            f"{data.name} must hold square grey images whose side pool={pool} "
            f"divides, got {X.shape[1]} pixels"
        )
    blocks = X.reshape(len(X), side // pool, pool, side // pool, pool)
    return np.asarray(blocks.mean((2, 4)) / X.max())


def between_distractors(
    data: Dataset,
    *,
    n: int,
    n_test: int,
    pool: int = 1,
    distract: bool = True,
    seed: int = 0,
) -> CentreTask:
    """Put each of ``n + n_test`` digits between two others drawn from the same part.

    Training and test images come from disjoint rows of the training part of
    ``data``, and so do their distractors.

    Parameters
    ----------
    data : Dataset
        Grey digits, see `grey_images`.
    n, n_test : int
        Training and test images.
    pool : int, default=1
        Side of the blocks of pixels that are averaged.
    distract : bool, default=True
        If False, the two outer thirds are black.
    seed : int

    Raises
    ------
    ValueError
        If ``data`` has fewer than n + n_test rows.
    """
    n, n_test = check_integer(n, "n"), check_integer(n_test, "n_test")
    images = grey_images(data, pool=pool)
    if n + n_test > len(images):
        raise ValueError(
            f"n + n_test must be at most {len(images)}, got {n} + {n_test}"
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(images))

    def part(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        sides = [images[rng.permutation(rows)] * distract for _ in range(2)]
        return np.concatenate([sides[0], images[rows], sides[1]], axis=2)

    rows, test_rows = order[:n], order[n : n + n_test]
    X, X_test = part(rows), part(test_rows)
    return _task(X, data.y[rows], X_test, data.y[test_rows])


def photographs(data: Dataset, *, n: int, n_test: int, seed: int = 0) -> CentreTask:
    """Return photographs that hold distractors already, such as SVHN, as a task.

    Parameters
    ----------
    data : Dataset
        uint8 images (·, height, width, 3) with a test part.
    n, n_test : int
        Training and test images, drawn at random.
    seed : int
    """
    if data.X_test is None or data.y_test is None:
        raise ValueError(f"{data.name} must have a test part")
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(data.X))[: check_integer(n, "n")]
    test_rows = rng.permutation(len(data.X_test))[: check_integer(n_test, "n_test")]
    return _task(
        data.X[rows] / 255,
        data.y[rows],
        data.X_test[test_rows] / 255,
        data.y_test[test_rows],
    )


def _task(
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    X_test: NDArray[np.float64],
    y_test: NDArray[np.int64],
) -> CentreTask:
    third = X.shape[2] / 3
    columns = np.arange(X.shape[2])
    centre = np.zeros(X.shape[1:], dtype=bool)
    centre[:, (columns >= third) & (columns < 2 * third)] = True
    return CentreTask(
        X.reshape(len(X), -1),
        y.astype(np.int64),
        X_test.reshape(len(X_test), -1),
        y_test.astype(np.int64),
        centre.ravel(),
        X.shape[1:],
    )
