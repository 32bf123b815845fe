"""A driver that is told to end takes its workers with it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Within it SIGTERM (`kill`, a batch system's time limit) acts like Ctrl-C.

    The handler that was there before comes back at the end. In a thread other than
    the main one, where Python forbids handlers, nothing changes.

    Examples
    --------
    >>> import os
    >>> with sigterm_interrupts():
    ...     try:
    ...         signal.raise_signal(signal.SIGTERM)
    ...     except KeyboardInterrupt:
    ...         print("interrupted")
    interrupted
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def stop_workers(executor: Executor) -> None:
    """Cancel what waits and end the workers, without waiting for tasks in flight."""
    end: Any = executor.shutdown
    try:
        end(wait=False, kill_workers=True)  # joblib's pool
    except TypeError:
        end(wait=False)  # others let go of their tasks, and of no more
