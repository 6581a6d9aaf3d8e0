"""The environment of a hook's process: its variables, its working directory and its program.

The agent must not steer a process that judges it. So no program is looked up in the agent's workspace, and no
variable passes that could change what a program loads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from shutil import which

import msgspec

from ..errors import FairleadError, HookUnavailable
from ..lifecycle import Step
from ..paths import fixed_folders

_STEERING = ("LD_", "DYLD_", "PYTHON", "PERL", "RUBY", "GIT_", "LUA_", "NODE_", "PHP", "R_", "BASH_")
_STEERING_TOO = ("ENV", "HOME", "IFS", "PATH", "SHELLOPTS", "XDG_CONFIG_HOME", "ZDOTDIR")


def steers(variable: str) -> bool:
    """Whether a variable can change what a program loads."""
    return variable.startswith(_STEERING) or variable in _STEERING_TOO


PASSED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
"""Variables that every hook gets. Others are named by the hook's `env`."""
CALLERS = ("LANG", "TZ")
"""Variables that come from the caller even where fairlead is installed, with LC_*. The others are recorded there."""


class MissingProgram(HookUnavailable):
    """The program of a hook does not exist."""


class HookEnvironment(msgspec.Struct, frozen=True):
    """The working directory, variables and search path of a hook's process, set when the hook is loaded."""

    cwd: str
    env: dict[str, str]
    path: str
    """Where its program is looked for."""

    def for_step(self, step: Step) -> dict[str, str]:
        """The environment for one step."""
        about_step = {
            "FAIRLEAD_EVENT": step.event,
            "FAIRLEAD_SESSION_ID": step.session_id,
            "FAIRLEAD_TOOL": getattr(step, "tool", None),
            "FAIRLEAD_CWD": step.cwd,
        }
        return self.env | {name: value for name, value in about_step.items() if value and "\0" not in value}


def hook_environment(
    cwd: str | Path | None = None,
    *,
    env: Iterable[str] = (),
    source: Mapping[str, str] | None = None,
    workspace: str | Path | None = None,
) -> HookEnvironment:
    """Build a hook's environment from the current one: the usual variables, and those that `env` names.

    A variable that steers a loader or an interpreter (LD_*, DYLD_*, PYTHON*, NODE_OPTIONS, BASH_ENV, GIT_*)
    passes only if `env` names it. No program is looked up in the workspace.

    Where fairlead is installed, HOME and PATH are the recorded ones. A hook that names one in `env` is given the
    caller's, but its program is still looked for where the recorded PATH says.
    """
    source = os.environ if source is None else source
    folders = fixed_folders()
    usual = source if folders is None else {name: source[name] for name in CALLERS if name in source} | folders.env
    passed = {name: value for name in PASSED if (value := usual.get(name)) is not None}
    passed |= {name: value for name in env if (value := source.get(name)) is not None}
    passed |= {name: value for name, value in source.items() if name.startswith("LC_")}
    passed.setdefault("PYTHONSAFEPATH", "1")
    path = outside_path(usual.get("PATH", os.defpath), workspace)
    passed["PATH"] = outside_path(passed["PATH"], workspace) if "PATH" in env and "PATH" in passed else path
    return HookEnvironment(str(Path(cwd or Path.home()).absolute()), passed, path)


def outside_path(path: str, workspace: str | Path | None) -> str:
    """A PATH without folders that are relative or lie in the workspace."""
    places = [place for place in path.split(os.pathsep) if os.path.isabs(place)]
    return os.pathsep.join(place for place in places if workspace is None or not lies_in(place, workspace))


def resolve_program(program: str, environment: HookEnvironment, workspace: str | Path | None = None) -> str:
    """The absolute path of a program. A program inside the workspace is refused."""
    if "\0" in program:
        raise FairleadError(f"{program!r} is no name of a program")
    if os.sep in program:
        found = str((Path(environment.cwd) / program).absolute())
    else:
        found = which(program, path=environment.path) or ""
    if not found or not os.access(found, os.X_OK) or os.path.isdir(found):
        problem = f"program {program!r} is not there or cannot be run; name one that is, by its full path"
        raise MissingProgram(problem, found or program)
    if workspace is not None and lies_in(found, workspace):
        raise FairleadError(
            f"program {program!r} lies in the agent's workspace ({found}), where the agent can change it"
        )
    return found


def lies_in(path: str | Path, folder: str | Path) -> bool:
    """Whether a path lies in a folder, by its name or by where it leads: a link can be changed."""
    named = os.path.normpath(os.path.abspath(path))
    return leads_into(path, folder) or os.path.commonpath([named, os.path.abspath(folder)]) == os.path.abspath(folder)


def leads_into(path: str | Path, folder: str | Path) -> bool:
    """Whether a path leads into a folder once links are followed."""
    real, root = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([real, root]) == root


surroundings = hook_environment
"""The old name of `hook_environment`. It goes with the next release."""
