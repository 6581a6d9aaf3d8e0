"""Examining how fairlead is installed in the agent CLIs of a user: what holds, what does not, and what to do.

Whether hooks really fire is seen by running the CLI itself against a scripted model on loopback, in a home that is
thrown away. What it is given there of the user's settings is what they say of hooks, and those of others do nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from .config.layers import Config, Sources, find, read
from .errors import FairleadError
from .hosts.codex_files import features_off, inside
from .hosts.effect import RULES
from .hosts.host import Host, host_tools
from .hosts.installing import Installed, launcher_for, status
from .hosts.launcher import NAME, launcher_text
from .hosts.settings import SCOPES, SETTINGS, Scope, has_scope, settings_file
from .hosts.targets import as_we_write, is_ours, read_text, switched_off, told_of
from .jsonc import BadJson, Document
from .places import BadPlace, check_private, journal_file, managed_folder, state_folder
from .redaction import redact_text
from .switches import read_setting
from .toml_text import quoted

WAIT = 60.0
"""Seconds that a CLI has to show what it does."""
VERSION_WAIT = 30.0
"""Seconds that it has to say its version."""
ANSWER_WAIT = 30.0
"""Seconds that fairlead has to answer."""
END_WAIT = 5.0
"""Seconds that a daemon of our own has to end."""
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
    experimental: bool = False
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
    last_seen: str | None = None
    """When the journal has the last step of it."""
    findings: list[Finding] = []

    @property
    def well(self) -> bool:
        return not any(finding.level == "problem" for finding in self.findings)

    def add(self, level: Level, what: str, todo: str | None = None) -> None:
        """Add a finding, once. Settings of others are quoted in it, and may hold a secret."""
        if (finding := Finding(level, redact_text(what), todo)) not in self.findings:
            self.findings.append(finding)


def examine(host: Host, root: Path, *, run: bool = True) -> Report:
    """All that can be told of one CLI, for whoever works in `root`."""
    report = Report(host=host.name, title=host.title, proven=host.proven, experimental=host.experimental)
    report.controls = {event: sorted(can) for event, can in host.capabilities().items() if can}
    with tempfile.TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as name:
        home, state = Path(name) / "home", Path(name) / "state"
        for place in (home, state):
            place.mkdir(mode=0o700)
        _program(host, report, home)
        found = _found(host, report, root)
        _settings(host, found, report)
        _switches(host, found, report, root)
        _overruled(host, found, report, root)
        config = read(find(root))
        if found:
            for installed in found:
                _launcher(launcher_for(installed.scope), report, _again(host, installed))
            _policy(config, report)
        _journal(host, config, report)
        try:
            if run and found:
                _answers(host, found, report, home, state)
            if run and found and report.path is not None:
                _fires(host, found, report, root, Path(name))
            elif found:
                why = "--no-run" if not run else f"`{host.program}` is not on PATH"
                report.add("warning", f"whether its hooks fire was not tried ({why})", f"fairlead doctor {host.name}")
        finally:
            _stop(state)
    return report


# --- the program ------------------------------------------------------------------------------------


def _program(host: Host, report: Report, home: Path) -> None:
    found = shutil.which(host.program)
    if found is None:
        report.add("note", f"`{host.program}` is not on PATH")
        return
    report.path = os.path.abspath(found)
    report.version, why = version_of(report.path, home)
    if report.version is None:
        report.add("warning", f"`{report.path} --version` says no version: {why}")
    elif host.experimental:
        report.add("warning", f"version {report.version}: no version was proven; what is here is from documents")
    elif report.version != host.proven:
        report.add("warning", f"version {report.version} was not proven; {host.proven} was")
    else:
        report.add("ok", f"version {report.version}, which was proven")


def version_of(program: str, home: Path) -> tuple[str | None, str]:
    """What a program says of its version, or else what it did. Some write to their home even for that."""
    try:
        code, *texts = _ran([program, "--version"], home, VERSION_WAIT)
    except OSError as error:
        return None, _why(error)
    if code is None:
        return None, f"it did not end within {VERSION_WAIT:g} s"
    version = next((found for text in texts if (found := _version_in(text))), None) if code == 0 else None
    return version, _tail(f"it ended with {code}", "\n".join(texts))


def _ran(argv: list[str], home: Path, wait: float, **more: str) -> tuple[int | None, str, str]:
    """A short run of a program, in a home of its own: its exit code (None: it did not end), and what it said.

    Whatever it started is gone afterwards, and nothing that lives on can hold this up.
    """
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        **more,
    }
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(  # noqa: S603 (argv, no shell)
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=home, env=environ, start_new_session=True
        )
        try:
            code: int | None = process.wait(wait)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return code, _beginning(out), _beginning(err)


def _beginning(file: Any) -> str:
    file.seek(0)
    return str(file.read(1 << 16).decode("utf-8", "replace"))


def _version_in(text: str) -> str | None:
    found = re.search(r"\d+\.\d+\.\d+[a-z0-9]*(?:[-+.][a-z0-9]+)*", text, re.ASCII | re.IGNORECASE)
    return found[0] if found else None


def _tail(what: str, text: str) -> str:
    """With the last line of what a program said."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{what}: {lines[-1][:200]}" if lines else f"{what}, and said nothing"


