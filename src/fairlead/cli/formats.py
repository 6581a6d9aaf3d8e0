"""The formats in which `diff`, `replay` and `test --cases` show what they have found, and their options."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import print_json

if TYPE_CHECKING:
    from ..replay.published import PublishedReport

NAMES = {
    "junit": "print JUnit XML: a class is a test case",
    "sarif": "print SARIF, for code scanning",
    "github": "print annotations for GitHub Actions",
    "markdown": "print a comment for a pull request",
    "html": "print one static page",
}


def add_formats(parser: argparse.ArgumentParser) -> None:
    """The options of the formats. All but JSON are made to be published."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--json", action="store_true", help="print JSON, with the names of users and folders")
    for name, words in NAMES.items():
        choice.add_argument(f"--{name}", dest="format", action="store_const", const=name, help=words)
    parser.add_argument(
        "--output", action="append", default=[], metavar="FORMAT=FILE",
        help=f"write this format to a file as well: {', '.join(NAMES)}; may be repeated",
    )  # fmt: skip
    parser.add_argument("--who", action="store_true", help="name users and folders in what is published")


def outputs_of(options: argparse.Namespace) -> list[tuple[str, Path]]:
    """The formats and files of --output. Raises `FairleadError` for a mistake, before anything is judged."""
    from ..errors import FairleadError, UnknownName

    found = []
    for text in options.output:
        name, equals, file = text.partition("=")
        if name not in NAMES:
            raise UnknownName("format", name, tuple(NAMES))
        if not equals or not file:
            raise FairleadError(f"--output takes FORMAT=FILE, such as {name}=report.{name}, not {text!r}")
        if not Path(file).absolute().parent.is_dir():
            raise FairleadError(f"--output {text}: there is no folder {Path(file).parent}")
        found.append((name, Path(file)))
    return found


def show(options: argparse.Namespace, found: PublishedReport, data: dict[str, Any], lines: Iterable[str]) -> None:
    """Print a report in the chosen format, and write the files of --output."""
    from ..errors import FairleadError
    from ..replay.formats import FORMATS
    from ..replay.published import relative_places

    found.places = relative_places(found.places, repository_root())
    for name, file in outputs_of(options):
        try:
            file.write_text(FORMATS[name](found) + "\n", encoding="utf-8")
        except OSError as error:
            raise FairleadError(f"{file} cannot be written: {error.strerror}") from None
    if options.json:
        print_json(data)
    elif options.format is not None:
        print(FORMATS[options.format](found))
    else:
        print("\n".join(lines))


def repository_root() -> Path:
    """The folder from which the files of reports are named: the repository around, or the current folder."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
