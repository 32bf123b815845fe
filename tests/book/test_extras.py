"""What goes from a rendered site: only what no reader loads, and no pixel."""

import numpy as np
import pytest
from PIL import Image

from agop.book.extras import drop_unused, shrink_pictures

FONT = 'src:url(../vendor/a.woff2) format("woff2"),url(../vendor/a.ttf) '
CSS = FONT + 'format("truetype")}b{color:red}'


@pytest.fixture
def html(tmp_path):
    for folder in ("_static/styles", "_static/vendor", "_static/locales", "_images"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def test_fonts_go_where_a_smaller_form_is_there(html):
    (html / "_static/styles/theme.css").write_text(CSS)
    for name in ("a.woff2", "a.ttf", "alone.ttf", "theme.js.map"):
        (html / "_static/vendor" / name).touch()
    drop_unused(html)
    left = {path.name for path in (html / "_static/vendor").iterdir()}
    assert left == {"a.woff2", "alone.ttf"}
    css = (html / "_static/styles/theme.css").read_text()
    assert css == 'src:url(../vendor/a.woff2) format("woff2")}b{color:red}'
    assert not (html / "_static/locales").exists()


@pytest.mark.parametrize("alpha", [255, 128])
def test_pictures_lose_an_alpha_channel_only_if_it_is_empty(html, alpha):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 40, 4), dtype=np.uint8)
    pixels[..., 3] = 255
    pixels[0, 0, 3] = alpha
    path = html / "_images" / "a.png"
    Image.fromarray(pixels).save(path)
    before = path.stat().st_size
    shrink_pictures(html)
    with Image.open(path) as picture:
        assert picture.mode == ("RGB" if alpha == 255 else "RGBA")
        np.testing.assert_array_equal(np.asarray(picture.convert("RGBA")), pixels)
    assert (path.stat().st_size < before) == (alpha == 255)