# --- the settings -----------------------------------------------------------------------------------


def _found(host: Host, report: Report, root: Path) -> list[Installed]:
    """Where our hooks are."""
    found: list[Installed] = []
    for scope in SCOPES:
        try:
            installed = status(host, scope, root)
        except FairleadError as error:
            report.add("problem", str(error), f"mend it; then: {_install(host, scope)}")
            continue
        if installed is not None and not any(installed.files == other.files for other in found):
            found.append(installed)
    return found


def _settings(host: Host, found: list[Installed], report: Report) -> None:
    report.installed = [installed.scope for installed in found]
    if not found:
        level: Level = "problem" if report.path is not None else "note"
        report.add(level, "no hooks of ours are installed", _install(host))
    for installed in found:
        where, again = f"{installed.file} ({installed.scope})", _again(host, installed)
        for problem in installed.problems:
            report.add("problem", problem, None if "take it out" in problem else "mend it, and look again")
        if not installed.events:
            report.add("problem", f"{where}: nothing of ours can be read from it", again)
        elif installed.missing:
            report.add("problem", f"{where}: not hooked: {', '.join(installed.missing)}", again)
        elif not installed.current:
            report.add("problem", f"{where}: our hooks are not as they would be installed now", again)
        else:
            report.add("ok", f"{where}: {len(installed.events)} events are hooked")
        if installed.trusted is False:
            report.add("problem", f"{where}: {host.title} does not trust them, and skips them", again)
        for foreign in installed.foreign:
            event = host.moments.get(foreign.split(":")[0])
            changes = event is not None and event.event == "before_tool"  # after we have judged them
            what = ", and may change the arguments unjudged" if changes else ""
            report.add("warning" if changes else "note", f"another hook is on the same event{what}: {foreign}")
        if told := SETTINGS[host.name].says.get(installed.scope):
            report.add("note", told)
    if len(found) > 1:
        report.add(
            "note", f"installed for {' and '.join(report.installed)}: each step may be asked about twice",
            f"fairlead uninstall {host.name}" + _scope(found[-1].scope),
        )  # fmt: skip
    for note in host.notes if found else ():
        report.add("note", note)


def _again(host: Host, installed: Installed) -> str:
    return _install(host, installed.scope)


def _install(host: Host, scope: Scope = "user") -> str:
    return f"fairlead install {host.name}{_scope(scope)}"


def _scope(scope: str) -> str:
    return "" if scope == "user" else f" --scope {scope}"


_VARIABLES = {"claude_code": ("CLAUDE_CODE_SIMPLE",), "opencode": ("OPENCODE_PURE",)}
_ELSEWHERE = {
    "claude_code": (".claude/settings.local.json",),
    "copilot": (
        ".github/copilot/settings.json",
        ".github/copilot/settings.local.json",
        ".claude/settings.json",
        ".claude/settings.local.json",
    ),
    "droid": (".factory/hooks.json", ".factory/hooks/hooks.json"),
}
"""Other files of a project that can turn hooks off."""
_OF_CODEX = ".codex/config.toml"
"""The one of Codex."""


