import argparse

import pytest

from agop.datasets.cli import add_parser

from .layouts import md5, tar_of

FILES = {"train_32x32.mat": b"train", "test_32x32.mat": b"test"}


@pytest.fixture
def agop(capsys):
    """Run ``agop …``; return status, what was printed, and what was complained."""

    def run(*argv):
        parser = argparse.ArgumentParser(prog="agop")
        add_parser(parser.add_subparsers())
        args = parser.parse_args(argv)
        status = args.run(args)
        return (status, *capsys.readouterr())

    return run


def row(out, name):
    (line,) = (x for x in out.splitlines() if x.split()[0] == name)
    return line


def test_list_says_where_each_set_would_come_from(agop, publish, cache, monkeypatch):
    publish("svhn", FILES)
    status, out, _ = agop("data", "list")
    assert status == 0
    assert "download 0 MB" in row(out, "svhn")
    assert "non-commercial" in row(out, "svhn")
    assert "60000 + 10000" in row(out, "mnist")
    assert "scikit-learn" in row(out, "digits")
    assert "needs a mirror" in row(out, "cifar10-jpeg")
    agop("data", "fetch", "svhn")
    assert "cache" in row(agop("data", "list")[1], "svhn")


def test_fetch_brings_the_files(agop, publish, cache):
    publish("svhn", FILES)
    status, out, _ = agop("data", "fetch", "svhn", "digits")
    assert status == 0
    assert (cache / "svhn/train_32x32.mat").read_bytes() == b"train"
    assert f"svhn: {cache / 'svhn/test_32x32.mat'} (official download)" in out
    assert "digits: shipped with scikit-learn" in out


def test_fetch_of_something_unknown_or_unreachable(agop, publish, server):
    status, _, err = agop("data", "fetch", "svnh")
    assert (status, err) == (
        2,
        "agop data: no data set is named 'svnh'; there is svhn\n",
    )
    publish("svhn", FILES)
    server.files.clear()
    status, _, err = agop("data", "fetch", "svhn")
    assert status == 1
    assert err.startswith("agop data: train_32x32.mat could not be downloaded:\n")


def test_verify_notices_a_changed_byte(agop, publish, cache):
    publish("svhn", FILES)
    agop("data", "fetch", "svhn")
    status, out, _ = agop("data", "verify", "svhn")
    assert status == 0
    assert [x.split()[0] for x in out.splitlines()] == ["ok", "ok"]
    (cache / "svhn/test_32x32.mat").write_bytes(b"tess")
    for names in (["svhn"], []):
        status, out, _ = agop("data", "verify", *names)
        assert status == 1
        (wrong,) = (x for x in out.splitlines() if x.startswith("wrong"))
        assert "test_32x32.mat" in wrong
        assert f"expected {md5(b'test')}, found {md5(b'tess')}" in wrong


def test_verify_of_what_is_not_here(agop):
    assert agop("data", "verify")[0] == 0  # nothing here, so nothing wrong
    status, out, _ = agop("data", "verify", "svhn")
    assert (status, out) == (1, "absent  svhn  no file of it is here\n")
    assert agop("data", "verify", "digits")[0] == 0
    assert agop("data", "verify", "uci/abalones")[0] == 2


def test_verify_says_what_cannot_be_compared(agop, publish):
    files = {"data/abalone/abalone_R.dat": b"not the authors'"}
    publish("uci121", {"data.tar.gz": tar_of(files)}, checked=False)
    agop("data", "fetch", "--official", "uci121")
    status, out, _ = agop("data", "verify", "uci121")
    assert status == 1
    assert "unknown" in row(out, "unknown")
    assert "data.tar.gz" in row(out, "unknown")
    assert len([x for x in out.splitlines() if x.startswith("wrong")]) == 121
    status, out, _ = agop("data", "verify", "uci/abalone")
    assert (status, len(out.splitlines())) == (1, 1)
