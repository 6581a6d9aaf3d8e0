"""Combines the three layers of configuration: system, user and project.

No file replaces another. Which one wins depends on the setting:

- Hooks of all layers run. The user's file can disable hooks of the system's file that are not locked. A project's file
  can disable none.
- `unknown_tool` and `untrusted`: the strictest value wins.
- `[journal]`: the higher layer wins, key by key. A project's file cannot have it.
- `[redact]`: what either layer lists is redacted. A project's file cannot have it.
- `[approvals]`: all targets of `notify` are told, and grants are off if either layer says so. A project's file cannot
  have it.
- Packs: see `pack_layers`.

Hooks, tools and defaults of a project's file have no effect until a human trusts them (see `trust`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ..enforcement import EnforcementSwitch
from ..errors import FairleadError, closest, nearest
from ..hook import Hook, Layer
from ..lifecycle import FAILURE_POLICIES
from ..paths import config_folder, runtime_folder, state_folder
from ..redaction.logs import logger
from ..tools import UNKNOWN_TOOL, Tools, UnknownTool, View
from .approvals import ApprovalSettings, read_approvals
from .document import ConfigError, Document, Keys, Mistake
from .hook_entry import ConfiguredHook, HookOrigin, TrustedCopies
from .journaling import RedactionSettings, read_journal, read_redact
from .pack_layers import PackLayers, own_hooks
from .packs import read_packs
from .project import FILE_NAME, ProjectPolicy, ProjectSource, claims_around, project_policy, projects_around
from .public_keys import is_public_key
from .reading import read_hooks
from .stand_ins import claimed_hooks, notice_hook, untrusted_hooks, unusable_hooks
from .trust import Trust

if TYPE_CHECKING:
    from ..journal import Journal
    from ..registry import Hooks

SYSTEM_FILE = Path("/etc/fairlead/fairlead.toml")
SOURCE = "fairlead.toml"
"""The source of all hooks from configuration, for `hooks.replace_all`."""

TOP = ("packs", "pack", "exemption", "hook", "tool", "defaults", "disable", "journal", "redact", "approvals")
DEFAULTS = ("timeout", "on_failure", "enforce", "unknown_tool", "allow_hosts", "untrusted", "trust_signers")
_OF_USERS = ("allow_hosts", "untrusted", "trust_signers")
"""Defaults that a project cannot set."""
_NEEDS_TRUST = frozenset({"packs", "pack", "hook", "tool", "defaults"})
TOOL = ("name", "kind", "safety", "command", "paths", "url", "server", "host")


class Sources(msgspec.Struct, frozen=True):
    """The files that configure a folder. Each of them may be missing."""

    system: Path | None
    user: Path | None
    projects: tuple[ProjectSource, ...] = ()  # the outermost first
    workspace: Path | None = None
    claims: tuple[str, ...] = ()
    """Why nothing may run here: git uses a trusted repository that does not name this folder."""

    def __iter__(self) -> Iterator[tuple[Layer, Path]]:
        """The files, also a trusted project's that is gone, since its policy stays in force."""
        for layer, path in (("system", self.system), ("user", self.user)):
            if path is not None:
                yield layer, path  # type: ignore[misc]
        yield from (("project", project.path) for project in self.projects)

    @property
    def project(self) -> ProjectSource | None:
        """The innermost project."""
        return self.projects[-1] if self.projects else None

    @property
    def root(self) -> str | None:
        """The folder of the innermost project, or None."""
        found = self.workspace or (self.project and self.project.root)
        return None if found is None else str(found)


def user_file() -> Path:
    return config_folder() / FILE_NAME


def find(cwd: str | Path = ".", trust: Trust | None = None) -> Sources:
    """The files that apply in a folder: the system's, the user's, and those of all projects around it."""
    try:
        folder, here = Path(os.path.abspath(cwd)), Path(cwd).resolve(strict=True)
        if not here.is_dir():
            raise NotADirectoryError(20, "it is not a folder")
    except (OSError, ValueError, RuntimeError) as error:
        raise FairleadError(f"{cwd}: {getattr(error, 'strerror', None) or error}") from None
    user = user_file()
    taken = (user.resolve(), SYSTEM_FILE.resolve())
    trust = trust or Trust()
    projects = [source for source in projects_around(folder, trust) if source.path not in taken]
    home = Path(os.path.expanduser("~")).resolve()
    roots = [*(source.root for source in projects), _root_of(here)]
    # A user who runs agents in the whole home has nowhere else to put programs.
    workspaces = [root for root in roots if not home.is_relative_to(root)]
    return Sources(
        SYSTEM_FILE if _may_be_there(SYSTEM_FILE) else None,
        user if _may_be_there(user) else None,
        tuple(projects),
        min(workspaces, key=lambda root: len(root.parts), default=None),
        tuple(claims_around(here, trust, projects)),
    )


