"""Our hooks in the settings of a CLI: where they are, what is missing, and what turns them off."""

from __future__ import annotations

import json
import os
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import FairleadError
from ..hosts.codex_files import features_off
from ..hosts.host import Host
from ..hosts.installing import Installed, status
from ..hosts.launcher import NAME
from ..hosts.settings import SCOPES, SETTINGS, Scope, has_scope, served_file, settings_file
from ..hosts.targets import JsonFile, read_text, switched_off, told_of
from ..jsonc import Document
from .report import Level, Report


def find_hooks(host: Host, report: Report, root: Path) -> list[Installed]:
    """Where our hooks are."""
    found: list[Installed] = []
    for scope in SCOPES:
        try:
            installed = status(host, scope, root)
        except FairleadError as error:
            report.add("problem", str(error), f"mend it; then: {install_command(host, scope)}")
            continue
        if installed is not None and not any(installed.files == other.files for other in found):
            found.append(installed)
    return found


def look_at_hooks(host: Host, found: list[Installed], report: Report) -> None:
    """Whether our hooks are all there, and what is beside them."""
    report.installed = [installed.scope for installed in found]
    if not found:
        level: Level = "problem" if report.path is not None else "note"
        report.add(level, "no hooks of ours are installed", install_command(host))
    for installed in found:
        where, again = f"{installed.file} ({installed.scope})", install_again(host, installed)
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
            _add_foreign(host, foreign.partition(":")[0], foreign, report)
        if told := SETTINGS[host.name].says.get(installed.scope):
            report.add("note", told)
    if len(found) > 1:
        report.add(
            "note", f"installed for {' and '.join(report.installed)}: each step may be asked about twice",
            f"fairlead uninstall {host.name}" + _scope(found[-1].scope),
        )  # fmt: skip
    for note in host.notes if found else ():
        report.add("note", note)


def look_for_others(host: Host, found: list[Installed], report: Report, root: Path) -> None:
    """Hooks of other programs at the same events, in files that ours are not in. The CLI runs those, too."""
    if not found or SETTINGS[host.name].form not in ("groups", "list"):
        return
    ours = {file for installed in found for file in installed.files}
    events: dict[str, Any] = {event: {} for event, moment in host.moments.items() if moment.installed}
    for file in _files_with_hooks(host, root):
        if file in ours or not file.is_file():
            continue
        at = () if host.name == "droid" and file.name == "hooks.json" else ("hooks",)
        with suppress(FairleadError):
            for event, hooks in JsonFile(host, file, events, at=at).look(read_text(file)).foreign.items():
                for hook in hooks:
                    _add_foreign(host, event, f"{event}: {hook} ({file})", report)


def _files_with_hooks(host: Host, root: Path) -> list[Path]:
    """All files in which a CLI looks for hooks, as far as fairlead knows."""
    files = [settings_file(host, scope, root) for scope in SCOPES if has_scope(host, scope)]
    if SETTINGS[host.name].own:  # of each program its own, side by side
        files += [beside for file in files for beside in sorted(file.parent.glob(f"*{file.suffix}"))]
    return list(dict.fromkeys([*files, *(root / name for name in ELSEWHERE.get(host.name, ()))]))


def _add_foreign(host: Host, event: str, hook: str, report: Report) -> None:
    moment = host.moments.get(event)
    changes = moment is not None and moment.event == "before_tool"  # after we have judged them
    what = ", and may change the arguments unjudged" if changes else ""
    report.add("warning" if changes else "note", f"another hook is on the same event{what}: {hook}")


def install_again(host: Host, installed: Installed) -> str:
    return install_command(host, installed.scope)


def install_command(host: Host, scope: Scope = "user") -> str:
    return f"fairlead install {host.name}{_scope(scope)}"


def _scope(scope: str) -> str:
    return "" if scope == "user" else f" --scope {scope}"