def _switches(host: Host, found: list[Installed], report: Report, root: Path) -> None:
    """What turns hooks off, beside the files in which they are."""
    looked_at = {file for installed in found for file in installed.files}
    others = [settings_file(host, scope, root) for scope in SCOPES if has_scope(host, scope)]
    managed = settings_file(host, "managed", root) if has_scope(host, "managed") else None
    others += [root / name for name in _ELSEWHERE.get(host.name, ())]
    for file in dict.fromkeys(others) if found else ():
        if file in looked_at or not file.is_file():
            continue
        with suppress(FairleadError):
            document = Document(read_text(file) or "{}")
            for name, what in switched_off(host, file, document):
                report.add("problem", what, f"take {name} out")
            if file == managed and "managed" not in report.installed:
                _managed_only(host, file, document, report)
    config = root / _OF_CODEX
    for name in features_off(_toml(config)) if found and host.name == "codex" and config not in looked_at else ():
        what = f"{config}: {name} = false in [features] turns all hooks of Codex off in a project that it trusts"
        report.add("problem", what, f"take {name} out")
    for name in _VARIABLES.get(host.name, ()) if found else ():
        if os.environ.get(name, "").lower() not in ("", "0", "false"):
            report.add("problem", f"{name} is set, which turns all hooks of {host.title} off", f"unset {name}")


def _managed_only(host: Host, file: Path, document: Document, report: Report) -> None:
    """What the machine's settings say, so that only their own hooks run."""
    keys = SETTINGS[host.name].managed_only
    node = None if keys is None else document.find(keys)
    if keys is not None and node is not None and node.value is True:
        _, what = told_of(file, document, node, keys, f"turns all hooks of {host.title} off that are not in that file")
        report.add("problem", what, f"sudo {_install(host, 'managed')}")


def _overruled(host: Host, found: list[Installed], report: Report, root: Path) -> None:
    """Of all programs at one call, Cline takes the input that the last one gives: also after a refusal of ours."""
    folders = [settings_file(host, scope, root) for scope in SCOPES if has_scope(host, scope)]
    for folder in dict.fromkeys(folders) if found and host.name == "cline" else ():
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            with suppress(FairleadError):
                if file.stem.lower() == "pretooluse" and NAME not in (read_text(file) or ""):
                    what = f"{file} can undo a deny: if it gives an overrideInput, the call runs with that"
                    report.add("warning", what, "see that it gives none")


def _toml(file: Path) -> dict[str, Any]:
    """What a file in TOML says. What cannot be read says nothing."""
    try:
        return tomllib.loads(read_text(file) or "")
    except (FairleadError, tomllib.TOMLDecodeError):
        return {}


# --- fairlead itself --------------------------------------------------------------------------------


def _launcher(launcher: Path, report: Report, again: str) -> None:
    """Whether what the settings name can be run, and is what this fairlead would write."""
    from .hosts import hook_client

    client = launcher.parent / "fairlead_hook.py"
    try:
        text, code = launcher.read_text("utf-8"), client.read_bytes()
    except (OSError, UnicodeError) as error:
        name = getattr(error, "filename", None) or launcher
        report.add("problem", f"{name}, which the hooks need, cannot be read: {_why(error)}", again)
        return
    if not os.access(launcher, os.X_OK):
        report.add("problem", f"{launcher}, which the hooks start, cannot be run", again)
    start = "\nanswer=$("
    line = text.partition(start)[2].partition(")\n")[0]
    with suppress(ValueError):
        words = shlex.split(line)
        if len(words) > 7:
            for path in dict.fromkeys((words[0], words[7])):
                if not os.access(path, os.X_OK):
                    report.add("problem", f"{path}, which the launcher {launcher} runs, cannot be run", again)
            expected = launcher_text(Path(words[5]), words[0], words[7])
            if text.partition(start)[2] == expected.partition(start)[2] and code == _content(hook_client):
                return
    report.add("warning", f"{launcher} is not what this fairlead would write: of another version, or changed", again)


