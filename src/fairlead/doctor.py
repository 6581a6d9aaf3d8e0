"""Examining how fairlead is installed in the agent CLIs of a user: what holds, what does not, and what to do.

Whether hooks really fire is seen by running the CLI itself against a scripted model on loopback, with a copy of the
user's settings in a home that is thrown away.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from .errors import FairleadError
from .hosts.host import Host
from .hosts.installing import Installed, status
from .hosts.launcher import NAME, launcher_folder
from .hosts.settings import SCOPES, SETTINGS, has_scope
from .places import journal_file

WAIT = 60.0
"""Seconds that a CLI has to show what it does."""
LOOK_BACK = 5000
"""Decisions of a CLI that are looked at for what it could not carry out."""
PROBE = "fairlead-doctor-was-here"
REASON = "fairlead doctor asked for this to be denied"

_POLICY = f"""
[[hook]]
name = "doctor"
on = "before_tool"
phase = "gate"
match = {{ kind = "shell" }}
rule = 'target.command.contains("{PROBE}")'
deny = "{REASON}"
"""

Level = Literal["ok", "note", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True):
    """One thing that was seen, and what to do about it."""

    level: Level
    what: str
    todo: str | None = None


class Report(msgspec.Struct, kw_only=True):
    """What there is to know of one CLI."""

    host: str
    title: str
    path: str | None = None
    version: str | None = None
    proven: str | None = None
    installed: list[str] = []
    """The scopes in which our hooks are."""
    fires: bool | None = None
    """Whether hooks were seen to fire, and to hold. None: that could not be seen."""
    controls: dict[str, list[str]] = {}
    degraded: dict[str, int] = {}
    """What it was asked for and could not carry out, as the journal has it."""
    unknown_tools: dict[str, int] = {}
    findings: list[Finding] = []

    @property
    def well(self) -> bool:
        return not any(finding.level == "problem" for finding in self.findings)

    def add(self, level: Level, what: str, todo: str | None = None) -> None:
        self.findings.append(Finding(level, what, todo))


def examine(host: Host, root: Path, *, run: bool = True) -> Report:
    """All that can be told of one CLI, for whoever works in `root`."""
    report = Report(host=host.name, title=host.title, proven=host.proven)
    report.controls = {event: sorted(can) for event, can in host.capabilities().items() if can}
    _program(host, report)
    found = [installed for scope in SCOPES if has_scope(host, scope) and (installed := _installed(host, scope, root))]
    _settings(host, found, report, root)
    if found:
        _launcher(report)
    _journal(host, report)
    if run and report.path is not None and found:
        _fires(host, Path(report.path), found, report, root)
    elif found:
        report.add("note", "whether its hooks fire was not tried", f"fairlead doctor {host.name}")
    return report


# --- the program ------------------------------------------------------------------------------------


def _program(host: Host, report: Report) -> None:
    report.path = shutil.which(host.program)
    if report.path is None:
        report.add("note", f"`{host.program}` is not on PATH")
        return
    report.version = version_of(report.path)
    if report.version is None:
        report.add("warning", f"`{host.program} --version` says no version")
    elif host.experimental:
        report.add("warning", f"version {report.version}: no version was proven; what is here is from documents")
    elif report.version != host.proven:
        report.add("warning", f"version {report.version} was not proven; {host.proven} was")
    else:
        report.add("ok", f"version {report.version}, which was proven")


def version_of(program: str) -> str | None:
    """What a program says of its version."""
    try:
        ran = subprocess.run(  # noqa: S603 (argv, no shell)
            [program, "--version"], capture_output=True, text=True, timeout=20, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+\.\d+\.\d+[\w.-]*", ran.stdout + ran.stderr)
    return found[0] if found else None


# --- the settings -----------------------------------------------------------------------------------


def _installed(host: Host, scope: Any, root: Path) -> Installed | None:
    try:
        return status(host, scope, root)
    except FairleadError:
        return None


def _settings(host: Host, found: list[Installed], report: Report, root: Path) -> None:
    report.installed = [installed.scope for installed in found]
    if not found:
        level: Level = "problem" if report.path is not None else "note"
        report.add(level, "no hooks of ours are installed", f"fairlead install {host.name}")
    for installed in found:
        where = f"{installed.file} ({installed.scope})"
        if installed.missing:
            report.add("problem", f"{where}: not hooked: {', '.join(installed.missing)}", _again(host, installed))
        elif not installed.current:
            report.add("problem", f"{where}: our hooks are not as they would be installed now", _again(host, installed))
        else:
            report.add("ok", f"{where}: {len(installed.events)} events are hooked")
        if installed.trusted is False:
            report.add("problem", f"{where}: {host.title} does not trust them, and skips them", _again(host, installed))
        for problem in installed.problems:
            report.add("problem", problem)
        for foreign in installed.foreign:
            report.add("note", f"another hook is on the same event: {foreign}")
    for place, key in _switches(host, root):
        report.add("problem", f"{place}: {key} turns hooks off", f"take {key} out of it")
    for name in _VARIABLES.get(host.name, ()):
        if os.environ.get(name):
            report.add("problem", f"{name} is set, which turns hooks off", f"unset {name}")
    if len(found) > 1:
        report.add("note", f"installed for {' and '.join(report.installed)}: each step may be asked about twice")
    for note in host.notes if found else ():
        report.add("note", note)


def _again(host: Host, installed: Installed) -> str:
    return f"fairlead install {host.name}" + ("" if installed.scope == "user" else f" --scope {installed.scope}")


_VARIABLES = {"claude_code": ("CLAUDE_CODE_SIMPLE",), "opencode": ("OPENCODE_PURE",)}
_ELSEWHERE = {
    "claude_code": (".claude/settings.local.json",),
    "copilot": (".github/copilot/settings.json", ".claude/settings.json", ".claude/settings.local.json"),
}
"""Other files of a project that can turn hooks off."""


def _switches(host: Host, root: Path) -> Iterator[tuple[Path, str]]:
    """The other files that turn this CLI's hooks off, and the key that does it."""
    from .jsonc import Document

    for file in (root / name for name in _ELSEWHERE.get(host.name, ())):
        with suppress(OSError, ValueError, FairleadError):
            document = Document(file.read_text("utf-8"))
            for keys, value in SETTINGS[host.name].off:
                found = document.find(keys)
                if found is not None and found.value is value:
                    yield file, ".".join(keys)


