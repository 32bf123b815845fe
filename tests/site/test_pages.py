"""Open every page of the site as a reader would, and look for what is broken."""

import re
from urllib.parse import unquote, urlsplit

import pytest

from .looking import MODES

# MathJax leaves its source between these when it has not run.
RAW_MATHS = ("\\(", "\\[", "$$", "\\mathbb", "\\frac")


def test_the_site_has_every_page_of_the_contents(pages, root):
    written = {path.stem for path in (root / "book").glob("*.md")}
    assert written <= {name.split("/")[-1].removesuffix(".html") for name in pages}


def test_nothing_goes_wrong_on_any_page(walk):
    """No console message, no failed request, no request to another host."""
    found = {path: seen["troubles"] + seen["external"] for path, seen in walk.items()}
    assert {path: troubles for path, troubles in found.items() if troubles} == {}


def test_mathematics_is_rendered(walk):
    for path, seen in walk.items():
        left = [sign for sign in RAW_MATHS if sign in seen["text"]]
        assert left == [], f"{path}: {left} in the text"
        assert seen["maths_errors"] == 0, path
    assert sum(seen["maths"] for seen in walk.values()) > 50


def test_every_picture_has_an_alternative_text(walk):
    pictures = [(path, *p) for path, seen in walk.items() for p in seen["pictures"]]
    unnamed = re.compile(r"$|image|_images|\.\.")
    assert [p for p in pictures if unnamed.match(p[2])] == []
    assert len(pictures) > 20


def test_internal_links_lead_somewhere(html, walk):
    links = {
        (path, href)
        for path, seen in walk.items()
        for href in seen["links"]
        if href.startswith(seen["url"][:17])
    }
    broken = []
    for path, href in links:
        parts = urlsplit(href)
        target = unquote(parts.path).lstrip("/") or "index.html"
        anchors = walk.get(target, {}).get("anchors", ())
        if not (html / target).is_file():
            broken.append(f"{path} -> {target}")
        elif unquote(parts.fragment) not in {"", *anchors}:
            broken.append(f"{path} -> {target}#{parts.fragment}")
    assert broken == []
    assert len(links) > 20


@pytest.mark.parametrize("mode", MODES)
def test_no_page_is_wider_than_a_phone(walk, mode):
    wide = {path: seen[f"too_wide_{mode}"] for path, seen in walk.items()}
    assert {path: by for path, by in wide.items() if by > 1} == {}


def test_search_finds_a_term(visit):
    page = visit("search.html?q=AGOP").page
    page.wait_for_selector("#search-results li a", timeout=10_000)
    assert page.locator("#search-results li").count() >= 2
