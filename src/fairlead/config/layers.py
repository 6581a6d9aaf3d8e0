"""The three layers: system, user, project. They add; a lower one cannot take away what a higher one locked."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..errors import FairleadError, nearest
from ..hook import POLICIES, Hook, Layer
from ..registry import UNKNOWN_TOOL, Hooks, UnknownTool, unknown_tool_hooks
from ..tools import Tools
from ..verdict import Verdict, warn
from .document import ConfigError, Document, Keys, Mistake
from .reading import Configured, Place, read_hooks
from .trust import Survey, Trust, survey

SYSTEM_FILE = Path("/etc/fairlead/fairlead.toml")
FILE_NAME = "fairlead.toml"
SOURCE = "fairlead.toml"
"""The source of all hooks from configuration, for `hooks.replace_all`."""

_TOP = ("hook", "tool", "defaults", "disable")
_DEFAULTS = ("timeout", "on_failure", "enforce", "unknown_tool", "allow_hosts")
_TOOL = ("name", "kind", "safety", "command", "paths", "url", "server", "host")
_log = logging.getLogger("fairlead")


class Sources(msgspec.Struct, frozen=True):
    """Where the configuration of a folder is found. A file that is not there says nothing."""

    system: Path | None
    user: Path | None
    project: Path | None
    workspace: Path | None

    def __iter__(self) -> Iterator[tuple[Layer, Path]]:
        named: tuple[tuple[Layer, Path | None], ...] = (
            ("system", self.system),
            ("user", self.user),
            ("project", self.project),
        )
        yield from ((layer, path) for layer, path in named if path is not None)


def user_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return Path(base if base and os.path.isabs(base) else Path.home() / ".config") / "fairlead" / FILE_NAME


def find(cwd: str | Path = ".") -> Sources:
    """The files that apply in a folder. The project's is looked for from there up to the repository's root."""
    here = Path(cwd).resolve()
    project: Path | None = None
    root = here
    for folder in (here, *here.parents):
        if (folder / FILE_NAME).is_file():
            project, root = folder / FILE_NAME, folder
            break
        if (folder / ".git").exists():
            root = folder
            break
    user = user_file()
    home = Path(os.path.expanduser("~")).resolve()
    return Sources(
        SYSTEM_FILE if SYSTEM_FILE.exists() else None,
        user if user.exists() else None,
        None if project in (user, SYSTEM_FILE) else project,
        None if home.is_relative_to(root) else root,  # who works on all of a home has nowhere else to put programs
    )


class LayerFile:
    """What one file says. Mistakes are in its document."""

    def __init__(
        self, layer: Layer, path: Path, workspace: Path | None, allow_hosts: frozenset[str], trust: Trust
    ) -> None:
        self.layer: Layer = layer
        self.document = document = Document(path)
        self.inputs: tuple[Any, ...] = (document.path, allow_hosts, workspace)
        self.survey: Survey | None = None
        self.trusted = True
        self.untrusted_because = ""
        self._check_owner(path)
        for key in document.data:
            if key not in _TOP:
                document.wrong((key,), f"unknown key {key!r}{nearest(key, _TOP)}")
        self.defaults = self._read_defaults()
        self.tools = self._read_tools()
        self.disable = self._read_disable()
        pinned = self._look(path.parent, trust) if layer == "project" else {}
        place = Place(layer, path, workspace, allow_hosts, pinned)
        self.hooks = read_hooks(document, place, self.defaults)

    @property
    def state(self) -> tuple[Any, ...]:
        """What this was made from: while it stays the same, so does the layer."""
        digest = getattr(self.document, "digest", None)
        return (*self.inputs, digest, self.trusted, self.survey and self.survey.digest)

    def _check_owner(self, path: Path) -> None:
        if self.layer == "project":
            return  # which trust is for
        try:
            mode = path.stat().st_mode
        except OSError:
            return  # which the document has noted
        if mode & stat.S_IWOTH:
            self.document.wrong((), "anybody may write this file; chmod o-w it")

    def _look(self, root: Path, trust: Trust) -> dict[str, str]:
        """Whether a project's hooks are trusted, and the copies that are run."""
        self.trusted = not self.document.data.get("hook")
        if self.document.mistakes or self.trusted:
            return {}
        try:
            self.survey = survey(self.document.data, root)
            pin = trust.pin_of(root)
        except FairleadError as error:
            self.untrusted_because = str(error)
            return {}
        if pin is None:
            self.untrusted_because = "nobody has trusted them yet"
        elif pin.digest != self.survey.digest:
            self.untrusted_because = "they have changed since they were trusted"
        elif self.survey.uncovered and not pin.unpinned:
            self.untrusted_because = "not all of it is pinned"
        else:
            self.trusted = True
            return trust.copies(self.survey)
        return {}

    # --- the other tables ---------------------------------------------------------------------

    def _table(self, key: str, kind: type) -> Any:
        value = self.document.data.get(key, kind())
        if not isinstance(value, kind):
            self.document.wrong((key,), f"{key} must be {'a table' if kind is dict else 'a list'}", value=True)
            return kind()
        return value

    def _read_defaults(self) -> dict[str, Any]:
        checks: dict[str, tuple[Any, str]] = {
            "timeout": (lambda v: v is False or (isinstance(v, (int, float)) and v is not True and v > 0),
                        "a number of seconds above 0, or false for no limit"),
            "on_failure": (lambda v: v in POLICIES, f"one of {', '.join(POLICIES)}"),
            "enforce": (lambda v: isinstance(v, bool), "true or false"),
            "unknown_tool": (lambda v: v in UNKNOWN_TOOL, f"one of {', '.join(UNKNOWN_TOOL)}"),
            "allow_hosts": (_is_texts, "a list of host names"),
        }  # fmt: skip
        sound = {}
        for key, value in self._table("defaults", dict).items():
            if key not in checks:
                self.document.wrong(("defaults", key), f"unknown key {key!r}{nearest(key, _DEFAULTS)}")
            elif not checks[key][0](value):
                meant = (
                    nearest(value, checks[key][1].removeprefix("one of ").split(", ")) if isinstance(value, str) else ""
                )
                self.document.wrong(("defaults", key), f"{key} must be {checks[key][1]}{meant}", value=True)
            elif key == "allow_hosts" and self.layer == "project":
                self.document.wrong(("defaults", key), "a project cannot allow itself hosts; the user's file can")
            else:
                sound[key] = value
        return sound

    def _read_tools(self) -> Tools:
        tools = Tools()
        for index, entry in enumerate(self._table("tool", list)):
            keys: Keys = ("tool", index)
            if not isinstance(entry, dict):
                self.document.wrong(keys, "tools are written as [[tool]] tables")
                continue
            sound = True
            for key, value in entry.items():
                if key not in _TOOL:
                    sound = False
                    self.document.wrong((*keys, key), f"unknown key {key!r}{nearest(key, _TOOL)}")
                elif not (isinstance(value, str) or (key == "paths" and _is_texts(value))):
                    sound = False
                    self.document.wrong((*keys, key), f"{key} must be a text", value=True)
            for key in ("name", "kind"):
                if key not in entry:
                    sound = False
                    self.document.wrong(keys, f"a tool needs a {key}")
            if sound:
                options = {key: value for key, value in entry.items() if key not in ("name", "kind")}
                try:
                    tools.add(entry["name"], entry["kind"], **options)
                except FairleadError as error:
                    wrong = next((key for key in ("kind", "safety") if f"unknown {key}" in str(error)), "name")
                    self.document.wrong((*keys, wrong), str(error), value=True)
        return tools

    def _read_disable(self) -> list[str]:
        names: list[str] = self._table("disable", list)
        if not _is_texts(names):
            self.document.wrong(("disable",), "disable must be a list of hook names", value=True)
            return []
        if names and self.layer == "project":
            self.document.wrong(("disable",), "a project cannot disable another layer's hooks")
            return []
        return names


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