def _root_of(here: Path) -> Path:
    for folder in (here, *here.parents):
        if (folder / FILE_NAME).is_file() or (folder / ".git").exists():
            return folder
    return here


def _may_be_there(path: Path) -> bool:
    """Whether a file exists or cannot be checked. Reading it then reports the problem.

    `Path.exists` does not tell the two apart from Python 3.14 on.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


class ConfigFile:
    """The contents of one configuration file. Its document holds the mistakes."""

    def __init__(
        self,
        layer: Layer,
        document: Document,
        workspace: Path | None,
        allow_hosts: frozenset[str] = frozenset(),
        environ: Mapping[str, str] | None = None,
        copies: TrustedCopies | None = None,
        *,
        as_trusted: bool = False,
    ) -> None:
        self.layer: Layer = layer
        self.document = document
        path = Path(document.path)
        self.state: tuple[Any, ...] = (
            layer, document.path, allow_hosts, workspace, document.digest, copies and (copies.digest, copies.at),
        )  # fmt: skip
        """A digest of what this was made from. The layer is kept while it stays the same."""
        self.identity = (document.path, copies and copies.digest)
        """Which file this is, of the system, the user or a project; or which snapshot of a project's."""
        self.untrusted_because = "the file has not been trusted"
        self.is_snapshot = copies is not None
        """Whether this is what a human trusted of a project, and not the file that is there now."""
        self.note: str | None = None
        self.live = list(copies.paths) if copies is not None else []
        self.live += {os.path.dirname(path) for path in self.live if path != str(copies and copies.root)}
        """Files of the project that hooks name. fairlead warns the user when one of them changes."""
        self.trusted = as_trusted or layer != "project" or copies is not None or not document.data.keys() & _NEEDS_TRUST
        self._check_owner(path)
        for key in document.data:
            if key not in TOP and not document.hopeless:
                document.wrong((key,), f"unknown key {key!r}{nearest(key, TOP)}")
        self.defaults = self._read_defaults()
        self.tools = self._read_tools()
        self.disable = self._read_disable()
        self.journal = read_journal(document, layer)
        self.redact = read_redact(document, layer, environ)
        self.approvals = read_approvals(document, layer, environ, workspace)
        workspace = path.parent if layer == "project" else workspace
        origin = HookOrigin(layer, path, workspace, allow_hosts, copies, self.trusted, environ)
        self.packs = read_packs(document, layer, self.defaults)
        self.pack_hooks = list(own_hooks(document, layer, self.packs))
        self.hooks = [*self.pack_hooks, *read_hooks(document, origin, self.defaults)]
        self.unavailable = [*unavailable_hooks(self.hooks), *self.approvals.unavailable]
        self.state += tuple(self.unavailable)
        if copies is None and layer == "project" and document.mistakes:
            self.trusted = False  # what it would say is not known

    def set_note(self, text: str | None) -> None:
        """Add this text to every denial by a hook of this file."""
        self.note = text
        for configured in self.hooks:
            configured.hook.note = text

    def _check_owner(self, path: Path) -> None:
        if self.layer == "project":
            return  # which trust is for
        try:
            mode = path.stat().st_mode
        except OSError:
            return  # which the document has noted
        if mode & stat.S_IWOTH:
            self.document.wrong((), "every user of this machine may write this file; run chmod o-w on it")

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
            "on_failure": (lambda v: v in FAILURE_POLICIES, f"one of {', '.join(FAILURE_POLICIES)}"),
            "enforce": (lambda v: isinstance(v, bool), "true or false"),
            "unknown_tool": (lambda v: v in UNKNOWN_TOOL, f"one of {', '.join(UNKNOWN_TOOL)}"),
            "allow_hosts": (_is_texts, "a list of host names"),
            "untrusted": (lambda v: v in UNKNOWN_TOOL, f"one of {', '.join(UNKNOWN_TOOL)}"),
            "trust_signers": (lambda v: _is_texts(v) and all(map(is_public_key, v)),
                              "a list of public keys, as ssh-keygen writes them: ssh-ed25519 AAAA... name"),
        }  # fmt: skip
        sound = {}
        for key, value in self._table("defaults", dict).items():
            if self.document.hopeless:
                break
            if key not in checks:
                self.document.wrong(("defaults", key), f"unknown key {key!r}{nearest(key, DEFAULTS)}")
            elif not checks[key][0](value):
                words = {"on_failure": FAILURE_POLICIES, "unknown_tool": UNKNOWN_TOOL, "untrusted": UNKNOWN_TOOL}
                choices: tuple[str, ...] = words.get(key, ())
                likely = closest(str(value), choices)
                meant = f"; did you mean {likely!r}?" if likely else ""
                self.document.wrong(("defaults", key), f"{key} must be {checks[key][1]}{meant}", value=True)
            elif key in _OF_USERS and self.layer == "project":
                problem = "a project cannot allow itself hosts" if key == "allow_hosts" else f"a project has no {key}"
                self.document.wrong(("defaults", key), f"{problem}; the user's file can")
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
                if key not in TOOL:
                    sound = False
                    self.document.wrong((*keys, key), f"unknown key {key!r}{nearest(key, TOOL)}")
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


