"""A survey of a project: what its hooks would run, and every file of the project that they name.

The digest of a survey covers fairlead.toml and those files. Programs outside the project are pinned beside it, when a
human trusts the project (`Survey.resolve`). Code that no digest can cover must be trusted unpinned, in so many words.
"""

from __future__ import annotations

import os
import re
import shlex
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ..runners.environment import HookEnvironment, hook_environment, leads_into, resolve_program, steers
from ..runners.interpreters import script_of
from .document import Document
from .hook_entry import FORMS
from .programs import ProgramPin, can_write, pin_program
from .regular_files import read_regular
from .survey_budget import LONGEST_PATH, SurveyBudget, Untrustworthy, glob_files

FILE_LIMIT = 16 << 20
"""Bytes of one file that a project's hook names."""
FOLDER_FILES, FOLDER_LIMIT = 1000, 32 << 20
"""Files below a folder that a project's hook names, and their bytes in all."""
SHEBANGS = 4
"""Interpreters that are scripts themselves, one after another. The kernel takes no more either."""
_SEPARATED = (re.compile(r"[^=,:]+"), re.compile(r"[^\s=,:;#@+|&<>(){}\"'`!^%$\\]+"))
"""What a word is divided at: first at few characters, then at all that are rare in the names of files. A copy cannot
stand for a part of a pattern."""
_PARTS = 256
"""Paths in one word of a command."""
_CLUSTER = re.compile(r"-[A-Za-z]{1,8}")
"""Options in one word, the last of which may have a value: `-vclib.sh`."""
_WITH_A_FILE = frozenset({"awk", "gawk", "mawk", "sed", "jq"})
"""Programs that run just the file after `-f`."""
_LOADS = re.compile(r"-(?![vF-]|\Z)|--(?!\Z)")
"""Options of awk that may load more: `-i lib` is a file lib.awk in the folder it runs in."""
TOTAL_LIMIT = 64 << 20
"""Bytes of all files that a project's hooks name."""


class SurveyedHook(msgspec.Struct):
    """What one hook of a project would run."""

    name: str
    form: str
    runs: str
    may: list[str]
    files: dict[str, str] = {}  # relative to the project, and their digests
    programs: list[str] = []  # as they are written
    outside_files: list[str] = []  # that its command names
    live: list[str] = []  # files of the project that it names in a way for which no copy can stand
    outside: list[ProgramPin] = []  # these and the programs, once resolved
    env: list[str] = []  # variables that it is given
    raw_to: str | None = None  # the address or model that gets steps as they are
    options: dict[str, Any] = {}  # all else that its entry says: when it runs, for what, and what it does then
    uncovered: str | None = None  # why no hash can cover it

    @property
    def program(self) -> str | None:
        """The program outside the project that it starts, once resolved."""
        return next((pin.path for pin in self.outside if os.path.isabs(pin.path)), None)


class Survey(msgspec.Struct):
    """Everything that a human trusts with a project: its hooks, its files and its programs."""

    root: str
    digest: str
    hooks: list[SurveyedHook]
    file: bytes
    contents: dict[str, bytes] = {}  # of every file of the project that is named, by its path in the project
    files: dict[str, str] = {}  # the SHA-256 of each
    folders: list[str] = []  # that are named as a whole
    others: dict[str, Any] = {}  # what the file says beside its hooks
    launch: dict[str, list[str]] = {}  # the words that start each program, once resolved
    budget: SurveyBudget = msgspec.field(default_factory=SurveyBudget)
    size: int = 0  # of all contents
    walked: dict[str, list[str] | None] = {}  # folders that were looked through; None: they hold too much

    @property
    def document_digest(self) -> str:
        """The SHA-256 of the bytes of fairlead.toml."""
        return sha256(self.file).hexdigest()

    @property
    def uncovered(self) -> list[SurveyedHook]:
        return [seen for seen in self.hooks if seen.uncovered is not None]

    def refuse_uncovered(self) -> None:
        if self.uncovered:
            names = "; ".join(f"{seen.name}: {seen.uncovered}" for seen in self.uncovered)
            raise Untrustworthy(f"not everything can be pinned ({names}); --unpinned trusts it all the same")

    def resolve(self, environ: Mapping[str, str] | None = None) -> Survey:
        """Find and pin the programs outside the project. `environ` says where, if not this process's own."""
        environment = hook_environment(self.root, source=environ, workspace=self.root)
        for seen in self.hooks:
            pins: dict[str, ProgramPin] = {}
            for program in seen.programs:
                self.launch[program] = words = self._launch(program, environment, SHEBANGS)
                pins |= {word: _pin(word) for word in words if os.path.isabs(word) and os.path.isfile(word)}
            pins |= {path: _pin(path) for path in seen.outside_files}
            pins |= {path: ProgramPin(path, digest=self.files[path]) for path in seen.live}
            seen.outside = list(pins.values())
        return self

    def _launch(self, program: str, environment: HookEnvironment, depth: int) -> list[str]:
        """The words that start a program. A script of the project is started by the interpreter that it names."""
        found, path = resolve_program(program, environment), _own_program(program, Path(self.root))
        if path is None:
            return [found]
        words = shebang_of(self.contents.get(path, b""))
        if not words:
            return [f"./{path}"]
        if depth == 0:
            raise Untrustworthy(f"{path}: too many interpreters, one run by another")
        arguments = [f"./{part}" if (part := _in_project(word, Path(self.root))) else word for word in words[1:]]
        return [*self._launch(words[0], environment, depth - 1), *arguments, f"./{path}"]


