"""Run chapters side by side, and say how far they are."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import Any

import psutil
from tqdm import tqdm

from agop.book.execute import execute
from agop.book.layout import BookError, Chapter

MEMORY_PER_CHAPTER = 3 * 2**30  # bytes; torch, its kernels and a laptop-scale data set


def default_jobs() -> int:
    """Return how many chapters to run at once: bounded by cores and free memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    free = psutil.virtual_memory().available // MEMORY_PER_CHAPTER
    return max(1, min(cores, int(free)))


def run(chapters: Sequence[Chapter], scale: str, jobs: int | None = None) -> None:
    """Execute ``chapters`` at ``scale`` in up to ``jobs`` processes.

    Every chapter is run even when an earlier one fails.

    Raises
    ------
    BookError
        If any chapter failed, with one paragraph for each.
    """
    if jobs is not None and jobs < 1:
        raise BookError(f"jobs must be at least 1, got {jobs}")
    context = get_context("spawn")  # a forked torch may hang in its thread pool
    reports = context.Queue() if sys.stderr.isatty() else None
    failures: list[str] = []
    with (
        ProcessPoolExecutor(
            min(jobs or default_jobs(), max(1, len(chapters))),
            context,
            initializer=_start_worker,
            initargs=(reports,),
        ) as pool,
        _progress(len(chapters), reports) as finished,
    ):
        futures = {pool.submit(_one, each, scale): each for each in chapters}
        try:
            for future in as_completed(futures):
                error = future.exception()
                if isinstance(error, BookError):
                    failures.append(str(error))
                elif error is not None:
                    raise error
                finished(futures[future], future)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if failures:
        raise BookError("\n".join(failures))


_reports: Any = None  # in a worker: where it tells how far it is, if anybody looks


def _start_worker(reports: Any) -> None:
    """Prepare a worker: keep its queue, and end it when the runner is killed."""
    global _reports
    _reports = reports

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)  # its kernel then ends by itself

    threading.Thread(target=watch, daemon=True).start()


def _one(chapter: Chapter, scale: str) -> float:
    """Run one chapter in a worker process and return its seconds."""
    started = time.monotonic()

    def report(how: str | None) -> None:
        if _reports is not None:
            _reports.put((chapter.name, how))

    try:
        report("starting")
        execute(chapter, scale, lambda cell, cells: report(f"{cell}/{cells}"))
    finally:
        report(None)
    return time.monotonic() - started


@contextmanager
def _progress(total: int, reports: Any) -> Iterator[Any]:
    """Show a bar on a terminal; elsewhere one plain line a finished chapter."""
    if reports is None:

        def line(chapter: Chapter, future: Future[float]) -> None:
            how = "FAILED" if future.exception() else f"{future.result():.0f} s"
            print(f"  {chapter.name}: {how}", file=sys.stderr, flush=True)

        yield line
        return
    bar = tqdm(total=total, unit="chapter", file=sys.stderr)

    def follow() -> None:
        running: dict[str, str] = {}
        for name, how in iter(reports.get, None):
            running[name] = how
            shown = [f"{name} {how}" for name, how in running.items() if how]
            bar.set_postfix_str(", ".join(shown))

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield lambda chapter, future: bar.update()
    finally:
        reports.put(None)
        thread.join(timeout=5)
        bar.close()
