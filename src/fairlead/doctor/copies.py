"""The settings that a run of a CLI is given: what the user's say of hooks, and nothing else."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ..errors import FairleadError
from ..hosts.codex_files import features_off, inside
from ..hosts.host import Host
from ..hosts.installing import Installed, launcher_for
from ..hosts.settings import SETTINGS, Scope, settings_file
from ..hosts.targets import as_we_write, is_ours, read_text
from ..jsonc import BadJson, Document
from ..toml_text import quoted
from .settings import ELSEWHERE, OF_CODEX, read_toml

_ABOUT_HOOKS = ("hooks", "hooksConfig", "hooksDisabled", "disableAllHooks", "version")
_STILL = {"command": "true", "bash": "true", "exec": "true", "url": "http://127.0.0.1:9"}
"""What the hooks of others do in a run: it is not ours to start their programs."""


def copy_settings(host: Host, found: list[Installed], root: Path, home: Path, project: Path) -> None:
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
    for name in ELSEWHERE.get(host.name, ()):
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
    launchers = (None, launcher_for("user"), launcher_for("managed"))
    return any(as_we_write(launcher).fullmatch(command) for launcher in launchers)


def _copy_trust(places: dict[Path, Path], config: Path, root: Path, home: Path, project: Path) -> None:
    """What Codex is told of hooks in its own settings: which of them to trust is bound to where they are."""
    data = read_toml(config)
    tables: dict[str, dict[str, Any]] = {"features": dict.fromkeys(features_off(data), False)}
    trust = inside(data, "projects", str(root)).get("trust_level")
    tables[f"projects.{quoted(str(project))}"] = {"trust_level": trust}
    for key, said in inside(data, "hooks", "state").items():
        for file, copy in places.items():
            for old in (str(file), os.path.join(os.path.realpath(file.parent), file.name)):
                if key.startswith(f"{old}:") and isinstance(said, dict):
                    tables[f"hooks.state.{quoted(str(copy) + key.removeprefix(old))}"] = said
    _write_toml(home / OF_CODEX, tables)
    _write_toml(project / OF_CODEX, {"features": dict.fromkeys(features_off(read_toml(root / OF_CODEX)), False)})


def _write_toml(file: Path, tables: dict[str, dict[str, Any]]) -> None:
    lines = []
    for name, said in tables.items():
        held = {key: value for key, value in said.items() if isinstance(value, str | bool)}
        lines += [f"[{name}]", *(f"{key} = {msgspec.json.encode(value).decode()}" for key, value in held.items())]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines), "utf-8")
