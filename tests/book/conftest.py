"""A book of one chapter in an empty folder, to run, break and publish."""

from pathlib import Path

import pytest

CHAPTER = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {name: python3, display_name: Python 3, language: python}
---

# A chapter

```{code-cell} ipython3
:tags: [parameters]

scale = "ci"  # which sizes
n = 3  # how many
widths = (8, 4)  # of the layers
```

```{code-cell} ipython3
from agop.book import Page

page = Page("one", scale=scale, seed=0)
total = sum(range(n))
print(f"total {total}")
```

```{code-cell} ipython3
page.claim(
    "R01", measured=f"{total}", control="-1", holds=total > 0, control_holds=False
)
page.glue("total", total)
```
"""

CLAIMS = """[papers.someone2024]
short = "Someone 2024"
title = "A paper"
year = 2024

[[claim]]
id = "R01"
paper = "someone2024"
where = "Fig. 1"
statement = "The sum is positive."
reported = "3"
kind = "value"
chapter = "one"

[[claim]]
id = "R02"
paper = "someone2024"
where = "Fig. 2"
statement = "Another thing."
reported = "a trend"
kind = "trend"
chapter = "two"
"""

README = """# A book

<!-- claims summary: generated -->
<!-- end of claims summary -->
"""


@pytest.fixture
def tiny_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of a book whose one chapter has never been run."""
    files = {
        "_toc.yml": "root: book/intro\nchapters:\n  - file: book/one\n",
        "README.md": README,
        "book/intro.md": "# Intro\n",
        "book/one.md": CHAPTER,
        "book/claims.toml": CLAIMS,
        "book/params/ci/one.yml": "n: 3\n",
        "book/params/laptop/one.yml": "n: 4\n",
        "book/params/paper/one.yml": "n: 5\nwidths: [1024]\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
