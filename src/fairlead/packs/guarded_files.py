"""The files that hooks name: which words of a command change one, and which code mentions one.

An agent may run and read these files, so the name of one alone means nothing. What counts is what a program does
with the words it is given. A program that is in no table here is taken to run or read them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain, dropwhile, pairwise
from pathlib import Path

from .effort import join
from .protected_paths import find_all

_FLAGS = re.DOTALL | (re.IGNORECASE if sys.platform == "darwin" else 0)
GLOB = re.compile(r"[*?\[]")
SYSTEM_FOLDERS = ("/bin/", "/sbin/", "/usr/", "/lib/", "/lib64/")
"""Folders of the operating system. Programs in these are known by their full path, never by their name alone."""


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _options(table: dict[str, str]) -> dict[str, str]:
    """A table of patterns by program. `re` compiles and keeps each when it is first used, not at every start."""
    return {name: options for names, options in table.items() for name in names.split()}


# --- what programs do with their operands ---------------------------------------------------------

REMOVES = words_of("rm mv shred unlink rmdir trash trash-put srm wipe")
"""Programs that remove their operands, and with a folder everything below it."""
CHANGES = REMOVES | words_of("""
    tee truncate touch fallocate chmod chown chgrp chattr setfacl setfattr setcap patch applypatch apply_patch sponge ed
    ex vi vim nvim view nano pico emacs micro gzip gunzip bzip2 bunzip2 xz unxz lzma unlzma compress uncompress lzip
    dos2unix unix2dos mac2unix strip objcopy patchelf rename prename mkfifo mknod crudini black isort pyupgrade rustfmt
    stylua swiftformat unzip split csplit""")
"""Programs that change all their operands."""
_UNLESS = _options({
    "gzip gunzip bzip2 bunzip2 xz unxz lzma unlzma compress uncompress lzip":
        r"-[a-zA-Z0-9]*[cklt].*|--(?:stdout|to-stdout|keep|list|test)",
    "black isort rustfmt stylua": r"--check.*|--diff|-c",
    "swiftformat": r"--lint|--dryrun",
    "patch": r"--dry-run",
    "crudini": r"--get",
    "unzip": r"-[a-zA-Z]*[lptvZ].*",
})  # fmt: skip
"""With one of these options they change nothing."""
_ONLY_WITH = _options({
    "sed": r"-[a-zA-Z]*i.*|--in-?place.*",
    "perl ruby": r"-[aclnpswWtTuU0-9]*i.*",
    "awk gawk mawk": r"-iinplace|inplace|--include=inplace",
    "yq sd autopep8 yapf autoflake clang-format": r"-[a-zA-Z]*i.*|--in-?place.*",
    "prettier gofmt goimports gofumpt shfmt biome": r"-[a-zA-Z]*w|--write|--fix|--apply.*",
    "eslint stylelint standard rubocop markdownlint": r"--fix.*|-[aA]|--auto-?correct.*",
    "ruff": r"format|--fix.*|--add-noqa",
    "terraform taplo deno nixfmt": r"fmt|format",
    "xmlstarlet xml": r"-L|--inplace",
    "zstd lz4": r"--rm|-m",
    "xxd": r"-r.*|-revert",
})  # fmt: skip
"""These change their operands only with one of these words."""
COPIES = frozenset({"cp", "ln", "install", "rsync", "scp"})
"""Programs that only read their sources. The destination counts, and what a source is called there."""
_TAKES_SOURCES = _options({
    "ln": r"(?!-[a-zA-Z]*s)(?!--symbolic).*",  # a hard link is the file itself
    "cp": r"-[a-zA-Z]*l[a-zA-Z]*|--link",
    "rsync": r"--remove-source-files",
})  # fmt: skip
_RECURSIVE = frozenset({"chmod", "chown", "chgrp", "chattr", "setfacl"})
_RECURSES = re.compile(r"-[a-zA-Z]*R[a-zA-Z]*|--recursive")
_TAKES_VALUE = words_of(
    "--exclude --include --filter --exclude-from --files-from -e --rsh -m --mode -o -g --owner --group -S"
)

_RUNS_OTHERS = words_of("""
    sudo doas env nohup nice ionice timeout stdbuf command builtin exec setsid xargs parallel eval busybox toybox watch
    script flock strace ltrace taskset chrt chroot unshare setarch time entr su runuser""")
"""Programs that run another, whose name is among their words."""
_RUNS_PACKAGES = words_of("uv uvx pipx poetry pdm hatch rye pipenv npx bunx npm pnpm yarn bun mise asdf conda")
_SUBCOMMANDS = words_of("run exec dlx tool x --")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_INLINE_CODE = _options({
    "sh bash zsh dash ksh ash fish": r"-[a-zA-Z]*c",
    "perl ruby": r"-[a-zA-Z0-9]*[eE].*",
    "python": r"-[a-zA-Z]*c.*|-",
    "node nodejs bun tsx lua osascript Rscript php deno": r"-[epr].*|-pe|--(?:eval|print)(?:=.*)?|eval|-",
})  # fmt: skip
"""Options that are followed by code, which may do anything with the files that it is given."""
_OPTION_VALUES = words_of("-W -X -o -O -r -I -M --require --rcfile --init-file")
_NO_OUTPUT = words_of("ssh find ps mount sudo set") | frozenset(_INLINE_CODE)
_OUTPUT = re.compile(r"-o.*|--out.*|--log-file.*|of=.*", re.DOTALL)
_KNOWN = (
    CHANGES | COPIES | frozenset(_ONLY_WITH) | frozenset(_INLINE_CODE) | words_of("git tar zip 7z 7za dd wget curl")
)

FILE, FOLDER = 1, 2
"""What a word changes: a file of that name, or also all that is in a folder of that name."""


def changed_words(name: str, rest: Sequence[str], guesses: Sequence[str] = ()) -> dict[str, int]:
    """The words of a command that name what it changes, each as a `FILE` or a `FOLDER`.

    `guesses` are what its unknown words may stand for: the last one may be its target.
    """
    if guesses:
        return changed_words(name, rest) | changed_words(name, [*rest, *guesses])
    name, rest = _looked_through(name, list(rest))
    operands = [word for word in rest if word[:1] != "-"]
    if name == "$(":
        return dict.fromkeys(operands, FILE)  # what this will run is not known
    changed = dict.fromkeys(_outputs(name, rest), FILE)
    if name in COPIES:
        return changed | _copied(name, rest)
    if name == "mv":
        return dict.fromkeys(operands[:-1], FOLDER) | _copied(name, rest)
    if name == "git":
        return changed | dict.fromkeys(_git(rest), FILE)
    if name in ("tar", "bsdtar", "zip", "7z", "7za"):
        return changed | dict.fromkeys(_archived(name, rest), FILE)
    if name in CHANGES:
        counts = not _has(_UNLESS, name, rest)
    else:
        counts = _has(_ONLY_WITH, name, rest) or _is_inline_code(name, rest)
    if counts:
        recursive = name in _RECURSIVE and any(map(_RECURSES.fullmatch, rest))
        for word in operands:
            below = name in REMOVES or (recursive and word.strip("./*") != "")  # `chmod -R u+w .` is ordinary
            changed[word] = FOLDER if below else FILE
    return changed


def _has(table: dict[str, str], name: str, rest: Iterable[str]) -> bool:
    options = table.get(name)
    return options is not None and any(map(re.compile(options).fullmatch, rest))


def _looked_through(name: str, rest: list[str]) -> tuple[str, list[str]]:
    """The program that runs in the end, past `sudo -u root`, `npx`, `busybox` and `python -m`."""
    for _ in range(4):
        if _PYTHON.fullmatch(name) and "-m" in rest[:4]:
            i = rest.index("-m")
            name, rest = (rest[i + 1], rest[i + 2 :]) if i + 1 < len(rest) else ("", [])
            continue
        if name not in _RUNS_OTHERS and name not in _RUNS_PACKAGES and name[:1] != "-":
            break
        for i, word in enumerate(rest):
            base = os.path.basename(word).partition("@")[0]
            if base in _KNOWN or _PYTHON.fullmatch(base):
                name, rest = base, rest[i + 1 :]
                break
            if name in _RUNS_PACKAGES and word[:1] != "-" and word not in _SUBCOMMANDS:
                return name, rest  # `uv pip install` installs packages
        else:
            break
    return name, rest


def _outputs(name: str, rest: list[str]) -> Iterable[str]:
    """The files that options name as output: `-o file`, `--output=file`, `of=file`."""
    if name in _NO_OUTPUT or _PYTHON.fullmatch(name):
        return
    for word, after in pairwise((*rest, "")):
        if _OUTPUT.fullmatch(word) or (name == "wget" and word[:2] == "-O"):
            yield word
            yield after
        elif name == "curl" and re.fullmatch(r"-[a-zA-Z]*O[a-zA-Z]*|--remote-name.*", word):
            yield from (url.partition("?")[0].rpartition("/")[2] for url in rest if "://" in url)


def _copied(name: str, rest: list[str]) -> dict[str, int]:
    """The destination of a copy, and every source as it is called in that folder."""
    operands: list[str] = []
    folder = ""
    for before, word in pairwise(("", *rest)):
        glued = _TARGET.fullmatch(word) if name in _TAKES_TARGET else None
        if name in _TAKES_TARGET and (before == "--target-directory" or _TARGET_NEXT.fullmatch(before)):
            folder = word
        elif glued is not None:
            folder = glued[1]
        elif word[:1] != "-" and before not in _TAKES_VALUE:
            operands.append(word)
    sources = operands if folder or len(operands) < 2 else operands[:-1]
    target = folder or (operands[-1] if len(operands) > 1 else ".")
    bases = {os.path.basename(source.rstrip("/").rpartition(":")[2]) for source in sources} - {"", ".", ".."}
    changed = {f"{target}/{base}": FILE for base in bases}
    changed[target] = FOLDER if any(word.startswith("--delete") for word in rest) else FILE
    options = [word for word in rest if word[:1] == "-"]
    taken = _TAKES_SOURCES.get(name)
    if taken is not None and (all if name == "ln" else any)(map(re.compile(taken).fullmatch, options)):
        changed |= dict.fromkeys(sources, FILE)
    return changed


_TAKES_TARGET = frozenset({"cp", "mv", "ln", "install"})
_BEFORE_TARGET = "-[a-fh-lnp-su-zA-RT-Z]*t"
"""`-vt`, but not `-gstaff`: what comes after the letters of the other options with a value is their value."""
_TARGET = re.compile(rf"(?:--target-directory=|{_BEFORE_TARGET})(.+)", re.DOTALL)
_TARGET_NEXT = re.compile(_BEFORE_TARGET)


def _git(rest: list[str]) -> Iterable[str]:
    """The paths that git changes in the work tree. Branches and messages are none."""
    words = [w for before, w in pairwise(("", *rest)) if before not in ("-C", "-c", "--work-tree")]
    command, *args = [*dropwhile(lambda word: word[:1] == "-", words)] or [""]
    paths = [
        word
        for before, word in pairwise(("", *args))
        if word[:1] != "-" and before not in ("-m", "--message", "-s", "--source", "-b", "-B", "--orphan", "-t")
    ]
    if command in ("rm", "mv", "clean", "checkout-index", "bundle"):
        return paths
    if command == "checkout":
        return () if {"-b", "-B", "--orphan", "-t", "--track", "--detach", "-d"} & set(args) else paths
    if command == "restore":
        return () if {"-S", "--staged"} & set(args) and not {"-W", "--worktree"} & set(args) else paths
    if command == "stash":
        return paths if not args or args[0] == "push" or args[0][:1] == "-" else ()
    if command == "config":
        return [word for before, word in pairwise(args) if before in ("-f", "--file")]
    return ()


def _archived(name: str, rest: list[str]) -> Iterable[str]:
    """The archive that a program writes, or all its words if it unpacks one or deletes what it packs."""
    operands = [word for word in rest if word[:1] != "-"]
    letters = _LETTERS_OF_TAR.match(rest[0].lstrip("-")) if rest else None
    first = letters[0] if letters is not None else ""
    if name == "zip":
        return operands if any(re.fullmatch(r"-[a-zA-Z]*m[a-zA-Z]*|--move", word) for word in rest) else operands[:1]
    if name in ("7z", "7za"):
        return operands if first in ("x", "e") or "-sdel" in rest else operands[1:2] if first not in ("l", "t") else ()
    short = "".join(word for word in rest if re.fullmatch(r"-[a-zA-Z]+", word)) + first
    if "--remove-files" in rest or {"--extract", "--get"} & set(rest) or ("x" in short and rest[0][:2] != "--"):
        return operands
    if "t" in short and rest[0][:2] != "--":
        return ()
    files = (after for word, after in pairwise(rest) if re.fullmatch(r"-?[a-zA-Z]*f|--file", word))
    glued = (found[1] for word in rest if (found := re.fullmatch(r"-(?!-)[a-eg-zA-Z]*f(.+)", word)))
    return [*files, *glued, *(word for word in rest if word.startswith("--file="))]


_LETTERS_OF_TAR = re.compile(r"[a-zA-Z]*?f|[a-zA-Z]*")
"""Those of `xf`, and of `-xfFILE`."""
_KEEPS = re.compile(r"-[a-zA-Z0-9]*[cklt].*|--(?:stdout|keep|list|test)")
_UNPACKS = re.compile(r"--(?:extract|get|remove-files|move|delete)|-[a-zA-Z]*[xm][a-zA-Z]*")


def packs_into(name: str, rest: list[str]) -> list[str] | None:
    """The archive that a program writes, if it only reads what it packs. None: it unpacks, or takes it away."""
    if name not in ("tar", "bsdtar", "zip"):
        return [] if any(_KEEPS.fullmatch(word[:100]) for word in rest) else None
    words = [f"-{rest[0].lstrip('-')}" if rest and name != "zip" and rest[0][:2] != "--" else "", *rest]
    return None if any(_UNPACKS.fullmatch(word[:100]) for word in words) else list(_archived(name, rest))


def _is_inline_code(name: str, rest: list[str]) -> bool:
    """Whether an interpreter is given code, not a script: `sh -c code`, `python3 - <<E`."""
    options = _INLINE_CODE.get("python" if _PYTHON.fullmatch(name) else name)
    if options is None:
        return False
    for before, word in pairwise(("", *rest)):
        if re.fullmatch(options, word):
            return True
        if word[:1] != "-" and before not in _OPTION_VALUES:
            return False
    return False


def search_of_find(rest: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Where `find` looks and for which names, if it deletes what it finds or has a program change it."""
    changes = "-delete" in rest
    for i, word in enumerate(rest[:100]):
        if word in ("-exec", "-execdir", "-ok", "-okdir") and i + 1 < len(rest):
            end = next((j for j in range(i, len(rest)) if rest[j] in (";", "+")), len(rest))
            name, args = os.path.basename(rest[i + 1]), rest[i + 2 : end]
            if _is_inline_code(name, list(args)):
                code = " ".join(args)
                changes |= bool(CHANGES & set(re.split(r"[\s;&|()]+", code)) or _WRITES_VARIABLE.search(code))
            else:
                changes |= any("{}" in changed for changed in changed_words(name, args))
    if not changes:
        return None
    return searched(rest)


