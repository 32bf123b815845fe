"""``agop data``: list, fetch and verify data sets."""

import argparse
import sys
from collections.abc import Callable

from agop.datasets.errors import DatasetError
from agop.datasets.registry import Entry, entry, names
from agop.datasets.shipped import SHIPPED
from agop.datasets.storage import in_mirror, locate, official_path
from agop.datasets.uci import verify_uci
from agop.datasets.verification import verify_present

Run = Callable[[argparse.Namespace], int]


def add_parser(subparsers: "argparse._SubParsersAction") -> None:
    """Add ``data`` and its sub-commands; each sets ``run(args) -> exit status``."""
    data = subparsers.add_parser("data", help="list, fetch and verify data sets")
    commands = data.add_subparsers(dest="data_command", required=True)

    show = commands.add_parser("list", help="what there is, and from where")
    show.set_defaults(run=_guarded(_list))

    fetch = commands.add_parser("fetch", help="have files here before they are needed")
    fetch.add_argument("names", nargs="+", metavar="NAME")
    fetch.add_argument(
        "--official", action="store_true", help="even if a local mirror has them"
    )
    fetch.set_defaults(run=_guarded(_fetch))

    check = commands.add_parser("verify", help="compare files here with checksums")
    check.add_argument("names", nargs="*", metavar="NAME")
    check.set_defaults(run=_guarded(_verify))


def _guarded(command: Run) -> Run:
    """Turn the errors that a user can mend into a message and a status."""

    def run(args: argparse.Namespace) -> int:
        try:
            return command(args)
        except (ValueError, DatasetError) as error:
            sys.stderr.write(f"agop data: {error}\n")
            return 2 if isinstance(error, ValueError) else 1

    return run


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _list(args: argparse.Namespace) -> int:
    entries = [entry(name) for name in names()]
    rows = [("name", "rows", "from", "licence")]
    rows += [(e.name, e.rows, origin(e), e.licence) for e in entries]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:3]]
    for *cells, licence in rows:
        padded = [cell.ljust(w) for cell, w in zip(cells, widths, strict=True)]
        _say("  ".join([*padded, licence]))
    return 0


def origin(e: Entry) -> str:
    """Say in a word or two where a load would take the files from now."""
    if e.name in SHIPPED:
        return "scikit-learn"
    if in_mirror(e.mirror):
        return "mirror"
    e = _fetchable(e)
    if not e.official:
        return "needs a mirror"
    if all(official_path(e, file).is_file() for file in e.official):
        return "cache"
    sizes = [file.size for file in e.official if file.size is not None]
    return f"download {sum(sizes) / 1e6:,.0f} MB" if sizes else "download"


def _fetchable(e: Entry) -> Entry:
    """Return the entry that has the official files of this one."""
    return entry("stl10") if e.name == "stl10-airplane-truck" else e


def _fetch(args: argparse.Namespace) -> int:
    source = "official" if args.official else "auto"
    for name in args.names:
        if name in SHIPPED:
            _say(f"{name}: shipped with scikit-learn")
        elif name.startswith("uci/"):
            verify_uci(name.removeprefix("uci/"), source=source)
            _say(f"{name}: here")
        else:
            e = entry(name)
            found = locate(e if in_mirror(e.mirror) else _fetchable(e), source)
            for path in found.paths.values():
                _say(f"{name}: {path} ({found.source})")
    return 0


def _verify(args: argparse.Namespace) -> int:
    """Verify what is here. A set that was asked for by name must be here."""
    failed = False
    for name in args.names or names():
        findings = list(verify_present(name))
        for finding in findings:
            _say(f"{finding.status:8}{finding.what}  {finding.detail}".rstrip())
        if args.names and not findings and name not in SHIPPED:
            _say(f"absent  {name}  no file of it is here")
            failed = True
        failed |= any(finding.status == "wrong" for finding in findings)
    return 1 if failed else 0
