"""MyST Markdown as plain Markdown: boxes, references and numbers resolved.

What a page's source says in Sphinx's terms ({prf:ref}, {eq}, {cite:t}, {glue:text},
theorem boxes, macros) becomes what Markdown shows anywhere: "Theorem 3.1", "(3.2)",
"A et al. (2024)", a number, a quotation with a bold heading, standard TeX.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agop.book import citations
from agop.book.labels import Labels

_FENCE = re.compile(r"^(?P<fence>:{3,}|`{3,})\{(?P<name>[\w:-]+)\}\s*(?P<title>.*)$")
_ROLE = re.compile(r"\{(?P<role>[a-z]+(?::[a-z]+)?)\}`(?P<text>[^`]+)`")
# Code, or a role: whichever begins first.
_TICKS = re.compile(
    r"(?ms)(?P<fenced>^(?P<f>```+|~~~+).*?^(?P=f)[ \t]*$)"
    rf"|{_ROLE.pattern}|(?P<code>`[^`\n]+`)"
)
_MATHS = re.compile(r"(?s)\$\$.+?\$\$|(?<![\\$])\$(?!\s)[^$]+?(?<!\s)\$")
_NAMED = re.compile(r"(?P<text>.*?)\s*<(?P<label>[^<>]+)>", re.DOTALL)
# What may not be left in a flattened notebook: MyST, and the book's own macros.
LEFT_OVERS = re.compile(
    r"^:{3,}|\{[a-z]+(?::[a-z]+)?\}`|^`{3,}\{|^\([\w-]+\)=|\$\$ \(", re.MULTILINE
)


@dataclass
class Context:
    """What a chapter's text refers to."""

    page: str  # "book/grokking"
    labels: Labels
    references: Mapping[str, Any]
    macros: Mapping[str, Any]
    glued: Mapping[str, str]
    site: str = ""
    cited: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def next_number(self, kind: str) -> str:
        """Return the number of the next block of a kind, in the text's order."""
        self.seen[kind] += 1
        numbers = self.labels.ordered.get((self.page, kind), [])
        place = self.seen[kind] - 1
        return numbers[place] if place < len(numbers) else ""


def expand_macros(text: str, macros: Mapping[str, Any]) -> str:
    """Replace the book's macros by plain TeX.

    >>> macros = {"R": r"\\mathbb{R}", "norm": [r"\\lVert #1 \\rVert", 1]}
    >>> print(expand_macros(r"$\\norm{x_{1}} \\in \\R^d$", macros))
    $\\lVert x_{1} \\rVert \\in \\mathbb{R}^d$
    """
    names = "|".join(sorted(map(re.escape, macros), key=len, reverse=True))
    pattern = re.compile(rf"\\({names})(?![A-Za-z])\s*" if names else r"(?!)")
    found = pattern.search(text)
    while found:
        macro = macros[found[1]]
        body, count = (macro, 0) if isinstance(macro, str) else macro[:2]
        end, rest = found.end(), ""
        if not count:  # a space after a bare macro may separate letters
            end = found.start(1) + len(found[1])
        for place in range(1, count + 1):
            argument, end = _argument(text, end)
            body = body.replace(f"#{place}", argument)
        if not count and text[end : end + 1].isalpha() and body[-1:].isalpha():
            rest = " "
        text = text[: found.start()] + body + rest + text[end:]
        found = pattern.search(text, found.start())
    return text


def _argument(text: str, start: int) -> tuple[str, int]:
    """Return the TeX argument at ``start``, and where it ends."""
    if text[start] != "{":
        return text[start], start + 1
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start + 1 : place], place + 1
    raise ValueError(f"unbalanced braces after {text[start : start + 20]!r}")


def to_markdown(text: str, context: Context) -> str:
    """Return a Markdown cell of a chapter without anything that needs MyST."""
    lines = _without_marks(text.splitlines())
    out: list[str] = []
    plain: list[str] = []

    def flush() -> None:
        if plain:
            out.append(_inline("\n".join(plain), context))
            plain.clear()

    while lines:
        line = lines.pop(0)
        opening = _FENCE.match(line)
        if opening:
            flush()
            title, options, body = _directive(opening, lines)
            out.append(_block(opening["name"], title, options, body, context))
        else:
            plain.append(line)
    flush()
    return "\n".join(out).strip() + "\n"


