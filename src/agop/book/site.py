"""Stage the book's pages with one set of runs, and render them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from agop.book.address import Address, read_address
from agop.book.chapters import all_chapters
from agop.book.check import problems
from agop.book.extras import (
    CARD,
    copy_records,
    drop_unused,
    shrink_pictures,
    write_card,
    write_notebooks,
    write_sitemap,
)
from agop.book.layout import BookError
from agop.book.records import PUBLISHED

ASIDE = shutil.ignore_patterns("*.ipynb", "params", "drafts", "__pycache__", ".*")


def stage(root: Path, runs: str, folder: Path) -> None:
    """Lay out what Sphinx reads: pages, and each chapter as an executed notebook.

    Parameters
    ----------
    runs : str
        ``"published"`` for the committed notebooks, or a scale for its last runs.
    folder : Path
        Where; emptied first.

    Raises
    ------
    BookError
        If a chapter has no such notebook.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "book", folder / "book", ignore=ASIDE)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(root / name, folder / name)
    for chapter in all_chapters(root):
        notebook = chapter.published if runs == PUBLISHED else chapter.run(runs)
        if not notebook.is_file():
            raise BookError(f"{chapter.shown(notebook)} is missing: nothing to render")
        shutil.copy(notebook, folder / "book")
        (folder / "book" / chapter.source.name).unlink()


def render(
    root: Path,
    runs: str = PUBLISHED,
    build: Path | None = None,
    repository: str = "",
) -> Path:
    """Render the site into ``<build>/html`` and return its first page.

    Always from a clean tree: a second, warm build does not repeat the warnings that
    made the first one fail.

    Parameters
    ----------
    build : Path, optional
        A folder called ``_build``; the book's own by default.
    repository : str, optional
        An address in place of the one in ``_config.yml``, to try it out.

    Raises
    ------
    BookError
        If Jupyter Book warns of anything.
    """
    build = build or root / "_build"
    for name in ("html", ".doctrees", "jupyter_execute"):
        shutil.rmtree(build / name, ignore_errors=True)
    stage(root, runs, build / "stage")
    address = Address(repository) if repository else read_address(root)
    _set_address(build / "stage" / "_config.yml", address)
    book = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", book, "build", str(build / "stage")]
    command += ["--path-output", str(build.parent), "-W", "-n", "--keep-going"]
    environment = {**os.environ, "AGOP_ROOT": str(root), "AGOP_RUNS": runs}
    done = subprocess.run(
        command, env=environment, check=False, capture_output=True, text=True
    )
    page = build / "html" / "index.html"
    if done.returncode or not page.is_file():
        print(done.stdout, done.stderr, file=sys.stderr)
        raise BookError("rendering failed: see Jupyter Book's messages above")
    drop_unused(build / "html")
    shrink_pictures(build / "html")
    write_notebooks(root, build, address)
    html = build / "html"
    copy_records(root, runs, html)
    write_card(html / "_static" / CARD, "How Networks Learn Features")
    write_sitemap(html, address)
    (html / ".nojekyll").touch()  # GitHub Pages would leave out _static
    return page


def publish_site(root: Path, build: Path | None = None, repository: str = "") -> Path:
    """Build everything that goes to a static host, and return its folder.

    Raises
    ------
    BookError
        While the repository's address is a placeholder, and where the committed
        notebooks are out of step with their sources.
    """
    address = Address(repository) if repository else read_address(root)
    address.required()
    found = list(problems(root))
    if found:
        raise BookError("not published, for it is out of step:\n" + "\n".join(found))
    return render(root, PUBLISHED, build, repository).parent


def _set_address(config: Path, address: Address) -> None:
    """Write the repository's address into a staged configuration."""
    text = config.read_text(encoding="utf-8")
    old = read_address(config.parent).repository
    config.write_text(text.replace(old, address.repository), encoding="utf-8")
