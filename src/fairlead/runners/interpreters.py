"""Programs that run scripts: which script that is, as far as their command line tells."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import msgspec

from .environment import MissingProgram


class _ScriptInterpreter(msgspec.Struct, frozen=True):
    """How a program that runs scripts is called: single letters, as they may be joined after one dash."""

    plain: str = ""  # options that only set something
    takes: str = ""  # ... that take an argument, which loads nothing
    code: str = ""  # ... whose argument is the code
    needs: str = ""  # the first word without which it also loads files of the folder that it runs in


_SHELL = _ScriptInterpreter("abefhkmnpuvxBCEHPT", "oO", "c")
_NODE = _ScriptInterpreter("", "", "ep")
_INTERPRETERS = {
    "python": _ScriptInterpreter("bBdEiIOPqsSuvx", "W", "c"), "perl": _ScriptInterpreter("acnpsStTuUvwWX", "", "eE"),
    "ruby": _ScriptInterpreter("aclnpsSvw", "", "e"), "php": _ScriptInterpreter("qn", "", "r"),
    "lua": _ScriptInterpreter("vE", "", "e"),
    "Rscript": _ScriptInterpreter(needs="--vanilla"), "node": _NODE, "bash": _SHELL, "dash": _SHELL, "sh": _SHELL,
    "zsh": _SHELL, "ksh": _SHELL,
}  # fmt: skip
# Not here, because a file in the folder they run in steers them: bun (bunfig.toml, .env), deno (deno.json), tsx.
_VERSION = re.compile(r"([A-Za-z]+)[\d.]*")


def script_of(argv: Sequence[str]) -> str | None:
    """The script that an interpreter is to run; "" if its code is on the command line; None if that is not known."""
    named = _VERSION.fullmatch(os.path.basename(argv[0]))
    known = _INTERPRETERS.get(named[1]) if named else None
    if known is None:
        return None
    if known.needs and list(argv[1:2]) != [known.needs]:
        return None
    words = iter(argv[2:] if known.needs else argv[1:])
    for word in words:
        if not word.startswith("-") or word == "-":
            return word if word != "-" else None
        for i, letter in enumerate(word[1:], 2):
            if letter in known.code:
                return ""
            if letter in known.takes:
                if i == len(word):
                    next(words, None)
                break
            if letter not in known.plain:
                return None
    return None


def scripts_of(argv: Sequence[str], cwd: str) -> list[str]:
    """The files that must be there. A script that is missing looks like exit 2, which is a veto."""
    script = script_of(argv)
    if not script:
        return []
    path = os.path.join(cwd, script)
    if not os.path.isfile(path):
        raise MissingProgram(f"script {script!r} is not in {cwd}", path)
    return [path]
