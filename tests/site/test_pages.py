"""Open every page of the site as a reader would, and look for what is broken."""

from urllib.parse import unquote, urlsplit

import pytest

PHONE, DESKTOP = (390, 844), (1280, 900)
# MathJax leaves its source between these when it has not run.
RAW_MATHS = ("\\(", "\\[", "$$", "\\mathbb", "\\frac")


class Visit:
    """One page opened in one window, with everything that went wrong on the way."""

    def __init__(self, browser, address, path, size, dark=False):
        self.host = urlsplit(address).netloc
        self.troubles, self.external = [], []
        scheme = "dark" if dark else "light"
        width, height = size
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("response", self._response)
        self.page.route("**/*", self._route)
        self.page.goto(f"{address}/{path}", wait_until="networkidle")
        self.page.wait_for_function(
            "window.MathJax === undefined || MathJax.startup.promise"
        )

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type}: {message.text}")

    def _response(self, response):
        if response.status >= 400:
            self.troubles.append(f"{response.status}: {response.url}")

    def _route(self, route):
        if urlsplit(route.request.url).netloc in (self.host, ""):
            route.continue_()
        else:
            self.external.append(route.request.url)
            route.abort()

    def close(self):
        self.context.close()


def pages_of(html):
    names = [path.relative_to(html).as_posix() for path in html.rglob("*.html")]
    # index.html only forwards to the first page.
    return sorted(n for n in names if not n.startswith("_static") and n != "index.html")


@pytest.fixture(scope="session")
def pages(html):
    return pages_of(html)


@pytest.fixture
def visit(browser, address):
    opened = []

    def open_page(path, size=DESKTOP, dark=False):
        opened.append(Visit(browser, address, path, size, dark))
        return opened[-1]

    yield open_page
    for each in opened:
        each.close()


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
