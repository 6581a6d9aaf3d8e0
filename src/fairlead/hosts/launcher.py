"""The launcher: what an agent CLI really starts, and what still refuses when everything behind it is gone.

It is a shell script with absolute paths, outside any virtual environment, and with the folders that fairlead was
installed for: nothing in the environment of the CLI moves them. It starts the thin client and gives the CLI its answer.
If there is none, for whatever reason, it says why on stderr and goes by `fallback.json`: a step that guards is refused
unless the file says that all its hooks fail open; any other step passes. What it did with a step that guards is in the
journal: a daemon that is only late writes that down, and otherwise the launcher has the client leave a line.

An answer for which a human's approval was used comes with a receipt. Once the answer is written, the launcher runs the
client again, to acknowledge it: a launcher that was killed before has told the CLI nothing, and the approval returns.
"""

from __future__ import annotations

import os
import py_compile
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from ..errors import FairleadError
from ..folders import Machine, as_json, from_json
from ..lifecycle import GUARDING
from ..places import Folders, make_private, state_folder

NAME = "fairlead-hook"
USUAL = f".local/state/fairlead/bin/{NAME}"
"""Where it is below a home."""

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); import fairlead_hook; fairlead_hook.run()"
# As a module it is compiled once and for all, which a script never is.

_TEXT = r"""#!/bin/sh
# Asks fairlead about one step of an agent: {name} SECONDS OURS HOST EVENT
# Written by `fairlead install`. If there is no answer, a step that guards is refused.
# The folders are those that fairlead was installed for, whatever the variables of the CLI say.
unset -f cd command echo printf pwd read tr  # which some shells take from the environment
unset CDPATH
folders={folders}
seconds=$1 ours=$2 host=$3 event=$4

answer=$({interpreter} -I -S -X utf8 -c {start} {folder} "$folders" {python} "$seconds" "$host" "$event" 2>/dev/null)
code=$?
receipt=
case $answer in
  ack:*:*:end) receipt=${{answer#ack:}} answer=${{receipt#*:}} receipt=${{receipt%%:*}} ;;
esac

# The CLI has its answer, so that the approval in it is used up. Its stdout shows the client whether it is still there.
acknowledge() {{
  [ -z "$receipt" ] || {interpreter} -I -S -X utf8 -c {start} {folder} "$folders" "$receipt" 2>/dev/null </dev/null
}}

# The journal has nothing on this step, unless a daemon is still at it.
leave_line() {{
  [ -z "$late" ] && [ "$event" != doctor ] || return 0  # which only looks
  {interpreter} -I -S -X utf8 -c {start} {folder} "$folders" left "$1" "$ours" "$host" "$cause" >/dev/null 2>&1
}}

advice=" Run \`fairlead doctor\`." late=  # which finds whatever says so
case $code:$answer in
  0:0:*:end)
    text=${{answer#0:}} text=${{text%:end}}
    if [ -z "$text" ] || printf '%s\n' "$text"; then acknowledge; exit 0; fi
    why="its answer could not be written" advice= ;;
  0:2:*:end)
    text=${{answer#2:}}
    printf '%s\n' "${{text%:end}}" >&2 && acknowledge
    exit 2 ;;
  0:fail:*:end)
    text=${{answer#fail:}}
    why=${{text%:end}} ;;
  0:none:*:end)
    text=${{answer#none:}}
    why=${{text%:end}} advice= ;;
  0:late:*:end)
    text=${{answer#late:}}
    why=${{text%:end}} advice= late=1 ;;
  126:* | 127:*)
    why="its interpreter cannot be run (exit $code): install fairlead again, and run \`fairlead install\`" ;;
  129:* | 1[3-9][0-9]:*)
    why="its client was killed (exit $code)" advice= ;;
  *)
    why="its client ended with $code" ;;
esac

cause=$why

# Whether all hooks of this folder fail open at this event. What cannot be read does not say so.
opens() {{
  {state}
  case $host in
    claude_code) folder=${{CLAUDE_PROJECT_DIR:-${{COPILOT_CLI:+$COPILOT_PROJECT_DIR}}}} ;;
    gemini) folder=$GEMINI_PROJECT_DIR ;;
    qwen) folder=$QWEN_PROJECT_DIR ;;
    copilot) folder=$COPILOT_PROJECT_DIR ;;
    droid) folder=$FACTORY_PROJECT_DIR ;;
    cursor) folder=$CURSOR_PROJECT_DIR ;;
    *) folder= ;;
  esac
  case $folder in
    /*) ;;
    *) folder=. ;;
  esac
  folder=$(cd "$folder" 2>/dev/null && pwd -P && echo .) || return 1
  folder=${{folder%??}}  # with the newlines that its name may end in
  case $folder in
    *[\"\\[:cntrl:]]*) return 1 ;;  # which is written in another way
  esac
  while :; do
    while IFS= read -r line; do
      case $line in
        "\"$folder\": {{"*"\"$ours\": \"open\""*) return 0 ;;
        "\"$folder\": {{"*) return 1 ;;
      esac
    done 2>/dev/null <"$state/fallback.json" || return 1
    # A project of its own that nobody has seen yet is not what is around it.
    [ -n "${{folder#/}}" ] && [ ! -e "$folder/fairlead.toml" ] || return 1
    folder=${{folder%/*}}
    folder=${{folder:-/}}
  done
}}

case $ours in
  {guarding})
    if ! opens; then
      why="[fairlead] refused, because fairlead gave no answer: $why.$advice"
      printf '%s\n' "$why" >&2
      why=$(printf %s "$why" | LC_ALL=C command -p tr -d '\\"' | LC_ALL=C command -p tr '\000-\037\177' '[ *]')
      case $host in
        # These two do not take their refusals from an exit code, or lose the reason.
        cline) printf 'HOOK_CONTROL\t{{"cancel": true, "errorMessage": "%s"}}\n' "$why" ;;
        copilot)
          printf '{{"permissionDecision": "deny", "permissionDecisionReason": "%s", ' "$why"
          printf '"decision": "block", "reason": "%s", "behavior": "deny", "message": "%s"}}\n' "$why" "$why" ;;
      esac
      leave_line deny
      exit 2
    fi
    leave_line proceed ;;
esac
printf '[fairlead] gave no answer at %s: %s\n' "$event" "$why" >&2
exit 0
"""


