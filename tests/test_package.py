"""The package's front door."""

import subprocess
import sys

import pytest

import agop


@pytest.mark.parametrize("name", agop.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(agop, name).__doc__
    assert name in dir(agop)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'agop' has no attribute 'nothing'"):
        agop.nothing  # noqa: B018


def test_the_book_runs_without_torch():
    """`make site` has no torch; neither the command nor the checks may need it."""
    code = (
        "import sys; sys.modules['torch'] = sys.modules['sklearn'] = None; "
        "import agop.cli, agop.book.check, agop.book.site, agop.book.page"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
