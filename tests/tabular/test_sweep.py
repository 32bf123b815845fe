"""A sweep is complete, resumable after kill -9, and stops at nothing."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import numpy as np
import pytest

from agop.tabular import sweep
from agop.tabular.executors import Inline, cluster, local_processes
from agop.tabular.journal import read_records
from agop.tabular.summary import summarise
from agop.tabular.sweep import (
    Key,
    Plan,
    Table,
    current_records,
    find_tables,
    run_sweep,
    run_task,
)

METHODS = ["rfm", "laplace", "rfm-reused", "k-nn"]
TABLES = [Table("iris", 150), Table("wine", 178)]
TIMES = ("wall", "cpu")


def final(path):
    """The table of a journal without its times."""
    rows = summarise(read_records(path))
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A journal of a sweep that nothing interrupted."""
    path = tmp_path_factory.mktemp("whole") / "sweep.jsonl"
    run_sweep(Plan(TABLES, METHODS), path)
    return path


def test_every_task_is_done_once(whole):
    keys = [(r["table"], r["method"], r["part"]) for r in read_records(whole)]
    assert len(keys) == len(set(keys)) == 2 * (3 * 5 + 4)  # rfm-reused selects nothing
    assert all(r["status"] == "done" for r in read_records(whole))


def test_smallest_tables_come_first(whole):
    tables = [r["table"] for r in read_records(whole)]
    assert tables == sorted(tables, key=["iris", "wine"].index)


def test_the_table_is_what_the_protocol_gives(whole):
    from agop.datasets import load
    from agop.tabular.methods import method_named
    from agop.tabular.protocol import evaluate
    from agop.tabular.tables import table_task

    for row in final(whole):
        if row["method"] == "laplace":
            task = table_task(load(row["table"]))
            _, scores = evaluate(method_named("laplace"), task)
            assert row["accuracy"] == pytest.approx(np.mean(scores), abs=1e-6)


def test_records_hold_what_they_cost(whole):
    for record in read_records(whole):
        assert record["wall"] > 0
        assert record["cpu"] > 0
    rows = summarise(read_records(whole))
    rfm = next(r for r in rows if r["method"] == "rfm")
    spent = [r["cpu"] for r in read_records(whole) if r["method"] == "rfm"]
    assert rfm["cpu"] <= sum(spent)


def test_resuming_a_complete_sweep_runs_nothing(whole, monkeypatch):
    monkeypatch.setattr(sweep, "run_task", lambda *_: pytest.fail("ran a task"))
    done = run_sweep(Plan(TABLES, METHODS), whole)
    assert len(done) == 38


@pytest.mark.parametrize("cut", [0, 1, 17, 300, 3000])
def test_any_cut_of_the_journal_is_completed(whole, tmp_path, cut):
    path = tmp_path / "sweep.jsonl"
    path.write_bytes(whole.read_bytes()[: -cut or None][:-1])
    run_sweep(Plan(TABLES, METHODS), path)
    assert final(path) == final(whole)


COMMAND = [
    *(sys.executable, "-m", "agop.cli", "sweep", "run"),
    *("--tables", "iris", "wine", "--methods", *METHODS, "--workers", "0", "--resume"),
]


def test_killed_three_times_the_table_is_the_same(whole, tmp_path):
    path = tmp_path / "sweep.jsonl"
    rng = random.Random(0)
    lost = 0
    for target in sorted(rng.sample(range(2, 34), 3)):
        process = subprocess.Popen(
            [*COMMAND, str(path)], stderr=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + 60
        while len(list(read_records(path))) < target:
            assert process.poll() is None, "the sweep ended before it was killed"
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))  # somewhere in a task
        os.killpg(process.pid, signal.SIGKILL)
        lost += process.wait() == -signal.SIGKILL
    assert lost == 3
    subprocess.run([*COMMAND, str(path)], check=True, capture_output=True)
    keys = [(r["table"], r["method"], r["part"]) for r in read_records(path)]
    assert len(keys) == len(set(keys)) == 38  # nothing was done twice
    assert final(path) == final(whole)


def test_a_failing_task_is_recorded_and_the_rest_goes_on(tmp_path):
    path = tmp_path / "sweep.jsonl"
    tables = [Table("no-such-table", 1), Table("iris", 150)]
    done = run_sweep(Plan(tables, ["laplace"]), path)
    failed = [r for r in done.values() if r["status"] == "failed"]
    assert [r["table"] for r in failed] == ["no-such-table"]
    assert (
        "no data set" in failed[0]["error"].lower() or "no-such" in failed[0]["error"]
    )
    assert len(done) == 1 + 5
    assert [row["table"] for row in final(path)] == ["iris"]


def test_failures_are_run_again_only_if_asked(tmp_path, monkeypatch):
    path = tmp_path / "sweep.jsonl"
    tables = [Table("no-such-table", 1)]
    run_sweep(Plan(tables, ["laplace"]), path)
    run_sweep(Plan(tables, ["laplace"]), path)
    assert len(list(read_records(path))) == 1
    run_sweep(Plan(tables, ["laplace"]), path, retry_failed=True)
    assert len(list(read_records(path))) == 2


