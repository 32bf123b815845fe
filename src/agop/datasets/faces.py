"""Drawn faces: images whose attributes, and the pixels that show them, are known.

They stand in for photographs such as CelebA's where those are not to be had, and are
never called by that name. Eight attributes can be set for each face, independently or
jointly; all else (pose, colours, light, background, noise) is drawn at random and
does not depend on them:

>>> faces = draw_faces(4, size=32, attributes={"glasses": 1.0, "hat": 0.0}, seed=0)
>>> faces.images.shape, faces.images.dtype, faces["glasses"].tolist()
((4, 32, 32, 3), dtype('uint8'), [True, True, True, True])
>>> faces.mask("glasses").shape  # the pixels that taking the glasses off would change
(4, 32, 32)

Coordinates of a face: the origin between nose and eyes, u to the right, v downwards,
the image reaching from -1 to 1 when the face is neither moved, turned nor scaled.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agop.datasets.dataset import Dataset, Provenance
from agop.datasets.registry import unknown
from agop.datasets.shapes import Array, capsule, coverage, ellipse, lens

ATTRIBUTES = (
    "glasses",
    "lipstick",
    "eye_makeup",
    "rosy_cheeks",
    "smile",
    "hat",
    "beard",
    "hair",
)
_CHUNK = 32  # faces drawn at once: 1.6 MB a layer of colour at 64 pixels, in cache
_SIZES = (16, 256)


@dataclass(frozen=True, eq=False, repr=False)
class Faces:
    """Faces and what is known of them.

    Attributes
    ----------
    images : (n, size, size, 3) uint8, channels red, green, blue.
    attributes : (n, 8) bool, columns in the order of `ATTRIBUTES`.
    seed, noise, pose : as given to `draw_faces`.
    """

    images: NDArray[np.uint8]
    attributes: NDArray[np.bool_]
    seed: int
    noise: float
    pose: float
    _scene: dict[str, Array] = field(default_factory=dict)

    def __getitem__(self, attribute: str) -> NDArray[np.bool_]:
        """Return which faces have the attribute, (n,)."""
        return self.attributes[:, _column(attribute)]

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"Faces({len(self)} images {self.images.shape[1:]}, seed {self.seed})"

    def mask(self, attribute: str) -> NDArray[np.bool_]:
        """Return the pixels that switching the attribute would change, (n, s, s).

        Known exactly, and for every face, whether it has the attribute or not: each
        face is drawn with and without it, all else equal. What lies under another
        layer (hair under a hat) is not in the mask.

        Raises
        ------
        ValueError
            If there is no such attribute.
        """
        column = _column(attribute)
        changed = []
        for scene, has in self._chunks():
            with_it, without = has.copy(), has.copy()
            with_it[:, column], without[:, column] = True, False
            first, second = (_render(scene, h, self._size) for h in (with_it, without))
            changed.append((first != second).any(axis=-1))
        return np.concatenate(changed)

    def switched(self, attribute: str) -> "Faces":
        """Return the same faces, noise and all, with one attribute switched.

        >>> faces = draw_faces(3, size=32, seed=0)
        >>> other = faces.switched("smile")
        >>> changed = (faces.images != other.images).any(axis=-1)
        >>> bool(changed.any() and not changed[~faces.mask("smile")].any())
        True
        """
        attributes = self.attributes.copy()
        attributes[:, _column(attribute)] ^= True
        other = replace(self, attributes=attributes)
        return replace(other, images=_draw(other))

    @property
    def _size(self) -> int:
        return self.images.shape[1]

    def _chunks(self) -> Iterator[tuple[dict[str, Array], NDArray[np.bool_]]]:
        """Yield the scene and the attributes of some faces at a time."""
        for i in range(0, len(self), _CHUNK):
            rows = slice(i, i + _CHUNK)
            yield {k: v[rows] for k, v in self._scene.items()}, self.attributes[rows]


def draw_faces(
    n: int,
    *,
    size: int = 64,
    attributes: Mapping[str, Any] | None = None,
    noise: float = 0.03,
    pose: float = 1.0,
    seed: int = 0,
) -> Faces:
    """Draw ``n`` faces.

    Parameters
    ----------
    n : number of faces.
    size : side in pixels, 16 to 256; from 32 on, every attribute shows.
    attributes : for each name of `ATTRIBUTES`, a probability (faces then have it
        independently of the others), or one bool a face (`agreeing` helps to tie
        attributes to each other). Names left out have probability 1/2.
    noise : standard deviation of the noise in each value, of the range 0 to 1.
    pose : how much faces are moved, turned and scaled; 0 puts all in one place.
    seed : fixes everything else. Two calls that differ in `attributes` alone draw the
        same people.

    Raises
    ------
    ValueError
        If an argument is out of range, or there is no such attribute.
    """
    _check(n, size, noise, pose)
    table = _attribute_table(n, attributes or {}, seed)
    scene = _draw_scene(n, pose, np.random.default_rng([seed, 1]))
    blank = np.empty((n, size, size, 3), np.uint8)
    faces = Faces(blank, table, seed, noise, pose, scene)
    return replace(faces, images=_draw(faces))


def agreeing(values: ArrayLike, rate: float, *, seed: int = 0) -> NDArray[np.bool_]:
    """Return bools of which a share of ``rate``, in expectation, equals ``values``.

    >>> lipstick = np.arange(1000) % 2 == 0
    >>> round(float((agreeing(lipstick, 0.9) == lipstick).mean()), 1)
    0.9
    """
    values = np.asarray(values, bool)
    if not 0 <= rate <= 1:
        raise ValueError(f"rate is {rate}; it must be in 0..1")
    return values ^ (np.random.default_rng(seed).random(values.shape) >= rate)


def load_faces(
    attribute: str,
    *,
    n_train: int = 2000,
    n_test: int = 1000,
    size: int = 64,
    attributes: Mapping[str, Any] | None = None,
    noise: float = 0.03,
    pose: float = 1.0,
    seed: int = 0,
) -> Dataset:
    """Draw faces labelled 1 where they have the attribute, as a data set.

    X is (n_train, size, size, 3), uint8. The test faces are other people. The
    remaining arguments are those of `draw_faces`, with probabilities only.

    Raises
    ------
    ValueError
        As `draw_faces`.

    >>> load_faces("smile", n_train=20, n_test=10, size=32)
    Dataset('faces/smile', X (20, 32, 32, 3) uint8, X_test (10, 32, 32, 3))
    """
    column = _column(attribute)
    n = n_train + n_test
    faces = draw_faces(
        n, size=size, attributes=attributes, noise=noise, pose=pose, seed=seed
    )
    y = faces.attributes[:, column].astype(np.int64)
    name = f"faces/{attribute}"
    return Dataset(
        name=name,
        X=faces.images[:n_train],
        y=y[:n_train],
        X_test=faces.images[n_train:],
        y_test=y[n_train:],
        class_names=(f"no {attribute}", attribute),
        provenance=Provenance(name, f"drawn by agop, seed {seed}", {}),
    )


def _check(n: int, size: int, noise: float, pose: float) -> None:
    if n < 1:
        raise ValueError(f"n is {n}; it must be at least 1")
    if not _SIZES[0] <= size <= _SIZES[1]:
        raise ValueError(f"size is {size}; it must be in {_SIZES[0]}..{_SIZES[1]}")
    for name, value in (("noise", noise), ("pose", pose)):
        if not value >= 0:
            raise ValueError(f"{name} is {value}; it must not be negative")


def _column(attribute: str) -> int:
    if attribute not in ATTRIBUTES:
        raise ValueError(unknown("attribute", attribute, dict.fromkeys(ATTRIBUTES)))
    return ATTRIBUTES.index(attribute)


def _attribute_table(n: int, wanted: Mapping[str, Any], seed: int) -> NDArray[np.bool_]:
    """Return the (n, 8) table of who has what."""
    table = np.random.default_rng([seed, 0]).random((n, len(ATTRIBUTES)))
    limits = np.full(table.shape, 0.5)
    for name, value in wanted.items():
        column, value = _column(name), np.asarray(value)
        is_rate = value.ndim == 0 and value.dtype != bool and 0 <= value <= 1
        if not is_rate and (value.shape != (n,) or value.dtype != bool):
            raise ValueError(
                f"attributes[{name!r}] must be a probability or {n} bools, "
                f"got {value.dtype} of shape {value.shape}"
            )
        limits[:, column] = value
    return table < limits


# The scene: everything about a face that is not an attribute ------------------------


def _float32(values: Any) -> Array:
    return np.asarray(values, np.float32)


_SKIN = _float32([[0.98, 0.86, 0.76], [0.85, 0.62, 0.46], [0.42, 0.27, 0.19]])
_HAIR = _float32(
    [[0.08, 0.06, 0.05], [0.35, 0.2, 0.1], [0.75, 0.6, 0.3], [0.6, 0.6, 0.6]]
)
_IRIS = _float32([[0.3, 0.18, 0.08], [0.25, 0.45, 0.6], [0.3, 0.45, 0.25]])
_FRAME = _float32([[0.05, 0.05, 0.06], [0.3, 0.12, 0.08], [0.12, 0.14, 0.35]])
_SHADOW = _float32([[0.25, 0.2, 0.55], [0.1, 0.4, 0.45], [0.2, 0.12, 0.12]])
_LIPSTICK = _float32([[0.75, 0.04, 0.12], [0.85, 0.15, 0.4], [0.5, 0.02, 0.2]])


def _draw_scene(n: int, pose: float, rng: np.random.Generator) -> dict[str, Array]:
    """Draw what differs from face to face; each value broadcasts over pixels."""

    def number(low: float, high: float) -> Array:
        return _float32(rng.uniform(low, high, (n, 1, 1)))

    def colour(palette: Array) -> Array:
        """A random mixture of two entries of the palette, slightly varied."""
        first, second = rng.integers(len(palette), size=(2, n))
        share = rng.random((n, 1))
        mixed = share * palette[first] + (1 - share) * palette[second]
        varied = mixed + rng.normal(0, 0.02, mixed.shape)
        return _float32(np.clip(varied, 0, 1)[:, None, None])  # (n, 1, 1, 3)

    anything = _float32(np.stack(np.meshgrid([0, 1], [0, 1], [0, 1]), -1))
    anything = 0.1 + 0.8 * anything.reshape(-1, 3)
    return {
        "x": pose * number(-0.05, 0.05),
        "y": pose * number(-0.05, 0.05),
        "angle": pose * number(-0.1, 0.1),  # radians
        "yaw": pose * number(-0.04, 0.04),  # shift of the features on the head
        "scale": np.exp(pose * number(-0.06, 0.06)),
        "jaw": number(0.41, 0.48),
        "brow": number(-0.25, -0.21),
        "light": number(-0.25, 0.25),
        "brightness": number(-0.06, 0.06),
        "contrast": number(0.85, 1.1),
        "gradient": number(0, 2 * np.pi),
        "skin": colour(_SKIN),
        "hair_colour": colour(_HAIR),
        "iris": colour(_IRIS),
        "frame": colour(_FRAME),
        "shadow": colour(_SHADOW),
        "lip_colour": colour(_LIPSTICK),
        "hat_colour": colour(anything),
        "clothes": colour(anything),
        "sky": colour(anything),
        "ground": colour(anything),
    }


# Drawing ----------------------------------------------------------------------------


def _draw(faces: Faces) -> NDArray[np.uint8]:
    """Return the images of ``faces``: rendered, noise added, in 256 levels."""
    rng = np.random.default_rng([faces.seed, 2])
    images = []
    for scene, has in faces._chunks():
        image = _render(scene, has, faces._size)
        image += faces.noise * rng.standard_normal(image.shape, np.float32)
        images.append(np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8))
    return np.concatenate(images)


class _Canvas:
    """Images (m, s, s, 3) that shapes are painted on, in face coordinates."""

    def __init__(self, scene: dict[str, Array], size: int) -> None:
        centres = (np.arange(size, dtype=np.float32) + 0.5) * 2 / size - 1
        x, y = (
            centres - scene["x"],
            centres[:, None] - scene["y"],
        )  # (m, 1, s), (m, s, 1)
        cos, sin = np.cos(scene["angle"]), np.sin(scene["angle"])
        self.x, self.y = centres, centres[:, None]
        self.u = (cos * x + sin * y) / scene["scale"]  # (m, s, s)
        self.v = (cos * y - sin * x) / scene["scale"]
        self.pixel = 2 / size / scene["scale"]  # (m, 1, 1)
        self.image = np.zeros((*self.u.shape, 3), np.float32)

    def inside(self, distance: Array) -> Array:
        """Return the coverage of a shape, (m, s, s)."""
        return coverage(distance, self.pixel)

    def ellipse(self, u: Any, v: Any, a: Any, b: Any) -> Array:
        """Return the coverage of an ellipse centred at (u, v)."""
        return self.inside(ellipse(self.u - u, self.v - v, a, b))

    def paint(self, cover: Array, colour: Array, opacity: Any = 1.0) -> None:
        """Blend ``colour`` in; where ``cover`` is 0 nothing changes, to the bit."""
        rows = _span(np.any(cover, axis=(0, 2)))
        columns = _span(np.any(cover, axis=(0, 1)))
        share = np.broadcast_to(cover * opacity, cover.shape)[:, rows, columns, None]
        colour = np.broadcast_to(colour, self.image.shape)[:, rows, columns]
        part = self.image[:, rows, columns]
        part += share * (colour - part)


def _span(used: Any) -> slice:
    """Return the slice from the first to the last True."""
    where = np.flatnonzero(used)
    return slice(where[0], where[-1] + 1) if len(where) else slice(0, 0)


def _render(scene: dict[str, Array], attributes: NDArray[np.bool_], size: int) -> Array:
    """Return the images (m, s, s, 3) without noise, from back to front."""
    canvas = _Canvas(scene, size)
    has = {
        name: column[:, None, None].astype(np.float32)
        for name, column in zip(ATTRIBUTES, attributes.T, strict=True)
    }
    _paint_background(canvas, scene)
    _paint_head(canvas, scene, has)
    _paint_eyes(canvas, scene, has)
    _paint_mouth(canvas, scene, has)
    _paint_glasses(canvas, scene, has)
    _paint_hat(canvas, scene, has)
    image = (canvas.image - 0.5) * scene["contrast"][..., None] + 0.5
    return image + scene["brightness"][..., None]


def _paint_background(canvas: _Canvas, scene: dict[str, Array]) -> None:
    direction = scene["gradient"]
    along = np.cos(direction) * canvas.x + np.sin(direction) * canvas.y  # (m, s, s)
    everywhere = np.ones_like(canvas.u)
    canvas.paint(everywhere, scene["sky"])
    canvas.paint(np.clip(0.5 + along / 2, 0, 1), scene["ground"])
    canvas.paint(canvas.ellipse(0, 1.2, 0.85, 0.5), scene["clothes"])


def _paint_head(
    canvas: _Canvas, scene: dict[str, Array], has: dict[str, Array]
) -> None:
    u, v, skin, jaw = canvas.u, canvas.v, scene["skin"], scene["jaw"]
    above = canvas.inside(v - 0.3)  # long at the sides
    canvas.paint(
        canvas.ellipse(0, -0.1, jaw + 0.13, 0.66) * above,
        scene["hair_colour"],
        has["hair"],
    )
    canvas.paint(canvas.inside(capsule(u, v, (0, 0.4), (0, 0.8), 0.17)), 0.85 * skin)
    head = canvas.ellipse(0, 0, jaw, 0.58)
    shade = 1 + (scene["light"] * u)[..., None]
    canvas.paint(head, np.clip(skin * shade, 0, 1))
    # Cheeks: a soft spot that ends, so that its pixels can be told.
    for side in (-1, 1):
        far = np.hypot(u - side * 0.25 - scene["yaw"], v - 0.13) / 0.14
        spot = np.clip(1 - far**2, 0, 1) * head
        canvas.paint(spot, _float32([0.9, 0.25, 0.3]), 0.6 * has["rosy_cheeks"])
    chin = canvas.inside(0.2 + 0.4 * (np.abs(u) - 0.25) - v)
    canvas.paint(head * chin, 0.8 * scene["hair_colour"], 0.85 * has["beard"])
    fringe = canvas.inside(v + 0.34 - 0.3 * u**2)
    canvas.paint(head * fringe, scene["hair_colour"], has["hair"])
    canvas.paint(canvas.ellipse(1.5 * scene["yaw"], 0.1, 0.045, 0.09), 0.7 * skin, 0.5)


def _paint_eyes(
    canvas: _Canvas, scene: dict[str, Array], has: dict[str, Array]
) -> None:
    black, white = np.zeros(3, np.float32), np.full(3, 0.95, np.float32)
    for side in (-1, 1):
        u = side * 0.19 + scene["yaw"]
        makeup = canvas.ellipse(u, -0.1, 0.125, 0.085)
        canvas.paint(makeup, scene["shadow"], 0.85 * has["eye_makeup"])
        ends = (u - 0.09, scene["brow"]), (u + 0.09, scene["brow"])
        brow = canvas.inside(capsule(canvas.u, canvas.v, *ends, 0.018))
        canvas.paint(brow, 0.7 * scene["hair_colour"])
        canvas.paint(canvas.ellipse(u, -0.08, 0.085, 0.045), white)
        canvas.paint(canvas.ellipse(u, -0.08, 0.042, 0.042), scene["iris"])
        canvas.paint(canvas.ellipse(u, -0.08, 0.02, 0.02), black)


def _paint_mouth(
    canvas: _Canvas, scene: dict[str, Array], has: dict[str, Array]
) -> None:
    u, v, smile = canvas.u - scene["yaw"], canvas.v - 0.33, has["smile"]
    width, bend = 0.13 + 0.06 * smile, 2.2 * smile - 0.4 * (1 - smile)
    natural = _float32([0.75, 0.5, 0.5]) * scene["skin"] + _float32([0.08, 0, 0])
    share = (0.9 * has["lipstick"])[..., None]
    colour = natural * (1 - share) + scene["lip_colour"] * share
    canvas.paint(canvas.inside(lens(u, v, width, 0.055, bend)), colour)
    teeth = canvas.inside(lens(u, v, 0.85 * width, 0.022, bend))
    canvas.paint(teeth, np.full(3, 0.95, np.float32), smile)


def _paint_glasses(
    canvas: _Canvas, scene: dict[str, Array], has: dict[str, Array]
) -> None:
    u, v, yaw = canvas.u, canvas.v, scene["yaw"]
    bridge = capsule(u, v, (yaw - 0.06, -0.09), (yaw + 0.06, -0.09), 0.016)
    frame = bridge
    for side in (-1, 1):
        lens_edge = ellipse(u - side * 0.19 - yaw, v + 0.08, 0.135, 0.11)
        tint = canvas.inside(lens_edge)
        canvas.paint(tint, scene["frame"], 0.25 * has["glasses"])
        outer = side * 0.32 + yaw
        arm = capsule(u, v, (outer, -0.09), (side * scene["jaw"], -0.1), 0.014)
        frame = np.minimum(frame, np.minimum(np.abs(lens_edge) - 0.022, arm))
    canvas.paint(canvas.inside(frame), scene["frame"], has["glasses"])


def _paint_hat(canvas: _Canvas, scene: dict[str, Array], has: dict[str, Array]) -> None:
    u, v, colour = canvas.u, canvas.v, scene["hat_colour"]
    crown = canvas.ellipse(0, -0.4, scene["jaw"] + 0.06, 0.42)
    canvas.paint(crown * canvas.inside(v + 0.38), colour, has["hat"])
    brim = canvas.inside(capsule(u, v, (-0.55, -0.38), (0.55, -0.38), 0.05))
    canvas.paint(brim, 0.7 * colour, has["hat"])