def search_of_fd(rest: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """The same of `fd PATTERN FOLDER -x WORDS`. Its patterns are expressions, or globs with `-g`."""
    at = next((i for i, word in enumerate(rest) if word in ("-x", "-X", "--exec", "--exec-batch")), len(rest))
    name, *args = [os.path.basename(word) if i == 0 else word for i, word in enumerate(rest[at + 1 :])] or [""]
    code = " ".join(args)
    if _is_inline_code(name, args):
        changes = bool(CHANGES & set(re.split(r"[\s;&|()]+", code)) or _WRITES_VARIABLE.search(code))
    else:
        changes = any("{}" in changed for changed in changed_words(name, args if "{}" in code else [*args, "{}"]))
    if not changes:
        return None
    own, names = rest[:at], list[str]()
    operands = [word for before, word in pairwise(("", *own)) if word[:1] != "-" and before not in _VALUES_OF_FD]
    names += [f"*.{word}" for before, word in pairwise(("", *own)) if before in ("-e", "--extension")]
    if operands and operands[0] not in (".", ""):
        names.append(operands[0] if {"-g", "--glob"} & set(own) else f".*{operands[0]}.*")
    return operands[1:] or ["."], names or ["*"]


FINDS = frozenset({"find", "gfind", "bfs"})
_VALUES_OF_FD = words_of("-e --extension -t --type -d --max-depth --min-depth -E --exclude -S --size -j --threads -c")
_WRITES_VARIABLE = re.compile(
    r">\|?\s*[\"']?(?:\$\{?[\w@*]+\}?|\{\})[\"']?(?=[\s;&|]|$)|\b(?:sed|perl|ruby)\s[^;|&]{0,40}-\w*i"
)
"""Code that writes to a file which a variable names, or edits files in place."""


def searched(rest: Sequence[str]) -> tuple[list[str], list[str]]:
    """Where `find` looks and for which names."""
    start = next((i for i, word in enumerate(rest) if word[:1] in ("-", "!", "(")), len(rest))
    names = [
        _in_any_case(word) if before[:2] == "-i" else word
        for first, before, word in zip(("", "", *rest), ("", *rest), rest, strict=False)
        if before in ("-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex")
        and first not in ("!", "-not")
    ]
    return list(rest[:start]) or ["."], names


def _in_any_case(pattern: str) -> str:
    """A pattern of `find -iname` as one of `-name`."""
    return "".join(f"[{sign.lower()}{sign.upper()}]" if sign.isalpha() else sign for sign in pattern)


def finds(path: str, folder: str, names: Sequence[str]) -> bool:
    """Does a search from a folder for these names come upon a path? Each is a pattern, or maybe an expression."""
    parts = path[len(folder.rstrip("/")) + 1 :].split("/")
    below = [path, "/".join((".", *parts)), *parts]
    return any(matches(name, one) or _expresses(name, one) for name in names for one in below)


def _expresses(expression: str, path: str) -> bool:
    """May an expression of `find -regex` match a path? Those that would take long to try may."""
    if ".*" not in expression and "\\" not in expression:
        return False
    if len(expression) > 100 or COSTLY.search(expression):
        return True
    try:
        return re.fullmatch(expression, path) is not None
    except re.error:
        return True


COSTLY = re.compile(r"\)[*+?{]|(?:[*+{].*){5}")
"""Expressions that could take very long to try."""


# --- the files --------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[^\s\"'`,+()\[\]{}\\;:=<>|&#]+")
_PART = re.compile(r"[^\s\"'`,+()\[\]{}/\\;:=<>|&]+")
_OPENS = re.compile(
    r"(?i)(?:open|path|unlink|remove|rename|truncate|chmod|delete|write\w{0,20})"
    r"[(\s]{0,3}[\"']([^\"'/]{1,255})[\"']"
)
_PATCHES = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File:|\*\*\* Move to:|\+\+\+|---)[ \t]+(?:[ab]/)?(\S+)", re.MULTILINE
)


