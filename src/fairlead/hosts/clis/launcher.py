"""The launcher: the program that an agent CLI starts, and that refuses when everything behind it is gone.

It is a shell script with absolute paths, outside any virtual environment. It has the folders that fairlead was
installed for, and nothing in the CLI's environment moves them. It starts the thin client and gives the CLI the answer.

Without an answer, it prints the reason on stderr and follows `fallback.json`. A step that guards is refused, unless the
file says that all of its hooks fail open. Any other step passes. The journal records what the launcher did with a step
that guards: a daemon that is only late records it, and otherwise the launcher has the client leave a line.

An answer that used a human's approval comes with a receipt. Once the answer is written, the launcher runs the client
again, to acknowledge it. If the launcher is killed before, the CLI has no answer, and the approval can be used again.
"""

from __future__ import annotations

import os
import py_compile
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from ...errors import FairleadError
from ...folders import Machine, as_json, from_json
from ...lifecycle import GUARDING
from ...paths import Folders, atomic_write, make_private, state_folder

NAME = "fairlead-hook"
USUAL = f".local/state/fairlead/bin/{NAME}"
"""The launcher's path below a home."""

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); import fairlead_hook; fairlead_hook.run()"
# Python keeps the compiled form of a module, but never of a script.

_TEXT = r"""#!/bin/sh
# Asks fairlead about one step of an agent: {name} SECONDS OURS HOST EVENT
# Written by `fairlead install`. Without an answer, a step that guards is refused.
# fairlead uses these folders, whatever the variables of the CLI say.
unset -f cd command echo printf pwd read test tr  # some shells import functions from the environment
unset CDPATH
folders={folders}
seconds=$1 ours=$2 entry=$3 event=$4
newline='
'
host=${{entry%%@*}}

answer=$({interpreter} -I -S -X utf8 -c {start} {folder} "$folders" {python} "$seconds" "$entry" "$event" 2>/dev/null)
code=$?
receipt=
case $answer in
  ack:*:*:end) receipt=${{answer#ack:}} answer=${{receipt#*:}} receipt=${{receipt%%:*}} ;;
esac

# The CLI has its answer, so the approval in it is used up. The client checks by its stdout that the CLI is there.
acknowledge() {{
  test -z "$receipt" || {interpreter} -I -S -X utf8 -c {start} {folder} "$folders" "$receipt" 2>/dev/null </dev/null
}}

# The journal has no record of this step, unless a daemon is still deciding.
leave_line() {{
  test -z "$late" && test "$event" != doctor || return 0  # `fairlead doctor` only looks
  {interpreter} -I -S -X utf8 -c {start} {folder} "$folders" left "$1" "$ours" "$host" "$cause" >/dev/null 2>&1
}}

advice=" Run \`fairlead doctor\`." late=
case $code:$answer in
  0:0:*:end)
    text=${{answer#0:}} text=${{text%:end}}
    if test -z "$text" || printf '%s\n' "$text"; then acknowledge; exit 0; fi
    why="its answer could not be written" advice= ;;
  0:2:*:end)
    text=${{answer#2:}}
    printf '%s\n' "${{text%:end}}" >&2 && acknowledge
    exit 2 ;;
  0:refusal:*:end)
    text=${{answer#refusal:}} text=${{text%:end}}
    printf '%s\n' "${{text%%"$newline"*}}" && printf '%s\n' "${{text#*"$newline"}}" >&2 && acknowledge
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

# Whether all hooks of this folder fail open at this event. If fallback.json cannot be read, they do not.
opens() {{
  {state}
  case $host in
    claude_code) folder=${{CLAUDE_PROJECT_DIR:-$COPILOT_PROJECT_DIR}} ;;
    gemini) folder=$GEMINI_PROJECT_DIR ;;
    qwen) folder=$QWEN_PROJECT_DIR ;;
    copilot) folder=$COPILOT_PROJECT_DIR ;;
    droid) folder=$FACTORY_PROJECT_DIR ;;
    cursor) folder=$CURSOR_PROJECT_DIR ;;
    devin) folder=$DEVIN_PROJECT_DIR ;;
    *) folder= ;;
  esac
  case $folder in
    /*) ;;
    *) folder=. ;;
  esac
  folder=$(cd "$folder" 2>/dev/null && pwd -P && echo .) || return 1
  folder=${{folder%??}}  # keeps newlines at the end of its name
  case $folder in
    *[\"\\[:cntrl:]]*) return 1 ;;  # the JSON has these escaped
  esac
  while :; do
    while IFS= read -r line; do
      case $line in
        "\"$folder\": {{"*"\"$ours\": \"open\""*) return 0 ;;
        "\"$folder\": {{"*) return 1 ;;
      esac
    done 2>/dev/null <"$state/fallback.json" || return 1
    # A project that fairlead has not loaded yet does not inherit from the folder around it.
    test -n "${{folder#/}}" && test ! -e "$folder/fairlead.toml" || return 1
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
        # These two ignore the exit code, or lose the reason.
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
case $host in
  cursor) printf '{{}}\n' ;;  # it refuses a step that guards if a hook prints nothing
esac
exit 0
"""


