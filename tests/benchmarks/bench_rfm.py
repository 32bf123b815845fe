"""What a Recursive Feature Machine costs, as ratios taken within one process.

    python tests/benchmarks/bench_rfm.py --output rfm.json [--quick] [--rounds 3]

The Laplace kernel on a three-direction index in d dimensions, float32 (the precision
of the peer), in CPU time on one thread, medians over rounds that interleave what is
compared (a shared machine slows all alike):

* floor: `RFMRegressor.fit` over the time that its matrix products and factorisations
  alone would take at the rate of a large product measured in the same round;
* peer: the fit of xrfm (https://pypi.org/project/xrfm, optional) over that of
  `RFMRegressor`, with the difference of their test R²;
* float64: what double precision costs in addition.

And one for memory: the extra peak of a fit in units of an n × n array, in a process
of its own.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.metrics import r2_score

from agop.rfm import RFMRegressor

try:
    from xrfm.rfm_src.recursive_feature_machine import RFM as PeerRFM
except ImportError:
    PeerRFM = None

BANDWIDTH, RIDGE = 10.0, 1e-3


class Case(NamedTuple):
    """A size, and what must hold there."""

    n: int
    d: int
    n_iter: int
    peer: float | None = None  # at least so many times dearer than we are
    floor: float | None = None  # at most so many times the floor
    arrays: float | None = None  # at most so many n × n arrays


FULL = (
    Case(5000, 500, 5, peer=2.0),
    Case(1000, 3072, 2, peer=20.0),
    # Two square arrays, and what grows like n d: 0.35 of one at this size.
    Case(10_000, 500, 2, floor=2.5, arrays=2.35),
)
QUICK = (Case(1000, 100, 2), Case(200, 800, 2), Case(3000, 50, 1))
MAX_R2_DIFFERENCE = 1e-3


def cpu_seconds(f: Callable[[], object]) -> float:
    start = time.process_time()
    f()
    return time.process_time() - start


def gemm_rate(size: int = 2048) -> float:
    """Floating-point operations a CPU second in a square product, float32."""
    A = torch.randn(size, size, generator=torch.Generator().manual_seed(0))
    seconds = statistics.median(cpu_seconds(lambda: A @ A) for _ in range(3))
    return 2 * size**3 / seconds


def floor_flops(case: Case) -> float:
    """Operations in the products and factorisations of one fit with d × d matrices.

    An update of M: distances and gradients 2 n² d each, the AGOP and new coordinates
    2 n d² each, factors 4 d³; a solve n³ / 3. (With n C ≤ d the algorithm has no term
    in d³ and goes below.)
    """
    n, d, n_iter, *_ = case
    solve = n**3 / 3
    update = 4 * n**2 * d + 4 * n * d**2 + 4 * d**3
    return n_iter * (update + solve) + 2 * n**2 * d + solve


def sample(n: int, d: int, n_test: int = 2000) -> tuple[np.ndarray, ...]:
    """y = z_1 z_2 + sin 2 z_3 of unit variance, z three random directions of x."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((d, 3)))[0]
    X = rng.standard_normal((n + n_test, d))
    z = X @ directions
    y = z[:, 0] * z[:, 1] + np.sin(2 * z[:, 2])
    y = (y - y.mean()) / y.std()
    return X[:n], y[:n], X[n:], y[n:]


def machine(case: Case, dtype: str = "float32") -> RFMRegressor:
    return RFMRegressor(
        bandwidth=BANDWIDTH, ridge=RIDGE, n_iter=case.n_iter, dtype=dtype, device="cpu"
    )


class Peer:
    """xrfm with the same kernel, ridge, iterations and normalisation; its defaults."""

    def __init__(self, case: Case) -> None:
        self.n_iter = case.n_iter
        self.model = PeerRFM(
            "l2", bandwidth=BANDWIDTH, iters=case.n_iter, device="cpu", verbose=False
        )

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        data = self.tensor(X), self.tensor(y)[:, None]
        few = data[0][:100], data[1][:100]  # it insists on validation data
        self.model.fit(
            data,
            few,
            iters=self.n_iter,
            reg=RIDGE,
            early_stop_rfm=False,
            return_best_params=False,
            verbose=False,
        )

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        return float(r2_score(y, self.model.predict(self.tensor(X)).numpy()))

    @staticmethod
    def tensor(array: np.ndarray) -> torch.Tensor:
        return torch.tensor(array, dtype=torch.float32)


