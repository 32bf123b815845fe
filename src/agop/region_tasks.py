"""Image tasks in which it is known what each region has to do with the label.

Three, after Fig. 3 of Radhakrishnan, Beaglehole, Pandit and Belkin (2024): an object
beside a digit of the same class, photographs with a star in the corner, and faces whose
eye make-up goes with their lipstick. In each, the tempting region can be made to tell
nothing: that is the control.

Pixels are in [0, 1], or scaled as in `agop.image_tasks`: the mean training image is
subtracted, and one factor gives the training images a root mean square norm of
``radius``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from agop._validation import check_integer, check_real
from agop.datasets import Dataset, Provenance, agreeing, draw_faces, load_celeba
from agop.stars import STAR, marked_task

Part = tuple[NDArray[Any], NDArray[np.int64]]  # images (n, height, width, 3), labels

# Rows and columns that the released script of Fig. 15B calls lips, at 96 x 96.
CELEBA_LIPS = (slice(63, 75), slice(30, 65))


@dataclass(frozen=True, eq=False)
class RegionTask:
    """Flattened images with labels and named regions.

    Attributes
    ----------
    X, X_test : float32 arrays of shape (n, d) and (m, d)
    y, y_test : int64 arrays of shape (n,) and (m,), labels 0 to C - 1
    shape : (height, width, 3)
    regions : dict of names to bool arrays of shape (d,)
    mean : float32 array of shape (d,)
    scale : float
        x = scale * (pixels - mean).
    provenance : Provenance of each source
    """

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]
    shape: tuple[int, int, int]
    regions: dict[str, NDArray[np.bool_]]
    mean: NDArray[np.float32]
    scale: float
    provenance: tuple[Provenance, ...] = ()

    @property
    def Y(self) -> NDArray[np.float32]:
        """One-hot training labels, (n, C)."""
        return np.eye(self.y.max() + 1, dtype=np.float32)[self.y]

    def scaled(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Return images (m, ...) with pixels in [0, 1] as samples, (m, d)."""
        flat = images.reshape(len(images), -1).astype(np.float32)
        return (flat - self.mean) * np.float32(self.scale)

    def image(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return a sample as an image again, (height, width, 3) in [0, 1]."""
        return np.clip(x / self.scale + self.mean, 0, 1).reshape(self.shape)


def _region_task(
    train: Part,
    test: Part,
    regions: dict[str, NDArray[np.bool_]],
    provenance: tuple[Provenance, ...],
    radius: float | None,
) -> RegionTask:
    """Flatten images in [0, 1]; centre and scale them by the training part."""
    shape = train[0].shape[1:]
    X, X_test = (
        np.asarray(images, np.float32).reshape(len(images), -1)
        for images in (train[0], test[0])
    )
    mean, scale = np.zeros_like(X[0]), 1.0
    if radius is not None:
        mean = X.mean(0)
        X, X_test = X - mean, X_test - mean
        norm = np.sqrt(np.square(X, dtype=np.float64).sum(1).mean())
        scale = check_real(radius, "radius") / float(norm)
        X, X_test = X * np.float32(scale), X_test * np.float32(scale)
    masks = {name: np.broadcast_to(m[..., None], shape) for name, m in regions.items()}
    return RegionTask(
        X=X,
        y=train[1],
        X_test=X_test,
        y_test=test[1],
        shape=shape,
        regions={name: mask.ravel() for name, mask in masks.items()},
        mean=mean,
        scale=scale,
        provenance=provenance,
    )


# An object beside a digit -------------------------------------------------------------


def paired_task(
    objects: Dataset,
    digits: Dataset,
    *,
    n: int,
    n_test: int,
    informative: bool = True,
    swapped_test: bool = False,
    radius: float | None = None,
    seed: int = 0,
) -> RegionTask:
    """Put an object and a digit side by side; both tell the class (Fig. 3A).

    Parameters
    ----------
    objects : Dataset
        uint8 images (n, side, side, 3) of ten classes.
    digits : Dataset
        Grey digits of ten classes, flat or not, smaller than or as large as the
        objects: each pixel is repeated as often as fits, the rest is a margin. Where
        a set has no test part, its last fifth is held out.
    n, n_test : int
        Pairs, a tenth for each class.
    informative : bool, default=True
        If False, the digits are shuffled over the objects: they tell nothing.
    swapped_test : bool, default=False
        If True, each test digit is of the class after that of its object, the label
        being the object's: a model that looks at the digit has them all wrong.
    radius : float, optional
        See the module; pixels stay in [0, 1] if None.
    seed : int
        Of the draw of pairs.

    Raises
    ------
    ValueError
        If a part lacks classes or has too few images of one.
    """
    rng = np.random.default_rng(seed)
    sources = zip(_two_parts(objects), _two_parts(digits), (n, n_test), strict=True)
    white = float(digits.X.max())
    side = objects.X.shape[1]
    parts: list[Part] = []
    for (things, labels), (figures, values), count in sources:
        each = check_integer(count, "n and n_test", minimum=10) // 10
        y = np.repeat(np.arange(10), each)
        shift = 1 if swapped_test and parts else 0  # the test part comes second
        left = _draw_by_class(labels, y, each, objects.name, rng)
        right = _draw_by_class(values, (y + shift) % 10, each, digits.name, rng)
        if not informative:
            right = rng.permutation(right)
        object_half = things[left].astype(np.float32) / 255
        digit_half = _fit_in(figures[right] / white, side, digits.name)
        parts.append((np.concatenate([object_half, digit_half], axis=2), y))
    height, width = parts[0][0].shape[1:3]
    digit = np.zeros((height, width), dtype=bool)
    digit[:, width // 2 :] = True
    regions = {"object": ~digit, "digit": digit}
    origin = (objects.provenance, digits.provenance)
    return _region_task(parts[0], parts[1], regions, origin, radius)


def _two_parts(data: Dataset) -> list[Part]:
    """Return training and test part; the last fifth is held out if there is none."""
    if data.X_test is not None and data.y_test is not None:
        return [(data.X, data.y), (data.X_test, data.y_test)]
    cut = 4 * len(data.X) // 5
    return [(data.X[:cut], data.y[:cut]), (data.X[cut:], data.y[cut:])]


def _fit_in(X: NDArray[Any], side: int, name: str) -> NDArray[np.float32]:
    """Return grey squares as (n, side, side, 3): pixels repeated, then a margin."""
    grey = X.reshape(len(X), -1).astype(np.float32)
    small = round(grey.shape[1] ** 0.5)
    if small * small != grey.shape[1] or small > side:
        raise ValueError(
            f"{name} must hold square grey images of side at most {side}, "
            f"got {grey.shape[1]} pixels"
        )
    times = side // small
    images = grey.reshape(-1, small, small)
    images = images.repeat(times, axis=1).repeat(times, axis=2)
    before = (side - times * small) // 2
    after = side - times * small - before
    framed = np.pad(images, ((0, 0), (before, after), (before, after)))
    return np.repeat(framed[..., None], 3, axis=3)


def _draw_by_class(
    labels: NDArray[Any],
    wanted: NDArray[Any],
    each: int,
    name: str,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return different rows whose labels are those wanted, ``each`` a class."""
    rows = np.empty(len(wanted), dtype=np.int64)
    for label in np.unique(wanted):
        found = np.flatnonzero(labels == label)
        if len(found) < each:
            raise ValueError(
                f"{name} has {len(found)} images of class {label} in this part, "
                f"{each} are needed"
            )
        rows[wanted == label] = rng.permutation(found)[:each]
    return rows


def drawn_objects(
    *,
    n: int,
    n_test: int,
    side: int = 16,
    contrast: float = 0.25,
    difference: float = 0.1,
    seed: int = 0,
) -> Dataset:
    """Draw ten classes of textures, to stand in for photographs of objects.

    Each image is smooth noise with its own colours plus the smooth pattern of its
    class.

    Parameters
    ----------
    n, n_test : int
        Images, a tenth for each class.
    side : int
        Height and width.
    contrast, difference : float
        Standard deviations of noise and pattern over the pixels, white being 1.
    seed : int

    Examples
    --------
    >>> drawn_objects(n=20, n_test=10, side=8)
    Dataset('drawn objects', X (20, 8, 8, 3) uint8, X_test (10, 8, 8, 3))
    """
    rng = np.random.default_rng(seed)

    def smooth(count: int) -> NDArray[Any]:
        white = rng.standard_normal((count, side, side, 3))
        noise = gaussian_filter(white, (0, side / 16, side / 16, 0), mode="wrap")
        return np.asarray(noise / noise.std())

    patterns = difference * smooth(10)

    def part(count: int) -> Part:
        y = np.repeat(np.arange(10), check_integer(count, "n") // 10)
        grey = 0.5 + contrast * smooth(len(y)) + patterns[y]
        return np.round(255 * grey.clip(0, 1)).astype(np.uint8), y

    (X, y), (X_test, y_test) = part(n), part(n_test)
    name = "drawn objects"
    where = Provenance(name, f"drawn by agop, seed {seed}", {})
    return Dataset(name, X, y, X_test, y_test, (), (), where)


# A star in the corner -----------------------------------------------------------------


def star_task(
    data: Dataset,
    *,
    counts: tuple[int, int] = (500, 500),
    picture: Any = STAR,
    informative: bool = True,
    radius: float | None = 10.0,
    seed: int = 0,
) -> RegionTask:
    """Mark two classes of images by a star whose colour is that of the class (Fig. 3B).

    Parameters
    ----------
    data, counts, picture, informative, seed
        As for `agop.stars.marked_task`.
    radius : float, optional
        See the module; pixels stay in [0, 1] if None.

    Examples
    --------
    >>> from agop.stars import PLUS, drawn_textures
    >>> images = drawn_textures(n=(9, 9), n_test=5)
    >>> task = star_task(images, counts=(8, 8), picture=PLUS)
    >>> task.X.shape, int(task.regions["star"].sum())
    ((16, 3072), 15)
    """
    marked = marked_task(
        data, counts=counts, picture=picture, informative=informative, seed=seed
    )
    star = marked.mask.reshape(marked.shape)[..., 0]
    return _region_task(
        (marked.X.reshape(-1, *marked.shape), marked.y),
        (marked.X_test.reshape(-1, *marked.shape), marked.y_test),
        {"star": star, "photograph": ~star},
        (data.provenance,),
        radius,
    )


# Lipstick and eyes --------------------------------------------------------------------


def lipstick_task(
    source: str = "faces",
    *,
    n: int,
    n_test: int,
    size: int = 64,
    rate: float = 0.9,
    often: float = 0.05,
    radius: float | None = 10.0,
    seed: int = 0,
) -> RegionTask:
    """Faces, labelled 1 where they wear lipstick (Figs. 3C and 15B).

    Parameters
    ----------
    source : {"faces", "celeba"}
        Drawn faces, half of them with lipstick, or CelebA, as many with as without.
    n, n_test : int
        Training and test faces; upper bounds for CelebA.
    size : int
        Side in pixels.
    rate : float, default=0.9
        Of drawn faces: the share whose eye make-up agrees with their lipstick. At 0.5
        the eyes tell nothing. Photographs are as they are; at 0.5 their training
        labels are shuffled, so that nothing in them tells anything.
    often : float, default=0.05
        Of drawn faces: a pixel belongs to a region if the attribute shows there in at
        least this share of faces, counted in 100 others.
    radius : float, optional
        See the module; pixels stay in [0, 1] if None.
    seed : int
        Of the drawing.

    Returns
    -------
    RegionTask
        Drawn faces have the regions "eyes" and "lips", known exactly; CelebA has the
        box that the released script calls "lips".

    Raises
    ------
    ValueError
        If there is no such source, or an argument is out of range.

    Examples
    --------
    >>> task = lipstick_task(n=40, n_test=10, size=16)
    >>> sorted(task.regions), task.X.shape
    (['eyes', 'lips'], (40, 768))
    """
    if source == "celeba":
        return _photographs(n, n_test, size, rate == 0.5, radius, seed)
    if source != "faces":
        raise ValueError(f"source must be 'faces' or 'celeba', got {source!r}")
    count = check_integer(n, "n") + check_integer(n_test, "n_test")
    lipstick = np.random.default_rng([seed, 7]).permutation(np.arange(count) % 2 == 0)
    makeup = agreeing(lipstick, rate, seed=seed)
    faces = draw_faces(
        count,
        size=size,
        attributes={"lipstick": lipstick, "eye_makeup": makeup},
        seed=seed,
    )
    some = draw_faces(100, size=size, seed=seed + 1)  # poses as of the training faces
    names = {"eyes": "eye_makeup", "lips": "lipstick"}
    regions = {
        region: some.mask(attribute).mean(0) >= often
        for region, attribute in names.items()
    }
    images, y = faces.images / np.float32(255), lipstick.astype(np.int64)
    origin = Provenance("faces", f"drawn by agop, seed {seed}", {})
    parts = (images[:n], y[:n]), (images[n:], y[n:])
    return _region_task(*parts, regions, (origin,), radius)


def _photographs(
    n: int, n_test: int, size: int, shuffled: bool, radius: float | None, seed: int
) -> RegionTask:
    """CelebA, with the training labels shuffled or not."""
    data = load_celeba(
        "Wearing_Lipstick", n_train=n, n_test=n_test, size=size, balanced=True
    )
    y = np.random.default_rng(seed).permutation(data.y) if shuffled else data.y
    train, test = (
        (np.asarray(X, np.float32) / 255, np.asarray(labels))
        for X, labels in ((data.X, y), (data.X_test, data.y_test))
    )
    lips = np.zeros((size, size), dtype=bool)
    lips[tuple(_scaled(box, size) for box in CELEBA_LIPS)] = True
    return _region_task(train, test, {"lips": lips}, (data.provenance,), radius)


def _scaled(box: slice, size: int) -> slice:
    """Rows or columns of a 96 x 96 image at another size."""
    return slice(round(box.start * size / 96), round(box.stop * size / 96))


def rows_above(
    region: NDArray[np.bool_], shape: tuple[int, int, int]
) -> NDArray[np.bool_]:
    """Return the coordinates in the rows above a region, (d,).

    The released script cuts its mask of the eyes off a little above the mouth.

    Examples
    --------
    >>> rows_above(np.array([False, False, True]), (3, 1, 1))
    array([ True,  True, False])
    """
    first = int(np.argmax(region.reshape(shape).any((1, 2))))
    rows = np.arange(shape[0]) < first
    return np.broadcast_to(rows[:, None, None], shape).ravel()
