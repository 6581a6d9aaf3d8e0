"""The guard: a hook that denies an agent's changes to what judges the agent.

That is the hook configuration of fairlead and of the hosts, fairlead's state and socket, and its processes. The guard
reads what a call says. An agent that first writes a program and then runs it gets around the guard, and so does any
process of the same user. Only other users and a sandbox keep those out.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from ..engine.threads import active_offload, threads
from ..hook import Hook
from ..shell import Command, Line, read
from ..shell.environment import HOLDS_CODE
from ..shell.interpreters import code_of
from ..shell.outputs import input_of
from ..shell.tree import TooComplex
from ..shell.words import emptied, unknown_of
from ..tools import is_named
from ..verdict import Verdict, deny
from . import guarded_node
from .effort import LIMIT, LONGEST, Effort, join
from .guarded_files import (
    COPIES,
    FILE,
    FINDS,
    FOLDER,
    GLOB,
    GuardedFiles,
    changed_words,
    finds,
    fold,
    search_of_fd,
    search_of_find,
    searched,
    takes,
)
from .guarded_git import untracked_taken
from .guarded_programs import (
    AGENTS,
    ARCHIVERS,
    CHANGES_FILES,
    CHANGES_UNNAMED,
    CODE,
    DEBUGS,
    DECODES,
    DESCRIPTOR,
    ENDS_FAIRLEAD,
    INSTALLERS,
    KILLS,
    OTHER_USERS,
    OUTPUT_VARIABLES,
    OVERWRITES,
    PATTERNS,
    PYTHON,
    READS,
    RUNS_LINES,
    SCRIPTED,
    SETS_MOVED,
    SYNTAX,
    TAKES_AWAY,
    WAY_OUT,
    WORD_OF_LINE,
    assigned_texts,
    assigned_variables,
    changes_control,
    control_problem,
    downloads,
    files_of_sed,
    finds_to_read,
    moves_settings,
    only_carries,
    only_reads,
    owner,
    says_control,
    takes_folders,
    takes_list,
    written_words,
)
from .guarded_python import only_prints
from .guarded_words import (
    CONCATENATES,
    alternatives,
    feeders,
    is_line,
    is_renamed,
    loaded_scripts,
    possible_lines,
    possible_words,
    writers_of,
    written_scripts,
)
from .protected_paths import (
    MOVED,
    PATH_FLAGS,
    PROTECTED,
    SHARED,
    current_folder,
    exists,
    has_link,
    mention_finder,
    moved_settings,
    package_paths,
    path_matcher,
    real_path,
)

_ADDRESS = re.compile(r"(?i)\b(?!file:)[a-z][a-z0-9+.-]{0,20}://\S*")
_NODE_CODE = (["-p"], ["-e"], ["-pe"], ["--print"], ["--eval"])
_EXTENDED_GLOB = re.compile(r"[?*+@!]\([^()]*\)")
_PATHSPEC = re.compile(r":(?:\([a-z,:=]*\)|/)")
_ANY_CASE = re.compile(r":\([a-z,:=]*icase")
_EXCLUDES = re.compile(r":(?:[!^]|\([a-z,:=]*exclude)")
_PART = re.compile(r"[=:,@]")
_QUICK_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s;&|<>()=:,@"'])+""")
_FOLDER_ARGS = frozenset({"workdir", "cwd", "dir_path", "directory", "working_directory", "workingDirectory"})
_IS_COMMAND = re.compile(r"(?i)(?:cmd|command|shell|exec|line|argv)[^ ]*$")
_IS_PATH = re.compile(r"(?i)(?:path|file|uri|url|dest|target|source|src)[^ ]*$")
_PATH_LIKE = re.compile(r"[./]")
_OWN_FOLDER = re.compile(r"\bfairlead\b[^\n]{0,200}\.__(?:file|path)__|find_spec\(\s*[\"']fairlead")
_ENVIRONMENT = re.compile(r"environ|getenv|ENV\b|ENVIRON|process\.env")
_SAYS_WHAT_TO_DO = re.compile(r"(?i)cmd|command|script|code|shell|exec|arg|line|input|patch|diff")


