r"""Antialiased shapes, drawn for many images at once.

A shape is given by its signed distance s(u, v), negative inside. Its *coverage* of a
pixel of side p is clip(1/2 - s/p, 0, 1): exactly 0 and 1 away from the edge, and a
ramp one pixel wide across it. Coordinates u (to the right) and v (downwards) are
arrays (m, s, s), everything else broadcasts with them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # float32 in images, anything in tests


def coverage(distance: Array, pixel: Any) -> Array:
    """Return the share of each pixel that lies inside, by its signed distance.

    >>> coverage(np.float32([-2, 0, 0.25, 2]), 1.0).tolist()
    [1.0, 0.5, 0.25, 0.0]
    """
    return np.clip(0.5 - distance / pixel, 0, 1)


def ellipse(u: Array, v: Array, a: Any, b: Any) -> Array:
    """Return the signed distance from the ellipse with half axes ``a`` and ``b``.

    To first order in the distance, which is all that an edge one pixel wide needs:
    q (q - 1) / |∇(q²)/2| with q² = (u/a)² + (v/b)².

    >>> ellipse(np.float32([0, 2, 3]), np.float32([1, 0, 0]), 2, 1).tolist()
    [0.0, 0.0, 1.0]
    """
    x, y = u / a, v / b
    q = np.sqrt(x * x + y * y)  # four times as fast as np.hypot
    x, y = x / a, y / b
    slope = np.sqrt(x * x + y * y)
    middle = -np.minimum(a, b)  # at the centre, where the quotient is 0 / 0
    return np.where(slope > 0, q * (q - 1) / np.where(slope > 0, slope, 1), middle)


def capsule(u: Array, v: Array, start: Any, end: Any, radius: Any) -> Array:
    """Return the signed distance from a thick line with round ends.

    >>> capsule(np.float32([0.5, 3]), np.float32([1, 0]), (0, 0), (1, 0), 1).tolist()
    [0.0, 1.0]
    """
    (u0, v0), (u1, v1) = start, end
    du, dv = u1 - u0, v1 - v0
    along = np.clip(((u - u0) * du + (v - v0) * dv) / (du**2 + dv**2), 0, 1)
    return np.hypot(u - u0 - along * du, v - v0 - along * dv) - radius


def lens(u: Array, v: Array, width: Any, thickness: Any, bend: Any) -> Array:
    """Return the distance along v from a lens-shaped region.

    It holds the points with |v + bend u²| < thickness (1 - u²/width²). Both
    edges are parabolas; with ``bend`` > 0 the ends point upwards.

    >>> lens(np.float32([0, 1]), np.float32([0, 0]), 1, 0.5, 0).tolist()
    [-0.5, 0.0]
    """
    return np.abs(v + bend * u**2) - thickness * (1 - (u / width) ** 2)
