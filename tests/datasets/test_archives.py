import io
import tarfile

import pytest

from agop.datasets import DatasetError, UnsafeArchiveError
from agop.datasets.archives import refuse_unsafe, unpack

from .layouts import tar_of


def everything(name):
    return name


def nothing(name):
    return None


def member(name, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


UNSAFE = [
    member("../evil"),
    member("a/../../evil"),
    member("/tmp/agop-evil"),
    member("..\\evil"),
    member("C:\\evil"),
    member("link", tarfile.SYMTYPE, "/etc/passwd"),
    member("link", tarfile.SYMTYPE, "good"),
    member("link", tarfile.LNKTYPE, "../evil"),
    member("pipe", tarfile.FIFOTYPE),
    member("device", tarfile.CHRTYPE),
    member("disk", tarfile.BLKTYPE),
]


def archive_with(path, last):
    """Write an archive of one good file and then this member."""
    with tarfile.open(path, "w:gz") as tar:
        good = member("good")
        good.size = 4
        tar.addfile(good, io.BytesIO(b"data"))
        tar.addfile(last)
    return path


def test_wanted_files_are_unpacked_under_their_new_names(tmp_path):
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(tar_of({"data/x/one": b"1", "data/x/two": b"2"}))
    unpack(archive, tmp_path / "out", {"data/x/one": "x/uno"}.get)
    files = [p for p in (tmp_path / "out").rglob("*") if p.is_file()]
    assert [(p.name, p.read_bytes()) for p in files] == [("uno", b"1")]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_compressions(tmp_path, mode):
    archive = tmp_path / "a"
    archive.write_bytes(tar_of({"one": b"1"}, mode))
    unpack(archive, tmp_path / "out", everything)
    assert (tmp_path / "out/one").read_bytes() == b"1"


@pytest.mark.parametrize("rename", [everything, nothing, lambda name: "renamed"])
@pytest.mark.parametrize("bad", UNSAFE, ids=lambda m: f"{m.name}-{m.type}")
def test_unsafe_members_are_refused_and_nothing_stays(tmp_path, bad, rename):
    archive = archive_with(tmp_path / "a.tar.gz", bad)
    with pytest.raises(UnsafeArchiveError, match=r"neither a file|lies outside"):
        unpack(archive, tmp_path / "deep/out", rename)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [archive]


def test_a_rename_cannot_lead_outside_either(tmp_path):
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(tar_of({"one": b"1"}))
    with pytest.raises(tarfile.FilterError):
        unpack(archive, tmp_path / "deep/out", lambda name: "../../evil")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [archive]


def test_plain_members_pass():
    refuse_unsafe(member("data/abalone/abalone_R.dat"))
    refuse_unsafe(member("data", tarfile.DIRTYPE))


@pytest.mark.parametrize("mode", ["w:gz", "w:xz"])
def test_a_truncated_archive_leaves_no_folder(tmp_path, mode):
    data = tar_of({"one": bytes(range(256)) * 400, "two": b"2" * 9999}, mode)
    archive = tmp_path / "a"
    archive.write_bytes(data[: len(data) // 2])
    with pytest.raises(DatasetError, match="is damaged"):
        unpack(archive, tmp_path / "out", everything)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [archive]


def test_an_unpacked_folder_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    unpack(tmp_path / "no such archive", tmp_path / "out", everything)
    assert list((tmp_path / "out").iterdir()) == []
