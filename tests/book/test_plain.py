"""MyST to plain Markdown, one construction at a time."""

import pytest

from agop.book.citations import cite, full_entry, read_references, short_authors
from agop.book.labels import Label, Labels
from agop.book.plain import LEFT_OVERS, Context, expand_macros, to_markdown

MACROS = {"R": r"\mathbb{R}", "T": r"{\mathsf{T}}", "norm": [r"\lVert #1 \rVert", 1]}


@pytest.fixture
def context(root):
    named = {
        "thm-one": Label("theorem", "", "3.1", "book/here", "thm-one"),
        "thm-far": Label("theorem", "", "7.2", "book/there", "thm-far"),
        "eq-one": Label("displaymath", "", "3.4", "book/here", "equation-eq-one"),
        "ex-one": Label("exercise", "", "3.1", "book/here", "ex-one"),
        "fig-one": Label("figure", "", "3.2", "book/here", "fig-one"),
        "page:book/there": Label("page", "Over there", "7", "book/there", ""),
    }
    ordered = {("book/here", "definition"): ["3.1", "3.2"]}
    return Context(
        page="book/here",
        labels=Labels(named, ordered),
        references=read_references(root / "book" / "references.bib"),
        macros=MACROS,
        glued={"slope": "-1.02"},
    )


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("see {eq}`eq-one` and {eq}`eq-one`", "see (3.4) and (3.4)"),
        ("by {prf:ref}`thm-one`, `{eq}`", "by Theorem 3.1, `{eq}`"),
        ("{numref}`fig-one`; {ref}`ex-one`", "Fig. 3.2; Exercise 3.1"),
        ("{ref}`the task <ex-one>`", "the task"),
        ("slope {glue:text}`slope` or {glue:text}`slope:.2f`", "slope -1.02 or -1.02"),
        ("an {term}`AGOP`, {term}`nulls <null>`", "an AGOP, nulls"),
        ("{doc}`there`, [that](there), [x](https://a.b)", None),
        ("$x \\in \\R^d$ but `\\R`", "$x \\in \\mathbb{R}^d$ but `\\R`"),
        ("(a-target)=\n# Title\n% a comment", "# Title"),
        ("$$\nx\n$$ (eq-one)", "$$\nx\n\\tag{3.4}\n$$"),
        ("```python\n{eq}`eq-one`  # \\R\n```", "```python\n{eq}`eq-one`  # \\R\n```"),
    ],
)
def test_inline(context, source, plain):
    plain = plain or "Over there, that, [x](https://a.b)"
    assert to_markdown(source, context).strip() == plain


def test_boxes_are_quotations_with_formulas_on_one_line(context):
    source = ":::{prf:theorem} Big\n:label: thm-one\n"
    source += "Let $x\n= 1$.\n\n$$\na\n$$ (eq-one)\n:::"
    assert to_markdown(source, context).splitlines() == [
        "> **Theorem 3.1** (Big)",
        ">",
        "> Let $x = 1$.",
        ">",
        "> $$ a \\tag{3.4} $$",
    ]


def test_blocks_without_a_label_are_numbered_in_order(context):
    source = ":::{prf:definition}\none\n:::\n\n:::{prf:definition} B\ntwo\n:::"
    text = to_markdown(source, context)
    assert "> **Definition 3.1**\n" in text
    assert "> **Definition 3.2** (B)\n" in text


def test_proofs_end_with_a_mark(context):
    assert to_markdown(":::{prf:proof}\nSo.\n:::", context) == "*Proof.* So. ∎\n"
    display = to_markdown(":::{prf:proof}\nAs\n\n$$\nx\n$$\n:::", context)
    assert display.endswith("$$\n\n∎\n")


def test_solutions_are_folded(context):
    text = to_markdown(":::{solution} ex-one\n:class: dropdown\nNo.\n:::", context)
    assert "<summary>Solution of Exercise 3.1</summary>\n\nNo.\n\n</details>" in text


def test_a_missing_label_is_an_error(context):
    with pytest.raises(KeyError):
        to_markdown("{eq}`eq-none`", context)


def test_links_lead_to_the_site_once_it_has_an_address(context):
    assert to_markdown("{prf:ref}`thm-far`", context) == "Theorem 7.2\n"
    context.site = "https://a.github.io/b/"
    expected = "[Theorem 7.2](https://a.github.io/b/book/there.html#thm-far)\n"
    assert to_markdown("{prf:ref}`thm-far`", context) == expected
    assert to_markdown("{prf:ref}`thm-one`", context) == "Theorem 3.1\n"


def test_macros_with_arguments_nest():
    text = r"\norm{W^\T \norm{x}} \Rightarrow \R n \norm z"
    assert expand_macros(text, MACROS) == (
        r"\lVert W^{\mathsf{T}} \lVert x \rVert \rVert \Rightarrow \mathbb{R} n "
        r"\lVert z \rVert"
    )


def test_citations(context):
    entries = context.references
    assert short_authors(entries["tansley2025"]) == "Tansley et al."
    assert cite(entries, ["tansley2025"], "t") == (
        "[Tansley et al. (2025)](https://arxiv.org/abs/2510.15563)"
    )
    assert cite(entries, ["cha2026", "tansley2025"], "p").count("; ") == 1
    assert "Boix-Adserà" in full_entry(entries["boix2025fact"])
    text = to_markdown("{cite:p}`cha2026`", context)
    assert text.startswith("([Cha et al., 2026](")
    assert context.cited == ["cha2026"]


@pytest.mark.parametrize(
    "left", ["{eq}`x`", "a {cite:p}`b`", ":::{note}", "(x)=", "$$ (eq)", "```{x}"]
)
def test_what_is_looked_for_is_found(left):
    assert LEFT_OVERS.search(left)
