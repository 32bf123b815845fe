"""Execute one prepared chapter with papermill, in a process of its own."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from agop.book import notebooks
from agop.book.layout import BookError, Chapter
from agop.book.records import PAGE_REPORT

Report = Callable[[int, int], None]
# A kernel now and then loses the race for its ports while others start.
KERNEL_START_FAILURES = ("Kernel didn't respond", "Kernel died before replying")


def execute(chapter: Chapter, scale: str, report: Report | None = None) -> Path:
    """Run ``chapter`` at ``scale`` and return the path of the complete run.

    The run appears under its final name only when every cell has passed; a run that
    failed stays beside it as ``<chapter>.failed.ipynb`` for inspection.

    Raises
    ------
    BookError
        If the chapter cannot be prepared, or a cell fails, or, at ci scale, warns; the
        message names the file, the cell and the error.
    """
    nb = notebooks.prepare(chapter, scale)
    final = chapter.run(scale)
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = final.with_suffix(".partial.ipynb")
    records = chapter.run_records(scale)
    fresh = records.with_name(f"records.{os.getpid()}.partial")
    started = time.monotonic()
    done = _papermill(nb, partial, chapter, fresh, report or (lambda cell, cells: None))
    if scale == "ci":
        _refuse_warnings(done, chapter)
    _replace_folder(fresh, records)
    done.metadata.agop.update(
        seconds=round(time.monotonic() - started, 1),
        **circumstances(chapter.root),
        **kernel_report(records),
    )
    notebooks.write(notebooks.normalise(done), final)
    partial.unlink(missing_ok=True)
    final.with_suffix(".failed.ipynb").unlink(missing_ok=True)
    return final


def _papermill(
    nb: NotebookNode, partial: Path, chapter: Chapter, records: Path, report: Report
) -> NotebookNode:
    """Let papermill run ``nb``; turn its failure into one message for people."""
    from papermill.engines import papermill_engines
    from papermill.exceptions import PapermillExecutionError

    engine = _engine(report)
    papermill_engines.register("agop", engine)
    environment = {
        "AGOP_RECORDS": str(records),
        "AGOP_COMMIT": circumstances(chapter.root)["commit"],
        **kernel_environment(chapter.root, nb.metadata.agop.scale),
    }
    for attempt in (1, 2):
        try:
            with _environment(environment):
                return _run_once(nb, partial)
        except PapermillExecutionError as error:
            failed = partial.with_name(f"{chapter.name}.failed.ipynb")
            partial.replace(failed)
            first = nb.cells[error.cell_index].source.strip().splitlines()[:1]
            raise BookError(
                f"{chapter.shown(chapter.source)}: cell {error.cell_index} "
                f"(`{''.join(first)}`) failed: {error.ename}: {error.evalue}\n"
                f"  the run so far is in {chapter.shown(failed)}"
            ) from None
        except RuntimeError as error:
            if attempt == 2 or not str(error).startswith(KERNEL_START_FAILURES):
                raise BookError(
                    f"{chapter.shown(chapter.source)}: the kernel failed: {error}"
                ) from error
    raise AssertionError("unreachable")


def _run_once(nb: NotebookNode, partial: Path) -> NotebookNode:
    """Hand ``nb`` to papermill and return the executed notebook."""
    import papermill

    waiting = partial.with_suffix(".in.ipynb")
    notebooks.write(nb, waiting)
    try:
        return papermill.execute_notebook(
            str(waiting),
            str(partial),
            engine_name="agop",
            kernel_name="python3",
            progress_bar=False,
            cwd=str(partial.parent),
            start_timeout=180,
            extra_arguments=["--IPKernelApp.log_level=40"],  # errors alone
        )
    finally:
        waiting.unlink(missing_ok=True)


def _engine(report: Report) -> type:
    """Return papermill's engine, made to report each finished cell."""
    from papermill.engines import NBClientEngine

    class ReportingEngine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(
            cls, nb_man: Any, kernel_name: str, **options: Any
        ) -> None:
            cells, complete = len(nb_man.nb.cells), nb_man.cell_complete

            def cell_complete(
                cell: Any, cell_index: int | None = None, **k: Any
            ) -> Any:
                result = complete(cell, cell_index, **k)
                report((cell_index or 0) + 1, cells)
                return result

            nb_man.cell_complete = cell_complete
            super().execute_managed_notebook(nb_man, kernel_name, **options)

    return ReportingEngine


class _environment:
    """Set environment variables, which kernels inherit, for a ``with`` block."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values

    def __enter__(self) -> None:
        self.before = dict(os.environ)
        os.environ.update(self.values)

    def __exit__(self, *exc: object) -> None:
        os.environ.clear()
        os.environ.update(self.before)


def kernel_environment(root: Path, scale: str) -> dict[str, str]:
    """Return what every kernel of the book is started with.

    One thread unless ``OMP_NUM_THREADS`` says otherwise, since chapters run side by
    side. At ci scale outputs are compared with those of another machine. Gradient
    descent at a large step doubles a rounding error every few steps, so that no number
    of digits is safe; MKL's strict mode sums in one order, whatever the number of
    threads and the width of the registers. It is slower, and other libraries ignore it.
    """
    mirror = os.environ.get("AGOP_DATA")
    repeatable = {"MKL_CBWR": os.environ.get("MKL_CBWR", "AVX2,STRICT")}
    return {
        **(repeatable if scale == "ci" else {}),
        **({"AGOP_DATA": str(Path(mirror).resolve())} if mirror else {}),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")])
        ),
        "PYTHONHASHSEED": "0",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }


def circumstances(root: Path) -> dict[str, Any]:
    """Return when and from which commit a run was made."""
    git = ["git", "-C", str(root)]
    try:
        commit = subprocess.check_output(
            [*git, "describe", "--always", "--dirty", "--exclude", "*"],
            text=True,
            stderr=subprocess.DEVNULL,
        ).strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    return {"date": datetime.now(UTC).date().isoformat(), "commit": commit}


def kernel_report(records: Path) -> dict[str, Any]:
    """Return device and versions as the chapter's own kernel saw them."""
    path = records / PAGE_REPORT
    return json.loads(path.read_text()) if path.is_file() else {}


def _refuse_warnings(nb: NotebookNode, chapter: Chapter) -> None:
    """Raise if a cell wrote to stderr: a reader would see it, and nbval would fail."""
    for number, cell in enumerate(nb.cells):
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":
                raise BookError(
                    f"{chapter.shown(chapter.source)}: cell {number} wrote to stderr: "
                    f"{output.text.strip()}"
                )


def _replace_folder(fresh: Path, final: Path) -> None:
    """Put the folder ``fresh`` in place of ``final``; nothing recorded is fine."""
    fresh.mkdir(parents=True, exist_ok=True)
    if final.is_dir():
        shutil.rmtree(final)
    fresh.replace(final)
