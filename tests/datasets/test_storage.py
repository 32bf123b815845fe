from concurrent.futures import ThreadPoolExecutor

import pytest

from agop.datasets import ChecksumError, DatasetError, registry, storage
from agop.datasets.registry import Entry, File

from .layouts import md5

BODY = b"the official file"
COPY = b"the mirror's file"


@pytest.fixture
def entry(server):
    server.files["a.bin"] = BODY
    return Entry(
        name="a", title="A", rows="1", licence="-", citation="-",
        official=(File("a.bin", md5(BODY), len(BODY), (server.url + "a.bin",)),),
        mirror=(File("sub/a.npz", md5(COPY), len(COPY)),),
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A local mirror that has the file."""
    (tmp_path / "data/sub").mkdir(parents=True)
    (tmp_path / "data/sub/a.npz").write_bytes(COPY)
    monkeypatch.setenv("AGOP_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_the_mirror_comes_first_and_is_only_read(entry, folder, server):
    found = storage.locate(entry)
    assert found.source == "local mirror"
    assert found.paths["sub/a.npz"].read_bytes() == COPY
    assert server.requests == []
    assert [p.name for p in folder.rglob("*")] == ["sub", "a.npz"]


def test_the_official_file_can_be_insisted_on(entry, folder, cache):
    found = storage.locate(entry, "official")
    assert found.source == "official download"
    assert found.paths["a.bin"] == cache / "a" / "a.bin"


def test_a_file_is_downloaded_once(entry, server):
    for _ in range(3):
        storage.locate(entry)
    assert len(server.requests) == 1


def test_parallel_chapters_download_a_file_once(entry, server):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: storage.locate(entry), range(4)))
    assert {f.paths["a.bin"].read_bytes() for f in found} == {BODY}
    assert len(server.requests) == 1


def test_a_damaged_mirror_is_an_error_not_a_download(entry, folder, server):
    (folder / "sub/a.npz").write_bytes(b"damaged")
    with pytest.raises(ChecksumError, match=r"a\.npz"):
        storage.locate(entry)
    assert server.requests == []


def test_a_file_put_into_the_cache_by_hand_is_verified(entry, cache):
    (cache / "a").mkdir(parents=True)
    (cache / "a/a.bin").write_bytes(b"not it")
    with pytest.raises(ChecksumError, match=r"a\.bin"):
        storage.locate(entry)


def test_nothing_is_downloaded_unasked(entry, server):
    with pytest.raises(DatasetError, match="agop data fetch a"):
        storage.locate(entry, download=False)
    assert server.requests == []


def test_a_set_that_is_nowhere_says_where_it_could_be(entry, tmp_path, monkeypatch):
    with pytest.raises(DatasetError, match=r"needs sub/a.npz .* AGOP_DATA is not set"):
        storage.locate(entry, "mirror")
    monkeypatch.setenv("AGOP_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match="AGOP_DATA lacks"):
        storage.locate(entry, "mirror")
    only_mirrored = registry.entry("cifar10-first4000")
    with pytest.raises(DatasetError, match="there is no official download of it"):
        storage.locate(only_mirrored)


def test_a_mirror_that_is_no_folder_is_an_error(monkeypatch):
    monkeypatch.setenv("AGOP_DATA", "/no/such/folder")
    with pytest.raises(DatasetError, match="'/no/such/folder', which is not a folder"):
        storage.mirror_dir()


def test_source_is_one_of_three_words(entry):
    with pytest.raises(ValueError, match="source is 'mirrors'"):
        storage.locate(entry, "mirrors")


def test_a_cache_that_cannot_be_made_says_so(entry, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("AGOP_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(DatasetError, match="set AGOP_CACHE"):
        storage.locate(entry)


def test_provenance_has_names_and_checksums_but_no_paths(entry, folder):
    record = storage.locate(entry).provenance("a note").to_dict()
    assert record == {
        "name": "a",
        "source": "local mirror",
        "files": {"sub/a.npz": md5(COPY)},
        "lossy": False,
        "notes": ["a note"],
    }
