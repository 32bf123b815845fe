"""What a reader's browser tells of one page, collected in a single visit."""

import gzip
import importlib.util
from pathlib import Path

PHONE = {"width": 390, "height": 844}
SERIOUS = ("serious", "critical")

# Text outside code and mathematics: MathJax leaves its source there if it fails.
TEXT = """() => {
    const copy = document.querySelector("main").cloneNode(true);
    copy.querySelectorAll("pre, code, script, mjx-container")
        .forEach(node => node.remove());
    return copy.textContent;
}"""
MODES = ("light", "dark")
# Nearly all of axe-core's time goes into the contrast of the many small elements of
# code and formulas. Elements of one kind have one colour: one of each is left to it.
CONTRAST = "color-contrast"
ONE_OF_EACH = """() => {
    const seen = new Set();
    const isNew = kind => !seen.has(kind) && seen.add(kind);
    const around = (node, where) => node.parentElement.closest(where)?.className;
    document.querySelectorAll("mjx-container").forEach(m =>
        isNew(`${m.parentElement.tagName} ${around(m, "[class]")}`)
            || m.replaceChildren());
    document.querySelectorAll("pre span").forEach(s =>
        isNew(`${s.className} in ${around(s, ".cell_input, .cell_output, div")}`)
            || s.replaceWith(...s.childNodes));
}"""
LISTS = {
    "pictures": ("main img", "all => all.map(i => [i.src, i.alt.trim()])"),
    "anchors": ("[id]", "all => all.map(e => e.id)"),
    "links": ("a[href]", "all => all.map(a => a.href)"),
    "levels": (
        "article :is(h1, h2, h3, h4)",
        "all => all.map(h => +h.tagName[1])",
    ),
    "maths": ("mjx-container", "all => all.length"),
    "maths_errors": ("mjx-merror, [data-mjx-error]", "all => all.length"),
}


def _axe_source():
    """Return axe-core, as the package for playwright carries it, or None."""
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None:
        return None
    folder = Path(found.submodule_search_locations[0])
    return (folder / "axe.min.js").read_text(encoding="utf-8")


AXE = _axe_source()


def look(visit):
    """Return what is seen on an opened page, on a desktop and on a phone."""
    page = visit.page
    seen = {
        "url": page.url,
        "bytes": sum(map(_sent, visit.answers)),  # before anything is scrolled
        "text": page.evaluate(TEXT),
        "troubles": list(visit.troubles),  # axe-core asks for more files later
        "external": list(visit.external),
    }
    for name, (selector, script) in LISTS.items():
        seen[name] = page.eval_on_selector_all(selector, script)
    desktop = page.viewport_size
    page.set_viewport_size(PHONE)
    for mode in MODES:
        switch(page, mode)
        seen[f"too_wide_{mode}"] = page.evaluate(
            "document.documentElement.scrollWidth - innerWidth"
        )
    page.set_viewport_size(desktop)
    return {**seen, **(_all_violations(page) if AXE else {})}


def _all_violations(page):
    """Return what axe-core finds in each mode; the page loses elements in the end."""
    page.evaluate(AXE)
    found = {}
    for mode in MODES:
        switch(page, mode)
        all_but = {"rules": {CONTRAST: {"enabled": False}}}
        found[f"violations_{mode}"] = _violations(page, all_but)
    page.evaluate(ONE_OF_EACH)
    for mode in MODES:
        switch(page, mode)
        found[f"violations_{mode}"] |= _violations(page, {"runOnly": [CONTRAST]})
    return found


def switch(page, mode):
    """Change to light or dark as the system's setting does, and wait for the page."""
    page.add_style_tag(content="* { transition: none !important; }")
    page.emulate_media(color_scheme=mode)
    page.wait_for_function(f"document.documentElement.dataset.theme == '{mode}'")


def _sent(response):
    """Return the size of an answer from a host that compresses text."""
    body = response.body()
    is_picture = "image/png" in response.headers.get("content-type", "")
    return len(body if is_picture else gzip.compress(body, 6))


def _violations(page, options):
    """Return the serious rules of axe-core that the page breaks, with places."""
    options = {"resultTypes": ["violations"], **options}
    result = page.evaluate("options => axe.run(document, options)", options)
    return {
        each["id"]: [" ".join(map(str, node["target"])) for node in each["nodes"][:3]]
        for each in result["violations"]
        if each["impact"] in SERIOUS
    }
