"""The three layers: system, user, project. They add; a lower one cannot take away what a higher one locked."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ..errors import FairleadError, closest, nearest
from ..hook import POLICIES, Hook, Layer
from ..logs import logger
from ..places import runtime_folder, state_folder
from ..switches import Switch
from ..tools import UNKNOWN_TOOL, Tools, UnknownTool
from ..verdict import Verdict, warn
from .document import ConfigError, Document, Keys, Mistake
from .journaling import Redactions, read_journal, read_redact
from .reading import Configured, Place, read_hooks
from .trust import Survey, Trust, survey

if TYPE_CHECKING:
    from ..journal import Journal
    from ..registry import Hooks

SYSTEM_FILE = Path("/etc/fairlead/fairlead.toml")
FILE_NAME = "fairlead.toml"
SOURCE = "fairlead.toml"
"""The source of all hooks from configuration, for `hooks.replace_all`."""

_TOP = ("hook", "tool", "defaults", "disable", "journal", "redact")
_DEFAULTS = ("timeout", "on_failure", "enforce", "unknown_tool", "allow_hosts")
_TOOL = ("name", "kind", "safety", "command", "paths", "url", "server", "host")


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


def find(cwd: str | Path = ".", trust: Trust | None = None) -> Sources:
    """The files that apply in a folder.

    The project is the nearest one around the folder that was trusted, whatever has been put below it since. If none
    was, its file is looked for from the folder up to the repository's root.
    """
    try:
        here = Path(cwd).resolve(strict=True)
        if not here.is_dir():
            raise NotADirectoryError(20, "it is not a folder")
    except (OSError, ValueError, RuntimeError) as error:
        raise FairleadError(f"{cwd}: {getattr(error, 'strerror', None) or error}") from None
    trusted: set[str] = set()
    with suppress(FairleadError):  # which whoever asks for a pin will hear of
        trusted = (trust or Trust()).roots
    root = next((folder for folder in (here, *here.parents) if str(folder) in trusted), None) or _root_of(here)
    user, project = user_file(), root / FILE_NAME
    home = Path(os.path.expanduser("~")).resolve()
    taken = (user.resolve(), SYSTEM_FILE.resolve())
    return Sources(
        SYSTEM_FILE if _may_be_there(SYSTEM_FILE) else None,
        user if _may_be_there(user) else None,
        project if project.is_file() and project not in taken else None,
        None if home.is_relative_to(root) else root,  # who works on all of a home has nowhere else to put programs
    )


def _root_of(here: Path) -> Path:
    for folder in (here, *here.parents):
        if (folder / FILE_NAME).is_file() or (folder / ".git").exists():
            return folder
    return here


def _may_be_there(path: Path) -> bool:
    """Whether a file is there, or cannot be looked for: then reading it will say so."""
    try:
        return os.path.lexists(path) or path.exists()
    except OSError:
        return True


class LayerFile:
    """What one file says. Mistakes are in its document."""

    def __init__(
        self,
        layer: Layer,
        path: Path,
        workspace: Path | None,
        allow_hosts: frozenset[str],
        trust: Trust,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.layer: Layer = layer
        self.document = document = Document(path)
        self.inputs: tuple[Any, ...] = (document.path, allow_hosts, workspace)
        self.survey: Survey | None = None
        self.trusted = True
        self.untrusted_because = ""
        self._check_owner(path)
        for key in document.data:
            if key not in _TOP and not document.hopeless:
                document.wrong((key,), f"unknown key {key!r}{nearest(key, _TOP)}")
        self.defaults = self._read_defaults()
        self.tools = self._read_tools()
        self.disable = self._read_disable()
        self.journal = read_journal(document, layer)
        self.redact = read_redact(document, layer, environ)
        pinned = self._look(path.parent, trust, environ) if layer == "project" else {}
        programs: dict[str, str] = self.survey.programs if self.survey is not None else {}
        workspace = path.parent if layer == "project" else workspace
        place = Place(layer, path, workspace, allow_hosts, pinned, programs, self.trusted, environ)
        self.hooks = read_hooks(document, place, self.defaults)

    @property
    def state(self) -> tuple[Any, ...]:
        """What this was made from: while it stays the same, so does the layer."""
        return (*self.inputs, self.document.digest, self.trusted, self.survey and self.survey.digest)

    def _check_owner(self, path: Path) -> None:
        if self.layer == "project":
            return  # which trust is for
        try:
            mode = path.stat().st_mode
        except OSError:
            return  # which the document has noted
        if mode & stat.S_IWOTH:
            self.document.wrong((), "anybody may write this file; chmod o-w it")

    def _look(self, root: Path, trust: Trust, environ: Mapping[str, str] | None) -> dict[str, str]:
        """Whether a project's hooks are trusted, and the copies that are run."""
        self.trusted = False
        if self.document.mistakes:
            return {}
        try:
            self.survey = survey(self.document.data, root, environ)
            pin = trust.pin_of(root)
            if pin is None and not self.document.data.keys() & {"hook", "tool", "defaults"}:
                self.trusted = True  # there is nothing to trust
            elif pin is None:
                self.untrusted_because = "nobody has trusted them yet"
            elif pin.digest != self.survey.digest:
                self.untrusted_because = "they have changed since they were trusted"
            elif self.survey.uncovered and not pin.unpinned:
                self.untrusted_because = "not all of it is pinned"
            else:
                copies = trust.copies(self.survey)
                self.trusted = True
                return copies
        except (FairleadError, RecursionError) as error:
            self.untrusted_because = str(error)
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
            "timeout": (lambda v: v is False or (isinstance(v, (int, float)) and v is not True and 0 < v < 1e9),
                        "a number of seconds above 0, or false for no limit"),
            "on_failure": (lambda v: v in POLICIES, f"one of {', '.join(POLICIES)}"),
            "enforce": (lambda v: isinstance(v, bool), "true or false"),
            "unknown_tool": (lambda v: v in UNKNOWN_TOOL, f"one of {', '.join(UNKNOWN_TOOL)}"),
            "allow_hosts": (_is_texts, "a list of host names"),
        }  # fmt: skip
        sound = {}
        for key, value in self._table("defaults", dict).items():
            if self.document.hopeless:
                break
            if key not in checks:
                self.document.wrong(("defaults", key), f"unknown key {key!r}{nearest(key, _DEFAULTS)}")
            elif not checks[key][0](value):
                choices: tuple[str, ...] = {"on_failure": POLICIES, "unknown_tool": UNKNOWN_TOOL}.get(key, ())
                likely = closest(str(value), choices)
                meant = f"; did you mean {likely!r}?" if likely else ""
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
            if self.document.hopeless:
                break
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

    def __init__(self, sources: Sources, layers: list[LayerFile], gone: Sequence[str] = ()) -> None:
        self.sources = sources
        self.layers = layers
        self.conflicts: list[tuple[Layer, Mistake]] = []  # what is wrong with a layer because of those above it
        self.gone = gone
        self.hooks: tuple[Configured, ...] = tuple(self._merged())

    @property
    def mistakes(self) -> list[Mistake]:
        found = [*(m for layer in self.layers for m in layer.document.mistakes), *(m for _, m in self.conflicts)]
        files = [layer.document.path for layer in self.layers]
        return sorted(found, key=lambda m: (files.index(m.file), m.line, m.column))

    @property
    def _trusted(self) -> list[LayerFile]:
        return [layer for layer in self.layers if layer.trusted]

    @property
    def untrusted(self) -> list[str]:
        """One line per file whose hooks do not run, though they should or could."""
        return [
            *self.gone,
            *(_complaint(layer) for layer in self.layers if not layer.trusted and not layer.document.mistakes),
        ]

    @property
    def unknown_tool(self) -> UnknownTool:
        """The strictest that any layer asks for."""
        asked = [layer.defaults["unknown_tool"] for layer in self._trusted if "unknown_tool" in layer.defaults]
        return max(asked, key=UNKNOWN_TOOL.index, default="proceed")

    @property
    def journal(self) -> dict[str, Any]:
        """The options of the journal. What a higher layer says holds."""
        said: dict[str, Any] = {}
        for layer in self.layers:
            said = layer.journal | said
        return said

    def open_journal(self) -> Journal | None:
        """The journal that the files ask for; None if they want none."""
        from ..journal import Journal

        options = self.journal
        return Journal(options.pop("path", None), **options) if options.pop("enabled", True) else None

    @property
    def redact(self) -> Redactions:
        """What is redacted beside what always is: all that any layer names."""
        return sum((layer.redact for layer in self.layers), Redactions())

    def extend_redaction(self) -> None:
        """From now on, this process redacts what the files list, too.

        Values that a caller's variables hold are left to the scope of that caller's requests.
        """
        if (more := self.redact) != Redactions():
            from .. import redaction

            values = more.values if redaction.current_scope() is None else ()
            redaction.extend(names=more.names, patterns=more.patterns, values=values)

    def _merged(self) -> Iterator[Configured]:
        """All hooks that run, highest layer first. Where two layers use one name, the lower one's is qualified."""
        disabled = self._disabled()
        names: set[str] = set()
        for layer in self._trusted:
            for configured in layer.hooks if not layer.document.mistakes else ():
                name = configured.entry["name"]
                if id(configured.hook) in disabled:
                    continue
                while name in names:
                    name = f"{layer.layer}:{name}"
                names.add(name)
                yield replace(configured, name=name)

    def _disabled(self) -> set[int]:
        found: set[int] = set()
        for i, layer in enumerate(self.layers):
            higher = self.layers[:i]
            above = [c for other in higher for c in other.hooks]
            for k, name in enumerate(layer.disable):
                named = [c for c in above if c.entry["name"] == name]
                found |= {id(c.hook) for c in named if not c.locked}
                locked = next((c for c in named if c.locked), None)
                problem = None
                if locked is not None:
                    problem = f"{name!r} is locked ({locked.where})"
                elif not named and not any(other.document.mistakes for other in higher):
                    suggestion = nearest(name, [c.entry["name"] for c in above]) or "; there is none to disable"
                    problem = f"no higher layer has a hook {name!r}{suggestion}"
                if problem is not None:
                    self.conflicts.append((layer.layer, layer.document.mistake_at(("disable", k), problem)))
        return found

    def apply(self, hooks: Hooks) -> None:
        """Put these hooks in force, in place of those of an earlier configuration."""
        from ..registry import unknown_tool_hooks

        configured, unknown = Tools(), Tools()
        for layer in self._trusted:
            into = unknown if layer.layer == "project" else configured
            into.extend(layer.tools)
        gates = list(unknown_tool_hooks(self.unknown_tool, "fairlead.toml.unknown_tool"))
        notices = [_notice(line) for line in self.untrusted[:1]]
        before = [(c.hook, c.hook.name) for c in self.hooks]
        for c in self.hooks:
            c.hook.name = c.name
        try:
            hooks.replace_all([self._guard(), *(c.hook for c in self.hooks), *gates, *notices], source=SOURCE)
        except FairleadError:
            for hook, name in before:
                hook.name = name
            raise
        hooks.tools.configure(configured, unknown)
        hooks.switch = hooks.switch or Switch()
        self.extend_redaction()
        for line in self.untrusted:
            logger.warning("%s", line)

    def _guard(self) -> Hook:
        """The hook that keeps agents from changing what judges them. Nobody can disable it."""
        from ..guard import guard_hook

        return guard_hook(state_folder(), runtime_folder(), [path for _, path in self.sources])


