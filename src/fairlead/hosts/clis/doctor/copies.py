"""Copies a user's settings for a trial run of a CLI: what they say about hooks, and nothing else."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ....errors import FairleadError
from ..install import Installed, launcher_for
from ..install.commands import exact_commands, is_ours
from ..install.jsonc import BadJson, JsonDocument
from ..install.settings import InstallScope, Settings, settings_file, settings_of
from ..install.targets import read_text
from ..mapping import Host

_HARMLESS = {"command": "true", "bash": "true", "exec": "true", "url": "http://127.0.0.1:9"}
"""What hooks of other programs do in a trial run, by the key that starts them: nothing."""


def copy_settings(host: Host, found: list[Installed], root: Path, home: Path, project: Path) -> None:
    """Copy what the settings say about hooks to where the trial run reads it. Managed settings apply there anyway."""
    settings, copies = settings_of(host), _copies(host, found, root, home, project)
    for file, copy in copies.items():
        with suppress(FairleadError):
            text = read_text(file) if file.is_file() else None
            if text is not None and settings.form in ("groups", "list"):
                text = _hooks_only(text, settings, whole=file.name == "hooks.json")
            if text is not None:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(text, "utf-8")
                copy.chmod(0o700)
    if settings.copy_more is not None:
        settings.copy_more(copies, root, home, project)


def _copies(host: Host, found: list[Installed], root: Path, home: Path, project: Path) -> dict[Path, Path]:
    """The files to copy, and where."""
    settings, installed = settings_of(host), {each.scope: each for each in found}
    copies: dict[Path, Path] = {}
    scopes: dict[InstallScope, Path] = {
        "user": home / settings.user.removeprefix("~/"), "project": project / settings.project
    }  # fmt: skip
    for scope, copied in scopes.items():
        real, ours = settings_file(host, scope, root), installed.get(scope)
        if settings.form in ("files", "plugin") and (ours is None or ours.outdated):
            continue  # programs that differ from what fairlead writes: a repository's, perhaps
        for file in (real,) if ours is None else ours.files:
            if file.is_relative_to(real.parent) and file.suffix != ".toml":
                copies.setdefault(file, copied.parent / file.relative_to(real.parent))
    for name in settings.project_files:
        copies.setdefault(root / name, project / name)
    return copies


def _hooks_only(text: str, settings: Settings, *, whole: bool) -> str | None:
    """Settings without what would change the trial run otherwise, but with the syntax that the CLI rejects."""
    allows = settings.allows
    try:
        document = JsonDocument(text if text.strip("\ufeff \t\r\n") else "{}")
    except BadJson:
        return None if allows else "{"
    data = document.value
    comment = document.comment is not None and "comments" not in allows
    comma = document.trailing is not None and "commas" not in allows
    if not isinstance(data, dict) or (allows and (comment or comma)):  # the CLI ignores the whole file
        return None
    kept = data if whole else {key: value for key, value in data.items() if key in _keys_about_hooks(settings)}
    written = msgspec.json.encode(_harmless(kept)).decode()
    return f"{'// as it is there' if comment else ''}\n{written[:-1]}{',' if comma else ''}}}\n"


def _keys_about_hooks(settings: Settings) -> set[str]:
    """The top-level keys of settings that hold hooks, or turn them off."""
    switches = [keys for keys, _ in settings.off_switches] + [settings.disabled_key or ("hooks",)]
    return {"hooks", *settings.template, *(keys[0] for keys in switches)}


def _harmless(value: Any) -> Any:
    if isinstance(value, list):
        return [_harmless(each) for each in value]
    if not isinstance(value, dict) or any(_starts_only_launcher(value.get(key)) for key in _HARMLESS):
        return value
    return {
        key: _HARMLESS[key] if key in _HARMLESS and isinstance(each, str) else _harmless(each)
        for key, each in value.items()
    }


def _starts_only_launcher(command: object) -> bool:
    """Whether a command line starts an installed launcher, and nothing else. A repository could imitate its name."""
    if not isinstance(command, str) or not is_ours(command):
        return False
    launchers = (None, launcher_for("user"), launcher_for("managed"))
    return any(exact_commands(launcher).fullmatch(command) for launcher in launchers)
