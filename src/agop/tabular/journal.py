"""A file of records that survives being killed at any moment.

One JSON record a line. A record is appended by one write and flushed to the disk
before the next task starts, so that a kill loses the record in the making, no more:
what it leaves of the last line is cut off when the file is opened again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

Record = dict[str, Any]


class Journal:
    """Records of a sweep, to be read, and appended to by one process at a time.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "sweep.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append({"set": "iris"})
    >>> list(read_records(path))
    [{'set': 'iris'}]
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(f"{self.path}.lock")
        self._file: int | None = None

    def __enter__(self) -> Journal:
        """Take the file, and repair its end.

        Raises
        ------
        RuntimeError
            If another process has it.
        """
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise RuntimeError(f"another sweep is writing to {self.path}") from error
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        self._file = os.open(self.path, flags, 0o644)
        os.ftruncate(self._file, _whole(self.path.read_bytes()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._file is not None
        os.close(self._file)
        self._file = None
        self._lock.release()

    def append(self, record: Record) -> None:
        """Write one record and have it on the disk on return."""
        assert self._file is not None
        os.write(self._file, json.dumps(record, ensure_ascii=False).encode() + b"\n")
        os.fsync(self._file)


def read_records(path: Path) -> Iterator[Record]:
    """The whole records of a journal; none if there is no such file."""
    if not path.is_file():
        return
    content = path.read_bytes()
    for line in content[: _whole(content)].splitlines():
        yield json.loads(line)


def measured(work: Callable[[], Record]) -> Record:
    """Return what the work returns, or its failure, with the seconds it took.

    >>> record = measured(lambda: {"status": "done", "score": 1 / 0})
    >>> record["status"], record["error"], sorted(record)[-1]
    ('failed', 'ZeroDivisionError: division by zero', 'wall')
    """
    start = time.perf_counter(), time.process_time()
    try:
        record = work()
    except Exception as error:
        record = failure(error)
    wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    return {**record, "wall": round(wall, 4), "cpu": round(cpu, 4)}


def failure(error: BaseException) -> Record:
    """Return what is recorded of work that ended with an error."""
    return {"status": "failed", "error": f"{type(error).__name__}: {error}"}


def _whole(content: bytes) -> int:
    """Length of the content up to its last whole line."""
    return content.rfind(b"\n") + 1