def _content(module: Any) -> bytes:
    return Path(module.__file__).read_bytes()


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _policy(config: Config, report: Report) -> None:
    """Whether there is anything to hold, and whether it is to hold."""
    try:
        if state_folder().exists():
            check_private(state_folder())
    except BadPlace as error:
        report.add("problem", str(error), f"chmod 700 {state_folder()}")
    if config.mistakes:
        first = config.mistakes[0]
        report.add("problem", f"mistakes in {first.file}: every step that guards is refused", "fairlead check")
    elif not config.hooks:
        report.add("note", "no hook is configured, so nothing will be denied", "fairlead init")
    for line in config.untrusted:
        report.add("warning", line, "fairlead trust")
    if not read_setting().enforced:
        report.add("warning", "fairlead only watches now, and denies nothing", "fairlead enforce")


def _journal(host: Host, config: Config, report: Report) -> None:
    """What the journal has of this CLI: what it could not carry out, and tools that nobody knows."""
    from .journal.reading import Filter, Reader
    from .transcripts.decisions import IMPORTED

    sources = config.sources
    configured = read(Sources(sources.system, sources.user)).journal.get("path")
    journal = Path(configured) if configured else journal_file()
    if not journal.exists():
        return
    degraded, unknown, last = Counter[tuple[str, str]](), Counter[str](), None
    try:
        with Reader(journal) as reader:
            for record in reader.records(Filter(host=host.name, notes=False), limit=LOOK_BACK):
                step = record.body.get("step") or {}
                last = last if record.id.startswith(IMPORTED) else record.at
                degraded.update((part, str(step.get("event"))) for part in _unsupported(record.body))
                if step.get("event") == "before_tool" and step.get("kind") == "unknown":
                    unknown[str(step.get("tool"))] += 1
    except FairleadError as error:
        report.add("warning", str(error), "fairlead verify")
    if last is not None:
        report.last_seen = datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds")
    report.degraded = {f"{part} at {event}": times for (part, event), times in degraded.items()}
    for (part, event), times in degraded.most_common(5):
        rule = RULES.get(part, "It is not carried out.")
        report.add("warning", f"it was asked {_times(times)} for {part} at {event}, which it cannot do. {rule}")
    report.unknown_tools = _still_unknown(host, config, unknown)
    if report.unknown_tools:
        names = ", ".join(list(report.unknown_tools)[:8])
        report.add("warning", f"tools of unknown kind: {names}", "say what they do in [[tool]] of a fairlead.toml")


def _unsupported(body: dict[str, Any]) -> Iterator[str]:
    for what in body.get("said") or ():
        if isinstance(what, dict) and "unsupported" in what:
            yield str(what["unsupported"])


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _still_unknown(host: Host, config: Config, unknown: Counter[str]) -> dict[str, int]:
    """Without those that somebody has described since. The most frequent first."""
    tools = host_tools()
    for layer in config.layers:
        if layer.trusted:
            tools.extend(layer.tools)
    return {name: n for name, n in unknown.most_common() if tools.spec(name, {}, host.name).kind == "unknown"}


# --- what it really does --------------------------------------------------------------------------


def _answers(host: Host, found: list[Installed], report: Report, home: Path, state: Path) -> None:
    """Whether fairlead answers the launcher. It is asked of an event that no CLI has, and only it knows that."""
    for installed in found:
        launcher = launcher_for(installed.scope)
        argv = [str(launcher), f"{ANSWER_WAIT - 5:g}", "before_tool", host.name, "doctor"]
        try:
            code, _, said = _ran(argv, home, ANSWER_WAIT, FAIRLEAD_STATE_DIR=str(state))
        except OSError:
            continue  # which was told already
        if "has no event 'doctor'" not in said:
            told = re.search(r"because (.+)\. Run .fairlead doctor", said)
            why = told[1] if told else "it says nothing" if code == 0 else _tail(f"it ended with {code}", said)
            report.add("problem", f"{launcher} gets no answer from fairlead: {why}", _again(host, installed))


