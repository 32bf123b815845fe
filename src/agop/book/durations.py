"""How long each chapter takes at each scale, read from its runs."""

from agop.book import notebooks
from agop.book.layout import SCALES, Chapter, results_folder
from agop.book.records import read_records


def durations(chapter: Chapter) -> dict[str, float]:
    """Return the seconds of the committed runs of one chapter, by scale.

    The published notebook knows its own; elsewhere it is the time that had passed when
    the last claim was recorded. A scale without a run is left out.
    """
    found: dict[str, float] = {}
    for scale in SCALES:
        seconds = [
            record["provenance"]["seconds"]
            for record in read_records(results_folder(chapter.root, scale)).values()
            if record["chapter"] == chapter.name
        ]
        if seconds:
            found[scale] = max(seconds)
    for path in (chapter.published, chapter.reference):
        about = notebooks.read(path).metadata.get("agop", {}) if path.is_file() else {}
        if "seconds" in about:
            found[about["scale"]] = float(about["seconds"])
    return found


def in_words(seconds: float | None) -> str:
    """Return a duration as people say it.

    >>> [in_words(s) for s in (8.2, 95, 1499, 9000, None)]
    ['8 s', '95 s', '25 min', '2.5 h', 'not run yet']
    """
    if seconds is None:
        return "not run yet"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
