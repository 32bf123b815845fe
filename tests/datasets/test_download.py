import io
import socket
import sys

import numpy as np
import pytest

from agop.datasets import DownloadError, download
from agop.datasets.registry import File

from .layouts import md5

BODY = np.random.default_rng(0).bytes(300_000)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "body.bin"


@pytest.fixture
def file(server):
    server.files["body.bin"] = BODY
    return File("body.bin", md5(BODY), len(BODY), (server.url + "body.bin",))


def part_of(target):
    return target.with_name("body.bin.part")


def test_a_whole_file_arrives(file, target):
    download.download(file, target)
    assert target.read_bytes() == BODY
    assert not part_of(target).exists()


def test_a_cut_connection_is_resumed_where_it_broke_off(file, target, server):
    server.cuts = [100_000, 50_000]
    download.download(file, target)
    assert target.read_bytes() == BODY
    asked = [asked for _, asked in server.requests]
    assert asked == [None, "bytes=100000-", "bytes=150000-"]


def test_a_later_call_goes_on_from_the_part_file(file, target, server):
    part_of(target).write_bytes(BODY[:123_456])
    download.download(file, target)
    assert target.read_bytes() == BODY
    assert server.requests == [("body.bin", "bytes=123456-")]


def test_a_server_without_ranges_sends_it_all_again(file, target, server):
    server.ranges = False
    part_of(target).write_bytes(BODY[:1000])
    # without a checksum nothing else would notice that it was appended
    download.download(File(file.name, None, None, file.urls), target)
    assert target.read_bytes() == BODY


def test_a_part_of_something_else_is_thrown_away(file, target, server):
    part_of(target).write_bytes(b"x" * 1000)
    download.download(file, target)
    assert target.read_bytes() == BODY
    assert [asked for _, asked in server.requests] == ["bytes=1000-", None]


@pytest.mark.parametrize("length", [len(BODY), len(BODY) + 7])
def test_a_part_with_nothing_left_to_ask_for_is_begun_again(file, target, length):
    part_of(target).write_bytes((BODY + b"x" * 7)[:length])
    download.download(file, target)
    assert target.read_bytes() == BODY


def test_a_connection_that_keeps_breaking_leaves_no_half_file(file, target, server):
    server.cuts = [1000, 0, 0, 0, 0, 0]
    with pytest.raises(DownloadError, match="broke off at 1000 of 300000 bytes"):
        download.download(file, target)
    assert not target.exists()
    assert part_of(target).read_bytes() == BODY[:1000]  # the next call starts here


def test_wrong_bytes_are_refused_and_removed(file, target, server):
    server.files["body.bin"] = b"something else"
    with pytest.raises(DownloadError) as error:
        download.download(file, target)
    assert f"expected {md5(BODY)}" in str(error.value)
    assert f"found {md5(b'something else')}" in str(error.value)
    assert not target.exists()
    assert not part_of(target).exists()


def test_the_second_address_is_tried(file, target, server):
    urls = (server.url + "gone", *file.urls)
    download.download(File(file.name, file.checksum, file.size, urls), target)
    assert target.read_bytes() == BODY


def assert_tells_what_to_do(message, file, target):
    for part in (file.name, *file.urls, str(target), file.checksum, "AGOP_DATA"):
        assert part in message


def test_a_missing_file_says_what_to_do(file, target, server):
    server.files.clear()
    with pytest.raises(DownloadError, match="HTTP 404") as error:
        download.download(file, target)
    assert_tells_what_to_do(str(error.value), file, target)


def test_a_refused_connection_says_what_to_do(target):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/body.bin"
        file = File("body.bin", md5(BODY), len(BODY), (url,))
        with pytest.raises(DownloadError, match=r"[Rr]efused") as error:
            download.download(file, target)
    assert_tells_what_to_do(str(error.value), file, target)


def test_being_offline_says_what_to_do(target, monkeypatch):
    def no_network(*args, **kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    url = "https://data.invalid/body.bin"
    file = File("body.bin", md5(BODY), len(BODY), (url,))
    with pytest.raises(DownloadError, match="Name or service not known") as error:
        download.download(file, target)
    assert_tells_what_to_do(str(error.value), file, target)


def test_a_web_page_is_not_taken_for_the_file(file, target, server):
    server.content_type = "text/html; charset=utf-8"
    with pytest.raises(DownloadError, match="a web page came instead of the file"):
        download.download(file, target)
    assert not part_of(target).exists()


def test_without_a_checksum_a_short_file_is_still_noticed(file, target, server):
    server.cuts = [1000] + [0] * 5
    with pytest.raises(DownloadError, match="broke off"):
        download.download(File(file.name, None, None, file.urls), target)
    assert not target.exists()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "bar"), [(Terminal, True), (io.StringIO, False)])
def test_the_progress_bar_is_for_terminals(file, target, monkeypatch, stream, bar):
    monkeypatch.setattr(sys, "stderr", stream())
    download.download(file, target)
    assert ("body.bin: 100%" in sys.stderr.getvalue()) is bar