def unavailable_hooks(hooks: Iterable[ConfiguredHook]) -> list[Mistake]:
    """What these hooks need and this machine lacks, as mistakes that name the hook and its line."""
    found = [(c, c.unavailable.mistake) for c in hooks if c.unavailable is not None]
    return [replace(mistake, problem=f"hook {c.name!r} cannot run here: {mistake.problem}") for c, mistake in found]


class Config:
    """The configuration of a folder: its layers, and the settings that they add up to."""

    def __init__(self, sources: Sources, layers: list[ConfigFile], notices: Sequence[str] = ()) -> None:
        self.sources = sources
        self.layers = layers
        self.conflicts: list[tuple[ConfigFile, Mistake]] = []  # what is wrong with a layer because of those above it
        self.notices = notices  # of projects whose policy in force is not the file that is there
        self._layer_of: dict[int, ConfigFile] = {}  # of each hook, by the hook's id
        self.hooks: tuple[ConfiguredHook, ...] = tuple(self._merged())

    @property
    def fatal(self) -> list[Mistake]:
        """The mistakes that keep this configuration from being used: those in the system's and the user's file.

        A project's file that was never trusted is not in force, whatever it says, and a trusted policy with a mistake
        denies. Neither takes away what the other files ask for.
        """
        above = {layer.document.path for layer in self.layers if layer.layer != "project"}
        return [mistake for mistake in self.mistakes if mistake.file in above]

    @property
    def startup_mistakes(self) -> list[Mistake]:
        """The mistakes that a human must fix before a program starts with this configuration, or is installed.

        A file that was never trusted does not stand in the way of a policy that was.
        """
        if not any(layer.is_snapshot for layer in self.layers):
            return self.mistakes
        counting = {layer.document.path for layer in self.layers if layer.layer != "project" or layer.is_snapshot}
        return [mistake for mistake in self.mistakes if mistake.file in counting]

    @property
    def mistakes(self) -> list[Mistake]:
        found = [*(m for layer in self.layers for m in layer.document.mistakes), *(m for _, m in self.conflicts)]
        files = [layer.document.path for layer in self.layers]
        return sorted(found, key=lambda m: (files.index(m.file), m.line, m.column))

    @property
    def unavailable(self) -> list[Mistake]:
        """The hooks in force that cannot run on this machine, and why. They fail; the rest of their file holds."""
        return unavailable_hooks(self.hooks)

    @property
    def _trusted(self) -> list[ConfigFile]:
        return [layer for layer in self.layers if layer.trusted]

    @property
    def never_trusted(self) -> list[str]:
        """One line per file of a project that does not run, because no human has trusted it."""
        return [_complaint(layer) for layer in self.layers if not layer.trusted]

    @property
    def untrusted(self) -> list[str]:
        """One line per file of a project that is not in force as it is."""
        return [*self.notices, *self.never_trusted]

    @property
    def when_untrusted(self) -> UnknownTool:
        """What agents may do in a project that was never trusted: the strictest that any layer asks for."""
        choices = [layer.defaults["untrusted"] for layer in self.layers if "untrusted" in layer.defaults]
        return max(choices, key=UNKNOWN_TOOL.index, default="proceed")

    @property
    def allow_hosts(self) -> frozenset[str]:
        """Hosts in a private network that a project's hooks may ask, because the system's or user's file says so."""
        return frozenset(host for layer in self.layers for host in layer.defaults.get("allow_hosts", ()))

    @property
    def unknown_tool(self) -> UnknownTool:
        """The strictest that any layer asks for."""
        choices = [layer.defaults["unknown_tool"] for layer in self._trusted if "unknown_tool" in layer.defaults]
        return max(choices, key=UNKNOWN_TOOL.index, default="proceed")

    @property
    def journal(self) -> dict[str, Any]:
        """The options of the journal. A higher layer takes precedence."""
        settings: dict[str, Any] = {}
        for layer in self.layers:
            settings = layer.journal | settings
        return settings

    def open_journal(self) -> Journal | None:
        """Open the journal that the files configure; None if they configure none."""
        from ..journal import Journal

        options = self.journal
        return Journal(options.pop("path", None), **options) if options.pop("enabled", True) else None

    @property
    def redact(self) -> RedactionSettings:
        """What is redacted in addition to the built-in rules: all that any layer lists."""
        return sum((layer.redact for layer in self.layers), RedactionSettings())

    @property
    def approvals(self) -> ApprovalSettings:
        """How a person is told of questions, and whether an answer may hold for more than one call."""
        return sum((layer.approvals for layer in self.layers), ApprovalSettings())

    def extend_redaction(self) -> None:
        """Make this process redact what the files list, too.

        Values that a caller's variables hold are left to the scope of that caller's requests.
        """
        if (more := self.redact) != RedactionSettings():
            from ..redaction import redactor as redaction

            values = more.values if redaction.current_scope() is None else ()
            redaction.extend(names=more.names, patterns=more.patterns, values=values)

    def _merged(self) -> Iterator[ConfiguredHook]:
        """All hooks that run, highest layer first. Where two layers use one name, the lower one's is qualified."""
        disabled = self._disabled()
        packs = PackLayers(self._trusted, disabled)
        self.conflicts += [
            (layer, layer.document.mistake_at(keys, problem)) for layer, keys, problem in packs.conflicts.values()
        ]
        names: set[str] = set()
        for layer in self._trusted:
            own = [] if layer.document.mistakes else layer.hooks[len(layer.pack_hooks) :]
            of_packs = [found.hook for found in packs.hooks if found.layer is layer and found.hook is not None]
            for configured in (*of_packs, *own):
                name = configured.entry["name"]
                if id(configured.hook) in disabled:
                    continue
                while name in names:
                    name = f"{layer.layer}:{name}"
                names.add(name)
                configured.hook.note = layer.note
                self._layer_of[id(configured.hook)] = layer
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
                    self.conflicts.append((layer, layer.document.mistake_at(("disable", k), problem)))
        return found

    def apply(self, hooks: Hooks) -> None:
        """Register these hooks, in place of those of an earlier configuration."""
        from ..registry import unknown_tool_hooks

        gates = list(unknown_tool_hooks(self.unknown_tool, hooks.tools, "fairlead.toml.unknown_tool"))
        strictest = [layer for layer in self._trusted if layer.defaults.get("unknown_tool") == self.unknown_tool]
        for gate in gates:
            gate.note = next((layer.note for layer in strictest if layer.note is not None), None)
        gates += untrusted_hooks(self.when_untrusted, self.never_trusted)
        gates += unusable_hooks(
            [str(layer.document.mistakes[0]) for layer in self.layers if layer.is_snapshot and layer.document.mistakes]
        )
        gates += claimed_hooks(self.sources.claims)
        notices = [notice_hook("\n".join(self.untrusted))] if self.untrusted else []
        before = [(c.hook, c.hook.name, c.hook.view) for c in self.hooks]
        views = self._views(hooks.tools)
        for c in self.hooks:
            c.hook.name, c.hook.view = c.name, views.get(id(c.hook))
        try:
            hooks.replace_all([self._guard(), *(c.hook for c in self.hooks), *gates, *notices], source=SOURCE)
        except FairleadError:
            for hook, name, view in before:
                hook.name, hook.view = name, view
            raise
        hooks.tools.configure(*_tools_of(self._trusted))
        hooks.switch = hooks.switch or EnforcementSwitch()
        hooks.root = self.sources.root or hooks.root
        self.extend_redaction()
        for line in self.untrusted:
            logger.warning("%s", line)
        for mistake in (*self.unavailable, *self.approvals.unavailable):
            logger.warning("%s:%d: %s", mistake.file, mistake.line, mistake.problem)

    def _views(self, table: Tools) -> dict[int, View]:
        """How the hooks of each file see tools: as that file says, then as those above it say, the highest first.

        No file takes a tool out of another file's gates. Snapshots of one project are not above one another.
        """
        views: dict[int, View] = {}
        for i, layer in enumerate(self._trusted):
            above = [other for other in self._trusted[:i] if other.document.path != layer.document.path]
            if any(other.tools for other in self._trusted if other is not layer or layer.layer == "project"):
                tools = Tools.joined([layer.tools])
                tools.configure(*_tools_of(above))
                views |= {name: View(tools, table) for name, of in self._layer_of.items() if of is layer}
        return views

    def _guard(self) -> Hook:
        """The hook that keeps agents from changing what judges them. No layer can disable it."""
        from ..packs.guard import guard_hook
        from .hook_files import files_of, folders_of, notifying_files

        configs = [path for _, path in self.sources]
        folders = folders_of(self.hooks, self.sources.root)
        files = [*files_of(self.hooks), *notifying_files(self.approvals)]
        return guard_hook(state_folder(), runtime_folder(), configs, files, folders)


