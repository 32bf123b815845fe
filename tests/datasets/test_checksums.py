import os

import pytest

from agop.datasets import ChecksumError, checksums
from agop.datasets.checksums import checksum, verify, verify_once

# sha256 of "abc": FIPS 180-4's own example
ABC = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.fixture
def abc(tmp_path):
    path = tmp_path / "abc"
    path.write_bytes(b"abc")
    return path


def test_checksum_of_a_known_text(abc):
    assert checksum(abc) == ABC


def test_verify_names_both_checksums(abc):
    verify(abc, ABC)
    abc.write_bytes(b"abd")
    with pytest.raises(ChecksumError, match=f"expected {ABC}, found sha256:a52d159f"):
        verify(abc, ABC)


def test_verify_once_reads_an_unchanged_file_once(abc, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(checksums, "verify", lambda path, _: read.append(path))
    for _ in range(3):
        verify_once(abc, ABC, tmp_path / "stamps")
    assert read == [abc]


def test_verify_once_reads_a_changed_file_again(abc, tmp_path):
    verify_once(abc, ABC, tmp_path / "stamps")
    before = abc.stat()
    abc.write_bytes(b"abd")  # as long as before: only the time tells
    os.utime(abc, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(ChecksumError):
        verify_once(abc, ABC, tmp_path / "stamps")


def test_a_stamp_vouches_for_one_checksum_only(abc, tmp_path):
    verify_once(abc, ABC, tmp_path / "stamps")
    with pytest.raises(ChecksumError):
        verify_once(abc, ABC.replace("ba78", "0000"), tmp_path / "stamps")
