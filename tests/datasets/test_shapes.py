"""Coverages against counting many points inside each pixel."""

import numpy as np
import pytest

from agop.datasets.shapes import capsule, coverage, ellipse, lens

SIZE = 24
PIXEL = 2 / SIZE


def grid(size):
    centres = (np.arange(size) + 0.5) * 2 / size - 1
    return np.meshgrid(centres, centres)


# name: signed distance, and whether a point is inside, written without distances
SHAPES = {
    "ellipse": (
        lambda u, v: ellipse(u - 0.05, v + 0.1, 0.6, 0.35),
        lambda u, v: ((u - 0.05) / 0.6) ** 2 + ((v + 0.1) / 0.35) ** 2 < 1,
    ),
    "capsule": (
        lambda u, v: capsule(u, v, (-0.4, 0.0), (0.4, 0.0), 0.2),
        lambda u, v: (
            ((np.abs(u) < 0.4) & (np.abs(v) < 0.2))
            | ((np.abs(u) - 0.4) ** 2 + v**2 < 0.04)
        ),
    ),
    "lens": (
        lambda u, v: lens(u, v, 0.7, 0.3, 0.2),
        lambda u, v: (
            (v < 0.3 - 0.3 * u**2 / 0.49 - 0.2 * u**2)
            & (v > -0.3 + 0.3 * u**2 / 0.49 - 0.2 * u**2)
        ),
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_coverage_is_the_share_of_points_inside(name):
    distance, inside = SHAPES[name]
    fine = 40
    counted = inside(*grid(fine * SIZE)).astype(float)
    counted = counted.reshape(SIZE, fine, SIZE, fine).mean((1, 3))
    drawn = coverage(distance(*grid(SIZE)), PIXEL)
    # An edge at an angle is a ramp of a slightly different shape: up to 0.15 a pixel,
    # where a wrong formula gives 1; and the area, in which this cancels, to 1 %.
    assert np.abs(drawn - counted).max() < 0.15
    assert drawn.sum() == pytest.approx(counted.sum(), rel=0.01)


def test_coverage_is_exact_away_from_the_edge():
    covered = coverage(SHAPES["ellipse"][0](*grid(SIZE)), PIXEL)
    assert covered[0, 0] == 0
    assert covered[SIZE // 2, SIZE // 2] == 1


def test_the_distance_from_an_ellipse_has_unit_slope_at_its_edge():
    angle = np.linspace(0.1, 6, 20)
    a, b, step = 0.6, 0.35, 1e-4
    normal = np.array([np.cos(angle) / a, np.sin(angle) / b])
    normal /= np.linalg.norm(normal, axis=0)
    edge = np.array([a * np.cos(angle), b * np.sin(angle)])
    assert ellipse(*edge, a, b) == pytest.approx(0, abs=1e-12)
    assert ellipse(*(edge + step * normal), a, b) / step == pytest.approx(1, abs=1e-2)