_STATE_OF_USER = r'''user=$(command -p id -un) || return 1
  case $user in
    "" | [!A-Za-z0-9_]* | *[!A-Za-z0-9._@-]*) return 1 ;;
  esac
  eval "state=~$user/.local/state/fairlead"'''
# The home that the user database has, for a launcher of all users.


def launcher_text(folder: Path, interpreter: str, python: str, installed: Folders | Machine) -> str:
    """The script, for a client in `folder` that is run by one interpreter, and fairlead by another."""
    state = f"state={shlex.quote(installed.state)}" if isinstance(installed, Folders) else _STATE_OF_USER
    return _TEXT.format(
        name=NAME, start=shlex.quote(_START), folder=shlex.quote(str(folder)), interpreter=shlex.quote(interpreter),
        python=shlex.quote(python), guarding=" | ".join(GUARDING), folders=shlex.quote(as_json(installed)), state=state,
    )  # fmt: skip


class Runs(NamedTuple):
    """What a launcher runs, as its text says."""

    folder: Path
    interpreter: str
    python: str
    installed: Folders | Machine


def runs_of(text: str) -> Runs | None:
    """What a launcher of this version runs. None: it is none."""
    try:
        given = shlex.split(text.partition("\nfolders=")[2].partition("\nseconds=")[0])[0]
        words = shlex.split(text.partition("\nanswer=$(")[2].partition(")\n")[0])
        return Runs(Path(words[7]), words[0], words[9], from_json(given))
    except (ValueError, IndexError, FairleadError):
        return None


def launcher_folder() -> Path:
    """Where the launcher and the client are: in fairlead's own folder, which agents may not write to."""
    return state_folder() / "bin"


def usual_launcher(home: str) -> Path:
    """Where the launcher is, or a link to it, in each home: what a project's settings look for."""
    return Path(home) / USUAL


def write_launcher(installed: Folders | Machine, folder: Path | None = None) -> Path:
    """Write launcher and client, each in one move, and say where the launcher is."""
    from . import hook_client

    if isinstance(installed, Folders):
        folder = make_private(Path(installed.state)) / "bin" if folder is None else folder
    assert folder is not None  # noqa: S101 (a launcher of all users has a folder of its own)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    client = folder / "fairlead_hook.py"
    _replace(client, Path(hook_client.__file__).read_bytes(), 0o644)
    py_compile.compile(str(client), doraise=True)
    _replace(folder / NAME, launcher_text(folder, base_interpreter(), sys.executable, installed).encode(), 0o755)
    if isinstance(installed, Folders):
        _link(usual_launcher(installed.home), folder / NAME)
    return folder / NAME


def _link(usual: Path, launcher: Path) -> None:
    """Have the launcher also where a project's settings look for it."""
    if usual == launcher or (usual.is_symlink() and usual.readlink() == launcher):
        return
    usual.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = usual.with_name(f".{usual.name}.{os.getpid()}")
    new.symlink_to(launcher)
    os.replace(new, usual)


def base_interpreter() -> str:
    """An interpreter that stays when a virtual environment goes."""
    base: str = getattr(sys, "_base_executable", "") or sys.executable
    found = os.path.realpath(base)
    return found if os.access(found, os.X_OK) else shutil.which("python3") or sys.executable


def _replace(path: Path, content: bytes, mode: int) -> None:
    if path.exists() and path.read_bytes() == content and path.stat().st_mode & 0o777 == mode:
        return
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_bytes(content)
    new.chmod(mode)
    os.replace(new, path)
