"""What a command may be given or may run, where only running the line would tell.

The reader says which words it does not know. Most often what they may be stands on the line all the same: in what a
variable is set to, in the commands that a command reads from, and in the files that the line writes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from ..shell import Command, Line
from ..shell.outputs import input_of, written_by
from ..shell.words import emptied, is_exact, unknown_of
from .effort import Effort
from .guarded_files import FINDS

CONCATENATES = re.compile(r"[\"']\s*[.+]?\s*[\"']")
"""What stands between two texts that code makes one: `"fair" + "lead"`."""
_VARIABLE = re.compile(r"\$\{?[!#]?(\w+)")
_LISTS = frozenset({"ls", "find", "fd", "dir", "vdir", "compgen", "tree", "stat", "du"})
"""Programs that put out names of files."""
_FILTERS = frozenset({"sed", "awk", "gawk", "mawk", "grep", "egrep", "rg"})
_PATTERN = re.compile(r"[/^$|()\\]+")
_BETWEEN = re.compile(r"[\s|;&()<>`'\"$]+")
_BETWEEN_ALL = re.compile(r"[\s|;&()<>`'\"${}=]+")
_PART = re.compile(r"[=\s,:]")
_KEY = re.compile(r"[\[\]]")
_MAKEFILES = frozenset({"Makefile", "makefile", "GNUmakefile"})
_BRACES = re.compile(r"\{([^{}]*)\}")
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/\d")
_GLOB = re.compile(r"[*?\[]")


def possible_words(command: Command, line: Line, find: Callable[[Command], list[str] | None]) -> list[str]:
    """What the unknown words of a command may stand for, as far as the line says it.

    The output of a substitution may be any word in it, what is read any word of the pipeline, and a variable that
    the line sets any word of the line. A variable from elsewhere is none of these. `find` says what a command that
    looks for files finds of those that are protected, or None if it may find any.
    """
    unknown = {one for word in (*command.args, command.program, *command.writes()) for one in unknown_of(word)}
    in_code = not command.sure and any(via.endswith((" code", "sed", "parallel")) for via in command.via)
    parts = [word.lower() for word in command.args if "nocaseglob" in line.text and _GLOB.search(word)]
    texts = (*command.args, *command.writes())
    parts += [text for word in texts if (text := emptied(word)) != word]  # `fairlead.toml$X`
    if not unknown - {"*", "{}"} and not in_code:
        return parts
    if any(one[:1] == "$" and is_set(one, line.text) for one in unknown):
        sources = [one for one in line.commands if one is not command]
        parts += _BETWEEN_ALL.split(line.text)
        parts += [part for word in parts if "[" in word for part in _KEY.split(word)]
    elif in_code or not unknown.isdisjoint(("stdin", "$(...)", "...")):
        sources = list(feeders(command, line))
        if "$(...)" in unknown and not command.inner:  # `x=$(git ls-files); rm $x`
            sources += [one for one in line.commands if "$(...)" in one.via]
    else:
        sources = []
    found = {id(one): find(one) for one in sources if one.program in FINDS}
    words = list[str]()
    for one in sources:
        names = found.get(id(one))
        words += [*(one.args if names is None else names), *_texts(one), *_read_by(one)]
    parts += [part for word in dict.fromkeys(words) for part in word.split()]
    patterns = [
        part for one in sources if one.program in _FILTERS for word in one.args for part in _PATTERN.split(word)
    ]
    patterns += [part.replace(".*", "*") for part in patterns if ".*" in part]
    parts += patterns
    if any(one.program in _LISTS or one.runs("git ls-files") for one in sources):
        parts += [f"{start}{part}*" for part in patterns if len(part) > 2 and part[0] != "-" for start in ("*", ".*")]
    parts += _index(line).patterns
    for word in texts:
        if "$(...)" in unknown_of(word):  # what it puts out may be any word of it
            parts += filter(None, _BETWEEN.split(word) + _BETWEEN.split(CONCATENATES.sub("", word)))
    return parts


def possible_lines(command: Command, line: Line) -> list[str]:
    """The words and texts of which a shell may run a line, where the line does not say which one it is."""
    unknown = {one for word in command.args for one in unknown_of(word)}
    if _may_read_any(command) or any(is_set(one, line.text) for one in unknown if one[:2] != "$("):
        sources: Iterable[Command] = (one for one in line.commands if one is not command)
    elif _runs_unknown_text(command):
        sources = feeders(command, line, scripts=True)
    else:
        return []
    words = [word for one in sources for word in (*one.args, " ".join(one.args), *_texts(one), written_by(one) or "")]
    return list(dict.fromkeys(words))


def is_line(text: str) -> bool:
    """Is this more than one word?"""
    return _BETWEEN.search(text) is not None


def _runs_unknown_text(command: Command) -> bool:
    """Does a shell run a text of which not even the program is known?"""
    if command.sure or any(is_exact(one.program) and one.program for one in command.inner if _is_run(one, command)):
        return False
    return command.source is not None or any(unknown_of(word) != ("*",) for word in command.args)


def _may_read_any(command: Command) -> bool:
    """Does a shell read from a pipe to which any command of the line may write? `exec > >(sh)`, `coproc sh`"""
    is_coproc = command.stdin is not None and "coproc" in unknown_of(command.stdin)
    return is_coproc or command.via[-1:] == (">(...)",)


def _is_run(inner: Command, command: Command) -> bool:
    own = len(command.via)
    return len(inner.via) > own and inner.via[own].split()[0] == command.program


def feeders(command: Command, line: Line, *, scripts: bool = False) -> Iterator[Command]:
    """The commands whose output a command may be given: of its pipeline and those of the commands that run it, of its
    substitutions, and those that write the files which these read. `scripts`: also the files that it names itself.
    """
    index = _index(line)
    around = [command, *_ancestors(command, index)]
    found = [one for number in {one.pipeline for one in around} for one in index.pipelines[number]]
    found += [one for runner in around for one in _read_from(runner)]
    if any(_DESCRIPTOR.match(word) for word in command.args):  # `exec 3< <(...); . /dev/fd/3`
        found += line.commands
    found += [one for top in found + command.inner for one in top.walk()]
    named = [
        *_read_by(command),
        *(command.args if scripts else ()),
        *(word for one in around for word in _read_by(one)),
    ]
    seen = {id(command)}
    for _ in range(4):
        fresh = [one for one in found if id(one) not in seen]
        seen.update(map(id, fresh))
        yield from fresh
        named += [word for one in fresh for word in (*one.args, *_read_by(one))]
        files = {os.path.basename(word) for word in named if word} if index.writers else set()
        writers = {one.pipeline for names, one in index.writers if not files.isdisjoint(names)}
        found = [one for number in writers for top in index.pipelines[number] for one in top.walk()]


def _read_from(command: Command) -> Iterator[Command]:
    """The commands before a command in its pipeline, or before the block that it stands in."""
    source, left = command.source, _CHAIN
    while source is not None and source.commands and left:
        yield from source.commands
        source, left = source.commands[0].source, left - 1


_CHAIN = 32


def _ancestors(command: Command, index: _CommandIndex) -> list[Command]:
    """The commands that run a command, the innermost first."""
    path: list[Command] = []
    while (above := index.parents.get(id(command))) is not None:
        path.append(above)
        command = above
    return path


class _CommandIndex(NamedTuple):
    """What is asked about a line for each of its commands."""

    pipelines: dict[int, list[Command]]
    parents: dict[int, Command]
    """Of each command, by its id, the one that runs it."""
    writers: list[tuple[frozenset[str], Command]]
    """The commands that write files, with the names of these."""
    patterns: list[str]
    """Those of a `case`, which are words of no command."""


@lru_cache(maxsize=2)
def _index(line: Line) -> _CommandIndex:
    pipelines: dict[int, list[Command]] = {}
    for one in line.commands:
        pipelines.setdefault(one.pipeline, []).append(one)
    parents = {id(inner): one for one in line.commands for inner in one.inner}
    written = ((frozenset(map(os.path.basename, writes_files(one))), one) for one in line.commands)
    patterns = _BETWEEN.split(line.text) if re.search(r"\bcase\b", line.text) else []
    return _CommandIndex(pipelines, parents, [(names, one) for names, one in written if names], patterns)


def writers_of(line: Line) -> list[Command]:
    """The commands of a line that write files."""
    return [one for _, one in _index(line).writers]


def written_scripts(command: Command, line: Line, *, patches: bool = False) -> list[str]:
    """What the line writes to the files that a command names: `cat > x.py <<END` before `python x.py`.

    Patches: also the words of the commands that write them, such as `git diff FILE`.
    """
    index = _index(line)
    if not index.writers:
        return []
    words = [command.path, *command.args, *command.assignments.values()]
    names = {os.path.basename(part) for word in words for part in (word, *_PART.split(word)) if part}
    names |= _MAKEFILES if command.program in ("make", "gmake") else set()
    writers = [one for written, one in index.writers if not names.isdisjoint(written)]
    texts = [written_by(one) or input_of(one) or "" for one in writers if one is not command]
    return [*texts, *(f"{word}\n" for one in writers for word in one.args if patches)]


_LOADS = tuple((re.compile(programs), re.compile(files)) for programs, files in {
    r"(?:i?python|pypy|pip)[\d.]*|pytest|py\.test|tox|nox|coverage|uv|poetry|pdm|hatch|invoke|fab": r"\.(?:py|pth)$",
    r"perl[\d.]*|prove": r"\.(?:p[lm]|t)$",
    r"ruby[\d.]*|rake|rspec|bundle": r"\.rb$|(?:Rake|Gem)file$",
    r"node(?:js)?|np[mx]|yarn|pnpm|bunx?|deno|jest|vitest|mocha|eslint|webpack|vite|tsx|ts-node":
        r"\.[cm]?[jt]sx?$|package\.json$|\.npmrc$",
    r"go|cargo|rustc": r"\.(?:go|rs)$|Cargo\.toml$",
    r"git|gh|glab|pre-commit|lefthook|husky":
        r"\.git(?:config|attributes|modules)$|\.git/|hooks?/|\.(?:husky|pre-commit)",
    r"just|task|direnv|mise|earthly|dagger|meson|cmake|ninja":
        r"[Jj]ustfile$|Taskfile\.ya?ml$|\.envrc$|mise\.toml$|CMakeLists\.txt$|build\.ninja$",
    r"n?vim?|ex|view|emacs": r"\.(?:exrc|n?vimrc|vim|el|emacs)$",
    r"(?:ba|z|da|k|mk|a|c|tc|fi)?sh|su|sudo|doas|ssh|login|tmux|screen|script":
        r"\.?(?:bashrc|bash_\w+|profile|zshrc|zshenv|zprofile|zlogin|kshrc|cshrc|tcshrc|login|logout|inputrc|env|fish)$",
}.items())  # fmt: skip
"""What programs run or load by themselves, by the names of the files: nothing on the line says so."""


def loaded_scripts(command: Command, writers: list[Command]) -> list[str]:
    """What the line writes to files that a program loads without being told: `.bashrc`, `conftest.py`, git's hooks."""
    files = [pattern for programs, pattern in _LOADS if programs.fullmatch(command.program)]
    return [
        text
        for one in writers
        if one is not command
        and any(pattern.search(path) for pattern in files for path in writes_files(one))
        and (text := written_by(one) or input_of(one))
    ]


