"""Loads a policy to be judged with: from a file, a folder, or a revision of git.

A policy is one fairlead.toml alone, without the files of other layers and without fairlead's own guard. Its rules and
packs run. Everything else in it is code: that runs only if the caller asks for it and the policy is trusted where it
is, and never from a revision.
"""

from __future__ import annotations

import os
import re
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import msgspec

from ..config.document import ConfigError, Document, Mistake
from ..config.hook_entry import ConfiguredHook
from ..config.layers import SYSTEM_FILE, Config, ConfigFile, Sources, user_file
from ..config.project import FILE_NAME, ProjectPolicy, projects_around
from ..config.trust import Trust
from ..errors import FairleadError
from ..hook import Layer
from ..hosts.clis.opening import open_hooks
from ..lifecycle import Step
from ..packs.installed import installed_names
from .judge import External, Judge
from .report import HookPlace

GIT_TIMEOUT: Final = 30
LARGEST: Final = 1 << 20
"""Bytes of a policy's file."""
GUARD: Final = "fairlead.guard"
_RANGE = re.compile(r"(?P<old>[^.\s](?:.*[^.\s])?)?\.\.(?P<new>[^.\s].*)?")

LayerChoice = Literal["auto", "user", "project", "system"]


class Policy(msgspec.Struct, frozen=True):
    """The text of a policy, and how it is to be read."""

    name: str  # as the user called it
    path: str
    content: bytes
    layer: Layer
    is_revision: bool = False

    def open(self, external: External = "recorded") -> tuple[Judge, PolicyInfo]:
        """Make the hooks of the policy, and a judge of them. Raises `ConfigError` for mistakes in it."""
        config, trusted, not_loaded = self._config()
        if config.mistakes:
            raise ConfigError(config.mistakes)
        if lacking := [mistake for one in config.hooks if one.form in _INSIDE for mistake in _lacks(one)]:
            raise ConfigError(lacking)
        hooks = open_hooks(Path(self.path).parent, config.apply, record=False)
        hooks.unregister(GUARD)  # it protects fairlead's own files, and is no part of the policy
        forms = {configured.name: configured.form for configured in config.hooks}
        for pack in not_loaded:
            hooks.add(_not_loaded, on="*", phase="gate", name=f"fairlead.{pack}")
            forms[f"fairlead.{pack}"] = "worker"  # code that runs elsewhere, or not at all
        judge = Judge(hooks, forms=forms, external=external, trusted=trusted)
        judge.versions |= {f"fairlead.{pack}": settings for pack, settings in not_loaded.items()}
        code = sorted(judge.external)
        places = {configured.name: HookPlace(configured.file, configured.line) for configured in config.hooks}
        return judge, PolicyInfo(self.name, len(config.hooks), [] if trusted else code, code, places, forms)

    def _config(self) -> tuple[Config, bool, dict[str, str]]:
        """The configuration that this file is by itself, whether its code may run, and packs that were not loaded."""
        path = Path(self.path)
        nothing = Sources(None, None, (), path.parent)
        if self.layer == "project" and not self.is_revision and (trusted := _trusted_layer(path)) is not None:
            return Config(nothing, [trusted]), True, {}
        document = Document(path, self.content)
        is_own = self.layer != "project" and not self.is_revision and self.path in (str(user_file()), str(SYSTEM_FILE))
        not_loaded = {} if is_own or self.layer == "project" else _take_packs_of_others(document)
        file = ConfigFile(self.layer, document, path.parent, as_trusted=True)
        return Config(nothing, [file]), is_own, not_loaded


class PolicyInfo(msgspec.Struct, frozen=True):
    """What a report says about a policy."""

    name: str
    hooks: int
    untrusted: list[str] = []  # hooks whose code is not trusted, and never runs
    external: list[str] = []  # hooks that leave the process
    places: dict[str, HookPlace] = {}
    forms: dict[str, str] = {}  # how each hook runs


_INSIDE: Final = ("rule", "pack")


def _lacks(configured: ConfiguredHook) -> list[Mistake]:
    """What a hook that runs in this process needs, and this machine does not have."""
    return [] if configured.unavailable is None else [configured.unavailable.mistake]


def _take_packs_of_others(document: Document) -> dict[str, str]:
    """Take out the packs of other packages: to load one runs code. Returns a digest of the settings of each."""
    listed, tables = document.data.get("packs"), document.data.get("pack")
    if not isinstance(listed, list):
        return {}
    found = {name: name for name in installed_names() if name in listed}
    listed[:] = [name for name in listed if not (isinstance(name, str) and name in found)]  # which may name one twice
    for name in found:
        settings = tables.pop(name, None) if isinstance(tables, dict) else None
        found[name] = sha256(repr((name, settings)).encode()).hexdigest()[:16]
    return found


def _not_loaded(step: Step) -> None:
    """Stand for the hooks of a pack that was not loaded."""