_STATE_OF_USER = r'''user=$(command -p id -un) || return 1
  case $user in
    "" | [!A-Za-z0-9_]* | *[!A-Za-z0-9._@-]*) return 1 ;;
  esac
  eval "state=~$user/.local/state/fairlead"'''
# The home in the user database, for a launcher that serves all users.


def launcher_text(folder: Path, interpreter: str, python: str, installed: Folders | Machine) -> str:
    """Return the script. `interpreter` runs the client in `folder`, and `python` runs fairlead."""
    state = f"state={shlex.quote(installed.state)}" if isinstance(installed, Folders) else _STATE_OF_USER
    return _TEXT.format(
        name=NAME, start=shlex.quote(_START), folder=shlex.quote(str(folder)), interpreter=shlex.quote(interpreter),
        python=shlex.quote(python), guarding=" | ".join(GUARDING), folders=shlex.quote(as_json(installed)), state=state,
    )  # fmt: skip


class LauncherParts(NamedTuple):
    """The paths that a launcher's text holds."""

    folder: Path
    interpreter: str
    python: str
    installed: Folders | Machine


def parse_launcher(text: str) -> LauncherParts | None:
    """Return the parts of a launcher's text. None: it is not a launcher of this version."""
    try:
        folders = shlex.split(text.partition("\nfolders=")[2].partition("\nseconds=")[0])[0]
        words = shlex.split(text.partition("\nanswer=$(")[2].partition(")\n")[0])
        return LauncherParts(Path(words[7]), words[0], words[9], from_json(folders))
    except (ValueError, IndexError, FairleadError):
        return None


def launcher_folder() -> Path:
    """Return the folder of the launcher and the client. It is fairlead's own, and agents may not write to it."""
    return state_folder() / "bin"


def usual_launcher(home: str) -> Path:
    """Return the path of the launcher, or of a link to it, in a home. A project's settings name this path."""
    return Path(home) / USUAL


def write_launcher(installed: Folders | Machine, folder: Path | None = None) -> Path:
    """Write the launcher and the client, each atomically, and return the launcher's path."""
    from . import client as hook_client

    if isinstance(installed, Folders):
        folder = make_private(Path(installed.state)) / "bin" if folder is None else folder
    assert folder is not None  # noqa: S101 (the caller names it for a launcher that serves all users)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    client = folder / "fairlead_hook.py"
    _replace(client, Path(hook_client.__file__).read_bytes(), 0o644)
    py_compile.compile(str(client), doraise=True)
    _replace(folder / NAME, launcher_text(folder, base_interpreter(), sys.executable, installed).encode(), 0o755)
    if isinstance(installed, Folders):
        _link(usual_launcher(installed.home), folder / NAME)
    return folder / NAME


def _link(usual: Path, launcher: Path) -> None:
    """Link the launcher to the path that a project's settings name."""
    if usual == launcher or (usual.is_symlink() and usual.readlink() == launcher):
        return
    usual.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = usual.with_name(f".{usual.name}.{os.getpid()}")
    new.symlink_to(launcher)
    os.replace(new, usual)


def base_interpreter() -> str:
    """Return an interpreter that outlives the virtual environment."""
    base: str = getattr(sys, "_base_executable", "") or sys.executable
    found = os.path.realpath(base)
    return found if os.access(found, os.X_OK) else shutil.which("python3") or sys.executable


def _replace(path: Path, content: bytes, mode: int) -> None:
    if not (path.exists() and path.read_bytes() == content and path.stat().st_mode & 0o777 == mode):
        atomic_write(path, content, mode)