def _without_marks(lines: list[str]) -> list[str]:
    """Drop targets ``(label)=`` and comments."""
    return [x for x in lines if not re.match(r"^(\([\w-]+\)=|%\s.*)$", x)]


def _directive(
    opening: re.Match[str], lines: list[str]
) -> tuple[str, dict[str, str], str]:
    """Take a directive's options and body off ``lines``."""
    close = re.compile(rf"^{opening['fence'][0]}{{{len(opening['fence'])},}}\s*$")
    body: list[str] = []
    while lines and not close.match(lines[0]):
        body.append(lines.pop(0))
    if lines:
        lines.pop(0)
    options = {}
    while body and (option := re.match(r"^:([\w-]+):\s*(.*)$", body[0])):
        options[option[1]] = option[2]
        body.pop(0)
    return opening["title"].strip(), options, "\n".join(body).strip()


def _block(
    name: str, title: str, options: dict[str, str], body: str, context: Context
) -> str:
    """Return one directive as plain Markdown."""
    kind = name.removeprefix("prf:")
    inside = to_markdown(body, context).strip()
    if kind == "proof":
        space = "\n\n" if inside.endswith("$$") else " "
        return f"*Proof.* {inside}{space}∎\n"
    if kind == "solution":
        solved = context.labels.find(title).shown
        summary = f"<details><summary>Solution of {solved}</summary>"
        return f"{summary}\n\n{inside}\n\n</details>\n"
    if name in ("admonition", "note", "tip", "warning", "important"):
        heading = title or name.capitalize()
    elif kind in ("widget", "claims-table", "claims-summary"):
        return "*(Shown on the book's page.)*\n"
    else:
        number = context.next_number(kind)
        if "label" in options:
            number = context.labels.find(options["label"]).number
        heading = f"{kind.capitalize()} {number}".strip()
        if title:
            heading += f"** ({_inline(title, context)})**"
    return _quoted(f"**{heading}**\n\n{inside}".replace("****", "")) + "\n"


def _quoted(text: str) -> str:
    """Return ``text`` as a block quotation.

    Formulas are put on one line each: Jupyter takes them out of the text before it
    reads Markdown, quotation marks included.
    """
    joined = _MATHS.sub(lambda m: re.sub(r"\s*\n\s*", " ", m[0]), text)
    return "\n".join(f"> {line}".rstrip() for line in joined.splitlines())


def _inline(text: str, context: Context) -> str:
    """Resolve roles, links, numbers of equations and macros; leave code alone."""
    kept: list[str] = []

    def tick(match: re.Match[str]) -> str:
        if match["role"]:
            return _role(match["role"], match["text"], context)
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    text = _TICKS.sub(tick, text)
    text = re.sub(
        r"\$\$ \((?P<label>[\w-]+)\)",
        lambda m: f"\\tag{{{context.labels.find(m['label']).number}}}\n$$",
        text,
    )
    text = re.sub(
        r"(?<!!)\[([^\]]+)\]\((?!https?:|#|<)([\w./-]+)(?:#([\w-]+))?\)",
        lambda m: _link(m[1], f"book/{m[2].removesuffix('.md')}", m[3] or "", context),
        text,
    )
    text = _MATHS.sub(lambda m: expand_macros(m[0], context.macros), text)
    return re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], text)


def _role(role: str, content: str, context: Context) -> str:
    """Return one role as plain Markdown."""
    if role.startswith("cite:"):
        keys = [key.strip() for key in content.split(",")]
        context.cited += [key for key in keys if key not in context.cited]
        return citations.cite(context.references, keys, role[-1])
    if role.startswith("glue"):
        return context.glued[re.split(r":(?!:)", content.split("::")[-1])[0]]
    named = _NAMED.fullmatch(content)
    text, target = (named["text"], named["label"]) if named else ("", content)
    if role == "term":
        return text or target
    if role == "doc":
        target = f"page:book/{target.removeprefix('/book/')}"
    label = context.labels.find(target)
    if role == "numref" and text:
        shown = text.replace("%s", label.number).replace("{number}", label.number)
    else:
        shown = text or label.shown
    if label.page == context.page:
        return shown
    return _link(shown, label.page, label.anchor, context)


def _link(text: str, page: str, anchor: str, context: Context) -> str:
    """Link to a page of the site, once the site has an address."""
    if not context.site:
        return text
    return f"[{text}]({context.site}{page}.html{f'#{anchor}' if anchor else ''})"
