"""What a static host gets: complete, small, the same each time, and never too early."""

import hashlib
import re

import pytest
from bs4 import BeautifulSoup

from agop.book.address import Address
from agop.book.chapters import pages
from agop.book.layout import BookError
from agop.book.printing import print_page
from agop.book.site import publish_site, render

from .conftest import ADDRESS

MEGABYTE = 2**20


def contents(html):
    return {
        path.relative_to(html).as_posix(): path.read_bytes()
        for path in sorted(html.rglob("*"))
        if path.is_file()
    }


def test_built_twice_it_is_the_same(html, root, tmp_path):
    again = contents(render(root, build=tmp_path / "_build").parent)
    first = contents(html)
    assert first.keys() == again.keys()
    digest = {name: hashlib.sha256(data).digest() for name, data in first.items()}
    other = {name: hashlib.sha256(data).digest() for name, data in again.items()}
    assert [name for name in digest if digest[name] != other[name]] == []


def test_the_site_is_small(html):
    assert sum(map(len, contents(html).values())) <= 13 * MEGABYTE


def test_a_placeholder_is_not_published(root, tmp_path):
    with pytest.raises(BookError, match="placeholder"):
        publish_site(root, tmp_path / "_build", "https://example.invalid/a/b")
    with pytest.raises(BookError, match="of the form https"):
        Address("https://gitlab.com/a/b").required()
    assert not (tmp_path / "_build").exists()


def test_buttons_lead_to_the_notebooks_and_the_source(public):
    for page in sorted((public / "notebooks").glob("*.ipynb")):
        soup = BeautifulSoup(
            (public / "book" / f"{page.stem}.html").read_text(), "html.parser"
        )
        links = [
            str(a["href"])
            for a in soup.select(
                "header.bd-header-article a, .article-header-buttons a"
            )
        ]
        joined = "\n".join(links)
        colab = "colab.research.google.com/github/example/book/blob/gh-pages/notebooks"
        assert f"{colab}/{page.name}" in joined
        assert f"../notebooks/{page.name}" in links
        assert f"{ADDRESS}/edit/main/book/{page.stem}.md" in joined
        assert "_sources" not in joined


def test_search_engines_and_previews_find_their_way(public):
    site = "https://example.github.io/book/"
    listed = re.findall(r"<loc>(.*?)</loc>", (public / "sitemap.xml").read_text())
    assert {url.removeprefix(site) for url in listed} == {
        path.relative_to(public).as_posix() for path in public.glob("book/*.html")
    }
    for url in listed:
        soup = BeautifulSoup(
            (public / url.removeprefix(site)).read_text(), "html.parser"
        )
        meta = {
            m.get("property") or m.get("name"): m.get("content")
            for m in soup.find_all("meta")
        }
        assert meta["og:url"] == url
        assert "<" not in meta["og:title"]
        image = meta["og:image"].removeprefix(site)
        assert (public / image).read_bytes()[:4] == b"\x89PNG"


def test_without_an_address_no_page_claims_one(html):
    assert not (html / "sitemap.xml").exists()
    text = (html / "book" / "intro.html").read_text()
    assert "example.invalid" not in text
    assert "og:url" not in text


def test_all_links_within_the_printed_book_lead_somewhere(html, root):
    soup = BeautifulSoup(print_page(html, pages(root)), "html.parser")
    names = [node["id"] for node in soup.find("main").find_all(id=True)]
    assert len(names) == len(set(names))
    links = [a["href"][1:] for a in soup.select("main a[href^='#']")]
    assert set(links) - set(names) == set()
    assert len(links) > 50
    for image in soup.find("main").find_all("img"):
        assert (html / image["src"]).is_file()
