"""SIGTERM ends a sweep's driver and its workers; what was finished is kept."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agop.tabular.journal import read_records
from agop.tabular.termination import sigterm_interrupts, stop_workers


def test_sigterm_interrupts_and_the_old_handler_comes_back():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_other_threads_set_no_handler():
    failed = []

    def use():
        try:
            with sigterm_interrupts():
                pass
        except ValueError as error:
            failed.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert not failed


def test_pools_without_killing_let_go_of_their_tasks():
    pool = ThreadPoolExecutor(1)
    stop_workers(pool)
    with pytest.raises(RuntimeError):
        pool.submit(max, 1, 2)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks into /proc")
def test_a_driver_ended_by_sigterm_leaves_no_worker_behind(tmp_path):
    path = tmp_path / "sweep.jsonl"
    options = ["--tables", "digits", "--methods", "rfm", "laplace", "--workers", "1"]
    command = [sys.executable, "-m", "agop.cli", "sweep", "run", str(path), *options]
    # A group of its own, so that every descendant can be counted, orphans too.
    process = subprocess.Popen(
        command, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wait_for(lambda: len(members(process.pid)) > 1 and busy(process.pid))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 130
        wait_for(lambda: not members(process.pid), 5)
    finally:
        if process.poll() is None or members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    for record in read_records(path):
        assert record["status"] == "done"  # the interrupt is nobody's failure


def wait_for(condition, seconds=40):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def members(group):
    """Processes of a group that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, own = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(own) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


def busy(group):
    """Whether some worker has computed for a second: a task is in flight."""
    ticks = os.sysconf("SC_CLK_TCK")
    for pid in set(members(group)) - {group}:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()
        if int(fields[11]) > 2 * ticks:
            return True
    return False
