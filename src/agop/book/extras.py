"""What a reader can download from the site beside its pages."""

import io
import re
import shutil
import textwrap
from pathlib import Path

import numpy as np
from PIL import Image

from agop.book import labels as label_files
from agop.book import notebooks
from agop.book.address import Address
from agop.book.chapters import all_chapters
from agop.book.figures import DIVERGING
from agop.book.flatten import flatten
from agop.book.layout import write_atomically
from agop.book.records import runs_shown, write_record

CARD = "social-card.png"


def write_notebooks(root: Path, build: Path, address: Address) -> None:
    """Write every chapter as a plain notebook into ``html/notebooks``."""
    labels = label_files.read(build / label_files.FILE)
    for chapter in all_chapters(root):
        nb = flatten(chapter, labels, address)
        notebooks.write(nb, build / "html" / "notebooks" / f"{chapter.name}.ipynb")


def copy_records(root: Path, runs: str, html: Path) -> None:
    """Copy the records behind the pages, to which the scoreboard links."""
    for name, by_scale in runs_shown(root, runs).items():
        for scale, record in by_scale.items():
            write_record(html / "records" / scale, {**record, "id": name})


def write_sitemap(html: Path, address: Address) -> None:
    """List every page for search engines, once the site has an address."""
    if not address.is_set:
        return
    pages = sorted(
        path.relative_to(html).as_posix() for path in html.glob("book/*.html")
    )
    urls = "".join(f"<url><loc>{address.site}{page}</loc></url>\n" for page in pages)
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{urls}</urlset>\n"
    )
    write_atomically(html / "sitemap.xml", text)


def write_card(path: Path, title: str) -> None:
    """Draw the picture that stands beside a link to the book: title and a matrix."""
    from matplotlib.figure import Figure

    place = np.arange(12)
    bumps = [np.exp(-((place - centre) ** 2) / 3.0) for centre in (3, 8)]
    matrix = sum(np.outer(bump, bump) for bump in bumps) - 0.6 * np.outer(*bumps)
    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="#0f2a3d")
    axis = figure.add_axes((0.62, 0.16, 0.34, 0.68))
    axis.imshow(matrix + matrix.T, cmap=DIVERGING, vmin=-2, vmax=2)
    axis.set_axis_off()
    lines = textwrap.fill(title, 16)
    figure.text(0.06, 0.62, lines, color="white", size=46, weight="bold", va="center")
    below = "Three papers on the average gradient\nouter product, executed"
    figure.text(0.06, 0.2, below, color="#cfe3f1", size=21, va="center")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, facecolor=figure.get_facecolor(), metadata={"Software": None})


def drop_unused(html: Path) -> None:
    """Remove what the theme ships and no reader loads.

    Source maps, translations, and the TrueType fonts that stand behind WOFF2 ones:
    every browser that runs the site's scripts reads WOFF2.
    """
    for path in html.rglob("_static/**/*.map"):
        path.unlink()
    shutil.rmtree(html / "_static" / "locales", ignore_errors=True)
    fallback = re.compile(r',\s*url\([^()]*\.ttf\)\s*format\("truetype"\)')
    for path in html.glob("_static/styles/*.css"):
        text = path.read_text(encoding="utf-8")
        if fallback.search(text):
            path.write_text(fallback.sub("", text), encoding="utf-8")
    for path in html.rglob("_static/**/*.ttf"):
        if path.with_suffix(".woff2").is_file():
            path.unlink()


def shrink_pictures(html: Path) -> None:
    """Take the alpha channel out of pictures that have no transparent pixel.

    No pixel changes, and a tenth of the pictures' size goes.
    """
    for path in sorted(html.glob("_images/*.png")):
        with Image.open(path) as picture:
            if picture.mode != "RGBA" or np.asarray(picture)[..., 3].min() < 255:
                continue
            smaller = io.BytesIO()
            picture.convert("RGB").save(smaller, "png")
        if smaller.tell() < path.stat().st_size:
            path.write_bytes(smaller.getvalue())
