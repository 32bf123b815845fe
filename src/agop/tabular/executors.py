"""Where the tasks of a sweep run: in this process, in processes here, on a cluster.

All three are executors in the sense of `concurrent.futures`; nothing else of a sweep
knows which one it has.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class Inline(Executor):
    """Runs each task at once in this process; for tests and for a debugger.

    >>> Inline().submit(max, 1, 2).result()
    2
    """

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Run the task; its exception is kept in the future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def local_processes(workers: int, threads: int) -> Executor:
    """Processes of joblib's (loky), each limited to so many threads from its start.

    A new pool is made if the last one broke.
    """
    from joblib.externals.loky import get_reusable_executor

    limits = ("OMP", "MKL", "OPENBLAS", "NUMEXPR")
    executor: Executor = get_reusable_executor(
        max_workers=workers,
        timeout=600,
        env={f"{name}_NUM_THREADS": str(threads) for name in limits},
    )
    return executor


def cluster(address: str) -> tuple[Executor, int]:
    """The workers of a Dask cluster, and how many threads they have in all.

    Every worker must be able to load the tables (``AGOP_DATA`` or a download). A task
    whose worker dies is given to another one by the scheduler.

    Raises
    ------
    ModuleNotFoundError
        If Dask is missing; the message says how to get it.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "--scheduler needs Dask: pip install 'agop[sweep]'"
        ) from error
    client = Client(address, set_as_default=False)
    executor: Executor = client.get_executor(pure=False)
    return executor, sum(client.nthreads().values())
