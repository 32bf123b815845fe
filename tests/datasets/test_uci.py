"""UCI sets from a made-up archive in the authors' layout."""

import hashlib

import numpy as np
import pytest

from agop.datasets import (
    ChecksumError,
    DatasetError,
    DownloadError,
    UnsafeArchiveError,
    load_uci,
    uci,
    uci_info,
)
from agop.datasets.uci import UCISet, verify_uci

from .layouts import dat, features, splits, tar_of


def a_set(name, n=12, n_test=0, d=3, raw=None, rebuilt=False):
    """Return a set's description and its files."""
    y = np.arange(n) % 2
    first = f"{name}_train_R.dat" if n_test else f"{name}_R.dat"
    files = {
        first: dat(features(n, d, 0), y),
        "conxuntos.dat": splits(n, 1, 1),
        "conxuntos_kfold.dat": splits(n, 4, 2),
        f"{name}.txt": b"n_entradas= 3\n",
    }
    if n_test:
        X_test = features(n_test, d, 3)
        X_test[:, 1] = 0.1  # constant, and its mean is not exactly 0.1
        files[f"{name}_test_R.dat"] = dat(X_test, np.arange(n_test) % 2)
    sums = {f: "sha256:" + hashlib.sha256(b).hexdigest() for f, b in files.items()}
    sums.pop(f"{name}.txt")
    return UCISet(name, n, n_test, d, 2, None, rebuilt, raw, sums), files


def publish_sets(publish, monkeypatch, *sets, prefix="data/", extra=None):
    known = {info.name: info for info, _ in sets}
    monkeypatch.setattr(uci, "_sets", lambda: known)
    members = {
        f"{prefix}{info.name}/{file}": data
        for info, files in sets
        for file, data in files.items()
    }
    archive = tar_of(members | (extra or {}))
    publish("uci121", {"data.tar.gz": archive}, checked=False)


@pytest.mark.parametrize("prefix", ["", "data/", "./data/"])
def test_a_set_with_its_splits(publish, monkeypatch, prefix):
    publish_sets(publish, monkeypatch, a_set("plain"), prefix=prefix)
    data = load_uci("plain")
    assert np.allclose(data.X, features(12, 3, 0))
    assert data.y.tolist() == [0, 1] * 6
    assert data.X_test is None
    train, validation = data.selection
    rows = np.random.default_rng(1).permutation(12)
    assert train.tolist() == rows[:6].tolist()
    assert validation.tolist() == rows[6:].tolist()
    assert [(len(a), len(b)) for a, b in data.folds] == [(9, 3)] * 4
    assert data.provenance.source == "official download"
    assert data.provenance.notes == ()
    assert set(data.provenance.files) == {
        "plain_R.dat", "conxuntos.dat", "conxuntos_kfold.dat"
    }  # fmt: skip


def test_every_file_is_verified_after_unpacking(publish, monkeypatch, cache):
    publish_sets(publish, monkeypatch, a_set("plain"), a_set("other"))
    load_uci("plain")
    for file in ("plain_R.dat", "conxuntos.dat", "conxuntos_kfold.dat"):
        (path,) = (p for p in cache.rglob(file) if p.parent.name == "plain")
        good = path.read_bytes()
        path.write_bytes(good.replace(b"1", b"2", 1))
        with pytest.raises(ChecksumError, match=file):
            load_uci("plain")
        path.write_bytes(good)
    load_uci("plain")


@pytest.mark.parametrize(
    ("raw", "scaled"), [("test", "X_test"), ("train", "X"), (None, None)]
)
def test_per_file_scaling_mends_the_raw_file_and_leaves_the_other(
    publish, monkeypatch, raw, scaled
):
    publish_sets(publish, monkeypatch, a_set("two", n_test=8, raw=raw))
    published = load_uci("two", scaling="as_published")
    data = load_uci("two")
    assert np.allclose(published.X, features(12, 3, 0))
    for part in ("X", "X_test"):
        before, after = getattr(published, part), getattr(data, part)
        if part != scaled:
            assert np.array_equal(after, before)
            continue
        for j in range(3):  # one column at a time, by the definition
            column = before[:, j]
            if column.min() == column.max():
                assert np.all(after[:, j] == 0)
            else:
                spread = np.sqrt(sum((column - column.mean()) ** 2) / (len(column) - 1))
                assert np.allclose(after[:, j], (column - column.mean()) / spread)
    assert bool(data.provenance.notes) is bool(raw)
    if raw:
        assert f"the {raw} file was z-scored" in data.provenance.notes[0]
        assert "not comparable" in published.provenance.notes[0]


