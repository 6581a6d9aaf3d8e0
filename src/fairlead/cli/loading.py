"""What several commands need: where to look, and the configuration found there."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from .display import escape, paint

if TYPE_CHECKING:
    from ..config.layers import Config


def add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-C", dest="folder", metavar="DIR", default=".", help="look from this folder (default: here)")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def read_config(options: argparse.Namespace) -> Config:
    """The configuration, mistakes and all. What of it is not in force is said on stderr."""
    from ..config.layers import find, read

    config = read(find(options.folder))
    for line in config.untrusted:
        print(f"fairlead: {escape(line)}", file=sys.stderr)
    return config


def say_never_trusted(config: Config) -> None:
    """Say on stdout, where it cannot be missed, which hooks of a project do not run."""
    for line in config.never_trusted:
        print(paint(f"NOT TRUSTED: {escape(line)}", "red"))


def sound_config(options: argparse.Namespace) -> Config:
    """The configuration, if there is no mistake in it."""
    from ..config.document import ConfigError

    config = read_config(options)
    if config.mistakes:
        raise ConfigError(config.mistakes)
    return config


def quiet_log() -> None:
    """What is logged about the configuration has been said already, and said safely."""
    from logging import NullHandler

    from ..logs import logger

    logger.addHandler(NullHandler())
