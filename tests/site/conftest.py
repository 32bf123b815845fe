"""The rendered site, served on loopback, and a browser to open it with."""

import functools
import http.server
import os
import shutil
import threading

import pytest

from agop.book.site import render

# The system's browser; Playwright's own download is not needed.
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
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
