"""Chapters as plain notebooks: Markdown that Colab shows, and a first cell for it.

Outputs are left out: whoever opens such a notebook wants to run it.
"""

from collections.abc import Iterator
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from agop.book import citations, notebooks
from agop.book.address import Address, release_tag
from agop.book.durations import durations, in_words
from agop.book.labels import Labels
from agop.book.layout import SCALES, Chapter
from agop.book.ledger import load_ledger
from agop.book.parameters import literal, parameters_cell, read_values
from agop.book.plain import Context, to_markdown


def glued_values(nb: NotebookNode) -> dict[str, str]:
    """Return the numbers that an executed notebook hands to its prose."""
    found = {}
    for cell in nb.cells:
        for output in cell.get("outputs", ()):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            for value in output.get("data", {}).values() if name else ():
                found[name] = str(value).strip("'")
    return found


def flatten(chapter: Chapter, labels: Labels, address: Address) -> NotebookNode:
    """Return a chapter as a plain notebook, at ci scale and without outputs.

    Parameters
    ----------
    labels : Labels
        As Sphinx numbered them, see :mod:`agop.book.labels`.
    address : Address
        Where the repository is; while it is a placeholder there are no links to the
        site, and the first cell says that nothing can be fetched.
    """
    root = chapter.root
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    published = notebooks.read(chapter.published)
    context = Context(
        page=f"book/{chapter.name}",
        labels=labels,
        references=citations.read_references(root / "book" / "references.bib"),
        macros=config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"],
        glued=glued_values(published),
        site=address.site,
    )
    source = notebooks.prepare(chapter, "ci")
    cells = list(_cells(source, chapter, context))
    title, *rest = cells
    scale = published.metadata.agop.scale
    cells = [title, _about(chapter, scale, address), _setup(chapter, address), *rest]
    if context.cited:
        cells.append(_reference_list(context))
    nb = new_notebook(cells=cells, metadata=_metadata(chapter))
    for number, cell in enumerate(nb.cells):
        cell.id = f"f{number:03d}"
    nbformat.validate(nb)
    return nb


def _cells(
    source: NotebookNode, chapter: Chapter, context: Context
) -> Iterator[NotebookNode]:
    """Yield the chapter's cells, plain; the first is the title and its text."""
    parameters = parameters_cell(source, chapter.name)
    for cell in source.cells:
        if cell.cell_type != "code":
            yield new_markdown_cell(to_markdown(cell.source, context))
            continue
        folded = "hide-input" in cell.metadata.get("tags", [])
        about = {"cellView": "form", "jupyter": {"source_hidden": True}}
        yield new_code_cell(cell.source, metadata=about if folded else {})
        if cell is parameters:
            yield _larger_scales(chapter)
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        if "caption" in figure:
            number = context.labels.find(figure["name"]).number
            caption = to_markdown(figure["caption"], context).strip()
            yield new_markdown_cell(f"**Fig. {number}.** {caption}\n")


def _larger_scales(chapter: Chapter) -> NotebookNode:
    """Return the cell that turns ``scale`` into the other scales' sizes."""
    lines = ["# The sizes of the other scales: set `scale` above, then run both cells."]
    lines.append("larger = {")
    for scale in SCALES[1:]:
        values = read_values(chapter, scale)
        del values["scale"]
        lines.append(f'    "{scale}": dict(')
        lines += [f"        {name}={literal(value)}," for name, value in values.items()]
        lines.append("    ),")
    lines += ["}", "globals().update(larger.get(scale, {}))"]
    return new_code_cell("\n".join(lines))


def _about(chapter: Chapter, scale: str, address: Address) -> NotebookNode:
    """Return the cell that says what this notebook is and how long it takes."""
    taken = durations(chapter)
    page = "the book *How Networks Learn Features*"
    if address.is_set:
        page = f"[{page}]({address.site}book/{chapter.name}.html)"
    rows = "\n".join(f"| `{each}` | {in_words(taken.get(each))} |" for each in SCALES)
    text = f"""\
This notebook is one chapter of {page}. The cell below fetches the book's code when
you are on Colab; elsewhere, start Jupyter in a clone of the repository. Figures
quoted in the text are those of the page, which was run at `{scale}` scale.

| scale | run time of the whole chapter, on 2 CPU cores |
| --- | --- |
{rows}

Memory on a GPU has not been measured. To change the scale, set `scale` in the cell
of parameters.
"""
    return new_markdown_cell(text)


SETUP = """\
# On Colab this fetches the book's code; torch and numpy stay as they are.
# Elsewhere it does nothing.
import os

if "COLAB_RELEASE_TAG" in os.environ:
    import importlib.util
    import subprocess
    import sys

    folder = "{folder}"
    if not os.path.isdir(folder):
        address = "{repository}"
        command = ["git", "clone", "--quiet", "--depth", "1"]
        command += ["--branch", "{tag}", address, folder]
        subprocess.run(command, check=True)
    sys.path.insert(0, os.path.abspath(os.path.join(folder, "src")))
    missing = [name for name in ("filelock", "pooch", "tqdm")
               if importlib.util.find_spec(name) is None]
    if missing:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", *missing]
        subprocess.run(pip, check=True)
    import torch

    found = torch.cuda.is_available()
    print("GPU:", torch.cuda.get_device_name() if found else
          "none; Runtime > Change runtime type offers one")
    print("run time on 2 CPU cores: {told}")
"""


def _setup(chapter: Chapter, address: Address) -> NotebookNode:
    """Return the first code cell."""
    taken = durations(chapter)
    told = ", ".join(f"{scale} {in_words(taken.get(scale))}" for scale in SCALES)
    source = SETUP.format(
        folder="agop-companion",
        repository=address.repository,
        tag=release_tag(chapter.root),
        told=told,
    )
    return new_code_cell(source.strip())


def _reference_list(context: Context) -> NotebookNode:
    """Return the works that the chapter cites."""
    entries = sorted(
        (context.references[key] for key in context.cited),
        key=lambda entry: (citations.authors(entry), entry.fields["year"]),
    )
    lines = "\n".join(f"- {citations.full_entry(entry)}" for entry in entries)
    return new_markdown_cell(f"## References\n\n{lines}\n")


def _metadata(chapter: Chapter) -> dict[str, Any]:
    """Ask Colab for a GPU where the ledger says that a claim needs one."""
    mine = [c for c in load_ledger(chapter.root).values() if c.chapter == chapter.name]
    metadata: dict[str, Any] = {
        "kernelspec": notebooks.KERNEL,
        "colab": {"provenance": []},
        "language_info": {"name": "python"},
    }
    if any("GPU" in claim.needs for claim in mine):
        metadata["accelerator"] = "GPU"
    return metadata