def test_records_of_other_sources_do_not_count(whole, tmp_path, monkeypatch):
    assert len(current_records(whole)) == 38
    monkeypatch.setattr(sweep, "code_of", lambda name: f"other {name == 'k-nn'}")
    assert current_records(whole) == []


class Breaking(Executor):
    """Loses a worker, and with it the pool, at the second task."""

    def __init__(self):
        self.count = 0

    def submit(self, fn, /, *args, **kwargs):
        self.count += 1
        if self.count != 2:
            return Inline().submit(fn, *args, **kwargs)
        future = Future()
        future.set_exception(BrokenProcessPool("a worker died"))
        return future


def test_a_dead_worker_costs_its_task_one_attempt(whole, tmp_path):
    path = tmp_path / "sweep.jsonl"
    renewed = []
    done = run_sweep(
        Plan(TABLES, METHODS),
        path,
        Breaking(),
        workers=3,
        renew=lambda: renewed.append(1) or Inline(),
    )
    assert renewed == [1]
    assert len(done) == 38
    assert final(path) == final(whole)


def test_a_task_that_kills_its_workers_is_given_up(tmp_path):
    class Deadly(Inline):
        def submit(self, fn, /, *args, **kwargs):
            if args[0] != "iris":
                return super().submit(fn, *args, **kwargs)
            future = Future()
            future.set_exception(BrokenProcessPool("a worker died"))
            return future

    done = run_sweep(
        Plan(TABLES, ["laplace"]), tmp_path / "s.jsonl", Deadly(), renew=Deadly
    )
    assert done[Key("iris", "laplace", "select")]["status"] == "failed"
    assert sum(r["status"] == "done" for r in done.values()) == 5


def _die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_local_processes_run_tasks_and_are_limited(tmp_path):
    pool = local_processes(1, 1)
    assert pool.submit(os.environ.get, "OMP_NUM_THREADS").result() == "1"
    future = pool.submit(_die)
    assert future.exception() is not None
    renewed = local_processes(1, 1)
    assert renewed.submit(max, 1, 2).result() == 2
    renewed.shutdown()


def test_tasks_keep_to_their_threads():
    import torch

    before = torch.get_num_threads()
    try:
        record = run_task("iris", "laplace", "select", {}, 1)
        assert record["status"] == "done"
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_methods_come_after_the_one_they_depend_on():
    with pytest.raises(ValueError, match="needs 'rfm' before it"):
        Plan(TABLES, ["rfm-reused", "rfm"])
    with pytest.raises(ValueError, match="method must be one of"):
        Plan(TABLES, ["oracle"])


def test_tables_are_known_by_size():
    tables = find_tables(["wine", "uci/adult", "iris"])
    assert tables == [*TABLES, Table("uci/adult", 32561)]
    assert find_tables(["wine", "iris"], 160) == TABLES[:1]


def test_progress_ends_at_all_the_work(tmp_path):
    plan, shares = Plan(TABLES, METHODS), []
    run_sweep(
        plan,
        tmp_path / "s.jsonl",
        progress=lambda plan, record: shares.append(plan.work_done() / plan.work()),
    )
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


def test_methods_leave_out_what_is_too_large():
    plan = Plan([Table("uci/connect-4", 67557)], ["ntk", "laplace"])
    key, _ = plan.next()
    assert key.method == "laplace"
    assert plan.next() is None


def test_without_dask_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"agop\[sweep\]"):
        cluster("tcp://127.0.0.1:1")


def test_a_cluster_gives_an_executor_and_its_threads(monkeypatch):
    """The part of Dask's interface that is used, with a stand-in for the client."""

    class Client:
        def __init__(self, address, set_as_default):
            assert address == "tcp://here:8786"

        def get_executor(self, pure):
            assert pure is False
            return Inline()

        def nthreads(self):
            return {"a": 2, "b": 3}

    module = SimpleNamespace(Client=Client)
    monkeypatch.setitem(sys.modules, "distributed", module)
    executor, workers = cluster("tcp://here:8786")
    assert isinstance(executor, Inline)
    assert workers == 5


def test_on_a_cluster_with_a_worker_killed_half_way(whole, tmp_path):
    distributed = pytest.importorskip("distributed")
    path = tmp_path / "sweep.jsonl"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as here:
        executor, workers = cluster(here.scheduler_address)
        victims = [worker.pid for worker in list(here.workers.values())[:1]]

        def kill(plan, record):
            if len(plan.done) > 15 and victims:
                os.kill(victims.pop(), signal.SIGKILL)

        run_sweep(Plan(TABLES, METHODS), path, executor, workers=workers, progress=kill)
    assert not victims
    assert final(path) == final(whole)


def test_process_pools_of_the_standard_library_will_do(tmp_path):
    """Any executor of `concurrent.futures` serves: nothing of a sweep knows which."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        done = run_sweep(Plan(TABLES[:1], ["laplace"]), tmp_path / "s.jsonl", pool)
    assert len(done) == 5