def is_renamed(name: str, line: Line) -> bool:
    """Does the line itself say what a program of this name is? `ln -s "$(command -v rm)" cat; ./cat file`"""
    for one in line.commands:
        if one.program in ("ln", "cp", "mv", "install", "hash") and len(one.args) > 1:
            places = one.args[-1:]
        elif one.program == "enable":
            places = one.args
        else:
            places = writes_files(one)
        if any(os.path.basename(place) == name for place in places):
            return True
    return False


def writes_files(command: Command) -> list[str]:
    """The files that a command writes what it puts out to."""
    return [*command.writes(), *(command.operands if command.program == "tee" else ())]


def _texts(command: Command) -> list[str]:
    """Texts that a command has besides its words: here-documents, here-strings and the values of variables."""
    documents = [one.target for one in command.redirects if one.operator in ("<<", "<<-", "<<<")]
    return [command.stdin or "", *documents, *command.assignments.values()]


def _read_by(command: Command) -> list[str]:
    return [redirect.target for redirect in command.redirects if redirect.operator == "<"]


@lru_cache(maxsize=256)
def is_set(variable: str, text: str) -> bool:
    """Is a variable set on a line? Then its name stands there without a dollar sign, too."""
    if variable[:2] in ("$1", "$2", "$@", "$*"):
        return re.search(r"\bset\b", text) is not None
    name = _VARIABLE.match(variable)
    return name is not None and re.search(rf"(?<![$\w{{!#]){name[1]}\b", text) is not None


def alternatives(word: str, work: Effort) -> list[str]:
    """What braces stand for, up to a bound."""
    words = [word]
    work.spend(20, len(word))
    for _ in range(6):
        expanded = []
        for text in words:
            found = _BRACES.search(text)
            parts = found[1].split(",")[:64] if found else ()
            expanded += [text[: found.start()] + part + text[found.end() :] for part in parts] if found else [text]
        words = expanded[:64]
    return words