def _trusted_layer(path: Path) -> ConfigFile | None:
    """The project's file with the copies of what it names, if the user trusts it as it is now."""
    trust = Trust()
    for source in projects_around(path.parent, trust):
        if source.path == path and source.key is not None:
            held = ProjectPolicy(source, trust)
            if not held.problem and len(held.snapshots) == 1:
                ((document, copies),) = held.contents(trust)
                return ConfigFile("project", document, path.parent, copies=copies)
    return None


def find_policies(names: list[str], layer: LayerChoice = "auto") -> tuple[Policy, Policy]:
    """The two policies that the words of a command name: `OLD NEW`, `OLD..NEW`, or `OLD` and what is here now."""
    if len(names) == 1 and not Path(names[0]).exists() and (found := _RANGE.fullmatch(names[0])) is not None:
        names = [found["old"] or "HEAD", found["new"] or "HEAD"]
    elif len(names) == 1:
        names = [names[0], "."]
    old, new = names
    return find_policy(old, layer), find_policy(new, layer)


def find_policy(name: str, layer: LayerChoice = "auto") -> Policy:
    """The policy that a word names: a file, a folder with a fairlead.toml, or a revision of git."""
    if not name or "\0" in name:
        raise FairleadError(f"{name!r} is no file or folder, and no revision of git")
    path = Path(os.path.abspath(name))
    if path.is_dir():
        path = path / FILE_NAME
        if not path.is_file():
            raise FairleadError(f"there is no {FILE_NAME} in {name}")
    if path.exists():
        return Policy(name, str(path), _read(path), _layer_of(path) if layer == "auto" else layer)
    return _of_revision(name, "project" if layer == "auto" else layer)


def _layer_of(path: Path) -> Layer:
    if path == SYSTEM_FILE:
        return "system"
    return "project" if path.name == FILE_NAME and path != user_file() else "user"


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise FairleadError(f"{path} is not a regular file")
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise FairleadError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise FairleadError(f"{path} is larger than {LARGEST >> 20} MiB")
    return content


# --- git ------------------------------------------------------------------------------------


def _of_revision(name: str, layer: Layer) -> Policy:
    """The policy of a revision, `REV` or `REV:path/to/fairlead.toml`. Only git's database is read."""
    revision, _, inner = name.partition(":")
    if not revision or revision.startswith("-"):
        raise FairleadError(f"{name} is no file or folder, and no revision of git")
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise FairleadError(f"{name} is no file or folder, and git knows no such revision here")
    commit = commit.strip()
    top = Path(os.fsdecode((_git("rev-parse", "--show-toplevel") or b".").strip()))
    prefix = os.fsdecode((_git("rev-parse", "--show-prefix") or b"").strip())
    for place in dict.fromkeys([inner] if inner else [f"{prefix}{FILE_NAME}", FILE_NAME]):
        blob = _blob_at(commit.decode(), place, name)
        if blob is None:
            continue
        size = _git("cat-file", "-s", blob)
        if size is not None and int(size) > LARGEST:
            raise FairleadError(f"{name}: {place} is larger than {LARGEST >> 20} MiB")
        content = _git("cat-file", "blob", blob)
        if content is None:
            raise FairleadError(f"{name}: git has no content of {place} here, and a diff fetches nothing")
        return Policy(name, str(top / place), content, layer, is_revision=True)
    raise FairleadError(f"{name} has no {inner or FILE_NAME}; name one with {revision}:path/to/{FILE_NAME}")


def _blob_at(commit: str, place: str, name: str) -> str | None:
    """The object of a file in a commit. None if there is no file."""
    for entry in (_git("ls-tree", "-z", "--full-tree", commit, "--", place) or b"").split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if os.fsdecode(path) == place:
            mode, kind, blob = about.decode().split()
            if mode == "120000":
                raise FairleadError(f"{name}: {place} is a symbolic link, and links of a revision are not followed")
            return blob if kind == "blob" else None
    return None


def _git(*words: str) -> bytes | None:
    """What a command of git writes; None if it fails. It runs no hook, no filter and no pager, and fetches nothing."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    env |= {"GIT_ALLOW_PROTOCOL": "none", "GIT_LITERAL_PATHSPECS": "1"}  # also where git knows no GIT_NO_LAZY_FETCH
    command = ["git", "--no-pager", "--no-replace-objects", "-c", "core.fsmonitor=false", *words]
    try:
        done = subprocess.run(  # noqa: S603 (a list of words; revisions cannot begin with a dash)
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=GIT_TIMEOUT, env=env, check=False
        )
    except FileNotFoundError:
        raise FairleadError("git is not installed, and a revision can only be read with it") from None
    except subprocess.TimeoutExpired:
        raise FairleadError(f"git did not answer within {GIT_TIMEOUT} s") from None
    return done.stdout if done.returncode == 0 else None
