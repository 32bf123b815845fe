"""Download a file: resumed where it broke off, verified, and then moved into place."""

import re
import time
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tqdm import tqdm

from agop.datasets.checksums import verify
from agop.datasets.errors import ChecksumError, DownloadError
from agop.datasets.registry import File

_TIMEOUT_S = 30.0  # of silence, not of the whole transfer
_ATTEMPTS = 5  # transfers of one address before the next one is tried
_PAUSE_S = 1.0  # before a broken transfer is resumed
_BLOCK = 1 << 16  # bytes read at a time


class _Cut(OSError):
    """The connection ended before the file did."""


def download(file: File, target: Path) -> None:
    """Download a file to `target`, which appears complete or not at all.

    What has arrived is kept in ``<target>.part``: a later call goes on from there.

    Raises
    ------
    DownloadError
        If no address gave the file with its checksum. The message lists the
        addresses with their reasons, and says where to put the file by hand.
    """
    part = target.with_name(target.name + ".part")
    reasons = []
    for url in file.urls:
        try:
            _get(url, part, file.checksum)
        except (OSError, HTTPException, ChecksumError) as error:
            reasons.append(f"  {url}: {_reason(error)}")
        else:
            part.replace(target)
            return
    raise DownloadError(_by_hand(file, target, reasons))


def _get(url: str, part: Path, expected: str | None) -> None:
    """Fill `part` from one address and verify it."""
    resumed = _transfer_all(url, part)
    try:
        _check(part, expected)
    except ChecksumError:
        if not resumed:
            raise
        # The two halves need not have been of the same file: once more, in one go.
        _transfer_all(url, part)
        _check(part, expected)


def _check(part: Path, expected: str | None) -> None:
    """Verify `part`, and remove it if it is wrong: nobody must resume from it."""
    try:
        if expected is not None:
            verify(part, expected)
    except ChecksumError:
        part.unlink()
        raise


def _transfer_all(url: str, part: Path) -> bool:
    """Transfer until nothing is missing; return whether it was in several goes."""
    resumed = _size(part) > 0
    for attempt in range(_ATTEMPTS):
        before = _size(part)
        try:
            _transfer(url, part)
        except (_Cut, ConnectionError, TimeoutError):
            if _size(part) <= before or attempt == _ATTEMPTS - 1:
                raise
            resumed = True
            time.sleep(_PAUSE_S)
        else:
            break
    return resumed


def _transfer(url: str, part: Path) -> None:
    """Ask for what `part` lacks, and append it."""
    start = _size(part)
    try:
        response = urlopen(_request(url, start), timeout=_TIMEOUT_S)
    except HTTPError as error:
        if error.code != 416 or start == 0:
            raise
        part.unlink()  # `part` is as long as the file, or longer: begin again
        start, response = 0, urlopen(_request(url, 0), timeout=_TIMEOUT_S)
    with response:
        if response.headers.get_content_type() == "text/html":
            raise URLError("a web page came instead of the file (quota or login?)")
        goes_on = f"bytes {start}-" in response.headers.get("Content-Range", "")
        start = start if response.status == 206 and goes_on else 0
        _save(response, part, start)


def _request(url: str, start: int) -> Request:
    headers = {"User-Agent": "agop", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    return Request(url, headers=headers)


def _save(response: HTTPResponse, part: Path, start: int) -> None:
    """Write the answer's body to `part` from byte `start` on."""
    length = response.headers.get("Content-Length")
    total = None if length is None else start + int(length)
    name = part.name.removesuffix(".part")
    with (
        part.open("ab" if start else "wb") as out,
        # disable=None: a bar on a terminal, nothing elsewhere
        tqdm(
            desc=name, total=total, initial=start, unit="B", unit_scale=True,
            disable=None,
        ) as bar,
    ):  # fmt: skip
        while block := response.read(_BLOCK):
            out.write(block)
            bar.update(len(block))
    if total is not None and _size(part) < total:
        raise _Cut(f"the connection broke off at {_size(part)} of {total} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, URLError):
        error = error.reason if isinstance(error.reason, Exception) else error
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return re.sub(r"^<urlopen error (.*)>$", r"\1", str(error)) or repr(error)


def _by_hand(file: File, target: Path, reasons: list[str]) -> str:
    check = f" ({file.checksum})" if file.checksum else ""
    return "\n".join(
        [
            f"{file.name} could not be downloaded:",
            *reasons,
            f"Download it elsewhere and put it at {target}{check},",
            "or name the folder of a local mirror in AGOP_DATA.",
        ]
    )
