"""Find a data set's files: in the local mirror, in the cache, or by download."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from agop.datasets.archives import unpack as _unpack
from agop.datasets.checksums import checksum, verify_once
from agop.datasets.dataset import Provenance
from agop.datasets.download import download as _download
from agop.datasets.errors import DatasetError
from agop.datasets.registry import Entry, File

OFFICIAL = "official download"
MIRROR = "local mirror"


@dataclass(frozen=True)
class Located:
    """Verified files of a data set, by their registry names, all of one source."""

    entry: Entry
    source: str
    paths: dict[str, Path]

    @property
    def mirrored(self) -> bool:
        """Whether they are the mirror's files, not the official ones."""
        return self.source == MIRROR

    def provenance(self, *notes: str) -> Provenance:
        """Return the record of these files, with the entry's notes and more."""
        sums = {
            name: self.entry.file(name).checksum or checksum(path)
            for name, path in self.paths.items()
        }
        every = (*self.entry.notes, *notes)
        return Provenance(self.entry.name, self.source, sums, self.entry.lossy, every)


def mirror_dir() -> Path | None:
    """Return the folder that ``AGOP_DATA`` names, None if it is not set.

    Raises
    ------
    DatasetError
        If it names something that is not a folder.
    """
    name = os.environ.get("AGOP_DATA", "")
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise DatasetError(f"AGOP_DATA names {name!r}, which is not a folder")
    return folder


def cache_dir() -> Path:
    """Return the folder of downloads: ``AGOP_CACHE``, or the platform's own."""
    if name := os.environ.get("AGOP_CACHE", ""):
        return Path(name).expanduser()
    import pooch

    return Path(pooch.os_cache("agop"))


def locate(entry: Entry, source: str = "auto", download: bool = True) -> Located:
    """Find and verify all files of a data set.

    Parameters
    ----------
    entry : the data set.
    source : ``"mirror"``, ``"official"``, or ``"auto"``: the mirror if it has them.
    download : whether official files that are not in the cache may be downloaded.

    Raises
    ------
    DatasetError
        If they are not there, cannot be downloaded, or have a wrong checksum.
    """
    check_source(source)
    if source != "official" and in_mirror(entry.mirror):
        paths = {file.name: mirror_file(file) for file in entry.mirror}
        return Located(entry, MIRROR, paths)
    if source == "mirror" or not entry.official:
        raise DatasetError(_not_mirrored(entry))
    paths = {f.name: official_file(entry, f, download) for f in entry.official}
    return Located(entry, OFFICIAL, paths)


def check_source(source: str) -> None:
    """Raise ValueError unless it is one of the three words."""
    if source not in ("auto", "mirror", "official"):
        raise ValueError(
            f"source is {source!r}; it must be 'auto', 'mirror' or 'official'"
        )


def in_mirror(files: Sequence[File]) -> bool:
    """Return whether a local mirror has all of these files (and there are any)."""
    folder = mirror_dir()
    if folder is None or not files:
        return False
    return all((folder / file.name).is_file() for file in files)


def mirror_file(file: File) -> Path:
    """Return the verified path of a file of the mirror."""
    folder = mirror_dir()
    if folder is None or not (folder / file.name).is_file():
        raise DatasetError(f"no local mirror (AGOP_DATA) has the file {file.name}")
    return _verified(folder / file.name, file)


def official_path(entry: Entry, file: File) -> Path:
    """Return where an official file belongs in the cache."""
    return cache_dir() / entry.name / file.name


def official_file(entry: Entry, file: File, download: bool = True) -> Path:
    """Return the verified path of an official file, downloaded if need be."""
    target = official_path(entry, file)
    if not target.is_file():
        if not download:
            raise DatasetError(
                f"{file.name} is not in the cache: agop data fetch {entry.name}"
            )
        with lock(target):
            if not target.is_file():
                _download(file, target)
    return _verified(target, file)


def unpacked(archive: Path, file: File, rename: Callable[[str], str | None]) -> Path:
    """Return the folder of the cache with an archive's files, unpacked once."""
    digest = file.checksum or checksum(archive)
    short = digest.partition(":")[2][:16]
    folder = cache_dir() / "unpacked" / f"{archive.name}-{short}"
    with lock(folder):
        _unpack(archive, folder, rename)
    return folder


def lock(path: Path) -> FileLock:
    """Return the lock of a path in the cache, whose folder is made if need be.

    Chapters run in parallel: whoever comes second finds the file there.
    """
    _writable(path.parent)
    return FileLock(f"{path}.lock")


def _verified(path: Path, file: File) -> Path:
    if file.checksum is not None:
        verify_once(path, file.checksum, cache_dir() / "verified")
    return path


def _writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make {folder}: {error.strerror}; set AGOP_CACHE"
        raise DatasetError(message) from error


def _not_mirrored(entry: Entry) -> str:
    files = ", ".join(file.name for file in entry.mirror) or "a copy of it"
    where = "AGOP_DATA is not set" if mirror_dir() is None else "AGOP_DATA lacks them"
    more = "" if entry.official else "; there is no official download of it"
    return f"{entry.name} needs {files} in a local mirror: {where}{more}"