def compare(case: Case, rounds: int) -> dict[str, Any]:
    X, y, X_test, y_test = sample(case.n, case.d)
    contenders: dict[str, Callable[[], Any]] = {
        "own": lambda: machine(case),
        "float64": lambda: machine(case, "float64"),
    }
    if PeerRFM is not None:
        contenders["peer"] = lambda: Peer(case)
    for make in contenders.values():
        make().fit(X[:200], y[:200])  # warm up
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    scores, floors = {}, []
    for _ in range(rounds):
        rate = gemm_rate()
        for name, make in contenders.items():
            model = make()
            seconds[name].append(cpu_seconds(lambda model=model: model.fit(X, y)))
            scores[name] = model.score(X_test, y_test)
        floors.append(seconds["own"][-1] * rate / floor_flops(case))
    row = {
        **case._asdict(),
        "cpu_seconds": {k: statistics.median(v) for k, v in seconds.items()},
        "score": scores,
        "floor_ratio": statistics.median(floors),
        "floor_rounds": floors,
        "arrays_held": extra_arrays_in_a_child(case),
    }
    for name in list(contenders)[1:]:
        rounds_ = [b / a for a, b in zip(seconds["own"], seconds[name], strict=True)]
        row[f"{name}_ratio"] = statistics.median(rounds_)
        row[f"{name}_rounds"] = rounds_
    row["met"] = targets_met(case, row)
    return row


def targets_met(case: Case, row: dict[str, Any]) -> dict[str, bool]:
    met = {}
    if case.peer is not None and "peer_ratio" in row:
        difference = abs(row["score"]["peer"] - row["score"]["own"])
        met[f"peer >= {case.peer:g}"] = row["peer_ratio"] >= case.peer
        met["equal test R²"] = difference <= MAX_R2_DIFFERENCE
    if case.floor is not None:
        met[f"floor <= {case.floor:g}"] = row["floor_ratio"] <= case.floor
    if case.arrays is not None and row["arrays_held"] is not None:
        met[f"arrays <= {case.arrays:g}"] = row["arrays_held"] <= case.arrays
    return met


def extra_arrays(case: Case) -> float:
    """Growth of the peak resident memory during a fit, in n × n arrays of float32."""
    X, y, *_ = sample(case.n, case.d)
    machine(case).fit(X[:200], y[:200])
    Path("/proc/self/clear_refs").write_text("5")  # start the peak anew
    before = resident("VmRSS")
    machine(case._replace(n_iter=1)).fit(X, y)
    return (resident("VmHWM") - before) / (4 * case.n**2)


def resident(field: str) -> int:
    """Resident memory of this process in bytes, now (VmRSS) or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (value,) = (line.split()[1] for line in lines if line.startswith(field))
    return int(value) * 1024


def extra_arrays_in_a_child(case: Case) -> float | None:
    if sys.platform != "linux":
        return None
    command = [sys.executable, __file__, "--memory-of", json.dumps(case)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def write_atomically(record: dict[str, Any], path: Path) -> None:
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, suffix=".tmp", delete=False
    ) as file:
        json.dump(record, file, indent=2)
    Path(file.name).replace(path)


def report(row: dict[str, Any]) -> None:
    columns = {
        "n": row["n"],
        "d": row["d"],
        "updates": row["n_iter"],
        "CPU s": f"{row['cpu_seconds']['own']:.2f}",
        "/ floor": f"{row['floor_ratio']:.2f}",
        "xrfm /": f"{row['peer_ratio']:.2f}" if "peer_ratio" in row else "-",
        "float64 /": f"{row['float64_ratio']:.2f}",
        "arrays": row["arrays_held"] and f"{row['arrays_held']:.2f}",
        "R²": " ".join(f"{k} {v:.4f}" for k, v in row["score"].items()),
    }
    print(*(f"{name} {value}" for name, value in columns.items()), sep="  ", flush=True)
    for name, met in row["met"].items():
        print(f"    target {name}: {'met' if met else 'missed'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="where to write the record (JSON)")
    parser.add_argument("--quick", action="store_true", help="small sizes, seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.memory_of:
        print(extra_arrays(Case(*json.loads(arguments.memory_of))))
        return
    if PeerRFM is None:
        print("xrfm is not installed: no comparison with it (pip install agop[peers])")
    rows = []
    for case in QUICK if arguments.quick else FULL:
        rows.append(compare(case, arguments.rounds))
        report(rows[-1])
    if arguments.output:
        record = {
            "cases": rows,
            "quick": arguments.quick,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "load": os.getloadavg(),
        }
        write_atomically(record, arguments.output)


if __name__ == "__main__":
    main()