class Guard:
    """Denies a tool call that would change what is protected. See `PROTECTED`."""

    def __init__(
        self,
        state: Path,
        runtime: Path | None = None,
        configs: Iterable[Path] = (),
        files: Iterable[Path] = (),
        folders: Iterable[Path] = (),
    ) -> None:
        home = os.path.expanduser("~")
        self._moved = moved_settings()
        self._variables = {name: os.environ[name] for name in ("USER", "LOGNAME") if os.environ.get(name)}
        self._variables |= {name: values[-1] for name, values in self._moved.items()} | {"HOME": home}
        self._kept: dict[str, str] = {}  # where, and whose
        self._holders: dict[str, str] = {}
        for whose, places in PROTECTED.items():
            for place in places:
                self._keep(place.replace("~", home, 1) if place[0] == "~" else place, whose)
        usual = (Path(home, ".config/fairlead"), Path(home, ".local/state/fairlead"))  # what is installed is in one
        own = (state, *((runtime,) if runtime is not None else ()), *usual)
        self._own_folders = [os.path.abspath(folder) for folder in dict.fromkeys(own)]
        for path in (*(f"{folder}/**" for folder in own), *package_paths(), *map(str, configs)):
            for form in {os.path.abspath(path), os.path.realpath(path)}:
                self._kept[form] = "fairlead"
        for folder in folders:
            for form in {os.path.abspath(folder), os.path.realpath(folder)}:
                self._kept.setdefault(f"{form}/**", "a hook in force")
        self._files = GuardedFiles(files)
        self._rooted = {place.removesuffix("/**"): who for place, who in self._kept.items() if place[0] == "/"}
        self._around = [(fold(place), whose) for place, whose in self._rooted.items()]
        self._rules = (path_matcher(self._kept), path_matcher(self._kept | self._holders))
        self._texts = mention_finder(self._kept, self._holders, home)
        self._clue, self._near = self._make_clues()
        self._shared = [
            (f"/{holder}", rest, whose)
            for place, whose in self._kept.items()
            for holder, _, rest in (place.removesuffix("/**").partition("/"),)
            if holder in SHARED
        ]
        self._shapes = [
            (place[0] == "/", place.endswith("/**"), place.removesuffix("/**").lstrip("/").split("/"), whose, level)
            for level, places in enumerate((self._kept, self._holders))
            for place, whose in places.items()
        ]
        self._last = ("", "/dev/null", False)

    def _keep(self, place: str, whose: str) -> None:
        """One place, wherever variables have put it; and the folder it is in, if that is for nothing else."""
        holder = place.removesuffix("/**").rpartition("/")[0]
        forms = [(place, holder)]
        for name, values in self._moved.items():
            stands_for = MOVED[name]
            for moved in (value.rstrip("/") for value in values):
                if stands_for and place.startswith(f"{stands_for}/"):
                    forms.append((moved + place[len(stands_for) :], moved + holder[len(stands_for) :]))
                elif not stands_for:
                    self._kept[moved] = "a host"
        for path, folder in forms:
            self._kept[path] = whose
            if holder and holder[0] == "." and holder not in SHARED:
                self._holders[folder] = whose

    def _make_clues(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """What a command must say to need a closer look, links apart; and what a folder must."""
        names = {place.partition("*")[0].rstrip("/").rpartition("/")[2] for place in self._rooted}
        names |= {place.partition("/")[0].partition("*")[0] for place in self._kept if place[0] != "/"}
        parts = "|".join(map(re.escape, sorted(names)))
        closer_look = AGENTS | KILLS | DEBUGS | TAKES_AWAY | DECODES | OVERWRITES | {"rsync", "xargs"}
        programs = "|".join(map(re.escape, sorted(closer_look | (CHANGES_UNNAMED if self._files else set()))))
        return (
            re.compile(
                rf"{parts}|(?i:fairlead)|\b{os.getpid()}\b|/proc/|user@|[*?\[{{$`~\\]|\b(?:{programs})\b|{self._files.clue}",
                PATH_FLAGS,
            ),
            re.compile(rf"{parts}|{self._files.near}", PATH_FLAGS),
        )

    def __call__(self, step: Any) -> Any:
        return self._verdict(step) if active_offload.get() is None else threads.run(self._verdict, step)

    def _verdict(self, step: Any) -> Verdict | None:
        try:
            problem = self._judge(step)
        except Exception as error:  # nothing an agent sends may get it past this hook, or break it
            problem = f"this call could not be read ({type(error).__name__}), so it is not made"
        return None if problem is None else deny(problem)

    def _judge(self, step: Any) -> str | None:
        kind, target, safety = step.kind, step.target, step.safety
        folder = step.cwd if isinstance(step.cwd, str) and step.cwd[:1] == "/" else current_folder()
        if kind == "shell":
            for key in step.args if len(step.args) > 1 else ():
                if key in _FOLDER_ARGS and isinstance(step.args[key], str):
                    folder = join(folder, step.args[key], self._variables["HOME"])
            command = str(target.command or "")
            if (problem := self._shell(command, folder)) or (is_named(step.tool) and target.server is None):
                return problem
            return self._arguments({key: v for key, v in step.args.items() if not _is_in(command, v)}, folder)
        if kind in ("read", "search", "fetch", "agent") and safety in ("read_only", "network"):
            return None
        if kind in ("mcp", "unknown", "fetch") or target.server is not None:
            if safety == "read_only":
                return None
            if target.command and (problem := self._shell(target.command, folder)):
                return problem
            return self._arguments(step.args, folder)
        self._look_at(folder)
        paths = (path for path in target.paths if isinstance(path, str))
        return next((problem for path in paths if (problem := self._path(path, folder, 1))), None)

    # --- paths --------------------------------------------------------------------------------

    def _path(
        self, text: str, folder: str, strictness: int, work: Effort | None = None, changed: int = FILE
    ) -> str | None:
        """Why a path must be left alone: it is protected (0), a folder for just that (1), or around it (2).

        A file that a hook names counts only where the path is `changed`: an agent may run it.
        """
        text = text.replace("\0", "")
        first = text.partition("/")[0]
        if work and " " in first and first[0] not in "~." and not exists(f"{folder}/{first}"):
            return None  # a sentence
        path = join(folder, text, self._variables["HOME"])
        if len(path) > LONGEST:  # which no system takes, so any mention counts
            return self._mention(path)
        whose = self._whose(path, strictness, work, changed)
        real = self._last[1]  # no part of that is a link
        start = len(real) + 1 if path.startswith(f"{real}/") else 1
        if whose is None and has_link(path, start):
            path = real_path(f"{folder}/{text}" if text[:1] not in ("/", "~") else path)
            whose = self._whose(path, strictness, work, changed)
        return None if whose is None else f"{path[-200:]} {whose}: {WAY_OUT.format('edit')}"

    def _whose(self, path: str, strictness: int, work: Effort | None, changed: int) -> str | None:
        """Whose a path is: "belongs to Codex, which ...", or "holds what belongs to Codex, which ..."."""
        if found := self._rules[min(strictness, 1)](path):
            return f"belongs to {owner(found)}"
        pattern = work is not None and bool(GLOB.search(path))
        if work and pattern:
            work.spend(20, len(path))
        if changed and (self._files.has(path) or (changed == FOLDER and self._files.any_below(path))):
            return f"belongs to {owner('a hook in force')}"
        if pattern:
            found = self._could_be(path, strictness)
            return None if found is None else f"may stand for what belongs to {owner(found)}"
        if strictness < 2:
            return None
        below = fold(path.rstrip("/") + "/")
        held = [(place, whose) for place, whose in self._around if place.startswith(below)]
        held.sort(key=lambda one: not exists(one[0]))  # what is there says more than what may be
        for place, whose in held:
            return f"holds {place[-200:]}, which belongs to {owner(whose)}"
        for holder, rest, whose in self._shared:
            if path.endswith(holder) and exists(f"{path}/{rest}"):
                return f"holds {rest}, which belongs to {owner(whose)}"
        return None

    def _could_be(self, pattern: str, strictness: int) -> str | None:
        """Whose a path could be that matches a pattern."""
        parts = pattern.split("/")[1:]
        for rooted, below, names, whose, level in self._shapes:
            if level > strictness or len(names) > len(parts):
                continue
            if rooted:
                starts = range(1) if below or len(names) == len(parts) else range(0)
            else:
                starts = range(0 if below else len(parts) - len(names), len(parts) - len(names) + 1)
            for start in starts:
                fits = all(map(takes, parts[start : start + len(names)], names))
                if fits and self._is_there(parts, names):
                    return whose
        if strictness == 2:
            for place, whose in self._rooted.items():
                if len(parts) < place.count("/") and all(map(takes, parts, place.split("/")[1:])):
                    return whose
        return None

    def _is_there(self, parts: list[str], names: list[str]) -> bool:
        """`*.toml` means fairlead.toml only where there is one: a pattern takes only what exists."""
        if len(names) > 1 or not GLOB.search(parts[-1]):
            return True
        folder = "/".join(("", *parts[:-1]))
        return parts[-1].strip("*?") != "" if GLOB.search(folder) else exists(f"{folder}/{names[0]}")

    def _word(self, word: str, folders: list[str], strictness: int, work: Effort, changed: int = FILE) -> str | None:
        """A word of a command, and its parts: `--output=path`, `of=path`, `path:path`, `-opath`, `{path,path}`."""
        if "://" in word:
            word = _ADDRESS.sub("", word)
        if "(" in word:
            word = _EXTENDED_GLOB.sub("*", word)
        if word[:1] == ":":  # of git: `:(top)file`, `:/file`; what is excluded is left alone
            word = word.lower() if _ANY_CASE.match(word) else word
            word = "" if _EXCLUDES.match(word) else _PATHSPEC.sub("", word)
        for text in alternatives(word, work) if "{" in word else (word,):
            parts = [text, *_PART.split(text)] if _PART.search(text) else [text]
            if text[:1] == "-" and len(text) > 2:
                parts += _glued_values(text)
            for part in parts:
                for folder in folders if part else ():
                    work.spend(1)
                    if problem := self._path(part, folder, strictness, work, changed):
                        return problem
        return None

    def _mention(self, text: str) -> str | None:
        if found := self._texts(text):
            return f"this names {found}, which is protected: {WAY_OUT.format('edit')}"
        return None

    def _code(self, text: str, folder: str) -> str | None:
        """Why code, a patch, or a command that cannot be taken apart must not run: it mentions what is protected."""
        if problem := self._mention(text):
            return problem
        if found := self._files.mentioned(text, folder, self._variables["HOME"]):
            return f"this names {found[-200:]}, which a hook in force uses: {WAY_OUT.format('edit')}"
        return None

    def _arguments(self, args: Mapping[str, Any], folder: str) -> str | None:
        """Judge the arguments of an unknown tool: any path, and mentions in what looks like a command or a patch."""
        left: list[tuple[str, Any]] = [("", args)]
        work = Effort(self._variables)
        while left:
            key, value = left.pop()
            if isinstance(value, Mapping):
                left += [(f"{key} {name}"[-100:], item) for name, item in value.items()]
            elif isinstance(value, (list, tuple, set, frozenset)):
                left += [(key, item) for item in value]
                if self._files and _IS_COMMAND.search(key) and all(isinstance(item, str) for item in value):
                    left.append((key, shlex.join(value)))
            elif isinstance(value, str):
                is_instruction, is_command = bool(_SAYS_WHAT_TO_DO.search(key)), bool(_IS_COMMAND.search(key))
                is_path = not is_command and bool(_PATH_LIKE.search(value) or _IS_PATH.search(key))
                try:
                    problem = self._word(value, [folder], 1, work, int(is_path)) if "\n" not in value else None
                except TooComplex:
                    problem, is_instruction = None, True
                if not problem and is_instruction:
                    problem = self._mention(value)
                if not problem and is_instruction and self._files:
                    problem = (self._shell if is_command else self._code)(value, folder)
                if problem:
                    return problem
        return None

    # --- commands -----------------------------------------------------------------------------

    def _shell(self, command: str, folder: str) -> str | None:
        if len(command) > LIMIT:
            return self._code(command, folder)
        real, near = self._look_at(folder)
        plain = not near and not self._clue.search(command.replace('"', "").replace("'", ""))
        if plain and not self._leads_elsewhere(command, real):
            return None
        try:
            for where in {folder: None, real: None}:
                work = Effort({**self._variables, "PWD": where})
                if problem := self._line(command, where, work):
                    return problem
        except TooComplex:
            return self._code(command, folder)
        return None

    def _look_at(self, folder: str) -> tuple[str, bool]:
        """Where a folder really is, and whether that is close to what is protected. Most steps have the last one's."""
        if self._last[0] != folder:
            real = real_path(folder)
            self._last = (folder, real, bool(self._near.search(folder) or self._near.search(real)))
        return self._last[1:]

    def _leads_elsewhere(self, command: str, folder: str) -> bool:
        """Whether a word of an otherwise harmless command is a link, or is written so that this is not clear."""
        for word in _QUICK_WORD.findall(command):
            if '"' in word or "'" in word:
                word = word[1:-1] if word[0] in "\"'" else word
                if '"' in word or "'" in word:
                    return True
            if word[:1] == "/":
                linked = has_link(word, 1)
            else:
                linked = word[:1] not in ("-", "") and has_link(f"{folder}/{word}", len(folder) + 1)
            if linked:
                return True
        return False

    def _line(self, text: str, folder: str, work: Effort) -> str | None:
        line = read(text, folder, work.variables)
        moved = SETS_MOVED.search(text) is not None or any(map(moves_settings, line.commands))
        loads = any(name in HOLDS_CODE for command in line.commands for name, _ in assigned_variables(command))
        writers = writers_of(line)
        for command in line.commands:
            if problem := self._command(command, line, moved, loads, work):
                return problem
            for text in loaded_scripts(command, writers) if writers else ():
                if problem := self._text_of_program(text, command.folder or folder):
                    return problem
            if problem := self._reopened(command, line, command.folder or folder, work):
                return problem
        return None if line.sound else self._code(text, folder)

    def _command(self, command: Command, line: Line, moved: bool, loads: bool, work: Effort) -> str | None:
        """A command of a line: what it writes to, and all that it names unless it only reads."""
        folders = self._folders(command, work)
        guesses = possible_words(command, line, self._found)
        work.spend(len(guesses) // 8)
        if command.writes() and _name_own_folder(command.inner):
            return f"this names where fairlead is installed: {WAY_OUT.format('edit')}"
        for word in (*command.writes(), *(guesses if any(map(unknown_of, command.writes())) else ())):
            if problem := self._word(word, folders[:1], 1, work) or self._reaches_in([word]):
                return problem
        for variable, value in assigned_variables(command):
            if problem := self._variable(variable, value, command, folders, work):
                return problem
        name, rest = command.program, command.args
        words = [name, *rest, *guesses]
        if name in INSTALLERS:  # `pip uninstall -r FILE`
            words += " ".join(written_scripts(command, line)).split()
        elsewhere = name in AGENTS and any(
            via.split()[0] in OTHER_USERS for via in command.via
        )  # it has other settings
        emptied_words = [text for word in words if (text := emptied(word))]  # `fair${X}lead pause`
        for each in (words, emptied_words) if emptied_words not in (words, []) else (words,):
            if problem := control_problem(os.path.basename(each[0]), each, moved or elsewhere):
                return problem
        if name in RUNS_LINES and (problem := self._possible_lines(command, line, work)):
            return problem
        if not name or only_carries(command):
            return None
        return self._changes(command, line, guesses, folders, loads, work)

    def _variable(self, name: str, value: str, command: Command, folders: list[str], work: Effort) -> str | None:
        """Why a variable must not be set: programs write the file that it names, or run the code that it has."""
        if OUTPUT_VARIABLES.fullmatch(name) and (problem := self._word(value, folders, 1, work)):
            return problem
        if name not in HOLDS_CODE:
            return None
        texts = [value, *(word for one in command.inner if one.via[-1:] == ("<(...)",) for word in one.args)]
        return next((problem for text in texts if (problem := self._text_of_program(text, folders[0]))), None)

    def _changes(
        self, command: Command, line: Line, guesses: list[str], folders: list[str], loads: bool, work: Effort
    ) -> str | None:
        """All that a command names, unless it only reads. `loads`: a variable may have it do more than it says."""
        name, rest = command.program, command.args
        words = [name, *rest, *guesses]
        mentions = partial(self._code, folder=command.folder)
        if self._only_reads(command, line, mentions):
            if name in SCRIPTED and (problem := self._script(command, line)):
                return problem
            return self._any_word(files_of_sed(rest), folders, work) if name == "sed" else None
        if problem := self._reaches_in(words):
            return problem
        copies = name in COPIES and name != "ln"
        changed = changed_words(name, rest, guesses) if self._files or copies else {}
        is_known_later = any(one[:1] == "$" for word in rest for one in unknown_of(word))
        if _names_own_folder(line) if is_known_later else _name_own_folder(command.inner):
            return f"this names where fairlead is installed: {WAY_OUT.format('edit')}"
        if not loads and (written := written_words(name, rest)) is not None:
            words = [name, *written, *guesses]
        elif name in ARCHIVERS:  # what it unpacks may be what the line has packed
            words += [word for one in line.commands if one.program in ARCHIVERS for word in one.args]
        words += downloads(name, rest)
        if copies:  # what it copies from, it only reads; and another fairlead.toml elsewhere is no policy
            changed = {word: what for word, what in changed.items() if not self._is_new_policy(word, folders)}
            words = [name, *changed]
        if problem := self._named(command, words, changed, folders, work):
            return problem
        if (name in FINDS or name in ("fd", "fdfind")) and (problem := self._find(command)):
            return problem
        if name == "git" and (problem := self._untracked(command, line)):
            return problem
        return self._program_text(command, line, guesses, folders[-1])

    def _only_reads(self, command: Command, line: Line, mentions: Callable[[str], str | None]) -> bool:
        name = command.program
        if PYTHON.fullmatch(name) and not command.inner:
            code, _ = code_of(command, "python")
            if code is not None and only_prints(code):
                return True
        if name in ("node", "nodejs") and not command.inner:
            code, _ = code_of(command, "node")
            has_more = command.args[:1] not in _NODE_CODE or len(command.args) != 2
            if code is not None and not has_more and guarded_node.only_prints(code):
                return True
        reads = only_reads(name, command.args, mentions) or (name == "find" and finds_to_read(command, mentions))
        return reads and not is_renamed(name, line)

    def _reaches_in(self, words: Iterable[str]) -> str | None:
        """Why a command must not write below `/proc/PID`: that is this process."""
        own = f"/proc/{os.getpid()}/"
        if any(own in word for word in words):
            return f"this reaches into the process that judges this agent: {WAY_OUT.format('do')}"
        return None

    def _reopened(self, command: Command, line: Line, folder: str, work: Effort) -> str | None:
        """`echo x > /dev/fd/3 3< FILE` opens FILE again, to write it."""
        words = [*command.writes(), *(command.args if command.program not in READS - SCRIPTED else ())]
        numbers = {found[1] or found[2] or found[3] or "" for word in words for found in DESCRIPTOR.finditer(word)}
        for one in line.commands if numbers else ():
            for redirect in one.redirects:
                own = redirect.descriptor or "0"
                same = own in numbers or (numbers - {"out", "err", "1", "2"} and own not in ("1", "2"))
                if redirect.operator == "<" and same and (problem := self._word(redirect.target, [folder], 1, work)):
                    return problem
        return None

    def _possible_lines(self, command: Command, line: Line, work: Effort) -> str | None:
        """Why a shell must not run a text that is not known: `... | sort | sh`, `... && x='rm y'; eval "$x"`."""
        if command.sure:
            return None
        work.spend(1 + len(line.commands) // 8)
        texts = possible_lines(command, line)
        folder = command.folder or work.variables.get("PWD", "/")
        for text in filter(is_line, texts):
            work.spend(100)
            if problem := self._line(text, folder, work):
                return problem
        if not texts or command.carries:
            return None
        words = [word for text in texts for word in WORD_OF_LINE.findall(text)]
        if says_control(words):
            return f"this may change what judges this agent: {WAY_OUT.format('run')}"
        return self._mention("\n".join(texts)) or self._any_word(filter(GLOB.search, words), [folder], work)

    def _named(
        self, command: Command, words: list[str], changed: dict[str, int], folders: list[str], work: Effort
    ) -> str | None:
        """What a command that may write names. Of the files that hooks name, only what is `changed` counts."""
        name = command.program
        strictness = 2 if takes_folders(command) else 0 if name == "mkdir" else 1
        into = len(command.args) if name == "mv" else -1  # from there it takes nothing away
        for i, word in enumerate(words):
            level = 1 if i == into or (into > 0 and words[i - 1] in ("-t", "--target-directory")) else strictness
            if i and (problem := self._word(word, folders, level, work, changed.pop(word, 0))):
                return problem
        for word, what in changed.items():
            if problem := self._word(word, folders, 1, work, what):
                return problem
        return None

    def _any_word(self, words: Iterable[str], folders: list[str], work: Effort) -> str | None:
        return next((problem for word in words if (problem := self._word(word, folders, 1, work))), None)

    def _is_new_policy(self, word: str, folders: list[str]) -> bool:
        return all(self._is_new_policy_in(folder, word) for folder in folders)

    def _is_new_policy_in(self, folder: str, word: str) -> bool:
        """Is this a file where there is none yet, and where it means nothing?

        A fairlead.toml means nothing before a human trusts it, and the settings of an agent nothing in `/tmp`.
        """
        home = self._variables["HOME"]
        path = join(folder, word, home)
        if os.path.basename(word) != "fairlead.toml":
            own = any(path.startswith(f"{place.rstrip('/')}/") for place in (home, folder, *self._rooted))
            return path.startswith(("/tmp/", "/var/tmp/")) and not own and not exists(path)  # noqa: S108
        return not exists(path)

    def _script(self, command: Command, line: Line) -> str | None:
        """Why a script of sed or awk must not run that it reads with `-f`: it names what is protected."""
        if not any(re.match(r"-[a-zA-Z]*f|--file", word[:20]) for word in command.args):
            return None
        return self._mention("\n".join((input_of(command) or "", *written_scripts(command, line))))

    def _program_text(self, command: Command, line: Line, guesses: list[str], folder: str) -> str | None:
        """Code and patches that a command is given: a mention of what is protected counts."""
        name = command.program
        patches = name == "patch" or (name == "git" and not {"apply", "am"}.isdisjoint(command.args))
        makes = name in ("make", "gmake")
        scripts = written_scripts(command, line, patches=patches)
        lists = takes_list(command)
        if not CODE.fullmatch(name) and not patches and not scripts and not makes and not lists:
            return None
        texts = [
            input_of(command) or "",
            *scripts,
            *[word for word in (*command.args, *guesses) if not makes or "$" in word],
        ]
        texts += [one.target for one in command.redirects if one.operator in ("<<", "<<-", "<<<")]
        if any(map(_ENVIRONMENT.search, texts)):
            texts.append(" ".join(text for one in line.commands for text in assigned_texts(one)) + "\n")
        if (patches or lists) and input_of(command) is None and command.source is not None:  # `git diff | git apply`
            texts += [f"{word}\n" for one in feeders(command, line) for word in one.args]
        for text in texts:
            if name in SCRIPTED and not SYNTAX.search(text):
                continue
            if problem := self._text_of_program(text, folder, ends=name != "sed"):
                return problem
        return None

    def _text_of_program(self, text: str, folder: str, *, ends: bool = True) -> str | None:
        whole = CONCATENATES.sub("", text)
        if changes_control(text) or changes_control(whole) or (ends and ENDS_FAIRLEAD.search(text)):
            return f"this code changes what judges this agent: {WAY_OUT.format('run')}"
        if _OWN_FOLDER.search(text) and CHANGES_FILES.search(text):
            return f"this names where fairlead is installed: {WAY_OUT.format('edit')}"
        if problem := (self._code(text, folder) if SYNTAX.search(text) else self._mention(text)):
            return problem
        return self._mention(whole) or self._patterns(text, folder)

    def _patterns(self, code: str, folder: str) -> str | None:
        """Whether code removes or writes files by a pattern that takes a protected one: `unlink glob("*.toml")`."""
        if not CHANGES_FILES.search(code):
            return None
        work = Effort(self._variables)
        words = (found[1] for found in PATTERNS.finditer(code[:LIMIT]))
        return self._any_word([word for word in words if GLOB.search(word)][:20], [folder], work)

    def _find(self, command: Command) -> str | None:
        """Whether `find` or `fd` comes upon a protected file or one that a hook names, and changes what it finds."""
        search = search_of_find(command.args) if command.program in FINDS else search_of_fd(command.args)
        for start in search[0] if search else ():
            folder = join(command.folder, start, self._variables["HOME"])
            if search and self._files and (found := self._files.find(folder, search[1])):
                return f"{found[-200:]} belongs to {owner('a hook in force')}: {WAY_OUT.format('edit')}"
            for place, whose in self._below(folder) if search else ():
                if search and finds(place, folder, search[1]):
                    return f"{place[-200:]} belongs to {owner(whose)}: {WAY_OUT.format('edit')}"
        return None

    def _found(self, command: Command) -> list[str] | None:
        """The protected files that `find` comes upon, if it looks for some names only."""
        roots, names = searched(command.args)
        if not names:
            return None
        found: list[str] = []
        for root in roots:
            folder = join(command.folder, root, self._variables["HOME"])
            found += [place for place, _ in self._below(folder) if finds(place, folder, names)]
            found += [file for file in (self._files.find(folder, names),) if file]
        return found

    def _below(self, folder: str) -> Iterator[tuple[str, str]]:
        """Protected files and folders that are there, below a folder."""
        for place, whose in self._kept.items():
            path = place.removesuffix("/**")
            path = (path if path[0] == "/" else f"{folder.rstrip('/')}/{path}").replace("*", "")
            if path.startswith(f"{folder.rstrip('/')}/") and exists(path):
                yield path, whose
        for own in self._own_folders:
            if f"{own}/".startswith(f"{folder.rstrip('/')}/"):
                yield from ((path, "fairlead") for path in islice(_files_below(own), _MANY_FILES))

    def _untracked(self, command: Command, line: Line) -> str | None:
        if (taken := untracked_taken(command, line, self._kept, self._variables["HOME"])) is None:
            return None
        return f"this takes {taken[0]} away, which belongs to {owner(taken[1])}: {WAY_OUT.format('do')}"

    def _folders(self, command: Command, work: Effort) -> list[str]:
        """Where a command's words may be relative to, `git -C` included. If that is not known, where the line is."""
        folders = [command.folder or work.variables.get("PWD", "/")]
        for option, word in pairwise((*command.args, "")):
            if option in ("-C", "--chdir", "--directory", "--cwd", "--work-tree") and len(folders) < 8:
                folders.append(join(folders[-1], word, self._variables["HOME"]))
            elif (
                option[:1] == "-"
                and len(folders) < 8
                and (found := re.fullmatch(r"(?:-C|--(?:chdir|directory|cwd|work-tree)=)(.+)", option))
            ):
                folders.append(join(folders[-1], found[1], self._variables["HOME"]))
        return folders


def _files_below(folder: str) -> Iterator[str]:
    for where, _, names in os.walk(folder):
        yield from (os.path.join(where, name) for name in names)


_MANY_FILES = 500


def _glued_values(option: str) -> list[str]:
    """What may be a value that is glued to short options: `FILE` in `-oFILE` and `-sLoFILE`."""
    letters = _LETTERS.match(option) if "." in option or "/" in option else None
    last = letters.end() if letters is not None else 2
    return [option[at:] for at in range(2, last + 1)]


_LETTERS = re.compile(r"-[a-zA-Z0-9]{1,6}")


@lru_cache(maxsize=2)
def _names_own_folder(line: Line) -> bool:
    return _name_own_folder(line.commands)


def _name_own_folder(commands: Iterable[Command]) -> bool:
    """Does a command say where fairlead is installed? `python -c 'import fairlead; print(fairlead.__path__)'`"""
    return any(_OWN_FOLDER.search(word) for one in commands for word in one.args)


def _is_in(command: str, value: Any) -> bool:
    """Whether an argument is all in a command that was looked at."""
    words = value if isinstance(value, (list, tuple)) else (value,)
    return all(isinstance(word, str) and word in command for word in words)


def guard_hook(
    state: Path,
    runtime: Path | None = None,
    configs: Iterable[Path] = (),
    files: Iterable[Path] = (),
    folders: Iterable[Path] = (),
) -> Hook:
    """The guard as a hook, asked before all other gates. `files` and `folders` are what the hooks in force name."""
    guard = Guard(state, runtime, configs, files, folders)
    return Hook(guard, "before_tool", name="fairlead.guard", phase="gate", priority=-1000, layer="builtin", locked=True)
