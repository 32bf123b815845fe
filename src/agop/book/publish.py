"""Turn complete runs into what is committed: published pages and references."""

from agop.book import notebooks
from agop.book.layout import BookError, Chapter
from agop.book.records import commit_records

# What a reference leaves out, for it would change with every run and machine.
VOLATILE = ("seconds", "date", "commit", "device", "memory", "versions")


def publish(chapter: Chapter, scale: str) -> None:
    """Make the last run at ``scale`` the page that the site shows."""
    nb = _complete_run(chapter, scale)
    notebooks.write(nb, chapter.published)
    commit_records(chapter, scale, keep_if_same=False)


def make_reference(chapter: Chapter) -> None:
    """Make the last run at ci scale the one that nbval compares with."""
    nb = notebooks.without_pictures(_complete_run(chapter, "ci"))
    for name in VOLATILE:
        nb.metadata.agop.pop(name, None)
    notebooks.write(nb, chapter.reference)
    commit_records(chapter, "ci", keep_if_same=True)


def refresh_prose(chapter: Chapter) -> list[str]:
    """Bring edited text into the committed notebooks, keeping their outputs.

    Returns the paths that changed.

    Raises
    ------
    BookError
        If the code has changed too: then the chapter has to be run again.
    """
    changed = []
    for path in (chapter.published, chapter.reference):
        if not path.is_file():
            continue
        old = notebooks.read(path)
        expected = notebooks.prepare(chapter, old.metadata.agop.scale)
        if notebooks.code_difference(expected, old):
            raise BookError(
                f"{chapter.shown(path)}: the code has changed too; run "
                f"`agop book {_remedy(chapter, path)}`"
            )
        new = notebooks.with_outputs_of(expected, old)
        if new != old:
            notebooks.write(new, path)
            changed.append(chapter.shown(path))
    return changed


def _complete_run(chapter: Chapter, scale: str):  # type: ignore[no-untyped-def]
    """Return the last run, provided that it is of the source as it stands."""
    path = chapter.run(scale)
    if not path.is_file():
        raise BookError(f"{chapter.shown(path)} is missing: the chapter was not run")
    nb = notebooks.read(path)
    if notebooks.code_difference(notebooks.prepare(chapter, scale), nb):
        raise BookError(
            f"{chapter.shown(path)} is of an older {chapter.shown(chapter.source)}"
        )
    return nb


def _remedy(chapter: Chapter, path: object) -> str:
    """Return the command that brings a committed notebook up to date."""
    if path == chapter.reference:
        return f"golden {chapter.name}"
    return f"publish --scale laptop {chapter.name}"
