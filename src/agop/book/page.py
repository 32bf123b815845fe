"""What a chapter calls: claims with controls, numbers for the prose, a colophon."""

import csv
import json
import os
import platform
import re
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agop.book.layout import SCALES, find_root, write_atomically
from agop.book.ledger import Claim, load_ledger, verdict
from agop.book.records import PAGE_REPORT, Record, write_record

WIDTH = 79
PACKAGES = ("agop", "numpy", "scikit-learn", "torch", "torchvision")
Outcome = bool | Sequence[bool]


class Page:
    """One chapter at one scale.

    Parameters
    ----------
    chapter : str
        The stem of the chapter's source.
    scale : {"ci", "laptop", "paper"}
        Which sizes it runs at; shown with every claim.
    seed : int
        The first seed, kept in the records.
    data : sequence of objects with ``to_dict()``, optional
        Provenance of the data used by the whole chapter.

    Raises
    ------
    ValueError
        If ``scale`` is none of the three.
    """

    def __init__(
        self, chapter: str, *, scale: str, seed: int, data: Sequence[Any] = ()
    ) -> None:
        if scale not in SCALES:
            raise ValueError(f"scale must be one of {SCALES}, got {scale!r}")
        self.chapter, self.scale, self.seed = chapter, scale, seed
        self.data = list(data)
        self._root = find_root()
        self._started = time.monotonic()
        folder = os.environ.get("AGOP_RECORDS")
        self._records = Path(folder) if folder else None
        self._report()

    def claim(
        self,
        id: str,
        *,
        measured: str,
        control: str,
        holds: Outcome,
        control_holds: Outcome,
        direction: bool = False,
        erratum: bool = False,
        values: Mapping[str, Any] | None = None,
        data: Sequence[Any] | None = None,
    ) -> None:
        """Print one claim's block and keep its record.

        Parameters
        ----------
        id : str
            The claim's id in ``book/claims.toml``.
        measured, control : str
            What was measured here, and the same statistic where it must not show.
        holds, control_holds : bool or one bool a seed
            Whether the rule written beside the call holds; over several seeds the
            majority decides, and the block says how many agree.
        direction : bool
            Whether at least the claimed direction was seen.
        erratum : bool
            Whether ``holds`` shows that a printed statement needs a correction.
        values : mapping of numbers, optional
            The measured numbers, for readers of the record.
        data : provenances, optional
            The data behind this claim, if not the whole chapter's.

        Raises
        ------
        KeyError
            If the ledger has no such claim.
        ValueError
            If the ledger gives the claim to another chapter, or ``measured`` or
            ``control`` is empty: nothing is reproduced without a control.
        """
        claim = self._entry(id)
        for name, text in (("measured", measured), ("control", control)):
            if not text.strip():
                raise ValueError(f"{id}: {name} is empty; say what was measured")
        ours, theirs = (
            _as_list(holds, "holds"),
            _as_list(control_holds, "control_holds"),
        )
        decided = verdict(
            _majority(ours), _majority(theirs), direction=direction, erratum=erratum
        )
        sources = [_as_dict(item) for item in (self.data if data is None else data)]
        record = {
            "id": id,
            "chapter": self.chapter,
            "scale": self.scale,
            "verdict": decided,
            "measured": measured,
            "control": control,
            "holds": ours,
            "control_holds": theirs,
            "values": _rounded(dict(values or {})),
            "provenance": self._provenance(sources),
        }
        print(format_claim(claim, record))
        if self._records:
            write_record(self._records, record)

    def glue(self, name: str, value: Any, fmt: str = "") -> None:
        """Make ``value`` available to the prose as ``{glue:text}`name```.

        Outside a notebook this does nothing.
        """
        text = format(value, fmt)
        prefix = "application/papermill.record/"
        try:
            from IPython.display import display
        except ImportError:
            return
        display(
            {f"{prefix}text/plain": text},
            raw=True,
            metadata={"scrapbook": {"name": name, "mime_prefix": prefix}},
        )

    def benchmark(self, name: str) -> dict[str, Any]:
        """Return the committed record of one benchmark in ``tests/benchmarks``.

        Raises
        ------
        FileNotFoundError
            If it was never recorded; the message names the command.
        """
        path = self._root / "data" / "results" / "benchmarks" / f"{name}.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"{path.name} is not recorded; run "
                f"`python tests/benchmarks/bench_{name}.py --output {path}`"
            )
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def sweep(self, name: str) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """Return the committed rows of one sweep over tables, and their provenance.

        Raises
        ------
        FileNotFoundError
            If it was never recorded; the message names the command.
        """
        path = self._root / "data" / "results" / "sweeps" / f"{name}.csv"
        if not path.is_file():
            raise FileNotFoundError(
                f"{path.name} is not recorded; run `agop sweep run JOURNAL` and "
                f"`agop sweep table JOURNAL --output {path}`"
            )
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        found = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return rows, found

    def colophon(self) -> None:
        """Print data, seed, hardware, versions and run time."""
        lines = [f"scale     {self.scale}", f"seed      {self.seed}"]
        for item in map(_as_dict, self.data):
            lossy = ", lossy copy" if item.get("lossy") else ""
            lines.append(f"data      {item['name']}: {item['source']}{lossy}")
        lines.append(f"device    {device()}")
        named = ", ".join(f"{name} {text}" for name, text in versions().items())
        lines += textwrap.wrap(f"versions  {named}", WIDTH, subsequent_indent=" " * 10)
        lines.append(f"run time  {time.monotonic() - self._started:.0f} s")
        print("\n".join(lines))
        self._report()

    def _report(self) -> None:
        """Leave what only this process knows to whoever runs the chapter."""
        if self._records:
            about = {"device": device(), "memory": memory(), "versions": versions()}
            write_atomically(self._records / PAGE_REPORT, json.dumps(about))

    def _entry(self, id: str) -> Claim:
        ledger = load_ledger(self._root)
        if id not in ledger:
            raise KeyError(f"book/claims.toml has no claim {id!r}")
        if ledger[id].chapter != self.chapter:
            raise ValueError(
                f"book/claims.toml gives {id} to the chapter {ledger[id].chapter!r}, "
                f"not to {self.chapter!r}"
            )
        return ledger[id]

    def _provenance(self, sources: list[dict]) -> dict[str, Any]:
        return {
            "scale": self.scale,
            "seed": self.seed,
            "data": sources,
            "device": device(),
            "memory": memory(),
            "threads": int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)),
            "versions": versions(),
            "commit": os.environ.get("AGOP_COMMIT", "unknown"),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "seconds": round(time.monotonic() - self._started, 1),
        }


