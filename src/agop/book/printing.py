"""The whole book on one page, and as a PDF."""

import posixpath
import shutil
import subprocess
import tempfile
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from agop.book.layout import BookError

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PDF = "how-networks-learn-features.pdf"
TIME = 90_000  # milliseconds that the page may take to typeset its formulas


def print_page(html: Path, pages: list[str]) -> str:
    """Join pages of a rendered site into one document.

    Parameters
    ----------
    html : Path
        The site; its pages are in ``book``.
    pages : list of str
        Stems, in the order of the table of contents.

    Returns
    -------
    str
        A document to be put into ``html``: addresses within the book lead to places
        on the same page.
    """
    soups = {name: _read(html / "book" / f"{name}.html") for name in pages}
    whole = next(
        (
            soup
            for soup in soups.values()
            if soup.find(id="MathJax-script") or "mathjax" in str(soup.head).lower()
        ),
        soups[pages[0]],
    )
    articles = [_article(soup, name, set(pages)) for name, soup in soups.items()]
    head = BeautifulSoup(str(whole.head), "html.parser").head
    assert head is not None
    for node in head.find_all(src=True) + head.find_all(href=True):
        _to_root(node)
    body = "\n".join(map(str, articles))
    return (
        '<!DOCTYPE html>\n<html lang="en" data-theme="light" data-mode="light">\n'
        f'{head}\n<body class="printed">\n<main>\n{body}\n</main>\n</body>\n</html>\n'
    )


def _read(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def _article(soup: BeautifulSoup, name: str, pages: set[str]) -> Tag:
    """Return a page's text with its names and links made unique in the book."""
    article = soup.find("article")
    assert isinstance(article, Tag)
    used: set[str] = set()
    for node in article.find_all(id=True):
        if str(node["id"]) in used:  # some boxes share a name, to which nothing refers
            del node["id"]
            continue
        used.add(str(node["id"]))
        node["id"] = f"{name}--{node['id']}"
    article["id"] = f"{name}--article"
    for link in article.find_all("a", href=True):
        page, _, place = str(link["href"]).partition("#")
        stem = name if not page else page.removesuffix(".html")
        if stem in pages and (page.endswith(".html") or not page):
            link["href"] = f"#{stem}--{place or 'article'}"
        else:
            _to_root(link)
    for node in article.find_all(src=True):
        _to_root(node)
        del node["loading"]  # on paper everything is in view
    for folded in article.find_all("details"):
        if "hide" not in (folded.get("class") or ()):  # code stays folded
            folded["open"] = ""
    for node in article.find_all(["script", "button"]):
        node.decompose()
    return article


def _to_root(node: Tag) -> None:
    """Turn an address seen from ``book/`` into one seen from the site's root."""
    for key in ("src", "href"):
        address = str(node.get(key, ""))
        if address and not address.startswith(("#", "data:")) and ":" not in address:
            node[key] = posixpath.normpath(posixpath.join("book", address))


def write_pdf(html: Path, pages: list[str]) -> Path:
    """Print the whole book with the system's Chromium, beside ``html``.

    It is no part of the site: it weighs as much as all of the pages.

    Raises
    ------
    BookError
        If there is no such browser, or it fails.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise BookError("the PDF is printed by chromium, and there is none")
    page, pdf = html / "print.html", html.parent / PDF
    page.write_text(print_page(html, pages), encoding="utf-8")
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu"]
        command += ["--disable-background-networking", "--allow-file-access-from-files"]
        command += [f"--user-data-dir={profile}", f"--virtual-time-budget={TIME}"]
        command += ["--no-pdf-header-footer", f"--print-to-pdf={pdf}", page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    page.unlink()
    if done.returncode or not pdf.is_file():
        raise BookError(f"printing failed: {done.stderr[-500:]}")
    return pdf