class Seen(NamedTuple):
    """What came of having a model ask for a command that is denied."""

    asked: bool
    """Whether the CLI asked the model anything."""
    ran: bool
    told: bool
    """Whether the model was told why not."""
    said: str
    """What became of the run."""


def _fires(host: Host, found: list[Installed], report: Report, root: Path, folder: Path) -> None:
    from .probe.programs import PROGRAMS

    if host.name not in PROGRAMS:
        report.add("warning", "it cannot be run against a scripted model: whether its hooks fire is not proven")
        return
    if (managed := managed_folder()) is not None:
        report.add("warning", f"the machine's daemon ({managed}) decides: whether hooks fire here is not proven")
        return
    try:
        seen = _probe(host, Path(report.path or ""), found, folder, root)
    except Exception as error:  # whatever a program of somebody else's may do
        report.add("warning", f"{host.title} could not be run, so nothing is proven: {str(error)[:300]}")
        return
    if seen.ran:
        report.fires = False
        todo = f"{_install(host)}; and look for what turns its hooks off" if report.well else None
        report.add("problem", "a command ran that a hook denies: its hooks do not hold", todo)
    elif seen.told:
        report.fires = True
        report.add("ok", "its hooks fire: a command was denied, and the model was told why")
    elif seen.asked:
        what = "a command did not run, but not because a hook denies it, so nothing is proven"
        report.add("warning", f"{what}: {seen.said}", _try(host))
    else:
        what = f"{host.title} did not ask the scripted model anything, so nothing is proven"
        report.add("warning", f"{what}: {seen.said}", _try(host))


def _try(host: Host) -> str:
    return f"see that `{host.program}` itself works; then: fairlead doctor {host.name}"


def _probe(host: Host, binary: Path, found: list[Installed], folder: Path, root: Path) -> Seen:
    from .probe.model import Model, Say
    from .probe.programs import PROGRAMS

    home, project, state = folder / "home", folder / "project", folder / "state"
    project.mkdir(mode=0o700)
    _copy_settings(host, found, root, home, project)
    config = home / ".config/fairlead/fairlead.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(_POLICY)
    program = PROGRAMS[host.name](binary, home, project, {"FAIRLEAD_STATE_DIR": str(state)})
    with Model(program.shell(f"touch {PROBE}"), Say("done")) as model:
        try:
            ran = program.run(f"run touch {PROBE}", model, timeout=WAIT)
            said = _tail(f"it ended with {ran.code}", ran.text)
        except AssertionError:  # it did not end: but it may have shown what it does by then
            said = f"it did not end within {WAIT:g} s"
    return Seen(bool(model.asked), (project / PROBE).exists(), model.told(REASON), said)


def _stop(state: Path) -> None:
    """The daemon that the run has started, if it has."""
    pid, socket = None, state / "run/v1.sock"
    if not socket.exists():
        return
    with suppress(Exception):
        from .client import Client

        with Client(socket, start=False) as client:
            pid = int(client.health()["pid"])
            client.stop()
    until = time.monotonic() + END_WAIT
    while pid is not None and _lives(pid):
        if time.monotonic() > until:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    with suppress(OSError):
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()  # it has ended, and nobody has heard of it yet
    return True


# --- what it is given -------------------------------------------------------------------------------

_ABOUT_HOOKS = ("hooks", "hooksConfig", "hooksDisabled", "disableAllHooks", "version")
_STILL = {"command": "true", "bash": "true", "exec": "true", "url": "http://127.0.0.1:9"}
"""What the hooks of others do in a run: it is not ours to start their programs."""