def test_the_doubled_test_file_is_left_out(publish, monkeypatch):
    vowel = a_set("conn-bench-vowel-deterding", n_test=8)
    publish_sets(publish, monkeypatch, vowel)
    data = load_uci("conn-bench-vowel-deterding")
    assert data.X_test is None
    assert data.y_test is None
    assert "repeats the first 462 training rows" in data.provenance.notes[0]


def test_the_authors_file_behind_a_rebuilt_one_has_no_known_checksum(
    publish, monkeypatch
):
    info, files = a_set("big", rebuilt=True)
    other = files | {"big_R.dat": files["big_R.dat"].replace(b"\t", b" ")}
    publish_sets(publish, monkeypatch, (info, other))
    assert load_uci("big").provenance.notes == (
        "No checksum of the authors' big_R.dat is known.",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.pop("odd_R.dat"), "lacks odd_R.dat"),
        (lambda f: f.update({"odd_R.dat": dat(features(11, 3, 0), [0] * 11)}), "11, 5"),
        (lambda f: f.update({"odd_R.dat": dat(features(12, 3, 0), [2] * 12)}), "0..1"),
        (lambda f: f.update({"conxuntos.dat": b"0 1 2\n3 4 4\n"}), "cover its rows"),
    ],
)
def test_files_without_checksums_are_still_checked_for_sense(
    publish, monkeypatch, change, message
):
    info, files = a_set("odd")
    info.checksums.clear()  # as for miniboone
    change(files)
    publish_sets(publish, monkeypatch, (info, files))
    with pytest.raises(DatasetError, match=message):
        load_uci("odd")


def test_an_escaping_archive_is_refused(publish, monkeypatch, cache):
    evil = {"../../x/evil_R.dat": b"1"}
    publish_sets(publish, monkeypatch, a_set("plain"), extra=evil)
    with pytest.raises(UnsafeArchiveError):
        load_uci("plain")
    assert not list(cache.parent.rglob("*_R.dat"))


def test_a_set_that_the_mirror_lacks_says_so(publish, monkeypatch, server, tmp_path):
    publish("uci121", {"data.tar.gz": b""}, checked=False)
    server.files.clear()
    with pytest.raises(DatasetError, match="no local mirror has the UCI set miniboone"):
        load_uci("miniboone", source="mirror")
    with pytest.raises(DownloadError, match=r"^data.tar.gz could not") as error:
        load_uci("miniboone")
    assert "404" in str(error.value)
    monkeypatch.setenv("AGOP_DATA", str(tmp_path))
    for size in ("small", "large"):
        path = tmp_path / f"uci121/uci121_{size}.tar.xz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    with pytest.raises(DownloadError, match="the local mirror lacks miniboone, and"):
        load_uci("miniboone")


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="'abalones'; there is abalone"):
        load_uci("abalones")
    with pytest.raises(ValueError, match="scaling is 'z'; it must be 'per_file' or"):
        load_uci("abalone", scaling="z")
    with pytest.raises(ValueError, match="source is 'web'"):
        verify_uci("abalone", source="web")


def test_the_known_faults_are_in_the_table():
    infos = [uci_info(name) for name in uci.uci_names()]
    assert len(infos) == 121
    assert [i.name for i in infos if not i.mirrored] == ["miniboone"]
    assert {i.name for i in infos if i.raw == "train"} == {
        "monks-1", "monks-2", "monks-3", "spectf"
    }  # fmt: skip
    assert {i.name for i in infos if i.raw == "test"} == {
        "annealing", "hayes-roth", "hill-valley", "horse-colic",
        "image-segmentation", "soybean", "spect",
    }  # fmt: skip
    assert {i.name for i in infos if i.rebuilt} == {
        "adult", "connect-4", "musk-2", "statlog-shuttle"
    }  # fmt: skip