def survey(document: Document, root: Path) -> Survey:
    """Survey what the hooks of a project would run. Raises `Untrustworthy` where that is not clear."""
    if not _is_utf8(str(root)):
        raise Untrustworthy(f"the name of the folder {str(root)!r} is not UTF-8")
    found = Survey(str(root), "", [], document.content)
    entries = document.data.get("hook", [])
    found.others = {key: value for key, value in document.data.items() if key != "hook"}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            found.hooks.append(_look(entry, found))
    covered = {"version": 2, "file": document.data, "files": found.files, "folders": sorted(found.folders)}
    encoded = msgspec.json.encode(covered, order="deterministic", enc_hook=str)
    found.digest = f"sha256:{sha256(encoded).hexdigest()}"
    return found


def _look(entry: dict[str, Any], found: Survey) -> SurveyedHook:
    form = next((form for form in FORMS if form in entry), "nothing")
    runs, may, env = entry.get(form), entry.get("may"), entry.get("env")
    seen = SurveyedHook(
        str(entry.get("name")), form, _shown(runs), [str(w) for w in may] if isinstance(may, list) else []
    )
    seen.options = {key: value for key, value in entry.items() if key not in ("name", form, "may", "env")}
    if entry.get("raw") is True:
        seen.raw_to = str(runs) if form == "url" else f"the model {entry.get('model')}"
    if form == "shell":
        seen.uncovered = "a shell line can run anything"
    elif form in ("command", "worker") and isinstance(runs, list) and runs and all(isinstance(w, str) for w in runs):
        _look_at_argv(runs, seen, found)
    elif form == "python" and isinstance(runs, str):
        _look_at_python(runs.rpartition(":")[0], entry.get("interpreter"), seen, found)
    if isinstance(env, (list, dict)):
        seen.env = (
            [str(name) for name in env] if isinstance(env, list) else [f"{k}={_shown(v)}" for k, v in env.items()]
        )
        steering = [str(name) for name in env if isinstance(env, dict) or steers(str(name))]
        if steering:
            seen.uncovered = f"{', '.join(steering)} can change what it loads"
    return seen


def _look_at_argv(argv: list[str], seen: SurveyedHook, found: Survey) -> None:
    _take_program(argv[0], seen, found)
    for word in argv[1:]:
        _take_word(word, seen, found)
    seen.uncovered = _uncovered(_interpreted(argv, found), seen, found) or seen.uncovered


def _interpreted(argv: list[str], found: Survey) -> list[str]:
    """The words of a command, with the interpreter that the first line of its script names; empty for a binary."""
    for _ in range(SHEBANGS):
        own = _own_program(argv[0], Path(found.root))
        if own is None:
            return argv
        words = shebang_of(found.contents[own])
        if not words:
            return []
        argv = [*words, own, *argv[1:]]
    return argv


def _uncovered(words: list[str], seen: SurveyedHook, found: Survey) -> str | None:
    """Why no digest covers what a command runs; None if one does."""
    if not words:
        return None
    if os.path.basename(words[0]) in _WITH_A_FILE and words[1:2] in (["-f"], ["-nf"]):
        loads = next(filter(_LOADS.match, words[3:]), None) if words[0].endswith("awk") else None
        return None if loads is None else f"what {loads} loads is not known"
    script = script_of(words)
    if script is None:
        return f"what {words[0]} loads is not known"
    if script == "":
        return "code on a command line can load anything"
    if _in_project(script, Path(found.root)) not in found.contents and not _is_taken(script, seen, found):
        return f"{script} is not a file"
    return None


def _is_taken(script: str, seen: SurveyedHook, found: Survey) -> bool:
    return os.path.normpath(Path(found.root) / script) in seen.outside_files