def _complaint(layer: LayerFile) -> str:
    names = [configured.hook.name for configured in layer.hooks]
    some = f"{len(names)} hooks" if len(names) != 1 else "1 hook"
    what = f"{some} of {layer.document.path} ({', '.join(names)}) {'do' if len(names) != 1 else 'does'} not run"
    what = what if names else f"{layer.document.path} is not in force"
    return f"{what}: {layer.untrusted_because}; look at it with `fairlead trust`"


def _notice(line: str) -> Hook:
    def untrusted(step: Any) -> Verdict:
        return warn(line)

    return Hook(untrusted, "session_start", name="fairlead.untrusted", layer="builtin")


def read(
    sources: Sources,
    trust: Trust | None = None,
    before: Config | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read all layers, mistakes and all. A layer that has not changed since `before` is taken from there.

    `environ` is what hooks see of the environment, if that is not this process's own.
    """
    layers: list[LayerFile] = []
    allow_hosts: frozenset[str] = frozenset()
    trust = trust or Trust()
    known = {layer.state: layer for layer in before.layers} if before is not None else {}
    for name, path in sources:
        layer = LayerFile(name, path, sources.workspace, allow_hosts, trust, environ)
        layer = known.get(layer.state, layer) if not layer.document.mistakes else layer
        allow_hosts |= frozenset(layer.defaults.get("allow_hosts", ()))
        layers.append(layer)
    return Config(sources, layers, _gone(sources, trust))


def _gone(sources: Sources, trust: Trust) -> list[str]:
    """A trusted file that is there no longer: somebody may have thought that would switch its hooks off quietly."""
    root = sources.workspace
    if sources.project is not None or root is None or trust.pin_of(root) is None:
        return []
    return [f"{root / FILE_NAME} was trusted and is gone; if that is right, `fairlead trust --forget`"]


def load(cwd: str | Path = ".", *, trust: Trust | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """The configuration of a folder. Raises `ConfigError` with every mistake there is."""
    config = read(find(cwd, trust), trust, environ=environ)
    if config.mistakes:
        raise ConfigError(config.mistakes)
    return config