def _copy_settings(host: Host, found: list[Installed], root: Path, home: Path, project: Path) -> None:
    """What the settings say of hooks, where the run will look for it. What holds for the machine holds there anyway."""
    settings, installed = SETTINGS[host.name], {each.scope: each for each in found}
    places: dict[Path, Path] = {}
    scopes: dict[Scope, Path] = {
        "user": home / settings.user.removeprefix("~/"), "project": project / settings.project
    }  # fmt: skip
    for scope, copied in scopes.items():
        real, ours = settings_file(host, scope, root), installed.get(scope)
        if settings.form in ("files", "plugin") and (ours is None or ours.outdated):
            continue  # programs, and not just as we write them: a repository's, perhaps
        for file in (real,) if ours is None else ours.files:
            if file.is_relative_to(real.parent) and file.suffix != ".toml":
                places.setdefault(file, copied.parent / file.relative_to(real.parent))
    for name in _ELSEWHERE.get(host.name, ()):
        places.setdefault(root / name, project / name)
    for file, copy in places.items():
        with suppress(FairleadError):
            text = read_text(file) if file.is_file() else None
            if text is not None and settings.form in ("groups", "list"):
                text = _about_hooks(text, settings.takes, whole=file.name == "hooks.json")
            if text is not None:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(text, "utf-8")
                copy.chmod(0o700)
    if host.name == "codex":
        _copy_trust(places, settings_file(host, "user", root).with_name("config.toml"), root, home, project)


def _about_hooks(text: str, takes: tuple[str, ...], *, whole: bool) -> str | None:
    """Settings without whatever would take a run elsewhere; with what the CLI stumbles over, if it does."""
    try:
        document = Document(text if text.strip("\ufeff \t\r\n") else "{}")
    except BadJson:
        return None if takes else "{"
    data = document.value
    comment = document.comment is not None and "comments" not in takes
    comma = document.trailing is not None and "commas" not in takes
    if not isinstance(data, dict) or (takes and (comment or comma)):  # it reads nothing of that
        return None
    kept = data if whole else {key: value for key, value in data.items() if key in _ABOUT_HOOKS}
    written = msgspec.json.encode(_stilled(kept)).decode()
    return f"{'// as it is there' if comment else ''}\n{written[:-1]}{',' if comma else ''}}}\n"


def _stilled(value: Any) -> Any:
    if isinstance(value, list):
        return [_stilled(each) for each in value]
    if not isinstance(value, dict) or any(_starts_us_alone(value.get(key)) for key in _STILL):
        return value
    return {
        key: _STILL[key] if key in _STILL and isinstance(each, str) else _stilled(each) for key, each in value.items()
    }


def _starts_us_alone(command: object) -> bool:
    """Whether a command line starts the launcher that is here, and nothing else. A repository can name its own so."""
    if not isinstance(command, str) or not is_ours(command):
        return False
    return any(as_we_write(launcher_for(scope)).fullmatch(command) for scope in SCOPES)


def _copy_trust(places: dict[Path, Path], config: Path, root: Path, home: Path, project: Path) -> None:
    """What Codex is told of hooks in its own settings: which of them to trust is bound to where they are."""
    data = _toml(config)
    tables: dict[str, dict[str, Any]] = {"features": dict.fromkeys(features_off(data), False)}
    trust = inside(data, "projects", str(root)).get("trust_level")
    tables[f"projects.{quoted(str(project))}"] = {"trust_level": trust}
    for key, said in inside(data, "hooks", "state").items():
        for file, copy in places.items():
            for old in (str(file), os.path.join(os.path.realpath(file.parent), file.name)):
                if key.startswith(f"{old}:") and isinstance(said, dict):
                    tables[f"hooks.state.{quoted(str(copy) + key.removeprefix(old))}"] = said
    _write_toml(home / _OF_CODEX, tables)
    _write_toml(project / _OF_CODEX, {"features": dict.fromkeys(features_off(_toml(root / _OF_CODEX)), False)})


def _write_toml(file: Path, tables: dict[str, dict[str, Any]]) -> None:
    lines = []
    for name, said in tables.items():
        held = {key: value for key, value in said.items() if isinstance(value, str | bool)}
        lines += [f"[{name}]", *(f"{key} = {msgspec.json.encode(value).decode()}" for key, value in held.items())]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines), "utf-8")
