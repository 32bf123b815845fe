"""Chapters are really executed here, by papermill and nbval, in a tiny book."""

import os
import subprocess
import sys
import time

import nbformat
import psutil
import pytest
import torch

from agop.book import notebooks
from agop.book.check import problems
from agop.book.execute import kernel_environment
from agop.book.layout import BookError, Chapter, write_atomically
from agop.book.publish import make_reference, publish, refresh_prose
from agop.book.readme import write_readme
from agop.book.records import read_records
from agop.book.runner import default_jobs, run
from agop.book.scoreboard import status


@pytest.fixture
def chapter(tiny_book):
    return Chapter("one", tiny_book)


def edit(path, before, after):
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def nbval(path):
    """Compare a notebook with its stored outputs, as ``make test`` does."""
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env"]
    command += ["-p", "no:cacheprovider", "-c", os.devnull, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_run_publish_check(chapter):
    root = chapter.root
    run([chapter], "ci", jobs=1)
    make_reference(chapter)
    run([chapter], "laptop", jobs=1)
    publish(chapter, "laptop")
    write_readme(root)
    assert list(problems(root)) == []

    published = notebooks.read(chapter.published)
    assert "n = 4  # how many" in published.cells[1].source
    assert published.metadata.agop.scale == "laptop"
    assert published.metadata.agop.versions["numpy"]
    assert published.cells[2].outputs[0].text == "total 6\n"
    rows = {row["id"]: row for row in status(root)}
    assert rows["R01"]["runs"]["laptop"]["measured"] == "6"
    assert rows["R01"]["runs"]["ci"]["measured"] == "3"
    assert rows["R02"]["runs"] == {}
    assert "| Someone 2024 | 2 | 1 | 1 |" in (root / "README.md").read_text()

    # The same run again changes nothing that is committed.
    committed = [chapter.reference, root / "data/results/ci/R01.json"]
    before = [path.read_bytes() for path in committed]
    record = root / "data/results/ci/R01.json"
    edit(record, '"date": "', '"date": "1999-')
    run([chapter], "ci", jobs=1)
    make_reference(chapter)
    assert committed[0].read_bytes() == before[0]
    assert '"date": "1999-' in record.read_text()

    # nbval passes, and names one changed number.
    assert nbval(chapter.reference).returncode == 0
    edit(chapter.reference, "total 3", "total 4")
    failed = nbval(chapter.reference)
    assert failed.returncode == 1
    assert "total 4" in failed.stdout
    assert "total 3" in failed.stdout
    edit(chapter.reference, "total 4", "total 3")

    # Prose can be refreshed without running; code cannot.
    edit(chapter.source, "# A chapter", "# A better title")
    assert any("its text differs" in line for line in problems(root))
    assert refresh_prose(chapter) == ["book/one.ipynb", "tests/reference/one.ipynb"]
    assert list(problems(root)) == []
    assert notebooks.read(chapter.published).cells[2].outputs[0].text == "total 6\n"
    edit(chapter.source, "sum(range(n))", "1 + sum(range(n))")
    found = list(problems(root))
    assert len(found) == 2
    assert "book/one.ipynb is stale: its code differs from book/one.md" in found[0]
    assert "+total = sum(range(n))" in found[0]
    with pytest.raises(BookError, match="the code has changed too"):
        refresh_prose(chapter)
    with pytest.raises(BookError, match=r"is of an older book/one\.md"):
        publish(chapter, "laptop")


def test_a_failing_cell_is_named(chapter):
    edit(chapter.source, "total = sum", 'raise OSError("no disk")\ntotal = sum')
    with pytest.raises(BookError) as caught:
        run([chapter], "ci", jobs=1)
    text = str(caught.value)
    assert "book/one.md: cell 2 (`from agop.book import Page`) failed: " in text
    assert "OSError: no disk" in text
    assert "_build/run/ci/one.failed.ipynb" in text
    assert not chapter.run("ci").exists()
    assert chapter.run("ci").with_suffix(".failed.ipynb").exists()


def test_a_warning_at_ci_scale_is_refused(chapter):
    edit(
        chapter.source,
        "total = sum",
        'import warnings; warnings.warn("odd")\ntotal = sum',
    )
    with pytest.raises(BookError, match=r"book/one\.md: cell 2 wrote to stderr: .*odd"):
        run([chapter], "ci", jobs=1)
    assert not chapter.run("ci").exists()


def test_a_claim_that_vanishes_takes_its_record_along(chapter):
    run([chapter], "ci", jobs=1)
    make_reference(chapter)
    results = chapter.root / "data" / "results" / "ci"
    assert list(read_records(results)) == ["R01"]
    text = chapter.source.read_text()
    start = text.index("page.claim(")
    chapter.source.write_text(text[:start] + text[text.index("page.glue") :])
    run([chapter], "ci", jobs=1)
    make_reference(chapter)
    assert read_records(results) == {}


def test_a_killed_run_leaves_no_half_written_file(chapter):
    edit(chapter.source, "total = sum", "import time; time.sleep(60)\ntotal = sum")
    chapter.published.write_text("the last published page")
    command = [sys.executable, "-m", "agop.cli", "book", "publish", "--scale", "ci"]
    process = subprocess.Popen(
        command, cwd=chapter.root, start_new_session=True, stderr=subprocess.DEVNULL
    )
    partial = chapter.run("ci").with_suffix(".partial.ipynb")
    deadline = time.monotonic() + 60
    while not partial.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert partial.exists(), "the run did not start in a minute"
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == [], [p.cmdline() for p in alive]
    assert chapter.published.read_text() == "the last published page"
    assert not chapter.run("ci").exists()
    assert not list((chapter.root / "book").glob(".*"))


def test_writing_is_atomic(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_atomically(path, "old")

    def full(self, *args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_pieces_of_output_are_joined():
    """A stream breaks wherever the kernel happened to flush."""
    a, b, c = (nbformat.v4.new_output("stream", text=f"{text}\n") for text in "abc")
    glue = nbformat.v4.new_output("display_data", data={"text/plain": "1"})
    warning = nbformat.v4.new_output("stream", name="stderr", text="careful")
    cell = nbformat.v4.new_code_cell("f()", outputs=[a, warning, b, glue, c])
    nb = notebooks.normalise(nbformat.v4.new_notebook(cells=[cell]))
    shown = [output.get("text", "glue") for output in nb.cells[0].outputs]
    assert shown == ["a\nb\n", "glue", "c\n"]


def test_references_carry_no_pictures():
    picture = nbformat.v4.new_output(
        "display_data", data={"image/png": "x", "text/plain": "<Figure>"}
    )
    cell = nbformat.v4.new_code_cell("plt.show()", outputs=[picture])
    ignored = nbformat.v4.new_code_cell(
        "page.colophon()",
        outputs=[nbformat.v4.new_output("stream", name="stdout", text="12 s")],
        metadata={"tags": ["nbval-ignore-output"]},
    )
    nb = notebooks.without_pictures(nbformat.v4.new_notebook(cells=[cell, ignored]))
    assert nb.cells[0].outputs[0].data == {"text/plain": "<Figure>"}
    assert nb.cells[1].outputs == []


def test_jobs_are_bounded(chapter):
    assert 1 <= default_jobs() <= (os.cpu_count() or 1)
    with pytest.raises(BookError, match="jobs must be at least 1"):
        run([chapter], "ci", jobs=0)


PRODUCT = """
import hashlib, torch
A, B = torch.randn(2, 128 * 3072, generator=torch.Generator().manual_seed(0))
product = A.reshape(128, 3072) @ B.reshape(3072, 128)
print(hashlib.sha256(product.numpy().tobytes()).hexdigest())
"""


def test_the_number_of_threads_changes_no_bit_at_ci_scale(tmp_path, monkeypatch):
    if not torch.backends.mkl.is_available() or (os.cpu_count() or 1) < 2:
        pytest.skip("needs MKL and two cores")

    def products(scale):
        monkeypatch.delenv("MKL_CBWR", raising=False)
        for threads in "12":
            monkeypatch.setenv("OMP_NUM_THREADS", threads)
            environment = {**os.environ, **kernel_environment(tmp_path, scale)}
            command = [sys.executable, "-c", PRODUCT]
            yield subprocess.check_output(command, env=environment)

    assert len(set(products("ci"))) == 1
