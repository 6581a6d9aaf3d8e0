"""Every variable that fairlead, its launcher, its interpreter or its shell reads, found in what reads them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import fairlead
from fairlead.hosts.clis import client as hook_client
from fairlead.hosts.clis import launcher
from fairlead.packs.protected_paths import MOVED
from fairlead.runners.environment import PASSED

SOURCES = Path(fairlead.__file__).parent
LOADER = ("LD_", "DYLD_")
"""What the dynamic loader obeys before a line of ours runs: see docs/threats.md."""
SHELL = ("CDPATH", "ENV", "BASH_ENV", "IFS", "OLDPWD", "PWD", "PS4", "POSIXLY_CORRECT", "LC_ALL", "LANGUAGE")


def read_in_python() -> set[str]:
    """The variables that the sources name: in `environ.get("X")`, `environ["X"]`, or in a list of such names."""
    found: set[str] = set()
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            named: Any = None
            if isinstance(node, ast.Call) and node.args and "environ" in ast.unparse(node.func):
                named = node.args[0]
            elif isinstance(node, ast.Subscript) and "environ" in ast.unparse(node.value):
                named = node.slice
            value = getattr(named, "value", None)
            text = value.decode() if isinstance(value, bytes) else value
            if isinstance(text, str) and re.fullmatch(r"[A-Z][A-Z0-9_]+", text):
                found.add(text)
    return found | {*PASSED, *MOVED, *hook_client.CLI_VARIABLES}


def read_by_launcher() -> set[str]:
    return set(re.findall(r"\$\{?([A-Z][A-Z0-9_]+)", launcher._TEXT))


def read_by_interpreter() -> set[str]:
    told = subprocess.run([sys.executable, "--help-env"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^(PYTHON[A-Z0-9]+)", told, re.MULTILINE))


VARIABLES = sorted(read_in_python() | read_by_launcher() | read_by_interpreter() | set(SHELL))
