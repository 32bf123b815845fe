"""What the AGOP of every layer costs, as ratios taken within one process.

    python tests/benchmarks/bench_agop.py --output agop.json [--quick] [-n 1000]

Two ratios for 5 hidden ReLU layers, in CPU time on one thread, medians over rounds
that interleave what is compared (a shared machine slows all alike):

* floor: `layer_agops` over the time that its matrix products alone would take at the
  rate of a large product measured in the same round;
* jacobians: a `vmap(jacrev)` for each layer, as other code does it, over `layer_agops`.

And one for memory: the extra peak of `layer_agops` for ten times as many samples, each
in a process of its own.
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
from itertools import pairwise
from pathlib import Path

import torch

from agop.features import layer_agops
from agop.networks import FullyConnected

TARGETS = {"floor": 1.4, "jacobians": 3.0, "memory": 1.2}
FULL = {"width": 1024, "inputs": (784, 3072), "gemm": 2048}
QUICK = {"width": 256, "inputs": (100, 784), "gemm": 1024}
DEPTH = 5


def cpu_seconds(f: Callable[[], object]) -> float:
    start = time.process_time()
    f()
    return time.process_time() - start


def gemm_rate(size: int) -> float:
    """Floating-point operations a CPU second in a square product, float32."""
    A = torch.randn(size, size, generator=torch.Generator().manual_seed(0))
    seconds = statistics.median(cpu_seconds(lambda: A @ A) for _ in range(5))
    return 2 * size**3 / seconds


def floor_flops(widths: tuple[int, ...], n: int) -> int:
    """Operations in the cheapest matrix products that give every AGOP, from shapes.

    A symmetric product R^T R of N rows of size d takes N d (d + 1): half a general one.
    """
    *_, k_top, C = widths
    hidden = list(pairwise(widths[:-1]))  # (d, k) of the layers below the output
    total = sum(2 * n * d * k for d, k in hidden)  # forward
    total += 2 * C * k_top**2 + 2 * C * k_top * k_top  # W_out^T I W_out
    for i, (d, k) in enumerate(hidden):
        rows = n if i == len(hidden) - 1 else n * C
        down = 2 * n * C * d * k  # the gradients brought to the layer's input
        via_z = rows * k * (k + 1) + 2 * (k * k * d + k * d * d)
        via_h = n * C * d * (d + 1)
        total += min(via_z, down + via_h) if i == 0 else down + min(via_z, via_h)
    return total


@torch.no_grad()
def jacobian_agop(f: Callable[[torch.Tensor], torch.Tensor], h: torch.Tensor) -> None:
    """AGOP of f at h as usually written, in chunks of 1,000 samples."""
    A = h.new_zeros(h.shape[1], h.shape[1])
    jacobian = torch.func.vmap(torch.func.jacrev(f))
    for x in h.split(1000):
        rows = jacobian(x).flatten(0, 1)  # (m C, d)
        A.addmm_(rows.mT, rows)


def compare(
    widths: tuple[int, ...], n: int, rounds: int, gemm: int
) -> dict[str, object]:
    net = FullyConnected(widths, init="he_normal", dtype=torch.float32)
    X = torch.randn(n, widths[0], generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        hidden = net.hidden(X)

    def jacobians() -> None:
        for i, h in enumerate(hidden[:-1]):
            jacobian_agop(lambda x, i=i: net.forward_from(x, i), h)

    layer_agops(net, X[:100])  # warm up
    floors, ratios, seconds = [], [], []
    for _ in range(rounds):
        rate = gemm_rate(gemm)
        sweep = cpu_seconds(lambda: layer_agops(net, X))
        floors.append(sweep / (floor_flops(widths, n) / rate))
        ratios.append(cpu_seconds(jacobians) / sweep)
        seconds.append(sweep)
    return {
        "widths": widths,
        "n": n,
        "sweep_cpu_seconds": statistics.median(seconds),
        "floor": statistics.median(floors),
        "floor_rounds": floors,
        "jacobians": statistics.median(ratios),
        "jacobians_rounds": ratios,
    }


def extra_memory(widths: tuple[int, ...], n: int) -> float:
    """Growth of the peak resident memory during one call, in MB."""
    net = FullyConnected(widths, dtype=torch.float32)
    X = torch.randn(n, widths[0], generator=torch.Generator().manual_seed(1))
    before = resident("VmRSS")
    layer_agops(net, X)
    return resident("VmHWM") - before


def resident(field: str) -> float:
    """Resident memory of this process in MB, now (VmRSS) or at its peak (VmHWM)."""
    # Linux only. Not getrusage: its peak survives exec, so a child shows its parent's.
    lines = Path("/proc/self/status").read_text().splitlines()
    (value,) = (line.split()[1] for line in lines if line.startswith(field))
    return int(value) * 1024 / 1e6


def extra_memory_in_a_child(widths: tuple[int, ...], n: int) -> float:
    # The peak of a process never comes down: each size needs its own.
    command = [sys.executable, __file__, "--memory-of", json.dumps([widths, n])]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def write_atomically(record: dict[str, object], path: Path) -> None:
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, suffix=".tmp", delete=False
    ) as file:
        json.dump(record, file, indent=2)
    Path(file.name).replace(path)


def run(n: int, rounds: int, C: int, quick: bool) -> dict[str, object]:
    setting = QUICK if quick else FULL
    bodies = [(d, *[setting["width"]] * DEPTH) for d in setting["inputs"]]
    rows = [compare((*body, C), n, rounds, setting["gemm"]) for body in bodies]
    # Both fill whole chunks, so that the peak is that of a chunk in either.
    memory = {m: extra_memory_in_a_child((*bodies[0], 2), m) for m in (5000, 50_000)}
    ratio = memory[50_000] / memory[5000]
    met = {
        "floor": all(row["floor"] <= TARGETS["floor"] for row in rows),
        "jacobians": all(row["jacobians"] >= TARGETS["jacobians"] for row in rows),
        "memory": ratio <= TARGETS["memory"],
    }
    return {
        "cases": rows,
        "memory_MB": memory,
        "memory": ratio,
        "targets": TARGETS,
        "met": {} if quick else met,  # the targets are for the full widths
        "quick": quick,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "load": os.getloadavg(),
    }


def report(record: dict[str, object]) -> None:
    print(f"{'d':>6} {'n':>6} {'sweep, CPU s':>13} {'/ floor':>9} {'jacobians /':>12}")
    for row in record["cases"]:
        print(
            f"{row['widths'][0]:>6} {row['n']:>6} {row['sweep_cpu_seconds']:>13.3f} "
            f"{row['floor']:>9.2f} {row['jacobians']:>12.2f}"
        )
    for n, megabytes in record["memory_MB"].items():
        print(f"extra memory, n = {n:>6}: {megabytes:8.1f} MB")
    for name, met in record["met"].items():
        print(f"target {name} {TARGETS[name]}: {'met' if met else 'missed'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="where to write the record (JSON)")
    parser.add_argument("--quick", action="store_true", help="small sizes, seconds")
    parser.add_argument("-n", type=int, help="samples (5000, quick: 1000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-C", type=int, default=10, help="outputs")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.memory_of:
        widths, n = json.loads(arguments.memory_of)
        print(extra_memory(tuple(widths), n))
        return
    n = arguments.n or (1000 if arguments.quick else 5000)
    record = run(n, arguments.rounds, arguments.C, arguments.quick)
    report(record)
    if arguments.output:
        write_atomically(record, arguments.output)


if __name__ == "__main__":
    main()
