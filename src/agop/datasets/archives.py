"""Unpack tar archives without letting a member out of its folder."""

import lzma
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from tempfile import TemporaryDirectory

from agop.datasets.errors import DatasetError, UnsafeArchiveError

_DAMAGE = (tarfile.ReadError, EOFError, zlib.error, lzma.LZMAError)


def unpack(archive: Path, folder: Path, rename: Callable[[str], str | None]) -> None:
    """Unpack a tar archive of any compression into a new folder.

    The folder appears complete or not at all; if it is there, nothing is done.

    Parameters
    ----------
    archive : the archive.
    folder : where its files go.
    rename : gives the name below `folder` for a member's name, None to leave it out.

    Raises
    ------
    UnsafeArchiveError
        If any member, wanted or not, is a link or a device, has an absolute name,
        or has ``..`` in it.
    DatasetError
        If the archive is damaged.
    """
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as scratch:
        content = Path(scratch, "content")
        content.mkdir()
        try:
            _extract(archive, content, rename)
        except _DAMAGE as error:
            raise DatasetError(f"{archive} is damaged: {error}") from error
        try:
            content.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first
                raise


def _extract(archive: Path, content: Path, rename: Callable[[str], str | None]) -> None:
    with tarfile.open(archive, "r|*") as tar:  # one pass: each byte unpacked once
        for member in tar:
            refuse_unsafe(member)
            name = rename(member.name) if member.isfile() else None
            if name is not None:
                # The filter refuses all of the above a second time.
                tar.extract(member.replace(name=name), content, filter="data")


def refuse_unsafe(member: tarfile.TarInfo) -> None:
    """Raise `UnsafeArchiveError` unless it is a file or folder that stays inside."""
    name = PureWindowsPath(member.name)  # takes / and \\ alike, and drive letters
    if not (member.isfile() or member.isdir()):
        raise UnsafeArchiveError(f"{member.name!r} is neither a file nor a folder")
    if name.anchor or ".." in name.parts:
        raise UnsafeArchiveError(f"{member.name!r} lies outside of its archive")
