"""Write constraints.txt from what is installed in this environment.

Left out is what torch itself pins exactly and only some platforms have.
"""

import re
import subprocess
import sys
from pathlib import Path

HEADER = """\
# Exact versions that the book was tested with (Python 3.11, Linux x86-64). Every
# installation takes them: make, environment.yml, CI. To refresh: make lock.
"""
LEFT_OUT = re.compile(r"(nvidia|cuda|triton|xrfm|pip\b|setuptools)")

command = [sys.executable, "-m", "pip", "freeze", "--exclude-editable"]
lines = subprocess.check_output(command, text=True).splitlines()
kept = [line for line in lines if "==" in line and not LEFT_OUT.match(line.lower())]
Path("constraints.txt").write_text(HEADER + "\n".join(kept) + "\n", encoding="utf-8")
