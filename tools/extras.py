"""Print the requirements of one extra in pyproject.toml, without the package's own.

pip can install a package with an extra, but not an extra alone; rendering the book
needs the extra ``book`` and no torch.
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
print(*project["optional-dependencies"][sys.argv[1]], sep="\n")
