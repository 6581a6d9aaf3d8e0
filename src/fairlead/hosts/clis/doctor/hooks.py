"""Checks on fairlead's hooks in the settings of a CLI: where they are, what is missing, what turns them off."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from ....errors import FairleadError
from ..install import Installed, status
from ..install.json_file import JsonFile, locate, switched_off
from ..install.jsonc import JsonDocument
from ..install.settings import SCOPES, InstallScope, has_scope, served_file, settings_file, settings_files, settings_of
from ..install.targets import read_text
from ..mapping import Host
from .report import CheckLevel, Report


def find_hooks(host: Host, report: Report, root: Path) -> list[Installed]:
    """Find the scopes in which a CLI has hooks of fairlead."""
    found: list[Installed] = []
    for scope in SCOPES:
        try:
            installed = status(host, scope, root)
        except FairleadError as error:
            report.add("problem", str(error), f"fix it; then: {install_command(host, scope)}")
            continue
        if installed is not None and not any(installed.files == other.files for other in found):
            found.append(installed)
    return found


def look_at_hooks(host: Host, found: list[Installed], report: Report) -> None:
    """Check that all hooks of fairlead are there, and report hooks of other programs."""
    report.installed = [installed.scope for installed in found]
    if not found:
        level: CheckLevel = "problem" if report.path is not None else "note"
        report.add(level, "fairlead's hooks are not installed", install_command(host))
    for installed in found:
        where, again = f"{installed.file} ({installed.scope})", install_again(host, installed)
        for problem in installed.problems:
            report.add(
                "problem", problem, None if "take it out" in problem else "fix it, and run `fairlead doctor` again"
            )
        if not installed.events:
            report.add("problem", f"{where}: no hook of fairlead can be read from it", again)
        elif installed.missing:
            report.add("problem", f"{where}: not hooked: {', '.join(installed.missing)}", again)
        elif not installed.current:
            report.add("problem", f"{where}: fairlead's hooks differ from what it would install now", again)
        else:
            report.add("ok", f"{where}: {len(installed.events)} events are hooked")
        if installed.trusted is False:
            report.add("problem", f"{where}: {host.title} does not trust them, and skips them", again)
        for foreign in installed.foreign:
            _add_foreign(host, foreign.partition(":")[0], foreign, report)
        if note := settings_of(host).notes.get(installed.scope):
            report.add("note", note)
    if len(found) > 1:
        report.add(
            "note", f"installed for {' and '.join(report.installed)}: the daemon judges each step once",
        )  # fmt: skip
    for note in host.notes if found else ():
        report.add("note", note)


def look_for_others(host: Host, found: list[Installed], report: Report, root: Path) -> None:
    """Report hooks of other programs at the same events, in files that have none of fairlead's."""
    if not found or settings_of(host).form not in ("groups", "list"):
        return
    ours = {file for installed in found for file in installed.files}
    events: dict[str, Any] = {event: {} for event, mapping in host.events.items() if mapping.installed}
    for file in _files_with_hooks(host, root):
        if file in ours or not file.is_file():
            continue
        with suppress(FairleadError):
            for event, hooks in JsonFile(host, file, events).inspect(read_text(file)).foreign.items():
                for hook in hooks:
                    _add_foreign(host, event, f"{event}: {hook} ({file})", report)


def _files_with_hooks(host: Host, root: Path) -> list[Path]:
    """All files in which a CLI looks for hooks, as far as fairlead knows."""
    settings, files = settings_of(host), settings_files(host, root)
    if settings.is_own:  # each program has its own, side by side
        files += [beside for file in files for beside in sorted(file.parent.glob(f"*{file.suffix}"))]
    return list(dict.fromkeys([*files, *(root / name for name in settings.project_files)]))


def _add_foreign(host: Host, event: str, hook: str, report: Report) -> None:
    mapping = host.events.get(event)
    changes = mapping is not None and mapping.event == "before_tool"  # after we have judged them
    what = ", and may change the arguments unjudged" if changes else ""
    report.add("warning" if changes else "note", f"another hook is on the same event{what}: {hook}")


def install_again(host: Host, installed: Installed) -> str:
    return install_command(host, installed.scope)


def install_command(host: Host, scope: InstallScope = "user") -> str:
    return f"fairlead install {host.name}{_scope(scope)}"