def format_claim(claim: Claim, record: Record) -> str:
    """Return the text block that a reader sees under a result."""
    outcome = _agreement(record["holds"])
    how = {True: "holds too", False: "fails, as it must"}
    theirs = record["control_holds"]
    scale = record["provenance"]["scale"]
    names = [item["name"] for item in record["provenance"]["data"]]
    lines = [f"{claim.id} · {claim.where} · {claim.paper.short}"]
    lines += textwrap.wrap(
        claim.statement, WIDTH, initial_indent="  ", subsequent_indent="  "
    )
    lines += _row("reported", claim.reported)
    lines += _row(
        "here", f"{record['measured']} ({outcome})" if outcome else record["measured"]
    )
    lines += _row("control", f"{record['control']}; {how[_majority(theirs)]}")
    lines += _row("verdict", f"{record['verdict']} (scale {scale}; {_listed(names)})")
    return "\n".join(lines)


def _listed(names: list[str], most: int = 4) -> str:
    """Return a list of data sets short enough for one line."""
    if not names:
        return "no data"
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _row(label: str, text: str) -> list[str]:
    """Return one labelled line of the block, wrapped under its text."""
    return textwrap.wrap(f"  {label:<11}{text}", WIDTH, subsequent_indent=" " * 13)


def _agreement(holds: list[bool]) -> str:
    """Say how many seeds agree; nothing for a single outcome."""
    if len(holds) == 1:
        return ""
    counts = {0: "none", len(holds): "all"}
    return (
        f"the rule holds for {counts.get(sum(holds), sum(holds))} of {len(holds)} seeds"
    )


def _as_list(outcome: Outcome, name: str) -> list[bool]:
    """Return one bool a seed; accepts numpy's and torch's bools."""
    items = list(outcome) if isinstance(outcome, Sequence) else [outcome]
    if not items:
        raise ValueError(f"{name} is empty; give one bool a seed")
    return [bool(item) for item in items]


def _majority(outcomes: Sequence[bool]) -> bool:
    """Tell whether more than half hold: the rule for the median seed."""
    return 2 * sum(outcomes) > len(outcomes)


def _as_dict(item: Any) -> dict[str, Any]:
    return item if isinstance(item, dict) else item.to_dict()


def _rounded(value: Any) -> Any:
    """Return ``value`` with every number at three significant digits.

    More would differ from machine to machine, and would not mean anything.
    """
    if isinstance(value, Mapping):
        return {str(key): _rounded(item) for key, item in value.items()}
    if isinstance(value, bool | str) or value is None:
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value


def device() -> str:
    """Name the accelerator in use, or the processor."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"CPU ({platform.machine()}, {os.cpu_count()} cores)"


def memory() -> dict[str, float]:
    """Return the most memory that this process has held so far, in MiB.

    Of a GPU, what torch's tensors took; left out where nothing can be told.
    """
    found: dict[str, float] = {}
    try:
        import resource
    except ImportError:  # not on Windows
        pass
    else:
        unit = 2**20 if sys.platform == "darwin" else 2**10
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found["cpu_mib"] = round(peak / unit)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        found["gpu_mib"] = round(torch.cuda.max_memory_allocated() / 2**20)
    return found


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide the numbers."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = re.sub(r"\+.*", "", version(name))
        except PackageNotFoundError:
            continue
    return found
