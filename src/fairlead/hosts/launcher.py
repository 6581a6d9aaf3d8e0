"""The launcher: what an agent CLI really starts, and what still refuses when everything behind it is gone.

It is a shell script with absolute paths, outside any virtual environment. It starts the thin client and gives the
CLI its answer. If there is none, for whatever reason, it says why on stderr and goes by `fallback.json`: a step that
guards is refused unless the file says that all its hooks fail open; any other step passes.

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

from ..places import make_private, state_folder

NAME = "fairlead-hook"
GUARDING = ("before_tool", "before_input", "before_permission")
"""Our events at which no answer is a refusal. At others, nothing could be refused, or nothing has happened yet."""

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); import fairlead_hook; fairlead_hook.run()"
# As a module it is compiled once and for all, which a script never is.

_TEXT = r"""#!/bin/sh
# Asks fairlead about one step of an agent: {name} SECONDS OURS HOST EVENT
# Written by `fairlead install`. If there is no answer, a step that guards is refused.
state=${{FAIRLEAD_STATE_DIR:-{state}}}
{export}seconds=$1 ours=$2 host=$3 event=$4

answer=$({interpreter} -I -S -c {start} {folder} "$state" {python} "$seconds" "$host" "$event" 2>/dev/null)
code=$?
receipt=
case $answer in
  ack:*:*:end) receipt=${{answer#ack:}} answer=${{receipt#*:}} receipt=${{receipt%%:*}} ;;
esac

# The CLI has its answer, so that the approval in it is used up. Its stdout shows the client whether it is still there.
acknowledge() {{
  [ -z "$receipt" ] || {interpreter} -I -S -c {start} {folder} "$state" "$receipt" 2>/dev/null </dev/null
}}

case $code:$answer in
  0:0:*:end)
    text=${{answer#0:}} text=${{text%:end}}
    if [ -z "$text" ] || printf '%s\n' "$text"; then acknowledge; exit 0; fi
    why="its answer could not be written" ;;
  0:2:*:end)
    text=${{answer#2:}}
    printf '%s\n' "${{text%:end}}" >&2 && acknowledge
    exit 2 ;;
  0:fail:*:end)
    text=${{answer#fail:}}
    why=${{text%:end}} ;;
  126:* | 127:*)
    why="its interpreter cannot be run (exit $code): install fairlead again, and run \`fairlead install\`" ;;
  *)
    why="its client ended with $code" ;;
esac

# Whether all hooks of this folder fail open at this event. What cannot be read does not say so.
opens() {{
  case $host in
    claude_code) folder=${{COPILOT_CLI:+$COPILOT_PROJECT_DIR}} folder=${{folder:-$CLAUDE_PROJECT_DIR}} ;;
    gemini) folder=$GEMINI_PROJECT_DIR ;;
    qwen) folder=$QWEN_PROJECT_DIR ;;
    copilot) folder=$COPILOT_PROJECT_DIR ;;
    droid) folder=$FACTORY_PROJECT_DIR ;;
    cursor) folder=$CURSOR_PROJECT_DIR ;;
    *) folder= ;;
  esac
  folder=$(cd "${{folder:-.}}" 2>/dev/null && pwd -P && echo .) || return 1
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
      why="[fairlead] refused, because fairlead gave no answer: $why. Run \`fairlead doctor\`."
      printf '%s\n' "$why" >&2
      why=$(printf %s "$why" | LC_ALL=C tr -d '\\"' | LC_ALL=C tr '\000-\037\177' '[ *]')
      case $host in
        # These two do not take their refusals from an exit code, or lose the reason.
        cline) printf 'HOOK_CONTROL\t{{"cancel": true, "errorMessage": "%s"}}\n' "$why" ;;
        copilot)
          printf '{{"permissionDecision": "deny", "permissionDecisionReason": "%s", ' "$why"
          printf '"decision": "block", "reason": "%s", "behavior": "deny", "message": "%s"}}\n' "$why" "$why" ;;
      esac
      exit 2
    fi ;;
esac
printf '[fairlead] gave no answer at %s: %s\n' "$event" "$why" >&2
exit 0
"""


def launcher_text(folder: Path, interpreter: str, python: str) -> str:
    """The script, for a client in `folder` that is run by one interpreter, and fairlead by another."""
    own = folder == launcher_folder()  # and not one for all users of this machine, each with a state of their own
    state = shlex.quote(str(state_folder())) if own else "${XDG_STATE_HOME:-$HOME/.local/state}/fairlead"
    custom = own and os.environ.get("FAIRLEAD_STATE_DIR")
    return _TEXT.format(
        name=NAME, state=state, start=shlex.quote(_START), folder=shlex.quote(str(folder)),
        interpreter=shlex.quote(interpreter), python=shlex.quote(python), guarding=" | ".join(GUARDING),
        export="export FAIRLEAD_STATE_DIR=\"$state\"\n" if custom else "",
    )  # fmt: skip


def launcher_folder() -> Path:
    """Where the launcher and the client are: in fairlead's own folder, which agents may not write to."""
    return state_folder() / "bin"


def write_launcher(folder: Path | None = None) -> Path:
    """Write launcher and client, each in one move, and say where the launcher is."""
    from . import hook_client

    folder = make_private(state_folder()) / "bin" if folder is None else folder
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    client = folder / "fairlead_hook.py"
    _replace(client, Path(hook_client.__file__).read_bytes(), 0o644)
    py_compile.compile(str(client), doraise=True)
    _replace(folder / NAME, launcher_text(folder, base_interpreter(), sys.executable).encode(), 0o755)
    return folder / NAME


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
