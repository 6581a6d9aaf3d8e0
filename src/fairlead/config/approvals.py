"""What a file says about approvals: the table `[approvals]`.

```toml
[approvals]
notify = ["desktop", { command = ["page-me"] }, { url = { env = "APPROVALS_URL" }, body = "slack" }]
grants = false
```

Only the system's and the user's files may: an agent could change its project's. A target that cannot be used on this
machine is reported, and it keeps no hook from running.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from ..errors import FairleadError, HookUnavailable, closest, nearest
from ..extras import require
from ..hook import Layer
from ..runners.environment import HookEnvironment, MissingProgram, hook_environment, resolve_program
from .document import Document, Keys, Mistake
from .hook_entry import value_of
from .journaling import boolean, read_table

Form = Literal["desktop", "command", "url"]
BodyFormat = Literal["question", "slack"]
FORMS: tuple[str, ...] = get_args(Form)
"""How a person is told of a question: every target has exactly one of these."""
OF_FORM: dict[str, tuple[str, ...]] = {"desktop": (), "command": (), "url": ("secret", "body")}
BODIES: tuple[str, ...] = get_args(BodyFormat)
TARGETS = 8
"""Targets of one file."""
DESKTOP_PROGRAMS = ("osascript",) if sys.platform == "darwin" else ("notify-send", "kdialog")
"""Programs that show a notification, the best first."""


class NotifyTarget(msgspec.Struct, frozen=True):
    """One way to tell a person that a hook asks."""

    name: str
    """For errors. It has no secret in it."""
    form: Form
    argv: tuple[str, ...] = ()
    """The program and its words. Of a desktop notification, the program."""
    cwd: str = "/"
    env: dict[str, str] = {}
    url: str = ""
    secret: str | None = None
    body: BodyFormat = "question"


class ApprovalSettings(msgspec.Struct, frozen=True):
    """How approvals work for the agents of a user."""

    notify: tuple[NotifyTarget, ...] = ()
    grants: bool = True
    """Whether an answer may hold for more than one call."""
    unavailable: tuple[Mistake, ...] = ()
    """The targets that cannot be used on this machine, and why."""

    def __add__(self, other: ApprovalSettings) -> ApprovalSettings:
        """The settings of two files: all targets, the desktop once, and grants only if neither forbids them."""
        has_desktop = any(target.form == "desktop" for target in self.notify)
        more = tuple(target for target in other.notify if target.form != "desktop" or not has_desktop)
        unavailable = (*self.unavailable, *other.unavailable)
        return ApprovalSettings((*self.notify, *more), self.grants and other.grants, unavailable)


def read_approvals(
    document: Document, layer: Layer, environ: Mapping[str, str] | None = None, workspace: Path | None = None
) -> ApprovalSettings:
    """The settings of a file. Its mistakes are noted in the document."""
    sound = read_table(document, layer, "approvals", {"notify": _entries, "grants": boolean})
    reader = _TargetReader(document, layer, environ, workspace)
    targets = tuple(reader.targets(sound.get("notify", ())))
    return ApprovalSettings(targets, sound.get("grants", True), tuple(reader.unavailable))


def _entries(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError('notify must be a list of "desktop", { command = [...] } and { url = "..." }')
    if len(value) > TARGETS:
        raise ValueError(f"notify has {TARGETS} targets at most")
    return value


class _TargetReader:
    """Reads the list `notify` of one file."""

    def __init__(
        self, document: Document, layer: Layer, environ: Mapping[str, str] | None, workspace: Path | None
    ) -> None:
        self._document = document
        self._layer = layer
        self._environ = environ
        self._workspace = workspace
        self.unavailable: list[Mistake] = []

    def targets(self, entries: list[Any]) -> Iterator[NotifyTarget]:
        for index, entry in enumerate(entries):
            keys: Keys = ("approvals", "notify", index)
            try:
                target = self._target({entry: True} if isinstance(entry, str) else entry)
                target = replace(target, name=f"{self._layer} {index + 1}: {target.name}")
            except HookUnavailable as error:
                problem = f"notify target {index + 1} cannot be used here: {error}"
                self.unavailable.append(self._document.mistake_at(keys, problem))
            except (FairleadError, ValueError, TypeError) as error:
                self._document.wrong(keys, str(error))
            else:
                yield target

    def _target(self, entry: Any) -> NotifyTarget:
        forms = [form for form in FORMS if isinstance(entry, dict) and form in entry]
        if len(forms) != 1:
            meant = closest(next(iter(entry), ""), FORMS) if isinstance(entry, dict) else None
            likely = f"; did you mean {meant!r}?" if meant and not forms else ""
            raise ValueError(f'a target is one of "desktop", {{ command = [...] }} and {{ url = "..." }}{likely}')
        form = forms[0]
        for key in entry.keys() - {form, *OF_FORM[form]}:
            raise ValueError(f"unknown key {key!r} of a {form} target{nearest(key, (form, *OF_FORM[form]))}")
        read = {"desktop": self._desktop, "command": self._command, "url": self._url}[form]
        return read(entry)

    def _desktop(self, entry: dict[str, Any]) -> NotifyTarget:
        if entry["desktop"] is not True:
            raise ValueError('desktop must be true; write "desktop"')
        environment = self._environment()
        found = (which(program, path=environment.path) for program in DESKTOP_PROGRAMS)
        program = next(filter(None, found), None)
        if program is None:
            raise MissingProgram(f"{' or '.join(DESKTOP_PROGRAMS)} is not there; install it", DESKTOP_PROGRAMS[0])
        program = resolve_program(program, environment, self._workspace)
        return NotifyTarget("desktop", "desktop", (program,), "/", environment.env | _session_bus(environment.env))

    def _command(self, entry: dict[str, Any]) -> NotifyTarget:
        argv = entry["command"]
        if not isinstance(argv, list) or not argv or not all(isinstance(w, str) and "\0" not in w for w in argv):
            raise ValueError("command must be a list of words, the program first")
        environment = self._environment()
        program = resolve_program(argv[0], environment, self._workspace)
        return NotifyTarget(f"command {argv[0]}", "command", (program, *argv[1:]), environment.cwd, environment.env)

    def _url(self, entry: dict[str, Any]) -> NotifyTarget:
        require("aiohttp", "http", "notifications with a url")
        from urllib.parse import urlsplit

        from ..runners.http import Url

        url, secret = value_of(entry["url"], self._environ), None
        if "secret" in entry:
            if not isinstance(entry["secret"], dict):
                raise ValueError('secret must be { env = "NAME" }: a secret does not belong in a file')
            secret = value_of(entry["secret"], self._environ)
        body = entry.get("body", "question")
        if body not in BODIES:
            raise ValueError(f"body must be one of {', '.join(BODIES)}{nearest(str(body), BODIES)}")
        Url(url, secret=secret)  # which checks both
        return NotifyTarget(f"url {urlsplit(url).hostname}", "url", url=url, secret=secret, body=body)

    def _environment(self) -> HookEnvironment:
        folder = Path(self._document.path).parent
        return hook_environment(folder, source=self._environ, workspace=self._workspace)


def _session_bus(env: Mapping[str, str]) -> dict[str, str]:
    """Where desktop programs find the user's session: the usual place, which a daemon is not told of."""
    folder = env.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    with suppress(OSError):
        if os.stat(f"{folder}/bus").st_uid == os.geteuid():
            return {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={folder}/bus", "XDG_RUNTIME_DIR": folder}
    return {}