class GuardedFiles:
    """The files that the hooks in force name. They are few, so each question goes through all of them."""

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._paths = frozenset(fold(f) for p in paths for f in (os.path.abspath(p), os.path.realpath(p)))
        own = [path for path in self._paths if not path.startswith(SYSTEM_FOLDERS)]
        self._by_name: dict[str, list[str]] = {}
        for path in own:
            self._by_name.setdefault(os.path.basename(path), []).append(path)
        self._mentions = re.compile(rf"(?:{_any_of(own)})(?![\w.-])")
        folders = {os.path.dirname(path) for path in self._paths.difference(own)}
        self.near = rf"(?<![\w.])(?:{_any_of(folders)})(?![\w.-])"
        self.clue = rf"(?:(?<![\w.-])|(?<=\s-\w))(?:{_any_of(self._by_name)})(?![\w.-])|{self.near}"
        """What a command says that needs a closer look."""

    def __bool__(self) -> bool:
        return bool(self._paths)

    def has(self, path: str) -> bool:
        """Whether a path is one of these files, or a pattern that can be."""
        path = fold(path)
        if path in self._paths or not GLOB.search(path):
            return path in self._paths
        return any(_fits(path, place.split("/")) for place in self._paths)

    def any_below(self, folder: str) -> bool:
        """Whether one of these files is in a folder, or in one that a pattern can be."""
        folder = fold(folder.rstrip("/"))
        if not GLOB.search(folder):
            return any(place.startswith(f"{folder}/") for place in self._paths)
        depth = folder.count("/") + 1
        return any(_fits(folder, place.split("/")[:depth]) for place in self._paths if place.count("/") >= depth)

    def find(self, folder: str, names: Sequence[str]) -> str | None:
        """One of these files that a search from a folder comes upon, by its name or by a folder's on the way."""
        start = fold(folder.rstrip("/")) + "/"
        for path in self._paths:
            if path.startswith(start) or path == start[:-1]:
                parts = [*path[len(start) :].split("/"), os.path.basename(path)]
                if not names or any(matches(fold(name), part) for name in names for part in (*parts, path)):
                    return path
        return None

    def mentioned(self, code: str, folder: str, home: str) -> str | None:
        """A file that code mentions by its path, or by an unmistakable name: `run` and `test` mean much else.

        Each search ends at its first match or after a step: a `findall` in long code would block all other threads.
        """
        if not self._by_name:
            return None
        code = fold(code)
        if found := next(find_all(self._mentions, code), None):
            return found[0]
        parts: set[str] | None = None
        for token in (found[0] for found in _TOKEN.finditer(code)):
            paths = self._by_name.get(token.rpartition("/")[2]) if len(token) < 1000 else None
            if paths and ("/" in token or "." in token):
                if join(folder, token, home) in self._paths:
                    return paths[0]
                parts = {found[0] for found in _PART.finditer(code)} if parts is None else parts
                for path in paths:  # `Path.home() / "hooks" / "judge.py"`
                    if path.split("/")[-2] in parts:
                        return path
        for name in (found[1] for found in chain(find_all(_OPENS, code), _PATCHES.finditer(code))):
            if name.rpartition("/")[2] in self._by_name and (path := join(folder, name, home)) in self._paths:
                return path
        return None