def _tools_of(layers: Sequence[ConfigFile]) -> tuple[Tools, Tools]:
    """The tools that files describe, the highest first; and those of projects, which describe only unknown tools."""
    return (
        Tools.joined(layer.tools for layer in layers if layer.layer != "project"),
        Tools.joined(layer.tools for layer in layers if layer.layer == "project"),
    )


def _complaint(layer: ConfigFile) -> str:
    names = [configured.hook.name for configured in layer.hooks]
    some = f"{len(names)} hooks" if len(names) != 1 else "1 hook"
    what = f"{some} of {layer.document.path} ({', '.join(names)}) {'do' if len(names) != 1 else 'does'} not run"
    what = what if names else f"{layer.document.path} is not in force"
    return f"{what}: {layer.untrusted_because}; look at it with `fairlead trust`"


def read(
    sources: Sources,
    trust: Trust | None = None,
    before: Config | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read all layers, mistakes and all. A layer that has not changed since `before` is taken from there.

    `environ` is what hooks see of the environment, if that is not this process's own.
    """
    layers: list[ConfigFile] = []
    notices = [*sources.claims]
    trust = trust or Trust()
    known = {layer.state: layer for layer in before.layers} if before is not None else {}

    def add(layer: ConfigFile, note: str | None = None) -> None:
        layer = known.get(layer.state, layer) if not layer.document.mistakes else layer
        layer.set_note(note)
        layers.append(layer)

    for name, path in Sources(sources.system, sources.user):
        add(ConfigFile(name, Document(path), sources.workspace, environ=environ))
    allow_hosts = Config(sources, layers).allow_hosts
    signers = [key for layer in layers for key in layer.defaults.get("trust_signers", ())]
    for source in sources.projects:
        held = project_policy(source, trust, signers)
        notices += [held.notice] if held.notice is not None else []
        for document, copies in held.contents(trust):
            layer = ConfigFile("project", document, sources.workspace, allow_hosts, environ, copies)
            because = f"the file {held.problem}{held.details}" if held.problem else layer.untrusted_because
            layer.untrusted_because = because
            add(layer, held.note)
    return Config(sources, layers, notices)


def read_own_files() -> Config:
    """The system's and the user's file, without any project's."""
    found = find("/")
    return read(Sources(found.system, found.user))


def live_layer(sources: Sources, document: Document) -> ConfigFile:
    """A project's file as it is now, with its mistakes, whatever was trusted of it."""
    above = read(Sources(sources.system, sources.user))
    layer = ConfigFile("project", document, sources.workspace, above.allow_hosts)
    conflicts = PackLayers([*above.layers, layer]).conflicts.values()
    document.mistakes += [document.mistake_at(keys, problem) for of, keys, problem in conflicts if of is layer]
    return layer


def read_live(sources: Sources, files: Iterable[Document], environ: Mapping[str, str]) -> Config:
    """All layers, with these files of projects as they are, as if trusted: to look for mistakes, and to try rules."""
    above = read(Sources(sources.system, sources.user), environ=environ)
    live = [
        ConfigFile("project", file, sources.workspace, above.allow_hosts, environ, as_trusted=True) for file in files
    ]
    return Config(sources, [*above.layers, *live])


def documents(sources: Sources, trust: Trust) -> Iterator[Document]:
    """The files in force, as they are read, without making hooks of them."""
    for _, path in Sources(sources.system, sources.user):
        yield Document(path)
    for source in sources.projects:
        yield from (document for document, _ in ProjectPolicy(source, trust).contents(trust))


def load(cwd: str | Path = ".", *, trust: Trust | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """Load the configuration of a folder. Raises `ConfigError` with every mistake in it."""
    config = read(find(cwd, trust), trust, environ=environ)
    if mistakes := config.startup_mistakes:
        raise ConfigError(mistakes)
    return config


def load_usable(
    cwd: str | Path = ".", *, trust: Trust | None = None, environ: Mapping[str, str] | None = None
) -> Config:
    """Load the configuration to judge agents in a folder. A mistake in a project's file does not prevent that."""
    config = read(find(cwd, trust), trust, environ=environ)
    if config.fatal:
        raise ConfigError(config.fatal)
    return config
