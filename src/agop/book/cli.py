"""``agop book run|publish|golden|refresh|check|status|render|pdf|site``."""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from agop.book import publish as publishing
from agop.book.chapters import choose, pages
from agop.book.check import problems
from agop.book.layout import SCALES, BookError, find_root
from agop.book.printing import write_pdf
from agop.book.readme import write_readme
from agop.book.records import PUBLISHED, runs_shown
from agop.book.runner import run
from agop.book.scoreboard import status, summary_line, text_table
from agop.book.site import publish_site, render


def add_parser(commands: Any) -> None:
    """Add ``book`` and its sub-commands to the ``agop`` command."""
    book = commands.add_parser("book", help="run, check and render the book")
    verbs = book.add_subparsers(dest="verb", required=True)

    def verb(name: str, action: Callable[[argparse.Namespace], int], help: str) -> Any:
        parser = verbs.add_parser(name, help=help, description=help)
        parser.set_defaults(run=lambda args: _guarded(action, args))
        return parser

    for name, action, help in (
        ("run", _run, "execute chapters into _build/run/SCALE"),
        ("publish", _publish, "execute chapters and commit them as the site's pages"),
        ("golden", _golden, "execute chapters at ci scale as references for nbval"),
    ):
        parser = verb(name, action, help)
        parser.add_argument("chapters", nargs="*", help="stems; all by default")
        parser.add_argument("--jobs", type=int, help="processes side by side")
        if name != "golden":
            default = "ci" if name == "run" else "laptop"
            parser.add_argument("--scale", choices=SCALES, default=default)
        if name != "run":
            help = "take the last complete runs, if they are of these sources"
            parser.add_argument("--reuse", action="store_true", help=help)
    refresh = verb("refresh", _refresh, "bring edited prose into committed notebooks")
    refresh.add_argument("chapters", nargs="*")
    verb("check", _check, "say what is stale, missing or unknown")
    parser = verb("status", _status, "print the state of every claim")
    parser.add_argument("--json", action="store_true", help="as a list of objects")
    parser.add_argument("--write", action="store_true", help="update the README")
    parser = verb("render", _render, "render the site into _build/html")
    parser.add_argument("--runs", choices=(PUBLISHED, *SCALES), default=PUBLISHED)
    verb("pdf", _pdf, "print the rendered site as one PDF")
    verb("site", _site, "build all that goes to a static host")


def _guarded(action: Callable[[argparse.Namespace], int], args: Any) -> int:
    """Run one verb; an author's mistake ends in its message, not a traceback."""
    try:
        return action(args)
    except BookError as error:
        print(f"agop book {args.verb}: {error}", file=sys.stderr)
        return 1


def _run(args: argparse.Namespace) -> int:
    run(choose(find_root(), args.chapters), args.scale, args.jobs)
    return 0


def _publish(args: argparse.Namespace) -> int:
    chapters = choose(find_root(), args.chapters)
    if not args.reuse:
        run(chapters, args.scale, args.jobs)
    for chapter in chapters:
        publishing.publish(chapter, args.scale)
    write_readme(find_root())
    return 0


def _golden(args: argparse.Namespace) -> int:
    chapters = choose(find_root(), args.chapters)
    if not args.reuse:
        run(chapters, "ci", args.jobs)
    for chapter in chapters:
        publishing.make_reference(chapter)
    write_readme(find_root())
    return 0


def _refresh(args: argparse.Namespace) -> int:
    for chapter in choose(find_root(), args.chapters):
        for path in publishing.refresh_prose(chapter):
            print(path)
    return 0


def _check(args: argparse.Namespace) -> int:
    found = list(problems(find_root()))
    for line in found:
        print(line)
    return 1 if found else 0


def _status(args: argparse.Namespace) -> int:
    root = find_root()
    if args.write:
        write_readme(root)
    rows = status(root)
    print(
        json.dumps(rows, indent=2, ensure_ascii=False)
        if args.json
        else text_table(rows)
    )
    return 0


def _pdf(args: argparse.Namespace) -> int:
    root = find_root()
    html = root / "_build" / "html"
    if not (html / "index.html").is_file():
        raise BookError("_build/html is missing: run `agop book render` first")
    print(write_pdf(html, pages(root)))
    return 0


def _site(args: argparse.Namespace) -> int:
    print(publish_site(find_root()))
    return 0


def _render(args: argparse.Namespace) -> int:
    root = find_root()
    page = render(root, args.runs)
    print(f"page    {page}")
    print(f"claims  {summary_line(status(root, runs_shown(root, args.runs)))}")
    return 0