def _any_of(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(texts))) or r"(?!)"


def _fits(pattern: str, parts: Sequence[str]) -> bool:
    patterns = pattern.split("/")
    return len(patterns) == len(parts) and all(map(takes, patterns[1:], parts[1:]))


def takes(pattern: str, name: str) -> bool:
    """Whether a part of a pattern can be a name. `*` takes none that begins with a dot, as in a shell."""
    if not GLOB.search(pattern):
        return matches(name, pattern) if "*" in name else pattern == name
    if name[0] == "." and pattern[0] != ".":
        return False
    return matches(pattern, name.replace("*", "")) or ("*" in name and matches(pattern, name.replace("*", ".x")))


def matches(pattern: str, name: str) -> bool:
    """Whether a shell's pattern may match a whole name. In doubt, it may.

    Each step back is to the last `*`, so that the time it takes is bounded by the product of both lengths.
    """
    parts = _parts(pattern)
    at = here = 0
    star, retry = -1, 0
    while here < len(name):
        if at < len(parts) and parts[at] is None:
            star, retry, at = at, here, at + 1
        elif at < len(parts) and (part := parts[at]) is not None and part(name[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            retry += 1
            at, here = star + 1, retry
        else:
            return False
    return all(part is None for part in parts[at:])


@lru_cache(256)
def _parts(pattern: str) -> tuple[Callable[[str], bool] | None, ...]:
    """What a pattern takes, one character each. None is `*`."""
    parts: list[Callable[[str], bool] | None] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "*":
            parts.append(None)
        elif pattern[at] == "?":
            parts.append(_anything)
        elif pattern[at] == "[" and (end := _closing(pattern, at)) is not None:
            chars = pattern[at + 1 : end]
            negated = chars[0] in "!^"
            parts.append(_one_of(chars[negated:], negated=negated))
            at = end
        else:
            parts.append(pattern[at].__eq__)
        at += 1
    return tuple(parts)


def _closing(pattern: str, at: int) -> int | None:
    """Where a bracket expression ends. None: it does not, and its bracket is a character like any other."""
    if "]" not in pattern[at:]:
        return None
    at += 2 if pattern[at + 1 : at + 2] in ("!", "^") else 1
    at += pattern[at : at + 1] == "]"  # the first one stands for itself
    while at < len(pattern) and pattern[at] != "]":
        sign = pattern[at + 1 : at + 2] if pattern[at] == "[" else ""
        end = pattern.find(f"{sign}]", at + 2, at + _CLASS) if sign and sign in ":.=" else -1
        at = at + 1 if end < 0 else end + 2
    return at if at < len(pattern) else None


_CLASS = 40
"""Characters of a class such as `[:alpha:]`, at most."""


def _one_of(chars: str, *, negated: bool) -> Callable[[str], bool]:
    """What a bracket expression takes. Classes such as `[:alpha:]` depend on the locale, so one takes anything."""
    if re.search(r"\[[:.=]", chars):
        return _anything
    ranges, at = list[tuple[str, str]](), 0
    while at < len(chars):
        last = at + 2 if chars[at + 1 : at + 2] == "-" and at + 2 < len(chars) else at
        ranges.append((chars[at], chars[last]))
        at = last + 1

    def taken(char: str) -> bool:
        if negated:
            return not any(first <= char <= last for first, last in ranges)
        # In many locales, a range of small letters has capital ones in it, and the other way round.
        return any(first <= form <= last for form in {char, char.lower(), char.upper()} for first, last in ranges)

    return taken


def _anything(char: str) -> bool:
    return True


def fold(path: str) -> str:
    """A path as the file system compares it."""
    return path.lower() if _FLAGS & re.IGNORECASE else path
