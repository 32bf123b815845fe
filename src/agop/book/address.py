"""The book's public address: one setting, from which every link is made."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import yaml

from agop.book.layout import BookError

PLACEHOLDER = "example.invalid"
BRANCH = "gh-pages"  # what the static host serves, and what Colab opens


@dataclass(frozen=True)
class Address:
    """Where the repository is, as ``repository.url`` in ``_config.yml`` says.

    >>> Address("https://github.com/someone/book").site
    'https://someone.github.io/book/'
    >>> Address("https://example.invalid/owner/repository").is_set
    False
    """

    repository: str

    @property
    def is_set(self) -> bool:
        """Whether it is an address, and not the placeholder."""
        return PLACEHOLDER not in self.repository

    @property
    def _parts(self) -> tuple[str, str]:
        match = re.fullmatch(
            r"https://github\.com/([\w.-]+)/([\w.-]+?)/?", self.repository
        )
        if match is None:
            raise BookError(
                "_config.yml: repository.url must be of the form "
                f"https://github.com/OWNER/NAME, got {self.repository!r}"
            )
        return match[1], match[2]

    @property
    def site(self) -> str:
        """The rendered book, with a slash at its end; empty while there is none."""
        if not self.is_set:
            return ""
        owner, name = self._parts
        return f"https://{owner}.github.io/{name}/"

    def colab(self, chapter: str) -> str:
        """The address at which Colab opens a chapter's notebook."""
        owner, name = self._parts
        return (
            f"https://colab.research.google.com/github/{owner}/{name}"
            f"/blob/{BRANCH}/notebooks/{chapter}.ipynb"
        )

    def required(self) -> "Address":
        """Return this address, if it is one.

        Raises
        ------
        BookError
            While ``_config.yml`` still holds the placeholder, or another host.
        """
        if not self.is_set:
            raise BookError(
                "_config.yml: repository.url is still the placeholder; set it to the "
                "repository's address (https://github.com/OWNER/NAME) to publish"
            )
        _ = self._parts
        return self


def read_address(root: Path) -> Address:
    """Return the address that ``_config.yml`` gives."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    return Address(str(config["repository"]["url"]))


def release_tag(root: Path) -> str:
    """Return the tag of this version: what a notebook of this site fetches."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    return f"v{tomllib.loads(text)['project']['version']}"
