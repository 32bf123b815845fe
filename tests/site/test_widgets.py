"""Widgets in a browser: they move, by keyboard too, and without scripts they show."""

import re

import numpy as np
import pytest

from agop.book import widgets
from agop.choices import Choice, all_choices

FRAMES = [
    {"at": 10 * i, "train": 1.0, "test": 0.5 + 0.1 * i, "matrix": [[1, 0], [0, i]]}
    for i in range(5)
]
DATA = {"title": "Time", "unit": "step", "caption": "A test.", "frames": FRAMES}


@pytest.fixture
def deep(visit):
    return visit("book/see-it-move.html").page


def test_decay_brings_balance_and_the_numbers_are_pythons(deep):
    told = deep.locator("figure.widget .widget-result")
    for decay, steps in ((0.1, 0), (0.0, -5), (0.3, 15)):
        slider = deep.get_by_role("slider", name="Weight decay")
        slider.focus()
        for _ in range(abs(steps)):
            deep.keyboard.press("ArrowLeft" if steps < 0 else "ArrowRight")
        _, cosines, imbalances = widgets.deep_linear_path(3, decay)
        numbers = re.findall(r"\d\.\d{4}", told.text_content())
        expected = [cosines[0], cosines[-1], imbalances[-1]]
        assert [float(n) for n in numbers] == pytest.approx(expected, abs=1e-4)


def test_depth_moves_the_curve(deep):
    line = deep.locator("figure.widget polyline").first
    before = line.get_attribute("points")
    deep.get_by_role("slider", name="Layers").focus()
    deep.keyboard.press("End")
    assert line.get_attribute("points") != before


@pytest.fixture
def alone(browser, root):
    """Return ``alone(html)``: a page with nothing but a widget and the script."""
    script = (root / "book" / "_assets" / "widgets.js").read_text(encoding="utf-8")
    page = browser.new_page()

    def alone(html):
        page.set_content(f"<main>{html}</main><script>{script}</script>")
        return page

    yield alone
    page.close()


def test_training_is_scrubbed_by_keyboard(alone):
    page = alone(widgets.scrub(DATA))
    page.get_by_role("slider").focus()
    for at, test in ((0, 50), (10, 60), (20, 70)):
        told = page.locator(".widget-result").text_content()
        assert told == f"step {at}: training 100.0 %, test {test}.0 %"
        page.keyboard.press("ArrowRight")
    assert page.get_by_role("slider").get_attribute("aria-valuetext") == "step 30"
    fills = page.locator("svg.widget-matrix rect").evaluate_all(
        "all => all.map(r => r.getAttribute('fill'))"
    )
    assert fills[1] == fills[2] == "rgb(247,247,247)"
    assert fills[0] != fills[3]


def test_each_definition_shows_its_numbers(alone):
    definitions = all_choices((1, 1 / 2))
    found = np.random.default_rng(0).uniform(-0.2, 1, (32, 3)).round(2)
    html = widgets.choices(definitions, found, {"one": found / 2, "two": -found}, "")
    page = alone(html)
    line = page.locator("polyline").first
    before = line.get_attribute("points")
    page.get_by_label("power of the AGOP").select_option("1/2")
    page.get_by_label("gradients").select_option("centred")
    page.get_by_label("null").select_option("two")
    row = found[definitions.index(Choice(power=0.5, centred=True))]
    shown = [f"{v:.2f}" for v in (*row, *-row)]
    told = page.locator(".widget-result").text_content()
    assert re.findall(r"-?\d\.\d\d", told) == shown
    assert line.get_attribute("points") != before


@pytest.mark.parametrize(
    ("page", "role", "count"),
    [("grokking", "slider", 2), ("the-ansatz", "combobox", 6)],
)
def test_chapters_have_their_widgets(visit, page, role, count):
    opened = visit(f"book/{page}.html").page
    assert opened.locator("figure.widget").get_by_role(role).count() == count


def test_a_drawing_is_seen_whole_on_a_phone(visit):
    page = visit("book/see-it-move.html", size=(390, 844)).page
    frame = page.locator("figure.widget .drawing-frame")
    assert frame.evaluate("f => f.scrollWidth - f.clientWidth") <= 1
    ends = page.locator("figure.widget svg text").evaluate_all(
        "all => all.map(t => [t.getBoundingClientRect(), t.textContent])"
        ".map(([r, text]) => [r.left, r.right, r.top, text])"
    )
    legend = [e for e in ends if e[2] < min(x[2] for x in ends) + 5 and len(e[3]) > 3]
    assert len(legend) == 2
    assert legend[0][1] < legend[1][0] - 15  # a piece of its line stands between


def test_in_a_cell_output_it_is_legible_in_dark_mode(visit):
    """The theme gives such outputs dark text, on the light card of a picture."""
    page = visit("book/see-it-move.html", dark=True).page
    colours = """() => {
        const controls = document.querySelector(".widget-controls");
        return [getComputedStyle(controls).color,
                getComputedStyle(controls.closest("figure").parentElement).background];
    }"""
    before = page.evaluate(colours)
    page.evaluate("""() => {
        const figure = document.querySelector("figure.widget");
        const cell = document.createElement("div");
        const output = document.createElement("div");
        cell.className = "cell_output";
        output.className = "output text_html";
        figure.replaceWith(cell);
        cell.append(output);
        output.append(figure);
    }""")
    assert page.evaluate(colours) == before


def test_without_scripts_there_is_a_picture(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/book/see-it-move.html")
    assert page.locator("figure.widget svg.drawing[role=img]").is_visible()
    assert page.locator("input[type=range]").count() == 0
    context.close()
