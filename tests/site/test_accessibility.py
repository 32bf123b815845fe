"""axe-core on every page, in light and in dark mode."""

import gzip
import importlib.util
import itertools
import os
from pathlib import Path

import pytest

SERIOUS = ("serious", "critical")
FIRST_VIEW = 1.5 * 2**20  # bytes that a chapter may load at first


@pytest.fixture(scope="session")
def axe():
    """Read axe-core, as the package for playwright carries it."""
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None:
        message = "axe-playwright-python is not installed"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    folder = Path(found.submodule_search_locations[0])
    return (folder / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("dark", [False, True])
def test_no_serious_violation_on_any_page(pages, visit, axe, dark):
    found = {}
    for path in pages:
        seen = visit(path, dark=dark)
        seen.page.evaluate(axe)
        result = seen.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        for each in result["violations"]:
            if each["impact"] in SERIOUS:
                where = [" ".join(map(str, n["target"])) for n in each["nodes"][:3]]
                found[f"{path}: {each['id']}"] = (len(each["nodes"]), where)
        seen.close()
    assert found == {}


def test_headings_do_not_skip_a_level(pages, visit):
    for path in pages:
        seen = visit(path)
        levels = seen.page.eval_on_selector_all(
            "article :is(h1, h2, h3, h4)", "all => all.map(h => +h.tagName[1])"
        )
        steps = [b - a for a, b in itertools.pairwise(levels)]
        assert all(step <= 1 for step in steps), f"{path}: {levels}"
        assert levels.count(1) <= 1, path
        seen.close()


def test_the_first_view_of_a_chapter_is_light(html, browser, address):
    """Bytes received before the reader scrolls, from a host that compresses text."""

    def sent(response):
        kind = response.headers.get("content-type", "")
        body = response.body()
        return len(body if "image/png" in kind else gzip.compress(body, 6))

    def first_view(url):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page, answers = context.new_page(), []
        page.on("response", lambda answer: answers.append(answer))
        page.goto(url, wait_until="networkidle")
        size = sum(map(sent, answers))
        context.close()
        return size

    sizes = {
        notebook.stem: first_view(f"{address}/book/{notebook.stem}.html")
        for notebook in sorted((html / "notebooks").glob("*.ipynb"))
    }
    assert {name: size for name, size in sizes.items() if size > FIRST_VIEW} == {}
