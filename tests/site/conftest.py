"""The rendered site, served on loopback, and a browser to open it with."""

import functools
import http.server
import json
import os
import shutil
import threading
from urllib.parse import urlsplit

import pytest
from filelock import FileLock

from agop.book.site import render

from .looking import AXE, look

# The system's browser; Playwright's own download is not needed.
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
ADDRESS = "https://github.com/example/book"
DESKTOP = (1280, 900)
# MathJax is an object with settings before it is a program.
MATHS_IS_SET = """async () => {
    if (window.MathJax === undefined) return true;
    if (!MathJax.startup?.promise) return false;
    await MathJax.startup.promise;
    return true;
}"""
FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        """Say nothing: a browser asks for a great many files."""


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """Return ``once(name, make)``: a folder that one of the test processes fills."""
    base = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        base = base.parent  # the run's, shared by its processes

    def once(name, make):
        folder = base / f"once-{name}"
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                make(base / f"making-{name}")
                (base / f"making-{name}").rename(folder)
        return folder

    return once


@pytest.fixture(scope="session")
def html(root, once):
    """Render the published notebooks into an empty folder; warnings are errors."""
    folder = once("site", lambda to: render(root, build=to / "_build"))
    return folder / "_build" / "html"


@pytest.fixture(scope="session")
def public(root, once):
    """Render the site again, as for a public address."""
    options = {"repository": ADDRESS}
    folder = once("public", lambda to: render(root, build=to / "_build", **options))
    return folder / "_build" / "html"


@pytest.fixture(scope="session")
def address(html):
    """Serve the site on a free port of this machine."""
    handler = functools.partial(_Quiet, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    """Start the system's Chromium; required in CI, skipped elsewhere without one."""
    if BROWSER is None:
        message = "no chromium on this machine (apt-get install chromium)"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=BROWSER, args=FLAGS, chromium_sandbox=False
        )
        yield chromium
        chromium.close()


class Visit:
    """One page opened in one window, with everything that went wrong on the way."""

    def __init__(self, browser, address, path, size=DESKTOP, dark=False):
        self.host = urlsplit(address).netloc
        self.troubles, self.external, self.answers = [], [], []
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
        self.page.wait_for_function(MATHS_IS_SET)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type}: {message.text}")

    def _response(self, response):
        self.answers.append(response)
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


@pytest.fixture(scope="session")
def walk(once, browser, address, pages):
    """Open every page once and return what was seen, by its path."""
    if AXE is None and os.environ.get("CI"):
        pytest.fail("axe-playwright-python is not installed")

    def look_at_all(folder):
        folder.mkdir(exist_ok=True)
        found = {}
        for path in pages:
            visit = Visit(browser, address, path)
            found[path] = look(visit)
            visit.close()
        (folder / "seen.json").write_text(json.dumps(found), encoding="utf-8")

    return json.loads((once("walk", look_at_all) / "seen.json").read_text())


@pytest.fixture
def visit(browser, address):
    opened = []

    def open_page(path, size=DESKTOP, dark=False):
        opened.append(Visit(browser, address, path, size, dark))
        return opened[-1]

    yield open_page
    for each in opened:
        each.close()