def _look_at_python(module: str, interpreter: Any, seen: SurveyedHook, found: Survey) -> None:
    if module.endswith(".py"):
        path = _in_project(module, Path(found.root))
        if path is None:
            raise Untrustworthy(f"hook {seen.name!r}: {module} is not in the project")
        _take_file(path, seen, found)
    else:
        seen.uncovered = f"the module {module!r} and what it imports are found when it runs"
    if isinstance(interpreter, str):
        _take_program(interpreter, seen, found)


# --- taking files -------------------------------------------------------------------------------


def _take_program(program: str, seen: SurveyedHook, found: Survey) -> None:
    if "\0" in program:
        raise Untrustworthy(f"hook {seen.name!r}: {program!r} is not the name of a program")
    seen.programs.append(program)
    path: str | None = program
    for _ in range(SHEBANGS):
        path = _own_program(path, Path(found.root)) if path is not None else None
        if path is None:
            return
        _take_file(path, seen, found)
        words = shebang_of(found.contents[path])
        for word in words[1:]:
            _take_word(word, seen, found)
        path = words[0] if words else None


def _take_word(word: str, seen: SurveyedHook, found: Survey) -> None:
    """The files that a word of a command line names: in the project they are covered, outside they are pinned."""
    root = Path(found.root)
    if len(_SEPARATED[1].findall(word)) > _PARTS:
        seen.uncovered = f"one of its words has more than {_PARTS} parts"
    found.budget.spend(1 + len(word) // 64)
    spans = path_spans(word, lambda part: _is_path(part, root, found.budget))
    for live in (*_loose_files(word, spans, root, found.budget), *glob_files(word, root, found.budget)):
        _take_file(live, seen, found)
        seen.live += [live] if live not in seen.live else []
    for start, end in spans:
        part = word[start:end]
        path = _in_project(part, root)
        if path is None and os.path.isdir(root / part):
            if can_write(str(root / part)):
                seen.uncovered = f"{part} is a folder outside the project"
        elif path is None:
            seen.outside_files.append(os.path.normpath(root / part))
        elif os.path.isdir(root / path):
            _take_folder(path, seen, found)
        else:
            _take_file(path, seen, found)


def path_spans(word: str, is_path: Callable[[str], bool], *, all_parts: bool = False) -> list[tuple[int, int]]:
    """Where a word of a command line holds a path: all of it, after options (`-vclib.sh`), or a part (`a=b,@c#d`).

    They do not overlap, the longest counts; with `all_parts` each counts.
    """
    cluster = _CLUSTER.match(word)
    starts = range(2, cluster.end() + 1) if cluster is not None else ()
    spans = [(start, len(word)) for start in (0, *starts)]
    for pattern in _SEPARATED:
        for match in islice(pattern.finditer(word), _PARTS):
            start, end = match.span()
            spans += [(start, end)] + [(after, end) for after in starts if start == 0]
            spans += [(start + 2, end)] if word.startswith("//", start) else []  # file://rules.txt
    taken: list[tuple[int, int]] = []
    for start, end in spans:
        overlaps = not all_parts and any(a < end and start < b for a, b in taken)
        if start < end and not overlaps and is_path(word[start:end]):
            taken.append((start, end))
    return sorted(taken)


def _loose_files(word: str, spans: list[tuple[int, int]], root: Path, budget: SurveyBudget) -> Iterator[str]:
    """Files of the project whose name stands anywhere else in a word, between characters that are no letters.

    Such a name begins with one in the project's folder, so that only those are looked for.
    """
    edges = [i for i in range(len(word) + 1) if not (word[i - 1 : i].isalnum() and word[i : i + 1].isalnum())]
    names = set(budget.listing(str(root)))
    lengths = sorted({len(name) for name in names})
    budget.spend(len(edges) * len(lengths) // 64)
    ends = set(edges)
    for start in edges:
        for length in lengths:
            end = start + length
            if end not in ends or word[start:end] not in names:
                continue
            for last in _ends(end, edges) if word[end : end + 1] == os.sep else (end,):
                budget.spend(2 + len(spans) // 32)
                is_taken = any(a <= start and last <= b for a, b in spans)
                path = None if is_taken else _in_project(word[start:last], root)
                if path is not None and budget.kind(str(root / path)) == "file":
                    yield path


def _ends(start: int, edges: list[int]) -> list[int]:
    """Where a path may end that goes on here: it is not longer than a path can be."""
    return edges[bisect_right(edges, start) : bisect_right(edges, start + LONGEST_PATH)]


def _is_path(part: str, root: Path, budget: SurveyBudget) -> bool:
    """Whether a file or a folder goes by this name. The project as a whole is what hooks look at, not what they are."""
    path = os.path.join(root, part)
    kind = budget.kind(path)
    return kind == "file" or (kind == "folder" and os.path.normpath(path) != str(root))


def _in_project(path: str, root: Path) -> str | None:
    """The path in the project that this is; None for one outside."""
    # By text: `Path.is_relative_to` takes time with the square of a path's depth, and the budget does not count that.
    named, folder = os.path.normpath(os.path.join(root, path)), os.path.join(root, "")
    return (named.removeprefix(folder) or None) if named.startswith(folder) else None


def _own_program(program: str, root: Path) -> str | None:
    """The path of a program of the project. Without a path, none of the project's is ever meant."""
    return _in_project(program, root) if os.sep in program else None


def _take_file(path: str, seen: SurveyedHook, found: Survey) -> None:
    found.budget.spend()
    if path not in found.contents:
        place = Path(found.root) / path
        if "\0" in path or not _is_utf8(path):
            raise Untrustworthy(f"hook {seen.name!r} names a file whose name cannot be kept: {path!r}")
        if not leads_into(place, found.root):
            raise Untrustworthy(f"hook {seen.name!r}: {place} leads out of the project, to {place.resolve()}")
        found.contents[path] = content = _content(place)
        found.files[path] = sha256(content).hexdigest()
        found.size += len(content)
        if found.size > TOTAL_LIMIT:
            raise Untrustworthy(f"the files that hooks name are larger than {TOTAL_LIMIT >> 20} MiB in all")
    seen.files[path] = found.files[path]


def _take_folder(path: str, seen: SurveyedHook, found: Survey) -> None:
    if path not in found.walked:
        found.walked[path] = _files_below(path, seen, found)
    files = found.walked[path]
    if files is None:
        seen.uncovered = f"{path} holds more than {FOLDER_FILES} files or {FOLDER_LIMIT >> 20} MiB"
        return
    for file in files:
        _take_file(file, seen, found)
    if path not in found.folders:
        found.folders.append(path)


def _files_below(path: str, seen: SurveyedHook, found: Survey) -> list[str] | None:
    """All files below a folder; None if they are too many or too large."""
    size, files = 0, []
    for folder, folders, names in os.walk(Path(found.root) / path):
        found.budget.spend(1 + len(folders) + len(names))
        for link in (name for name in folders if os.path.islink(os.path.join(folder, name))):
            raise Untrustworthy(f"hook {seen.name!r}: {os.path.join(folder, link)} is a link to a folder")
        files += [os.path.relpath(os.path.join(folder, name), found.root) for name in names]
        size += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
        if len(files) > FOLDER_FILES or size > FOLDER_LIMIT:
            return None
    return sorted(files)


def _content(path: Path) -> bytes:
    try:
        content = read_regular(path, FILE_LIMIT + 1)
    except OSError as error:
        raise Untrustworthy(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > FILE_LIMIT:
        raise Untrustworthy(f"{path} is larger than {FILE_LIMIT >> 20} MiB")
    return content


def _pin(path: str) -> ProgramPin:
    try:
        return pin_program(path)
    except OSError as error:
        raise Untrustworthy(f"{path} cannot be read: {error.strerror}") from None


def shebang_of(content: bytes) -> list[str]:
    """The interpreter that a script names in its first line, and its arguments, as the kernel would give them."""
    if not content.startswith(b"#!"):
        return []
    line = content[2:512].partition(b"\n")[0].decode(errors="replace").strip()
    interpreter, _, rest = line.replace("\t", " ").partition(" ")
    rest = rest.strip()
    if not interpreter:
        return []
    if os.path.basename(interpreter) == "env":
        return list(_env_words(rest)) or [interpreter]
    return [interpreter, rest] if rest else [interpreter]


def _env_words(rest: str) -> Iterator[str]:
    """The program that `env` finds, and its arguments."""
    split = rest.removeprefix("-S").removeprefix("--split-string=").strip() if rest.startswith("-") else None
    try:
        words = [rest] if split is None else shlex.split(split)
    except ValueError as error:
        raise Untrustworthy(f"a first line that cannot be read: {error}") from None
    if words and (words[0].startswith("-") or "=" in words[0]):
        raise Untrustworthy(f"a first line whose env takes {words[0]!r}: name the program alone")
    yield from (word for word in words if word)


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(runs: Any) -> str:
    return shlex.join(runs) if isinstance(runs, list) and all(isinstance(w, str) for w in runs) else str(runs)
