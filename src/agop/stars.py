"""Images marked by a star whose colour tells their class, as in Figs. 3B, 5 and 6.

Planes get a black star, trucks a yellow one (Radhakrishnan, Beaglehole, Pandit and
Belkin, 2024). The photographs differ as well, but only the star is the same in all
images of a class. Pixels are in [0, 1]; images are flattened, channels last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from agop._validation import check_integer
from agop.datasets import Dataset, Provenance

# The 28 pixels that the released loader paints, in a box 7 tall and 7 wide.
STAR = (
    "...o...",
    "..ooo..",
    "ooooooo",
    ".ooooo.",
    "..ooo..",
    ".ooooo.",
    ".oo.oo.",
)
SQUARE = ("ooooo",) * 5  # what the script of the RFM paints instead
PLUS = (".o.", "ooo", ".o.")  # for images of 32 x 32
BLACK, YELLOW, WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0)

Colour = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class MarkedTask:
    """Two classes of marked images, ready for training.

    Attributes
    ----------
    X, X_test : float32 arrays of shape (n, d) and (m, d), d = height * width * 3
    y, y_test : int64 arrays of shape (n,) and (m,), labels 0 and 1
    mask : bool array of shape (d,)
        True where the mark is.
    shape : (height, width, 3)
    """

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]
    mask: NDArray[np.bool_]
    shape: tuple[int, int, int]


def place(
    picture: Sequence[str], height: int, width: int, *, top: int = 3, left: int = 7
) -> NDArray[np.bool_]:
    """Return a (height, width) mask that is True at the letters "o" of a picture.

    Raises
    ------
    ValueError
        If the picture does not fit in the image.

    Examples
    --------
    >>> int(place(STAR, 96, 96).sum())
    28
    """
    small = np.array([[letter == "o" for letter in row] for row in picture])
    rows, columns = small.shape
    if top < 0 or left < 0 or top + rows > height or left + columns > width:
        raise ValueError(
            f"the picture, {rows} x {columns} at ({top}, {left}), does not fit in an "
            f"image of {height} x {width}"
        )
    mask = np.zeros((height, width), dtype=bool)
    mask[top : top + rows, left : left + columns] = small
    return mask


def paint(
    images: NDArray[Any],
    bright: NDArray[Any],
    mask: NDArray[np.bool_],
    *,
    dark_colour: Colour = BLACK,
    bright_colour: Colour = YELLOW,
) -> NDArray[np.float32]:
    """Return marked copies of uint8 images, as floats in [0, 1].

    Parameters
    ----------
    images : uint8 array of shape (n, height, width, 3)
    bright : bool array of shape (n,)
        Which images get the bright colour; the others get the dark one.
    mask : bool array of shape (height, width)
        Pixels of the mark.

    Raises
    ------
    ValueError
        If shapes do not fit each other.
    """
    images, bright = np.asarray(images), np.asarray(bright, dtype=bool)
    if images.ndim != 4 or images.shape[1:] != (*mask.shape, 3):
        raise ValueError(
            f"images must have shape (n, {mask.shape[0]}, {mask.shape[1]}, 3), "
            f"got {images.shape}"
        )
    if bright.shape != (len(images),):
        raise ValueError(f"bright must have shape ({len(images)},), got {bright.shape}")
    X: NDArray[np.float32] = images.astype(np.float32) / np.float32(255)
    colours = np.where(bright[:, None], bright_colour, dark_colour)  # (n, 3)
    X[:, mask] = colours[:, None].astype(np.float32)
    return X


def marked_task(
    data: Dataset,
    *,
    counts: tuple[int, int] = (500, 53),
    picture: Sequence[str] = STAR,
    top: int = 3,
    left: int = 7,
    bright_colour: Colour = YELLOW,
    informative: bool = True,
    seed: int = 0,
) -> MarkedTask:
    """Return an imbalanced training set and the whole test set, all of them marked.

    Parameters
    ----------
    data : Dataset
        uint8 images (n, height, width, 3) of classes 0 and 1, with a test part.
    counts : (int, int), default=(500, 53)
        Training images of class 0 and of class 1, drawn at random where there are
        more.
    picture, top, left
        The mark and its place, see `place`.
    bright_colour : colour of the mark of class 1; that of class 0 is black.
    informative : bool, default=True
        If False, the colour of each mark is drawn by a fair coin: it tells nothing.
    seed : int, default=0
        Fixes the draw of images and of colours.

    Raises
    ------
    ValueError
        If a class has fewer images than asked for.
    """
    rng = np.random.default_rng(seed)
    chosen = []
    for label, count in enumerate(counts):
        rows = np.flatnonzero(data.y == label)
        if check_integer(count, "counts") > len(rows):
            raise ValueError(
                f"counts asks for {count} images of class {label}, "
                f"{data.name} has {len(rows)}"
            )
        chosen.append(rng.permutation(rows)[:count])
    rows = np.concatenate(chosen)
    if data.X_test is None or data.y_test is None:
        raise ValueError(f"{data.name} must have a test part")
    mask = place(picture, *data.X.shape[1:3], top=top, left=left)

    def marked(images: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float32]:
        bright = labels == 1 if informative else rng.random(len(labels)) < 0.5
        X = paint(images, bright, mask, bright_colour=bright_colour)
        return np.asarray(X.reshape(len(X), -1), dtype=np.float32)

    return MarkedTask(
        X=marked(data.X[rows], data.y[rows]),
        y=data.y[rows].astype(np.int64),
        X_test=marked(data.X_test, data.y_test),
        y_test=data.y_test.astype(np.int64),
        mask=np.repeat(mask.ravel(), 3),
        shape=(*mask.shape, 3),
    )


def drawn_textures(
    *,
    n: tuple[int, int] = (500, 53),
    n_test: int = 400,
    side: int = 32,
    contrast: float = 0.25,
    difference: float = 0.02,
    seed: int = 0,
) -> Dataset:
    """Draw two classes of textured images that differ slightly: no photographs.

    Each image is smooth noise with its own colours, plus a fixed smooth pattern
    whose sign is that of the class.

    Parameters
    ----------
    n : (int, int)
        Training images of each class.
    n_test : int
        Test images of each class.
    side : int
        Height and width.
    contrast : float
        Standard deviation of the noise, grey values being in [0, 1].
    difference : float
        Standard deviation of the pattern over the pixels.
    seed : int

    Examples
    --------
    >>> drawn_textures(n=(3, 2), n_test=4, side=8)
    Dataset('drawn textures', X (5, 8, 8, 3) uint8, X_test (8, 8, 8, 3))
    """
    rng = np.random.default_rng(seed)

    def noise(count: int) -> NDArray[Any]:
        white = rng.standard_normal((count, side, side, 3))
        smooth = gaussian_filter(white, (0, side / 16, side / 16, 0), mode="wrap")
        return np.asarray(smooth / smooth.std())

    pattern = difference * noise(1)

    def images(y: NDArray[Any]) -> NDArray[np.uint8]:
        sign = (2 * y - 1)[:, None, None, None]
        grey = 0.5 + contrast * noise(len(y)) + sign * pattern
        return np.asarray(np.round(255 * grey.clip(0, 1)), dtype=np.uint8)

    y, y_test = np.repeat([0, 1], n), np.repeat([0, 1], n_test)
    name = "drawn textures"
    where = Provenance(name, f"drawn by agop, seed {seed}", {})
    return Dataset(
        name, images(y), y, images(y_test), y_test, (), ("minus", "plus"), where
    )