def _launcher(report: Report) -> None:
    """Whether what the settings name can be run."""
    launcher = launcher_folder() / NAME
    try:
        text = launcher.read_text("utf-8")
    except OSError as error:
        report.add("problem", f"{launcher}: {error.strerror}", f"fairlead install {report.host}")
        return
    for name in re.findall(r"(?:\$\(|\"\$state\" )('(?:[^']|'\\'')+'|\S+)", text):
        path = name.strip("'")
        if path.startswith("/") and not os.access(path, os.X_OK):
            report.add("problem", f"{path}, which the launcher runs, cannot be run", f"fairlead install {report.host}")
    if not os.access(launcher, os.X_OK):
        report.add("problem", f"{launcher} cannot be run", f"fairlead install {report.host}")


# --- what was seen ----------------------------------------------------------------------------------


def _journal(host: Host, report: Report) -> None:
    """What the journal has of this CLI: what it could not carry out, and tools that nobody knows."""
    from .journal.reading import Filter, Reader

    if not journal_file().exists():
        return
    degraded, unknown = Counter[str](), Counter[str]()
    with suppress(FairleadError), Reader(journal_file()) as reader:
        for record in reader.records(Filter(host=host.name), limit=LOOK_BACK):
            step = record.body.get("step") or {}
            degraded.update(f"{what['unsupported']} at {step.get('event')}" for what in _unsupported(record.body))
            if step.get("event") == "before_tool" and step.get("kind") == "unknown":
                unknown[str(step.get("tool"))] += 1
    report.degraded, report.unknown_tools = dict(degraded), dict(unknown)
    for what, times in degraded.most_common(5):
        report.add("warning", f"asked {times} times for {what}: it cannot; docs/clis.md says what is done instead")
    if unknown:
        names = ", ".join(name for name, _ in unknown.most_common(8))
        report.add("warning", f"tools of unknown kind: {names}", "say what they do in [[tool]] of a fairlead.toml")


def _unsupported(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for what in body.get("said") or ():
        if isinstance(what, dict) and "unsupported" in what:
            yield what


# --- what it really does --------------------------------------------------------------------------


def _fires(host: Host, binary: Path, found: list[Installed], report: Report, root: Path) -> None:
    from .probe.programs import PROGRAMS

    if host.name not in PROGRAMS:
        report.add("warning", "it cannot be run against a scripted model: whether its hooks fire is not proven")
        return
    with tempfile.TemporaryDirectory(prefix="fairlead-") as name:
        folder = Path(name)
        try:
            held, asked = _probe(host, binary, found, folder, root)
        except Exception as error:  # whatever a program of somebody else's may do
            report.add("warning", f"{host.title} could not be run, so nothing is proven: {str(error)[:300]}")
            return
    if not asked:
        report.add("warning", f"{host.title} did not ask the scripted model anything, so nothing is proven")
        return
    report.fires = held
    if held:
        report.add("ok", "its hooks fire: a command was denied, and the model was told why")
    else:
        report.add("problem", "a command ran that a hook denies: they do not hold", f"fairlead install {host.name}")


def _probe(host: Host, binary: Path, found: list[Installed], folder: Path, root: Path) -> tuple[bool, bool]:
    """Whether a denied command stayed undone, with the reason told; and whether the model was asked at all."""
    from .probe.model import Model, Say
    from .probe.programs import PROGRAMS

    home, project, state = folder / "home", folder / "project", folder / "state"
    for place in (home, project, state):
        place.mkdir(mode=0o700)
    for installed in found:
        if installed.scope != "managed":
            _copy(host, installed.file, home, project, root)
    config = home / ".config/fairlead/fairlead.toml"
    config.parent.mkdir(parents=True)
    config.write_text(_POLICY)
    program = PROGRAMS[host.name](binary, home, project, {"FAIRLEAD_STATE_DIR": str(state)})
    if hasattr(program, "trusting"):
        program.trusting = True  # what is trusted is looked up, and not tried: it is bound to where the file is
    try:
        with Model(program.shell(f"touch {PROBE}"), Say("done")) as model:
            program.run(f"run touch {PROBE}", model, timeout=WAIT)
    finally:
        _stop(state)
    return not (project / PROBE).exists() and model.told(REASON), bool(model.asked)


def _copy(host: Host, file: Path, home: Path, project: Path, root: Path) -> None:
    """The settings as they are, where the run will look for them."""
    settings = SETTINGS[host.name]
    inside = project / settings.project if file == root / settings.project else home / settings.user.removeprefix("~/")
    inside.parent.mkdir(parents=True, exist_ok=True)
    if file.is_dir():
        shutil.copytree(file, inside, dirs_exist_ok=True)
    else:
        shutil.copy(file, inside)


def _stop(state: Path) -> None:
    from .client import Client

    with suppress(Exception), Client(state / "run/v1.sock", start=False) as client:
        client.stop()