_VARIABLES = {"claude_code": ("CLAUDE_CODE_SIMPLE",), "opencode": ("OPENCODE_PURE",)}
ELSEWHERE = {
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
OF_CODEX = ".codex/config.toml"
"""The one of Codex."""


def look_for_switches(host: Host, found: list[Installed], report: Report, root: Path) -> None:
    """What turns hooks off, beside the files in which they are."""
    looked_at = {file for installed in found for file in installed.files}
    others = [settings_file(host, scope, root) for scope in SCOPES if has_scope(host, scope)]
    managed = settings_file(host, "managed", root) if has_scope(host, "managed") else None
    others += [root / name for name in ELSEWHERE.get(host.name, ())]
    for file in dict.fromkeys(others) if found else ():
        if file in looked_at or not file.is_file():
            continue
        with suppress(FairleadError):
            document = Document(read_text(file) or "{}")
            for name, what in switched_off(host, file, document):
                report.add("problem", what, f"take {name} out")
            if file == managed and "managed" not in report.installed:
                _managed_only(host, file, document, report)
    config = root / OF_CODEX
    for name in features_off(read_toml(config)) if found and host.name == "codex" and config not in looked_at else ():
        what = f"{config}: {name} = false in [features] turns all hooks of Codex off in a project that it trusts"
        report.add("problem", what, f"take {name} out")
    for name in _VARIABLES.get(host.name, ()) if found else ():
        if os.environ.get(name, "").lower() not in ("", "0", "false"):
            report.add("problem", f"{name} is set, which turns all hooks of {host.title} off", f"unset {name}")


_ENV_FILES = {"gemini": (".env", ".gemini/.env"), "qwen": (".env", ".qwen/.env")}
"""Files of a project from which a CLI takes variables."""
_STEERS_SHELL = re.compile(
    r"^\s*(?:export\s+)?(SHELLOPTS|BASHOPTS|BASH_ENV|ENV|PS4|OPTIND|LD_\w+|DYLD_\w+)\s*[=:]", re.MULTILINE
)


def look_for_variables(host: Host, report: Report, root: Path) -> None:
    """What a project's files of variables set that keeps a shell from running hooks, or has it run something else."""
    for file in (root / name for name in _ENV_FILES.get(host.name, ())):
        with suppress(FairleadError):
            for name in dict.fromkeys(_STEERS_SHELL.findall(read_text(file) or "")):
                what = f"{file} sets {name}: the shell by which {host.title} starts hooks obeys it before anything else"
                report.add("problem", what, f"take {name} out")


def _managed_only(host: Host, file: Path, document: Document, report: Report) -> None:
    """What the machine's settings say, so that only their own hooks run."""
    keys = SETTINGS[host.name].managed_only
    node = None if keys is None else document.find(keys)
    if keys is not None and node is not None and node.value is True:
        _, what = told_of(file, document, node, keys, f"turns all hooks of {host.title} off that are not in that file")
        report.add("problem", what, f"sudo {install_command(host, 'managed')}")


def look_for_served(host: Host, found: list[Installed], report: Report) -> None:
    """Settings that the vendor serves to an organization. The CLI keeps them in a file, as they were at its last start.

    They count for more than the managed file, and may hide it as a whole.
    """
    file, settings = served_file(host), SETTINGS[host.name]
    if file is None or not found or not file.is_file():
        return
    try:
        document = Document(read_text(file) or "{}")
    except FairleadError as error:
        report.add("warning", f"settings that the vendor serves cannot be read: {error}")
        return
    for _, what in switched_off(host, file, document):
        report.add("problem", f"{what} (the vendor serves it)", "change it in the admin console")
    if "managed" not in report.installed:
        _managed_only(host, file, document, report)
        return
    served = document.value if isinstance(document.value, dict) else {}
    hides = settings.merged and {key for key in served if not key.startswith("$")} - settings.merged.keys()
    if hides and any(served.get(key) != value for key, value in settings.merged.items()):
        what = f"{file}: the vendor serves settings ({', '.join(sorted(hides))}), so none of the managed file counts"
        report.add("problem", what, f"add this in the admin console: {json.dumps(settings.merged)}")


def look_for_overrides(host: Host, found: list[Installed], report: Report, root: Path) -> None:
    """Of all programs at one call, Cline takes the input that the last one gives: also after a refusal of ours."""
    folders = [settings_file(host, scope, root) for scope in SCOPES if has_scope(host, scope)]
    for folder in dict.fromkeys(folders) if found and host.name == "cline" else ():
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            with suppress(FairleadError):
                if file.stem.lower() == "pretooluse" and NAME not in (read_text(file) or ""):
                    what = f"{file} can undo a deny: if it gives an overrideInput, the call runs with that"
                    report.add("warning", what, "see that it gives none")


def read_toml(file: Path) -> dict[str, Any]:
    """What a file in TOML says. What cannot be read says nothing."""
    try:
        return tomllib.loads(read_text(file) or "")
    except (FairleadError, tomllib.TOMLDecodeError):
        return {}
