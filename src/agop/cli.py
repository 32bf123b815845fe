"""The ``agop`` command: ``agop data …``, ``agop sweep …`` and ``agop book …``."""

import argparse
import os
import sys
from collections.abc import Sequence

from agop import __version__
from agop.book import cli as book_cli
from agop.datasets import cli as data_cli
from agop.tabular import cli as sweep_cli


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(prog="agop", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    data_cli.add_parser(commands)
    sweep_cli.add_parser(commands)
    book_cli.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    args = build_parser().parse_args(argv)
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("agop: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # a reader such as `head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


if __name__ == "__main__":
    sys.exit(main())
