"""The packages of the CLIs: `mapping` and `settings` in each, `transcript` and `probe` where the CLI has them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Literal

Part = Literal["mapping", "settings", "transcript", "probe"]


def load_part(cli: str, part: Part) -> ModuleType:
    """Import one module of a CLI's package."""
    return import_module(f"{__package__}.{cli}.{part}")


def has_part(cli: str, part: Part) -> bool:
    """Whether a CLI's package has this module."""
    return find_spec(f"{__package__}.{cli}.{part}") is not None
