"""``agop sweep``: the command line; what it does is in ``agop.tabular.commands``."""

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction") -> None:
    """Add ``sweep`` and its sub-commands; each sets ``run(args) -> exit status``."""
    sweep = subparsers.add_parser("sweep", help="methods on many tables")
    commands = sweep.add_subparsers(dest="sweep_command", required=True)

    run = commands.add_parser("run", help="run what is missing")
    run.add_argument("journal", type=Path, help="file of records, made if need be")
    run.add_argument("--methods", nargs="+", default=["rfm", "laplace"], metavar="NAME")
    run.add_argument(
        "--tables",
        nargs="+",
        default=["uci"],
        metavar="NAME",
        help="names for agop.datasets.load; uci stands for all mirrored UCI sets",
    )
    run.add_argument("--max-rows", type=int, help="leave larger tables out")
    run.add_argument("--resume", action="store_true", help="go on with the journal")
    run.add_argument("--retry-failed", action="store_true", help="failed tasks too")
    run.add_argument("--workers", type=int, default=2, help="processes; 0: this one")
    run.add_argument("--threads", type=int, default=1, help="threads of each worker")
    run.add_argument("--scheduler", metavar="tcp://…", help="a Dask cluster instead")
    run.set_defaults(run=_later("run"))

    table = commands.add_parser("table", help="write the results as CSV")
    table.add_argument("journal", type=Path)
    table.add_argument(
        "--output",
        type=Path,
        help="file instead of the screen, with a .json of its provenance beside it",
    )
    table.set_defaults(run=_later("table"))

    second = commands.add_parser("second", help="the benchmark of Grinsztajn et al.")
    second.add_argument("journal", type=Path, help="made if need be, else gone on with")
    second.add_argument(
        "--tables",
        nargs="+",
        required=True,
        metavar="NAME",
        help="of the mirror; openml/<number>; suite/<334, 335, 336 or 337>",
    )
    trees = ["rfm", "laplace", "forest", "boosting"]
    second.add_argument("--methods", nargs="+", default=trees, metavar="NAME")
    second.add_argument(
        "--rows",
        type=int,
        default=10_000,
        help="rows to learn from at most: 10000 is medium, 50000 large",
    )
    second.add_argument("--splits", type=int, default=5, help="at most")
    second.add_argument("--numeric", action="store_true", help="no categories")
    second.add_argument("--output", type=Path, help="file of rows, instead of screen")
    second.set_defaults(run=_later("second"))

    show = commands.add_parser("methods", help="the methods there are")
    show.set_defaults(run=_later("methods"))


def _later(name: str) -> Callable[[argparse.Namespace], int]:
    """Return the command of this name, imported when it runs.

    The commands need torch and scikit-learn, and the rest of ``agop`` runs without.
    Errors that a user can mend become a message and a status.
    """

    def run(args: argparse.Namespace) -> int:
        try:
            commands = import_module("agop.tabular.commands")
            status: int = getattr(commands, name)(args)
        except (ValueError, RuntimeError, ModuleNotFoundError) as error:
            sys.stderr.write(f"agop sweep: {error}\n")
            return 2
        except KeyboardInterrupt:
            sys.stderr.write("agop sweep: interrupted; what was finished is kept\n")
            return 130
        return status

    return run
