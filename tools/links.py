"""Ask every address that a rendered site leads to; list those that do not answer.

Usage: python tools/links.py FOLDER. Exit status 1 if an address is gone (404, 410, or
no such host); refusals of robots and slow hosts are only told.
"""

import re
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path

LINK = re.compile(r'<a\s[^>]*href="(https?://[^"#]+)')
AGENT = {"User-Agent": "Mozilla/5.0 (link check of a book)"}
GONE = (404, 410)


def addresses(folder: Path) -> list[str]:
    """Return every external address in the pages below ``folder``."""
    found: set[str] = set()
    for page in folder.rglob("*.html"):
        found |= set(map(unescape, LINK.findall(page.read_text(encoding="utf-8"))))
    return sorted(found)


def ask(address: str) -> tuple[str, str]:
    """Return what is wrong with an address ("" if nothing), and whether it is gone."""
    request = urllib.request.Request(address, headers=AGENT)
    try:
        with urllib.request.urlopen(request, timeout=30):
            return "", ""
    except urllib.error.HTTPError as error:
        return f"{error.code}", "gone" if error.code in GONE else ""
    except urllib.error.URLError as error:
        return str(error.reason), "gone" if "Name or service" in str(error) else ""
    except OSError as error:
        return str(error), ""


def main() -> int:
    """Ask all addresses, a few at a time."""
    every = addresses(Path(sys.argv[1]))
    with ThreadPoolExecutor(8) as pool:
        answers = dict(zip(every, pool.map(ask, every), strict=True))
    for address, (trouble, gone) in answers.items():
        if trouble:
            print(f"{gone or 'told':<5} {trouble:<30.30} {address}")
    print(f"{len(every)} addresses")
    return int(any(gone for _, gone in answers.values()))


if __name__ == "__main__":
    sys.exit(main())
