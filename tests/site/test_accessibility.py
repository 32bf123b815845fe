"""axe-core on every page, in light and in dark mode, and what else readers need."""

import itertools

import pytest

from .looking import AXE, MODES, switch

FIRST_VIEW = 1.5 * 2**20  # bytes that a chapter may load at first


@pytest.mark.skipif(AXE is None, reason="axe-playwright-python is not installed")
@pytest.mark.parametrize("mode", MODES)
def test_no_serious_violation_on_any_page(walk, mode):
    found = {path: seen[f"violations_{mode}"] for path, seen in walk.items()}
    assert {path: broken for path, broken in found.items() if broken} == {}


def test_headings_do_not_skip_a_level(walk):
    for path, seen in walk.items():
        levels = seen["levels"]
        steps = [b - a for a, b in itertools.pairwise(levels)]
        assert all(step <= 1 for step in steps), f"{path}: {levels}"
        assert levels.count(1) <= 1, path


def test_the_first_view_of_a_page_is_light(walk):
    """Bytes received before the reader scrolls, from a host that compresses text."""
    sizes = {path: seen["bytes"] for path, seen in walk.items()}
    assert min(sizes.values()) > 10_000  # they were counted
    assert {path: size for path, size in sizes.items() if size > FIRST_VIEW} == {}


def test_dark_mode_is_dark(visit):
    """The walk changes the mode of an open page: the page must follow."""
    page = visit("book/intro.html").page
    colour = (
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    )
    light = sum(page.evaluate(colour))
    switch(page, "dark")
    assert light > 600 > 200 > sum(page.evaluate(colour))
