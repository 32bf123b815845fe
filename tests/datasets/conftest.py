"""A cache of its own for each test, a small HTTP server, and the local mirror."""

import os
import threading
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agop.datasets import download, registry

from .layouts import md5

# as it was before any test hid it
MIRROR = Path(os.environ.get("AGOP_DATA") or "/no/mirror").absolute()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, no mirror, no proxy, no waiting."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("AGOP_CACHE", str(folder))
    monkeypatch.delenv("AGOP_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "_PAUSE_S", 0.0)
    return folder


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("real-cache")


@pytest.fixture
def mirror(cache, shared_cache, monkeypatch):
    """The real local mirror, with one cache for all tests: it is unpacked once."""
    if not MIRROR.is_dir():
        pytest.skip("no local mirror: AGOP_DATA names no folder")
    monkeypatch.setenv("AGOP_DATA", str(MIRROR))
    monkeypatch.setenv("AGOP_CACHE", str(shared_cache))
    return MIRROR


@dataclass
class Server:
    """Files served on loopback, with faults that can be switched on."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)  # bytes sent before each hang-up
    ranges: bool = True  # whether Range headers are honoured
    content_type: str = "application/octet-stream"
    requests: list[tuple[str, str | None]] = field(default_factory=list)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        asked = handler.headers.get("Range")
        name = handler.path.lstrip("/")
        self.requests.append((name, asked))
        data = self.files.get(name)
        if data is None:
            handler.send_error(404)
            return
        start = int(asked[6:-1]) if asked and self.ranges else 0
        if start and start >= len(data):
            handler.send_error(416)
            return
        handler.send_response(206 if start else 200)
        if start:
            span = f"bytes {start}-{len(data) - 1}/{len(data)}"
            handler.send_header("Content-Range", span)
        handler.send_header("Content-Type", self.content_type)
        handler.send_header("Content-Length", str(len(data) - start))
        handler.end_headers()
        stop = start + self.cuts.pop(0) if self.cuts else len(data)
        handler.wfile.write(data[start:stop])  # a short body, then the socket closes


@pytest.fixture
def server():
    served = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            served.answer(self)

        def log_message(self, *args):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{http.server_port}/"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    yield served
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def publish(server, monkeypatch):
    """Let the server stand for the official site of an entry of the registry."""

    def publish(name: str, files: dict[str, bytes], checked: bool = True) -> None:
        entries = dict(registry._entries())
        official = tuple(
            registry.File(
                name=file,
                checksum=md5(data) if checked else None,
                size=len(data),
                urls=(server.url + file,),
            )
            for file, data in files.items()
        )
        server.files |= files
        entries[name] = replace(entries[name], official=official)
        monkeypatch.setattr(registry, "_entries", lambda: entries)

    return publish