class Config:
    """The configuration of a folder: the layers, and what they come to together."""

    def __init__(self, sources: Sources, layers: list[LayerFile]) -> None:
        self.sources = sources
        self.layers = layers
        self.hooks: tuple[Configured, ...] = tuple(self._merged())

    @property
    def mistakes(self) -> list[Mistake]:
        found = [layer.document.mistakes for layer in self.layers]
        return [mistake for mistakes in found for mistake in sorted(mistakes, key=lambda m: (m.line, m.column))]

    @property
    def untrusted(self) -> list[str]:
        """One line per file whose hooks do not run."""
        return [
            f"{len(layer.hooks)} hook{'s' * (len(layer.hooks) != 1)} of {layer.document.path} "
            f"({', '.join(c.hook.name for c in layer.hooks)}) do not run: {layer.untrusted_because}; "
            f"look at them with `fairlead trust`"
            for layer in self.layers
            if not layer.trusted
        ]

    @property
    def unknown_tool(self) -> UnknownTool:
        """The strictest that any layer asks for."""
        asked = [layer.defaults["unknown_tool"] for layer in self.layers if "unknown_tool" in layer.defaults]
        return max(asked, key=UNKNOWN_TOOL.index, default="proceed")

    def _merged(self) -> Iterator[Configured]:
        """All hooks that run, highest layer first. Where two layers use one name, the lower one's is qualified."""
        disabled = self._disabled()
        names: set[str] = set()
        for layer in self.layers:
            for configured in layer.hooks if layer.trusted else ():
                hook = configured.hook
                if id(hook) in disabled:
                    continue
                if hook.name in names:
                    hook.name = f"{layer.layer}:{hook.name}"
                names.add(hook.name)
                yield configured

    def _disabled(self) -> set[int]:
        found: set[int] = set()
        for i, layer in enumerate(self.layers):
            above = [c for higher in self.layers[:i] for c in higher.hooks]
            for k, name in enumerate(layer.disable):
                named = [c for c in above if c.entry["name"] == name]
                locked = next((c for c in named if c.locked), None)
                if locked is not None:
                    layer.document.wrong(("disable", k), f"{name!r} is locked ({locked.where})")
                elif not named:
                    suggestion = nearest(name, [c.entry["name"] for c in above]) or "; there is none to disable"
                    layer.document.wrong(("disable", k), f"no higher layer has a hook {name!r}{suggestion}")
                found |= {id(c.hook) for c in named if not c.locked}
        return found

    def apply(self, hooks: Hooks) -> None:
        """Put these hooks in force, in place of those of an earlier configuration."""
        configured, unknown = Tools(), Tools()
        for layer in self.layers:
            into = unknown if layer.layer == "project" else configured
            into.extend(layer.tools)
        gates = list(unknown_tool_hooks(self.unknown_tool))
        notices = [_notice(line) for line in self.untrusted]
        hooks.replace_all([*(c.hook for c in self.hooks), *gates, *notices], source=SOURCE)
        hooks.tools.configure(configured, unknown)
        for line in self.untrusted:
            _log.warning("%s", line)


def _notice(line: str) -> Hook:
    def untrusted(step: Any) -> Verdict:
        return warn(line)

    return Hook(untrusted, "session_start", name="fairlead.untrusted", layer="builtin")


def read(sources: Sources, trust: Trust | None = None, before: Config | None = None) -> Config:
    """Read all layers, mistakes and all. A layer that has not changed since `before` is taken from there."""
    layers: list[LayerFile] = []
    allow_hosts: frozenset[str] = frozenset()
    trust = trust or Trust()
    known = {layer.state: layer for layer in before.layers} if before is not None else {}
    for name, path in sources:
        layer = LayerFile(name, path, sources.workspace, allow_hosts, trust)
        layer = known.get(layer.state, layer) if not layer.document.mistakes else layer
        allow_hosts |= frozenset(layer.defaults.get("allow_hosts", ()))
        layers.append(layer)
    return Config(sources, layers)


def load(cwd: str | Path = ".", *, trust: Trust | None = None) -> Config:
    """The configuration of a folder. Raises `ConfigError` with every mistake there is."""
    config = read(find(cwd), trust)
    if config.mistakes:
        raise ConfigError(config.mistakes)
    return config
