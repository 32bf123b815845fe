"""The notebooks that readers download: plain Markdown, complete, and they run.

Run as on Colab: from an empty folder, with the repository cloned by the notebook's own
first cell (from this one, in place of its address on the network). Two short chapters
would still take a minute, so this is left to ``make colab-test [CH=name]``.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

from agop.book.address import read_address, release_tag
from agop.book.chapters import all_chapters
from agop.book.plain import LEFT_OVERS

from .conftest import ADDRESS

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = [chapter.name for chapter in all_chapters(ROOT)]


@pytest.fixture(params=CHAPTERS)
def notebook(request, html):
    return nbformat.read(html / "notebooks" / f"{request.param}.ipynb", as_version=4)


def markdown(nb):
    return "\n\n".join(c.source for c in nb.cells if c.cell_type == "markdown")


def code(nb):
    return [c.source for c in nb.cells if c.cell_type == "code"]


def test_nothing_is_left_that_only_sphinx_understands(notebook):
    text = markdown(notebook)
    assert LEFT_OVERS.findall(text) == []
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    macros = config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
    for name in macros:
        assert not re.search(rf"\\{name}(?![A-Za-z])", text), name
    assert "undefined" not in text
    assert text.count("$$") % 2 == 0


def test_formulas_do_not_run_over_lines_of_a_quotation(notebook):
    for cell in notebook.cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else ():
            if line.startswith(">"):
                assert line.count("$$") % 2 == 0, line
                assert line.replace("$$", "").replace("\\$", "").count("$") % 2 == 0


def test_the_first_cell_of_code_does_nothing_outside_colab(notebook):
    first = ast.parse(code(notebook)[0])
    kinds = [type(node) for node in first.body]
    assert kinds == [ast.Import, ast.If]
    assert "COLAB_RELEASE_TAG" in ast.unparse(first.body[1].test)


def test_torch_and_numpy_are_never_installed(notebook):
    first = code(notebook)[0]
    named = re.search(r"for name in \((.*?)\)", first)[1]
    assert "torch" not in named
    assert "numpy" not in named
    assert not any("pip install" in cell for cell in code(notebook)[1:])


def test_the_code_is_that_of_the_chapter(notebook, request):
    """Nothing lost on the way, and the other scales' sizes fit the cell."""
    (name,) = [n for n in CHAPTERS if f"[{n}]" in request.node.name]
    reference = nbformat.read(ROOT / "tests/reference" / f"{name}.ipynb", as_version=4)
    _setup, parameters, larger, *rest = code(notebook)
    assert [parameters, *rest] == code(reference)
    for scale in ("laptop", "paper"):
        names = {}
        exec(parameters, names)
        known = set(names)
        names["scale"] = scale
        exec(larger, names)
        assert set(names) - known == {"larger"}


def test_run_times_are_told(notebook):
    assert "| `ci` | " in markdown(notebook)
    assert "run time" in code(notebook)[0]


# --- Running them ---------------------------------------------------------------------


@pytest.fixture(scope="session")
def published(public, tmp_path_factory):
    """Return the site as for a public address, and a clone of what it would tag."""
    bare = tmp_path_factory.mktemp("published") / "book.git"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (
        ["clone", "--quiet", "--bare", "--no-hardlinks", str(ROOT), str(bare)],
        ["-C", str(bare), "tag", "--force", release_tag(ROOT), "HEAD"],
    ):
        subprocess.run([*git, *command], check=True, capture_output=True)
    return public, bare


def as_on_colab(bare):
    """Return an environment with Colab's mark, git's detour, and no path to here."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "AGOP_ROOT")}
    return {
        **kept,
        "COLAB_RELEASE_TAG": "test",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{bare}.insteadOf",
        "GIT_CONFIG_VALUE_0": ADDRESS,
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }


def run_from(folder, notebook, environment):
    """Execute a notebook with ``folder`` as its only surroundings."""
    program = (
        "import sys, nbformat\n"
        "from nbclient import NotebookClient\n"
        "nb = nbformat.read(sys.argv[1], as_version=4)\n"
        "last = 'import agop; print(\"from\", agop.__file__)'\n"
        "nb.cells.append(nbformat.v4.new_code_cell(last))\n"
        "NotebookClient(nb, timeout=600, kernel_name='python3').execute()\n"
        "print(''.join(nb.cells[-1].outputs[0].text))\n"
        "print(''.join(c.outputs[0].text for c in nb.cells if 'COLAB_R' in c.source))\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program, str(notebook)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.colab
@pytest.mark.parametrize("name", CHAPTERS)
def test_it_runs_as_on_colab(name, published, tmp_path):
    html, bare = published
    assert read_address(html.parent / "stage").repository == ADDRESS
    done = run_from(tmp_path, html / "notebooks" / f"{name}.ipynb", as_on_colab(bare))
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"from {tmp_path}" in done.stdout, "the package is not the cloned one"
    assert "GPU: " in done.stdout
