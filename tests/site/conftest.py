"""The rendered site, served on loopback, and a browser to open it with."""

import functools
import http.server
import os
import shutil
import threading
from urllib.parse import urlsplit

import pytest

from agop.book.site import render

# The system's browser; Playwright's own download is not needed.
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
DESKTOP = (1280, 900)
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
def html(root, tmp_path_factory):
    """Render the published notebooks into an empty folder; warnings are errors."""
    return render(root, build=tmp_path_factory.mktemp("site") / "_build").parent


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
