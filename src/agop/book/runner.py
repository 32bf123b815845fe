"""Run chapters side by side, and say how far they are."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import Manager, get_context
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
    workers = min(jobs or default_jobs(), max(1, len(chapters)))
    failures: list[str] = []
    with (
        Manager() as manager,
        ProcessPoolExecutor(workers, get_context("spawn")) as pool,
    ):
        state = manager.dict()
        futures: dict[Future[float], Chapter] = {
            pool.submit(_one, chapter, scale, state): chapter for chapter in chapters
        }
        with _progress(len(chapters), state) as finished:
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


def _one(chapter: Chapter, scale: str, state: Any) -> float:
    """Run one chapter in a worker process and return its seconds."""
    started = time.monotonic()
    state[chapter.name] = (0, 1)

    def report(cell: int, cells: int) -> None:
        state[chapter.name] = (cell, cells)

    try:
        execute(chapter, scale, report)
    finally:
        state.pop(chapter.name, None)
    return time.monotonic() - started


@contextmanager
def _progress(total: int, state: Any) -> Iterator[Any]:
    """Show a bar on a terminal; elsewhere one plain line a finished chapter."""
    if not sys.stderr.isatty():

        def line(chapter: Chapter, future: Future[float]) -> None:
            how = "FAILED" if future.exception() else f"{future.result():.0f} s"
            print(f"  {chapter.name}: {how}", file=sys.stderr, flush=True)

        yield line
        return
    import threading

    bar = tqdm(total=total, unit="chapter", file=sys.stderr)
    stop = threading.Event()

    def refresh() -> None:
        while not stop.wait(0.5):
            running = [f"{name} {c}/{n}" for name, (c, n) in dict(state).items()]
            bar.set_postfix_str(", ".join(running))

    thread = threading.Thread(target=refresh, daemon=True)
    thread.start()
    try:
        yield lambda chapter, future: bar.update()
    finally:
        stop.set()
        thread.join()
        bar.close()
