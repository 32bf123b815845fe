"""Open every page of the site as a reader would, and look for what is broken."""

from urllib.parse import unquote, urlsplit

import pytest

PHONE = (390, 844)
# MathJax leaves its source between these when it has not run.
RAW_MATHS = ("\\(", "\\[", "$$", "\\mathbb", "\\frac")


def test_the_site_has_every_page_of_the_contents(pages, root):
    written = {path.stem for path in (root / "book").glob("*.md")}
    assert written <= {name.split("/")[-1].removesuffix(".html") for name in pages}


def test_nothing_goes_wrong_on_any_page(pages, visit):
    """No console message, no failed request, no request to another host."""
    found = {}
    for path in pages:
        seen = visit(path)
        if seen.troubles or seen.external:
            found[path] = seen.troubles + seen.external
        seen.close()
    assert found == {}


def test_mathematics_is_rendered(pages, visit):
    rendered = 0
    for path in pages:
        page = visit(path).page
        text = page.evaluate(
            """() => {
                const copy = document.querySelector("main").cloneNode(true);
                copy.querySelectorAll("pre, code, script, mjx-container")
                    .forEach(node => node.remove());
                return copy.textContent;
            }"""
        )
        left = [sign for sign in RAW_MATHS if sign in text]
        assert left == [], f"{path}: {left} in the text"
        assert page.locator("mjx-merror, [data-mjx-error]").count() == 0, path
        rendered += page.locator("mjx-container").count()
        page.close()
    assert rendered > 50


def test_every_picture_has_an_alternative_text(pages, visit):
    for path in pages:
        page = visit(path).page
        bare = page.eval_on_selector_all(
            "main img", "all => all.filter(i => !i.alt.trim()).map(i => i.src)"
        )
        unnamed = page.eval_on_selector_all(
            "main img",
            "all => all.map(i => i.alt).filter(t => /^(image|_images|[.][.])/.test(t))",
        )
        assert bare + unnamed == [], path
        page.close()


def test_internal_links_lead_somewhere(html, pages, visit):
    anchors = {}
    links = []
    for path in pages:
        page = visit(path).page
        anchors[path] = set(
            page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
        )
        hrefs = page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)")
        links += [(path, href) for href in hrefs if href.startswith(page.url[:17])]
        page.close()
    broken = []
    for path, href in set(links):
        parts = urlsplit(href)
        target = unquote(parts.path).lstrip("/") or "index.html"
        if not (html / target).is_file():
            broken.append(f"{path} -> {target}")
        elif unquote(parts.fragment) not in {"", *anchors.get(target, ())}:
            broken.append(f"{path} -> {target}#{parts.fragment}")
    assert broken == []
    assert len(links) > 20


@pytest.mark.parametrize("dark", [False, True])
def test_no_page_is_wider_than_a_phone(pages, visit, dark):
    for path in pages:
        page = visit(path, PHONE, dark).page
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 1, f"{path} is {wide} px too wide"
        page.close()


def test_search_finds_a_term(visit):
    page = visit("search.html?q=AGOP").page
    page.wait_for_selector("#search-results li a", timeout=10_000)
    assert page.locator("#search-results li").count() >= 2
