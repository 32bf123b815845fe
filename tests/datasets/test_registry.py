import re

import pytest

from agop.datasets import registry
from agop.datasets.catalogue import _LOADERS


def every_file():
    for name in registry.names():
        e = registry.entry(name)
        yield from ((name, file) for file in (*e.official, *e.mirror))


def test_every_entry_has_its_texts():
    for name in registry.names():
        e = registry.entry(name)
        assert all([e.title, e.rows, e.licence, e.citation, e.homepage]), name


@pytest.mark.parametrize(("name", "file"), list(every_file()))
def test_files_are_well_formed(name, file):
    if (name, file.name) == ("uci121", "data.tar.gz"):
        assert file.checksum is None  # nobody published one: do not make one up
    else:
        form = r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}"
        assert re.fullmatch(form, file.checksum)
        assert file.size > 0
    for url in file.urls:
        assert re.match("https?://", url)


def test_official_files_have_addresses_and_mirrored_ones_have_none():
    for name in registry.names():
        e = registry.entry(name)
        assert all(file.urls for file in e.official)
        assert not any(file.urls for file in e.mirror)


def test_every_entry_has_a_loader_and_the_other_way_round():
    loaders = {n for n in _LOADERS if not n.startswith("uci/")}
    drawn = {"faces"}  # by the package itself: no source to register
    assert set(registry.names()) - {"uci121"} == loaders - drawn
    assert len(_LOADERS) - len(loaders) == 121


def test_lossy_is_said_of_jpeg_copies_only():
    lossy = [n for n in registry.names() if registry.entry(n).lossy]
    assert lossy == ["cifar10-jpeg"]


def test_an_unknown_name_suggests_another():
    with pytest.raises(
        ValueError, match="no data set is named 'mnits'; there is mnist"
    ):
        registry.entry("mnits")
