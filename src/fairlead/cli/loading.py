"""What several commands share: the folder to look in, its configuration, and the names of hosts."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ..display import escape, paint

if TYPE_CHECKING:
    from ..config.layers import Config


def add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-C",
        dest="folder",
        metavar="DIR",
        default=".",
        help="the folder (default: the current one)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def read_config(options: argparse.Namespace) -> Config:
    """Read the configuration, mistakes included. Print to stderr which files are not in force."""
    from ..config.layers import find, read

    config = read(find(options.folder))
    for line in config.untrusted:
        print(f"fairlead: {escape(line)}", file=sys.stderr)
    return config


def say_never_trusted(config: Config) -> None:
    """Print to stdout which hooks of a project do not run, because no human has trusted them."""
    for line in config.never_trusted:
        print(paint(f"NOT TRUSTED: {escape(line)}", "red"))


def sound_config(options: argparse.Namespace) -> Config:
    """Read the configuration. Raises `ConfigError` if there is a mistake in it."""
    from ..config.document import ConfigError

    config = read_config(options)
    if config.mistakes:
        raise ConfigError(config.mistakes)
    return config


def host_name(name: str | None, where: str = "") -> str | None:
    """The name of a host as steps have it. Raises if fairlead knows no such host: it may be misspelt."""
    from ..errors import UnknownName
    from ..hosts.clis.mapping import NAMES, canonical_name
    from ..hosts.frameworks.framework import ALL as FRAMEWORKS

    found, known = canonical_name(name), (*NAMES, *FRAMEWORKS, "loop")
    if name is not None and found not in known:
        raise UnknownName("host", name, known, where)
    return found


def quiet_log() -> None:
    """Keep log messages off stderr: commands print what they say themselves, made safe for a terminal."""
    from logging import NullHandler

    from ..redaction.logs import logger

    logger.addHandler(NullHandler())
