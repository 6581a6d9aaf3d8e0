"""Guarding ourselves: a hook that denies an agent's changes to what judges it.

That is fairlead's and the hosts' hook configuration, fairlead's state and socket, and its processes. It is a
fence, not a wall: it reads what a call says, so a program that is written first and then run gets around it, as
does anybody who runs as the same user. Only other users and a sandbox keep those out.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from stat import S_ISLNK
from typing import Any

from .commandline import LONGEST, Command, Line, TooMuch, Work, join
from .guarded_files import (
    FILE,
    FOLDER,
    GLOB,
    GuardedFiles,
    changed_words,
    fold,
    looped_words,
    search_of_find,
    takes,
    uses_loop,
    with_input,
)
from .hook import Hook
from .places import fixed_folders
from .threads import elsewhere, threads
from .tools import is_named
from .verdict import Verdict, deny

# --- what is protected ------------------------------------------------------------------------------

PROTECTED: dict[str, tuple[str, ...]] = {
    "fairlead": ("fairlead.toml", ".config/fairlead/**", "/etc/fairlead/**", "/usr/local/lib/fairlead/**"),
    "Claude Code": (
        ".claude/settings*.json", ".claude/hooks/**", ".claude/plugins/**", ".claude/remote-settings.json*",
        ".claude/policy-limits.json*", "/etc/claude-code/**",
        "/Library/Application Support/ClaudeCode/**",
    ),
    "Codex": (".codex/**", "/etc/codex/**"),
    "Gemini CLI": (
        ".gemini/settings.json", ".gemini/hooks/**", ".gemini/extensions/**", ".gemini/trustedFolders.json",
        ".gemini/.env", "/etc/gemini-cli/**", "/Library/Application Support/GeminiCli/**",
    ),
    "Qwen Code": (
        ".qwen/settings.json", ".qwen/hooks/**", ".qwen/extensions/**", ".qwen/trustedFolders.json", ".qwen/.env",
        "/etc/qwen-code/**", "/Library/Application Support/QwenCode/**",
    ),
    "Copilot CLI": (
        ".github/hooks/**", ".github/copilot/settings*.json", ".copilot/hooks/**", ".copilot/config.json",
        ".copilot/settings.json", ".copilot/installed-plugins/**", "/etc/github-copilot/**",
    ),
    "Factory Droid": (
        ".factory/settings*.json", ".factory/hooks.json", ".factory/hooks/**", ".factory/plugins/**",
        ".factory/cache/org-managed-settings.json*", "/etc/factory/**",
    ),
    "Cline": (
        ".cline/hooks/**", ".clinerules/hooks/**", "~/Documents/Cline/Hooks/**", "~/Documents/Cline/Rules/Hooks/**",
    ),
    "OpenCode": (
        ".opencode/plugin/**", ".opencode/plugins/**", ".opencode/opencode.json*", "opencode.json", "opencode.jsonc",
        ".config/opencode/plugin/**", ".config/opencode/plugins/**", ".config/opencode/*.json*",
    ),
    "Cursor": (
        ".cursor/hooks.json", ".cursor/hooks/**", "/etc/cursor/hooks.json",
        "/Library/Application Support/Cursor/hooks.json",
    ),
    "Windsurf": (
        ".windsurf/hooks.json", ".codeium/windsurf*/hooks.json", "/etc/windsurf/hooks.json",
        "/Library/Application Support/Windsurf/hooks.json",
    ),
    "Kiro": (".kiro/agents/**", ".kiro/hooks/**", ".kiro/settings/**"),
    "goose": (".agents/plugins/**", ".config/goose/config.yaml"),
}  # fmt: skip
"""Whose configuration it is, and where: in any folder, so of users and of projects. `/**` is a folder and all below."""

MOVED = {
    "CLAUDE_CONFIG_DIR": ".claude", "CODEX_HOME": ".codex", "COPILOT_HOME": ".copilot", "XDG_CONFIG_HOME": ".config",
    "OPENCODE_CONFIG_DIR": ".opencode", "OPENCODE_CONFIG": "", "GEMINI_CLI_SYSTEM_SETTINGS_PATH": "",
    "QWEN_CODE_SYSTEM_SETTINGS_PATH": "", "CLINE_DIR": ".cline", "QWEN_HOME": ".qwen", "GEMINI_CLI_HOME": "",
    "FACTORY_HOME_OVERRIDE": "",
}  # fmt: skip
"""Variables that put one of these folders elsewhere, or name a file of settings."""

SHARED = frozenset({".agents", ".clinerules", ".config", ".github"})
"""Folders that hold much else: only taking one away counts, if there is something in it."""

AGENTS = frozenset({
    "claude", "cline", "codex", "copilot", "cursor-agent", "droid", "gemini", "goose", "kiro-cli", "opencode", "qwen",
})  # fmt: skip
HOOKS_OFF = re.compile(
    r"disableAllHooks|--bare\b|--setting-sources|--disable[ =](?:codex_)?hooks|features\.(?:codex_)?hooks"
    rf"|\b(?:HOME|CLAUDE_CODE_SIMPLE|{'|'.join(MOVED)})="
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# --- what only reads ----------------------------------------------------------------------------------

READS = _words("""
    cat ls head tail less more bat grep egrep fgrep rg ag ack stat wc diff cmp comm file jq md5sum sha1sum sha256sum
    sha512sum shasum cksum b2sum realpath readlink basename dirname test [ [[ echo printf true false : pwd which type
    whereis du df nl od hexdump strings cut fold rev tac tr paste column cd pushd popd pgrep pidof ps export declare
    local readonly typeset unset find fd sort tree sed awk gawk mawk yq xxd""")
UNLESS = {
    name: re.compile(rf"--output.*|{words}")
    for names, words in {
        "find": r"-delete|-exec.*|-ok.*|-fprint.*|-fls",
        "fd": r"-[xX]|--exec.*",
        "sort tree less": r"-[oO].*",
        "sed yq": r"-[a-zA-Z]*i.*|--in-?place.*",
        "awk gawk mawk": r"-i|--include.*|inplace",
        "xxd": r"-r.*",
        "rg": r"--pre.*",
    }.items()
    for name in names.split()
}
"""With one of these words, they write or run something."""
SCRIPTED = frozenset({"sed", "awk", "gawk", "mawk"})
_OUTPUT = re.compile(r"--output.*")
GIT_READS = _words("""
    add annotate blame branch cat-file check-ignore commit describe diff fetch for-each-ref grep log ls-files
    ls-remote ls-tree merge-base notes push reflog remote rev-list rev-parse shortlog show show-ref status tag""")
OWN_READS = _words(
    "check completion demo doctor events export help hooks init log run schema show stats tail test verify"
)
TAKES_AWAY = frozenset({"rm", "mv", "find", "fd", "shred", "unlink", "rmdir", "trash"})
COPIES = frozenset({"cp", "rsync", "chmod", "chown", "chgrp", "chattr", "setfacl"})
"""What changes files that it need not name."""
_CHOOSES = _words("-name -iname -path -ipath -wholename -regex -iregex")
KILLS = frozenset({"kill", "pkill", "killall", "skill", "systemctl", "launchctl", "service", "fuser"})
_ONLY_ASKS = frozenset({"status", "is-active", "is-enabled", "show", "list-units", "list", "print", "-l", "-L"})
RUNS = frozenset({"uv", "uvx", "pipx", "poetry", "pdm", "hatch", "rye", "sudo", "doas", "env", "nohup", "timeout"})
INSTALLERS = _words("pip pip2 pip3 pipx uv poetry pdm hatch rye pipenv conda mamba micromamba easy_install")
REMOVES_PACKAGES = _words("uninstall remove rm uninject")
_OWN_PACKAGE = re.compile(r"fairlead(?![\w./-])")
INSTALLS_PACKAGES = _words("install add upgrade update reinstall inject")
_OWN_REQUIREMENT = re.compile(
    r"(?:^|[/=@+#,\s])fairlead(?=/*$|[\[=<>!~;@#?&,\s]|\.git(?:$|[@#?/])|-\d[^/]*$)", re.IGNORECASE
)
"""What stands for fairlead where packages are installed: its name, with a version or extras, an address, an archive."""
_INTO_FOLDER = _words("-t --target --prefix --root -d --dest --src")
"""Options of package managers whose values are folders."""
SHELLS = _words("sh bash zsh dash ksh ash fish eval su trap env xargs parallel find fd script tmux screen ssh watch")
"""What runs a command that it is given as one word."""
TAKES_INPUT = (SHELLS - {"env", "find", "fd"}) | {"read", "mapfile", "readarray"}
CODE = re.compile(
    r"(?:python|pypy|ipython|node|nodejs|deno|bun|tsx|perl|ruby|php|lua|osascript|Rscript|tclsh|expect|ed|ex|n?vim?|emacs"
    r"|patch|apply_?patch|sqlite3|sed|[gm]?awk)[\d.]*"
)
"""What runs code that it is given, or follows a patch."""

LIMIT = 64 << 10
"""Characters of a command that is taken apart. In a longer one, any mention counts."""
_STEP = 64 << 10
"""Characters that are searched in one go."""
WAY_OUT = "an agent does not change what judges it; {} it yourself, in a terminal of your own"

# --- judging --------------------------------------------------------------------------------------------

_BRACES = re.compile(r"\{([^{}]*)\}")
_PART = re.compile(r"[=:,@]")
_SYNTAX = re.compile(r"[\s;&|<>()`$]")
_BETWEEN = re.compile(r"[\s\"'`,+()\[\]{}/\\;:=<>|&]+")
_QUICK_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s;&|<>()=:,@"'])+""")
_FOLDER_ARGS = frozenset({"workdir", "cwd", "dir_path", "directory", "working_directory", "workingDirectory"})
_IS_COMMAND = re.compile(r"(?i)(?:cmd|command|shell|exec|line|argv)[^ ]*$")
_IS_PATH = re.compile(r"(?i)(?:path|file|uri|url|dest|target|source|src)[^ ]*$")
_PATH_LIKE = re.compile(r"[./]")
_SAYS_WHAT_TO_DO = re.compile(r"(?i)cmd|command|script|code|shell|exec|arg|line|input|patch|diff")
_FLAGS = re.DOTALL | (re.IGNORECASE if sys.platform == "darwin" else 0)


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
        for path in (*(f"{folder}/**" for folder in own), *_package(), *map(str, configs)):
            for form in {os.path.abspath(path), os.path.realpath(path)}:
                self._kept[form] = "fairlead"
        for folder in folders:
            for form in {os.path.abspath(folder), os.path.realpath(folder)}:
                self._kept.setdefault(f"{form}/**", "a hook in force")
        self._files = GuardedFiles(files)
        self._rooted = {place.removesuffix("/**"): who for place, who in self._kept.items() if place[0] == "/"}
        self._around = [(fold(place), whose) for place, whose in self._rooted.items()]
        self._rules = (_matcher(self._kept), _matcher(self._kept | self._holders))
        self._texts = _mentioner(self._kept, self._holders, home)
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
        programs = "|".join(map(re.escape, sorted(AGENTS | KILLS | TAKES_AWAY | (COPIES if self._files else set()))))
        return (
            re.compile(rf"{parts}|[*?\[{{$`~\\]|\b(?:{programs})\b|{self._files.clue}", _FLAGS),
            re.compile(rf"{parts}|{self._files.near}", _FLAGS),
        )

    def __call__(self, step: Any) -> Any:
        return self._verdict(step) if elsewhere.get() is None else threads.run(self._verdict, step)

    def _verdict(self, step: Any) -> Verdict | None:
        try:
            problem = self._judge(step)
        except Exception as error:  # nothing an agent sends may get it past this hook, or break it
            problem = f"this call could not be read ({type(error).__name__}), so it is not made"
        return None if problem is None else deny(problem)

    def _judge(self, step: Any) -> str | None:
        kind, target, safety = step.kind, step.target, step.safety
        folder = step.cwd if isinstance(step.cwd, str) and step.cwd[:1] == "/" else _here()
        if kind == "shell":
            for key in step.args if len(step.args) > 1 else ():
                if key in _FOLDER_ARGS and isinstance(step.args[key], str):
                    folder = join(folder, step.args[key], self._variables["HOME"])
            command = str(target.command or "")
            if (problem := self._shell(command, folder)) or is_named(step.tool):
                return problem
            return self._arguments({key: v for key, v in step.args.items() if not _is_in(command, v)}, folder)
        if kind in ("read", "search", "fetch", "agent") and safety in ("read_only", "network"):
            return None
        if kind in ("mcp", "unknown", "fetch"):
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
        self, text: str, folder: str, strictness: int, work: Work | None = None, changed: int = FILE
    ) -> str | None:
        """Why a path must be left alone: it is protected (0), a folder for just that (1), or around it (2).

        A file that a hook names counts only where the path is `changed`: an agent may run it.
        """
        text = text.replace("\0", "")
        first = text.partition("/")[0]
        if work and " " in first and first[0] not in "~." and not _exists(f"{folder}/{first}"):
            return None  # a sentence
        path = join(folder, text, self._variables["HOME"])
        if len(path) > LONGEST:  # which no system takes, so any mention counts
            return self._mention(path)
        whose = self._whose(path, strictness, work, changed)
        real = self._last[1]  # no part of that is a link
        start = len(real) + 1 if path.startswith(f"{real}/") else 1
        if whose is None and _has_link(path, start):
            path = _real(f"{folder}/{text}" if text[:1] not in ("/", "~") else path)
            whose = self._whose(path, strictness, work, changed)
        return None if whose is None else f"{path[-200:]} belongs to {whose}: {WAY_OUT.format('edit')}"

    def _whose(self, path: str, strictness: int, work: Work | None, changed: int) -> str | None:
        if found := self._rules[min(strictness, 1)](path):
            return found
        pattern = work is not None and bool(GLOB.search(path))
        if work and pattern:
            work.spend(20, len(path))
        if changed and (self._files.has(path) or (changed == FOLDER and self._files.any_below(path))):
            return "a hook in force"
        if pattern:
            return self._could_be(path, strictness)
        if strictness < 2:
            return None
        below = fold(path.rstrip("/") + "/")
        for place, whose in self._around:
            if place.startswith(below):
                return whose
        for holder, rest, whose in self._shared:
            if path.endswith(holder) and _exists(f"{path}/{rest}"):
                return whose
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
        return parts[-1].strip("*?") != "" if GLOB.search(folder) else _exists(f"{folder}/{names[0]}")

    def _word(self, word: str, folders: list[str], strictness: int, work: Work, changed: int = FILE) -> str | None:
        """A word of a command, and its parts: `--output=path`, `of=path`, `path:path`, `-opath`, `{path,path}`."""
        for text in _alternatives(word, work) if "{" in word else (word,):
            parts = [text, *_PART.split(text)] if _PART.search(text) else [text]
            if text[:1] == "-" and len(text) > 2:
                parts.append(text[2:])
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
        """Of a tool that nobody knows: paths anywhere, and mentions in what looks like a command or a patch."""
        left: list[tuple[str, Any]] = [("", args)]
        work = Work(self._variables)
        while left:
            key, value = left.pop()
            if isinstance(value, Mapping):
                left += [(f"{key} {name}"[-100:], item) for name, item in value.items()]
            elif isinstance(value, (list, tuple, set, frozenset)):
                left += [(key, item) for item in value]
                if self._files and _IS_COMMAND.search(key) and all(isinstance(item, str) for item in value):
                    left.append((key, shlex.join(value)))
            elif isinstance(value, str):
                says, is_command = bool(_SAYS_WHAT_TO_DO.search(key)), bool(_IS_COMMAND.search(key))
                is_path = not is_command and bool(_PATH_LIKE.search(value) or _IS_PATH.search(key))
                try:
                    problem = self._word(value, [folder], 1, work, int(is_path)) if "\n" not in value else None
                except TooMuch:
                    problem, says = None, True
                if not problem and says:
                    problem = self._mention(value)
                if not problem and says and self._files:
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
                work = Work({**self._variables, "PWD": where})
                if problem := self._line(command, where, work, 0):
                    return problem
        except TooMuch:
            return self._code(command, folder)
        return None

    def _look_at(self, folder: str) -> tuple[str, bool]:
        """Where a folder really is, and whether that is close to what is protected. Most steps have the last one's."""
        if self._last[0] != folder:
            real = _real(folder)
            self._last = (folder, real, bool(self._near.search(folder) or self._near.search(real)))
        return self._last[1:]

    def _leads_elsewhere(self, command: str, folder: str) -> bool:
        """Whether a word of a command that says nothing remarkable is a link, or written so that it cannot be told."""
        for word in _QUICK_WORD.findall(command):
            if '"' in word or "'" in word:
                word = word[1:-1] if word[0] in "\"'" else word
                if '"' in word or "'" in word:
                    return True
            if word[:1] == "/":
                linked = _has_link(word, 1)
            else:
                linked = word[:1] not in ("-", "") and _has_link(f"{folder}/{word}", len(folder) + 1)
            if linked:
                return True
        return False

    def _line(self, text: str, folder: str, work: Work, depth: int) -> str | None:
        line = Line(text, folder, work, depth)
        looped = looped_words(line) if self._files else frozenset[str]()
        for pipeline in line.pipelines:
            if problem := self._pipeline(pipeline, work, depth, looped):
                return problem
        return None if line.sound else self._code(text, folder)

    def _pipeline(self, pipeline: list[Command], work: Work, depth: int, looped: frozenset[str]) -> str | None:
        takes_input = None
        for command in pipeline:
            for word in (*command.outputs, *(looped if uses_loop(command.outputs, looped) else ())):
                if problem := self._word(word, [command.folder], 1, work):
                    return problem
            name, rest = command.program()
            if name and not _only_reads(name, rest, partial(self._code, folder=command.folder)):
                bare = CODE.fullmatch(name) and all(word[:1] == "-" for word in rest)
                if bare or TAKES_INPUT & set(map(os.path.basename, command.words)):
                    takes_input = command
                words = command.words + command.given
                changed = self._changed(name, rest + command.given, looped)
                if problem := self._command(command, name, words, changed, work, depth):
                    return problem
        if takes_input is None or len(pipeline) < 2:
            return None
        name, rest = takes_input.program()
        words = [word for command in pipeline for word in (*command.words, *command.given)]
        others = (command for command in pipeline if command is not takes_input)
        piped = [word for command in others for word in (*command.words, *command.given)]
        changed = self._changed(name, with_input(rest, piped), looped)
        return self._command(takes_input, name, words, changed, work, depth)

    def _changed(self, name: str, rest: list[str], looped: frozenset[str]) -> dict[str, int]:
        """The words of a command that name what it changes, if there are files that must not be."""
        changed = changed_words(name, rest) if self._files else {}
        return changed | dict.fromkeys(looped, FILE) if uses_loop(changed, looped) else changed

    def _command(
        self, command: Command, name: str, words: list[str], changed: dict[str, int], work: Work, depth: int
    ) -> str | None:
        """A command that may write. All that it names counts, or of the files that hooks name, what is `changed`."""
        names = set(map(os.path.basename, words))
        moved = any(work.variables.get(key) != self._variables.get(key) for key in (*MOVED, "HOME"))
        if problem := _controls(name, words, names, moved):
            return problem
        folders = self._folders(command)
        strictness = 2 if names & TAKES_AWAY and not names & _CHOOSES else 0 if name == "mkdir" else 1
        into = len(words) - 1 if name == "mv" else -1  # from there it takes nothing away
        for i, word in enumerate(words):
            level = 1 if i == into else strictness
            if word != name and (problem := self._word(word, folders, level, work, changed.pop(word, 0))):
                return problem
        for word, what in changed.items():
            if problem := self._word(word, folders, 1, work, what):
                return problem
        if name == "find" and (problem := self._find(command)):
            return problem
        texts = [text for text in (*words, command.input) if name not in SCRIPTED or _SYNTAX.search(text)]
        code = texts if any(map(CODE.fullmatch, names)) or (name == "git" and names & {"apply", "am"}) else ()
        for text in code:
            if problem := (self._code(text, folders[-1]) if _SYNTAX.search(text) else self._mention(text)):
                return problem
        if names & SHELLS:
            inner = (text for text in texts if _SYNTAX.search(text))
            return next((p for text in inner if (p := self._line(text, folders[-1], work, depth + 1))), None)
        return None

    def _find(self, command: Command) -> str | None:
        """Whether `find` comes upon a file that a hook names, and changes what it finds."""
        search = search_of_find(command.program()[1]) if self._files else None
        for start in search[0] if search else ():
            folder = join(command.folder, start, self._variables["HOME"])
            if search and (found := self._files.find(folder, search[1])):
                return f"{found[-200:]} belongs to a hook in force: {WAY_OUT.format('edit')}"
        return None

    def _folders(self, command: Command) -> list[str]:
        """Where a command's words may be relative to: `git -C`, `env -C`, `make -C`."""
        folders = [command.folder]
        for option, word in zip(command.words, (*command.words[1:], ""), strict=True):
            if option in ("-C", "--chdir", "--directory", "--cwd", "--work-tree") and len(folders) < 8:
                folders.append(join(folders[-1], word, self._variables["HOME"]))
            elif (
                option[:1] == "-"
                and len(folders) < 8
                and (found := re.fullmatch(r"(?:-C|--(?:chdir|directory|cwd|work-tree)=)(.+)", option))
            ):
                folders.append(join(folders[-1], found[1], self._variables["HOME"]))
        return folders


def _package() -> Iterator[str]:
    """Where fairlead itself is installed, and what says so to Python and to pip."""
    package, site = Path(__file__).parent, Path(sysconfig.get_path("purelib"))
    yield f"{package}/**"
    for path in (*site.glob("fairlead-*.dist-info"), *package.parent.glob("fairlead-*.dist-info")):
        yield f"{path}/**"
    yield from map(str, site.glob("__editable__.fairlead*.pth"))


def _only_reads(name: str, rest: list[str], mentions: Callable[[str], str | None]) -> bool:
    if name == "git":
        words = (w for before, w in zip(("", *rest), rest, strict=False) if before not in ("-C", "-c") and w[:1] != "-")
        return next(words, "status") in GIT_READS and not any(map(_OUTPUT.fullmatch, rest))
    if name == "fairlead":
        return _own_command(rest) is None
    if name not in READS or any(map(UNLESS.get(name, _OUTPUT).fullmatch, rest)):
        return False
    # A script can write, too. Its files are words of their own.
    return name not in SCRIPTED or not any(_SYNTAX.search(word) and mentions(word) for word in rest)


def _own_command(rest: list[str]) -> str | None:
    """The command of fairlead's that changes something, if it is one."""
    words = [word for word in rest if word[:1] != "-"][:2]
    if not words or words[0] in OWN_READS or (words[0] == "approvals" and words[1:] in ([], ["list"], ["show"])):
        return None
    return words[0]


def _controls(name: str, words: list[str], names: set[str], moved: bool) -> str | None:
    """Whether a command aims at fairlead's processes, runs its controls, or starts an agent without its hooks."""
    i = next((i for i, word in enumerate(words) if os.path.basename(word).partition(".")[0] == "fairlead"), -1)
    runs = name == "fairlead" or names & RUNS or (CODE.fullmatch(name) and (i == 1 or words[max(i - 1, 0)] == "-m"))
    if i >= 0 and runs and (command := _own_command(words[i + 1 :])):
        return f"`fairlead {command[:50]}` changes what judges this agent: {WAY_OUT.format('run')}"
    if names & REMOVES_PACKAGES and names & INSTALLERS and any(map(_OWN_PACKAGE.match, words)):
        return f"this takes fairlead away: {WAY_OUT.format('do')}"
    if names & INSTALLERS and any(map(_OWN_REQUIREMENT.search, _installed(words))):
        return f"this installs another fairlead in place of this one: {WAY_OUT.format('do')}"
    kills = names & KILLS and not names & _ONLY_ASKS
    if kills and ("fairlead" in " ".join(words).lower() or ("kill" in names and str(os.getpid()) in words)):
        return f"this would end fairlead: {WAY_OUT.format('do')}"
    if names & AGENTS and (moved or HOOKS_OFF.search(" ".join(words))):
        return f"this starts an agent without its hooks: {WAY_OUT.format('start')}"
    return None


def _installed(words: list[str]) -> list[str]:
    """What a package manager is told to install: nothing, if it is told to do something else."""
    at = next(i for i, word in enumerate(words) if os.path.basename(word) in INSTALLERS)
    rest = words[at + 1 :]
    while rest and (rest[0][:1] == "-" or rest[0] in ("pip", "tool")):
        rest = rest[1:]
    if not rest or rest[0] not in INSTALLS_PACKAGES:
        return []
    return [word for before, word in pairwise(rest) if before not in _INTO_FOLDER]


def _matcher(places: Mapping[str, str]) -> Callable[[str], str | None]:
    """Whose a path is, by one regular expression for all places."""
    rooted = [(_regex(place), whose) for place, whose in places.items() if place[0] == "/"]
    others = [(_regex(place), whose) for place, whose in places.items() if place[0] != "/"]
    from_root = re.compile(rf"(?:{'|'.join(f'({regex})' for regex, _ in rooted)})\Z", _FLAGS)
    anywhere = re.compile(rf"/(?:{'|'.join(f'({regex})' for regex, _ in others)})\Z", _FLAGS)

    def match(path: str) -> str | None:
        if found := anywhere.search(path):
            return others[(found.lastindex or 1) - 1][1]
        if found := from_root.match(path):
            return rooted[(found.lastindex or 1) - 1][1]
        return None

    return match


def _mentioner(places: Iterable[str], holders: Iterable[str], home: str) -> Callable[[str], str | None]:
    """What a text names, also where code puts a path together: `".claude" / "settings.json"`."""
    names = {place.lstrip("/") for place in places}
    names |= {place.removeprefix(f"{home}/") for place in places if place.startswith(f"{home}/")}
    paths = "|".join(_regex(_BETWEEN.sub("/", name).removesuffix("/**")) for name in sorted(names))
    named = re.compile(rf"/({paths})(?=/|\Z)", _FLAGS)
    folders = "|".join(_regex(holder) for holder in sorted(holders))
    alone = re.compile(rf"(?:\A|[/\"'\s(])({folders})/?(?=[\"'\s)]|\Z)", _FLAGS)

    def mention(text: str) -> str | None:
        pieces = (_BETWEEN.sub("/", text[start : start + _STEP]) for start in range(0, len(text), _STEP))
        found = _search(named, "/" + "".join(pieces).replace("//", "/")) or _search(alone, text)
        return None if found is None else found[1][-200:]

    return mention


def _search(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """`pattern.search(text)`, step by step: a long search keeps all other threads waiting."""
    for start in range(0, len(text), _STEP):
        end = start + _STEP + LONGEST  # what a name can be long, so that it is whole in this step or the next
        found = pattern.search(text, start, end)
        if found is not None and (found.end() < end or end >= len(text)):
            return found
    return None


def _regex(place: str) -> str:
    folder = place.removesuffix("/**")
    return re.escape(folder).replace(r"\*", "[^/]*") + ("(?:/.*)?" if folder != place else "")


def _alternatives(word: str, work: Work) -> list[str]:
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


def _has_link(path: str, start: int) -> bool:
    """Whether a part of a path is a link, from a position on."""
    while True:
        end = path.find("/", start)
        try:
            if S_ISLNK(os.lstat(path if end < 0 else path[:end]).st_mode):
                return True
        except (OSError, ValueError):
            return False  # nor is anything below it
        if end < 0:
            return False
        start = end + 1


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def _is_in(command: str, value: Any) -> bool:
    """Whether an argument is all in a command that was looked at."""
    words = value if isinstance(value, (list, tuple)) else (value,)
    return all(isinstance(word, str) and word in command for word in words)


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def moved_settings() -> dict[str, list[str]]:
    """Where variables have put the settings of agent CLIs: as recorded at each installation, and here and now.

    The daemon has none of the CLIs' variables, so it goes by the record.
    """
    folders = fixed_folders()
    found = {} if folders is None else {name: list(values) for name, values in folders.moved.items() if name in MOVED}
    for name in MOVED:
        value = os.path.expanduser(os.environ.get(name, ""))
        if os.path.isabs(value) and value not in found.get(name, ()):
            found.setdefault(name, []).append(value)
    return found


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
