"""Checksums of files, written ``algorithm:hexadecimal`` as in the registry."""

import hashlib
from pathlib import Path

from agop.datasets.errors import ChecksumError


def checksum(path: Path, algorithm: str = "sha256") -> str:
    """Return the checksum of a file, read in blocks.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a").write_bytes(b"abc")
    ...     checksum(Path(folder, "a"), "md5")
    'md5:900150983cd24fb0d6963f7d28e17f72'
    """
    with path.open("rb") as file:
        # md5 is what torchvision publishes: it guards against damage, not malice.
        digest = hashlib.file_digest(
            file, lambda: hashlib.new(algorithm, usedforsecurity=False)
        )
    return f"{algorithm}:{digest.hexdigest()}"


def verify(path: Path, expected: str) -> None:
    """Raise `ChecksumError` unless the file has the expected checksum."""
    found = checksum(path, expected.partition(":")[0])
    if found != expected:
        raise ChecksumError(f"{path}: expected {expected}, found {found}")


def verify_once(path: Path, expected: str, stamps: Path) -> None:
    """Verify a file, and not again while its size and time stay the same.

    A verified file leaves an empty stamp in the folder `stamps`. A stamp is named by
    everything it vouches for, so that it cannot outlive a change of the file.
    """
    stat = path.stat()
    claim = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}|{expected}"
    stamp = stamps / hashlib.sha256(claim.encode()).hexdigest()
    if stamp.exists():
        return
    verify(path, expected)
    try:
        stamps.mkdir(parents=True, exist_ok=True)
        stamp.touch()
    except OSError:
        pass  # a cache that cannot be written only costs the next check