def _scope(scope: str) -> str:
    return "" if scope == "user" else f" --scope {scope}"


def look_for_switches(host: Host, found: list[Installed], report: Report, root: Path) -> None:
    """Report what turns hooks off: keys in other files, variables, and what the CLI's own checks find."""
    if not found:
        return
    settings, seen = settings_of(host), {file for installed in found for file in installed.files}
    managed = settings_file(host, "managed", root) if has_scope(host, "managed") else None
    for file in dict.fromkeys([*settings_files(host, root), *(root / name for name in settings.project_files)]):
        if file in seen or not file.is_file():
            continue
        with suppress(FairleadError):
            document = JsonDocument(read_text(file) or "{}")
            for name, what in switched_off(host, file, document):
                report.add("problem", what, f"take {name} out")
            if file == managed and "managed" not in report.installed:
                _look_for_managed_only(host, file, document, report)
    for name in settings.off_variables:
        if _is_on(os.environ.get(name, "")):
            report.add("problem", f"{name} is set, which turns all hooks of {host.title} off", f"unset {name}")
    for level, what, todo in settings.examine(root, seen) if settings.examine else ():
        report.add(level, what, todo)


def _is_on(value: str) -> bool:
    """Whether a variable with this value switches something on."""
    return value.lower() not in ("", "0", "false")


_ASSIGNS = r"^\s*(?:export\s+)?(%s)\s*[=:]"
_STEERS_SHELL = re.compile(_ASSIGNS % r"SHELLOPTS|BASHOPTS|BASH_ENV|ENV|PS4|OPTIND|LD_\w+|DYLD_\w+", re.MULTILINE)


def look_for_variables(host: Host, report: Report, root: Path) -> None:
    """Report variables in a project's files that turn hooks off, or steer the shell that runs them."""
    settings = settings_of(host)
    names = "|".join(settings.off_variables) or r"(?!)"
    off = re.compile(_ASSIGNS % names + r"""[ \t]*["']?([^"'\s#]*)""", re.MULTILINE)
    for file in (root / name for name in settings.env_files):
        with suppress(FairleadError):
            text = read_text(file) or ""
            for name in dict.fromkeys(name for name, value in off.findall(text) if _is_on(value)):
                what = f"{file} sets {name}, which turns all hooks of {host.title} off"
                report.add("problem", what, f"take {name} out")
            for name in dict.fromkeys(_STEERS_SHELL.findall(text)):
                what = f"{file} sets {name}: the shell by which {host.title} starts hooks obeys it before anything else"
                report.add("problem", what, f"take {name} out")


def _look_for_managed_only(host: Host, file: Path, document: JsonDocument, report: Report) -> None:
    """Report a key of the managed settings that turns off all hooks of other files."""
    keys = settings_of(host).managed_only
    node = None if keys is None else document.find(keys)
    if keys is not None and node is not None and node.value is True:
        what = locate(file, document, node, keys, f"turns all hooks of {host.title} off that are not in that file")
        report.add("problem", what, f"sudo {install_command(host, 'managed')}")


def look_for_served(host: Host, found: list[Installed], report: Report) -> None:
    """Check the settings that the vendor serves to an organization, as the CLI stored them at its last start.

    They beat the managed file, and can hide all of it.
    """
    file, merge_setting = served_file(host), settings_of(host).merge_setting
    if file is None or not found or not file.is_file():
        return
    try:
        document = JsonDocument(read_text(file) or "{}")
    except FairleadError as error:
        report.add("warning", f"settings that the vendor serves cannot be read: {error}")
        return
    for _, what in switched_off(host, file, document):
        report.add("problem", f"{what} (the vendor serves it)", "change it in the admin console")
    if "managed" not in report.installed:
        _look_for_managed_only(host, file, document, report)
        return
    served = document.value if isinstance(document.value, dict) else {}
    hides = merge_setting and {key for key in served if not key.startswith("$")} - merge_setting.keys()
    if hides and any(served.get(key) != value for key, value in merge_setting.items()):
        what = f"{file}: the vendor serves settings ({', '.join(sorted(hides))}), so none of the managed file counts"
        report.add("problem", what, f"add this in the admin console: {json.dumps(merge_setting)}")
