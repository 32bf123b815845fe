"""Compare the files that are here with their checksums."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agop.datasets.checksums import verify
from agop.datasets.errors import ChecksumError, DatasetError
from agop.datasets.registry import Entry, File, entry
from agop.datasets.storage import in_mirror, mirror_dir, official_path
from agop.datasets.uci import uci_info, uci_names, verify_uci


@dataclass(frozen=True)
class Finding:
    """The result for one file or UCI set: ``ok``, ``wrong`` or ``unknown``.

    Unknown means that nobody published a checksum to compare with.
    """

    what: str
    status: str
    detail: str = ""


def verify_present(name: str) -> Iterator[Finding]:
    """Verify all files of a data set that are here; yields nothing if none is.

    Parameters
    ----------
    name : an entry of the registry, or ``"uci/<set>"``.

    Raises
    ------
    ValueError
        If there is no such data set.
    """
    if name.startswith("uci/"):
        yield from _uci_set(name.removeprefix("uci/"))
        return
    findings = [_compare(path, file) for path, file in _files_here(entry(name))]
    yield from findings
    if name == "uci121" and all(f.status != "wrong" for f in findings):
        for member in uci_names():
            yield from _uci_set(member)


def _files_here(e: Entry) -> Iterator[tuple[Path, File]]:
    for file in e.official:
        if (path := official_path(e, file)).is_file():
            yield path, file
    if folder := mirror_dir():
        for file in e.mirror:
            if (path := folder / file.name).is_file():
                yield path, file


def _compare(path: Path, file: File) -> Finding:
    if file.checksum is None:
        return Finding(str(path), "unknown", "nobody published a checksum")
    try:
        verify(path, file.checksum)
    except ChecksumError as error:
        return Finding(str(path), "wrong", str(error).removeprefix(f"{path}: "))
    return Finding(str(path), "ok")


def _uci_set(name: str) -> Iterator[Finding]:
    """Verify one of the 121 sets in each of the sources that is here."""
    info, e = uci_info(name), entry("uci121")
    sources = []
    if info.mirrored and in_mirror([e.file(info.mirrored)]):
        sources.append("mirror")
    if all(official_path(e, file).is_file() for file in e.official):
        sources.append("official")
    for source in sources:
        what = f"uci/{name} ({source})"
        try:
            _, notes = verify_uci(name, source=source, download=False)
        except DatasetError as error:
            yield Finding(what, "wrong", str(error))
        else:
            yield Finding(what, "unknown" if notes else "ok", " ".join(notes))
