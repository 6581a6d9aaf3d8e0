"""What programs do to protected files: which only read, which run code, and which switch hooks off."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from itertools import pairwise, takewhile

from ..shell import Command
from ..shell.shells import SHELLS
from ..shell.syntax import DECLARES
from ..shell.words import unknown_of
from ..shell.wrappers import WRAPPERS
from .guarded_awk import writes_unknown
from .guarded_files import COSTLY, packs_into, search_of_fd, words_of
from .protected_paths import HOOKS_OFF_VARIABLES, MOVED

AGENTS = frozenset({
    "claude", "cline", "codex", "copilot", "cursor-agent", "droid", "gemini", "goose", "kiro-cli", "opencode", "qwen",
})  # fmt: skip
_AGENT_PACKAGE = re.compile(
    r"(?:@anthropic-ai/claude-code|@openai/codex|@google/gemini-cli|@qwen-code/qwen-code|@github/copilot|opencode-ai)"
    r"(?:@.*)?"
)
"""The same, as packages: `npx @anthropic-ai/claude-code`."""
_OWN_PART = frozenset({"fairlead", "hooks", "codex_hooks"})
_SWITCHES_OFF = frozenset({"uninstall", "remove", "rm", "disable"})
HOOKS_OFF = re.compile(
    r"disableAllHooks|--bare\b|--safe-mode\b|--pure\b|--setting-sources"
    r"|--disable[ =](?:codex_)?hooks|features\.(?:codex_)?hooks"
    rf"|\b(?:HOME|{'|'.join((*HOOKS_OFF_VARIABLES, *MOVED))})="
)


READS = words_of("""
    cat ls head tail less more bat grep egrep fgrep rg ag ack stat wc diff cmp comm file jq md5sum sha1sum sha256sum
    sha512sum shasum cksum b2sum realpath readlink basename dirname test [ [[ echo printf true false : pwd which type
    whereis du df nl od hexdump strings cut fold rev tac tr paste column cd pushd popd pgrep pidof ps export declare
    date local readonly typeset unset find fd fdfind sort tree sed awk gawk mawk yq tomlq base64 gh glab open
    join pr iconv expand unexpand fmt batcat hd sum b3sum crc32 tokei cloc scc glow colordiff difft eza exa lsd
    xdg-open code cursor subl kubectl dir findstr get-content gc select-string sls test-path get-item gi get-childitem
    gci get-filehash format-hex get-acl resolve-path measure-object convertfrom-json out-string""")
UNLESS = {
    name: re.compile(rf"--o(?:ut?|utpu?|utput.*)?(?:=.*)?|{words}", re.DOTALL)
    for names, words in {
        "find": r"-delete|-exec.*|-ok.*|-fprint.*|-fls",
        "fd fdfind": r"-[xX]|--exec.*",
        "sort tree less": r"-[a-zA-Z]*[oO].*",
        "iconv": r"-[a-z]*o.*",
        "sed yq tomlq": r"-[a-zA-Z]*i.*|--i.*",
        "awk gawk mawk": r"-[il].*|--[il].*|inplace",
        "rg": r"--pre.*",
        "cloc": r"-{1,2}(?:o|rep|ig|cou|fou|cat|w|sq|diff-al|sa).*",
        "scc": r"-[a-zA-Z]*o.*|--format-m.*",
        "base64": r"-[a-zA-Z]*o.*|--output.*",
        "kubectl": r"cp|edit|--(?:output-dir|cache-dir|profile|kubeconfig|log-f).*",
        "gh glab": r"-O.*|-D.*|--output.*|--dir.*|clone|download|checkout",
    }.items()
    for name in names.split()
}
"""Words with which these programs write or run something. A long option may be shortened."""
LINTERS = words_of("""
    prettier gofmt goimports gofumpt shfmt biome eslint stylelint rubocop markdownlint ruff taplo black isort""")
"""Programs that only read what they are told to check."""
_CHECKS = words_of("check lint --check -c -l --list-different -d --diff -q --quiet --no-cache")
SCRIPTED = frozenset({"sed", "awk", "gawk", "mawk"})
_OUTPUT = re.compile(r"--o(?:ut?|utp|utpu|utput.*)?(?:=.*)?", re.DOTALL)
_SED_FILE = re.compile(r"[wW]\s*([^\s;}]+)")
_OUTPUT_OPTION = re.compile(r"(?:-[a-zA-Z]*[oO]|--o[a-z-]*=?)(.*)", re.DOTALL)
_UPLOADS = re.compile(r"(?:-[dF]|--[a-z-]+=)?(?:\w+=)?[@<]")
"""`curl -d @FILE`, `curl -F name=@FILE`"""
_SENDS_FILE = frozenset({"-T", "--upload-file", "--cert", "--cacert", "--key", "-E"})
_CONTAINER_OUTPUT = re.compile(r"(?:-o|--output|--iidfile|--cidfile|--metadata-file|--cache-to)(?:=(.*))?", re.DOTALL)
_VOLUME = re.compile(r"(?:-v|--volume|--mount)(?:=(.*))?", re.DOTALL)
CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
PACKERS = frozenset({"tar", "bsdtar", "zip", "gzip", "xz", "bzip2", "zstd"})
ARCHIVERS = PACKERS | {"unzip", "7z", "cpio", "pax", "ar"}
DOES_MORE = words_of(
    "npm npx yarn pnpm uv poetry pdm hatch pixi conda mamba time strace ltrace valgrind hyperfine perf"
)
"""Programs that run others, and change files by themselves, too."""
RUNS_LINES = SHELLS | {"eval", "source", "."}
CARRIES = words_of(
    "eval source . trap su runuser sg flock xargs gxargs parallel command builtin tmux screen at batch crontab"
)


def written_words(name: str, rest: list[str]) -> list[str] | None:
    """The words that name what a program writes, where it only reads the others. None: it may change any."""
    operands = [word for word in rest if word[:1] != "-" or word == "-"]
    if name in ("sort", "tree", "less", "time", "strace", "ltrace", "perf"):
        found = [(one[1], after) for word, after in pairwise((*rest, "")) if (one := _OUTPUT_OPTION.fullmatch(word))]
        return [glued or after for glued, after in found]
    if name == "curl":
        return [word for before, word in pairwise(("", *rest)) if not (_UPLOADS.match(word) or before in _SENDS_FILE)]
    if name == "dd":
        return [word for word in rest if not word.startswith("if=")]
    if name in ("xxd", "uniq"):
        return operands[1:]
    if name == "split":
        return operands[1:]
    if name in PACKERS:
        return packs_into(name, rest)
    if name in CONTAINERS:
        found = [(one[1], after) for word, after in pairwise((*rest, "")) if (one := _VOLUME.fullmatch(word))]
        values = [value or after for value, after in found]
        outputs = (_CONTAINER_OUTPUT.fullmatch(word) for word in rest)
        values += [one[1] or after for one, after in zip(outputs, (*rest[1:], ""), strict=True) if one]
        if "cp" in operands[:2] and len(operands) > 2 and ":" not in operands[-1]:
            values += [operands[-1], f"{operands[-1]}/{os.path.basename(operands[-2])}"]
        return [value for value in values if not re.search(r":ro\b|,(?:ro|readonly)\b", value)]
    return None


def downloads(name: str, rest: list[str]) -> list[str]:
    """What files are called that a program fetches: `curl -O`, `wget`."""
    if "--spider" in rest:
        return []
    if name in ("wget", "aria2c", "axel", "http", "https", "xh") or (
        name == "curl" and any(map(_REMOTE_NAME.fullmatch, rest))
    ):
        return [word.partition("?")[0].rpartition("/")[2] for word in rest if "/" in word and word[:1] != "-"]
    return []


_REMOTE_NAME = re.compile(r"-[a-zA-Z]*O[a-zA-Z]*|--remote-name.*")


def files_of_sed(rest: list[str]) -> list[str]:
    """The files that may stand in a script of sed: `w file`, `s/a/b/wfile`."""
    scripts = [after for word, after in pairwise((*rest, "")) if re.fullmatch(r"-[a-zA-Z]*e|--expression", word)]
    scripts += [word[2:] for word in rest if word[:2] == "-e" or word.startswith("--expression=")]
    scripts = scripts or [word for word in rest if word[:1] != "-"][:1]
    return [name for script in scripts for name in _SED_FILE.findall(script)]


GIT_READS = words_of("""
    add annotate blame branch cat-file check-attr check-ignore cherry commit count-objects describe diff diff-files
    diff-index diff-tree fetch for-each-ref grep hash-object log ls-files ls-remote ls-tree merge-base merge-tree
    name-rev notes push range-diff reflog remote rev-list rev-parse shortlog show show-branch show-ref status tag
    verify-commit whatchanged""")
OWN_READS = words_of("""
    check completion coverage demo diff doctor events explain export help hooks init log packs replay run schema show
    stats tail test verify""")
TAKES_AWAY = frozenset({"rm", "mv", "find", "fd", "fdfind", "shred", "unlink", "rmdir", "trash"})
CHANGES_UNNAMED = frozenset({"cp", "rsync", "chmod", "chown", "chgrp", "chattr", "setfacl"})
"""Programs that may change files which they do not name."""
CHOOSES = words_of("-name -iname -path -ipath -wholename -regex -iregex")
DECODES = frozenset({"base64", "xxd", "rev", "tr"})
"""Programs whose output the reader knows, and in which a name may be hidden."""
OWN_CONTROLS = re.compile(
    r"\bfairlead(?:\.|\s+import\s+)(?:cli|enforcement|approvals|config|__main__)\b|run_module\(\s*[\"']fairlead"
    r"|\bfairlead[\"']?[\s,\[(]+[\"']?"
    r"(?:pause|resume|monitor|enforce|trust|approvals|tokens|serve|stop|restart|install|uninstall|prune"
    r"|exception[\"'\s,]+apply)\b"
)
"""Parts of fairlead that code has no business with, unless it changes them."""
OVERWRITES = frozenset({"stash", "clean", "reset", "checkout", "switch"})
"""Commands of git that may take a file away which git does not track."""
KILLS = frozenset({
    "kill", "pkill", "killall", "skill", "systemctl", "launchctl", "service", "fuser", "killall5",
    "rc-service", "sv", "supervisorctl", "initctl", "brew", "loginctl",
})  # fmt: skip
_SIGNALS = frozenset({"kill", "pkill", "killall", "skill", "killall5"})
_ONLY_ASKS = frozenset({"status", "is-active", "is-enabled", "show", "list-units", "list", "print", "-l", "-L"})
DEBUGS = frozenset({
    "cgclassify", "chrt", "criu", "gcore", "gdb", "ionice", "lldb", "ltrace", "nsenter", "prlimit", "py-spy", "renice",
    "reptyr", "strace", "taskset",
})  # fmt: skip
"""Programs that reach into another process."""
RUNS = frozenset(
    {"coverage", "uv", "uvx", "pipx", "poetry", "pdm", "hatch", "rye", "sudo", "doas", "env", "nohup", "timeout"}
)
INSTALLERS = words_of("""
    pip pip2 pip3 pipx uv poetry pdm hatch rye pipenv conda mamba micromamba easy_install apt apt-get aptitude dnf yum
    zypper apk brew port snap pacman dpkg rpm""")
REMOVES_PACKAGES = words_of("uninstall remove rm uninject purge autoremove erase del -R -Rs -Rns -r -P -e")
_OWN_PACKAGE = re.compile(r"fairlead(?![\w./-])", re.IGNORECASE)
INSTALLS_PACKAGES = words_of("install add upgrade update reinstall inject")
_OWN_REQUIREMENT = re.compile(
    r"(?:^|[/=@+#,\s])fairlead(?=/*$|[\[=<>!~;@#?&,\s]|\.git(?:$|[@#?/])|-\d[^/]*$)", re.IGNORECASE
)
"""What stands for fairlead where packages are installed: its name, with a version or extras, an address, an archive."""
_INTO_FOLDER = words_of("-t --target --prefix --root -d --dest --src")
"""Options of package managers whose values are folders."""
ENDS_FAIRLEAD = re.compile(
    r"(?s)fairlead.{0,400}\.(?:kill|terminate|suspend|send_signal)\(|"
    r"\.(?:kill|terminate|suspend|send_signal)\(.{0,400}fairlead|"
    r"\b(?:system|exec\w*|popen|run|call|print)\b[^\n]{0,200}\bp?kill(?:all)?\b[^\n]{0,200}fairlead"
    r"|fairlead[^\n]{0,200}\b(?:system|exec\w*|popen|run|call|print)\b[^\n]{0,200}\bp?kill(?:all)?\b"
)
"""Code that has a shell end fairlead: `awk '/fairlead/ { system("kill " $2) }'`."""
WORD_OF_LINE = re.compile(r"[^\s;&|()<>`'\"$/^{}]+")
CHANGES_FILES = re.compile(
    r"\b(?:unlink|remove|rename|replace|truncate|rmtree|move|copy\w*|chmod|write_text|write_bytes|symlink_to"
    r"|unlinkSync|rmSync|writeFile\w*)\b"
)
PATTERNS = re.compile(r"[\"'<]([^\"'<>\s]{1,200})[\"'>]")
"""A text in code, which may be a pattern for names of files."""
CODE = re.compile(
    r"(?:python|pypy|ipython|node|nodejs|deno|bun|tsx|perl|ruby|php|lua|osascript|Rscript|tclsh|expect|ed|ex|n?vim?|emacs"
    r"|patch|apply_?patch|sqlite3|m4|dc|gdb|lldb|sed|[gm]?awk"
    r"|guile|racket|sbcl|clisp|R|octave|julia|elixir|iex|erl|ghci?|runghc|jshell|groovy|scala|kotlin|ocaml|gnuplot|psql|mysql"
    r"|mariadb|duckdb|cpio|pax)[\d.]*"
)
"""Programs that run code from their words or input, or apply a patch."""


PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
DESCRIPTOR = re.compile(r"/dev/(?:std(in|out|err)|fd/(\d*))|/proc/[^/]+/fd/(\d*)")
"""A file that stands for an open one. Writing to it writes that one, even if it is open for reading only."""
_LISTS = {
    name: re.compile(options)
    for names, options in {
        "git": r"--pathspec-from.*|--stdin",
        "tar bsdtar": r"-[a-zA-Z]*T.*|--files-from.*",
        "rsync": r"--files-from.*|--include-from.*",
        "cpio pax": r"-.*",
        "zip 7z": r"-@|@.*|-i@.*",
        "parallel": r".*",
        "curl": r"-[a-zA-Z]*K.*|--con.*",
        "wget aria2c": r"-i.*|--input-file.*|--config.*",
        "sftp ftp lftp": r".*",
    }.items()
    for name in names.split()
}
"""Options with which programs read the names of files that they write."""
OUTPUT_VARIABLES = re.compile(
    r"\w*(?:HIST|TRACE|LOG|OUTPUT|INDEX_FILE|COVERAGE|REDIRECT|GIT_CONFIG)\w*|GIT_WORK_TREE|GIT_DIR|DESTDIR"
)
"""Variables that name a file or folder which programs write: `HISTFILE`, `GIT_TRACE`, `GIT_WORK_TREE`."""


def takes_list(command: Command) -> bool:
    """Does a command read the names of files that it changes? `git rm --pathspec-from-file=-`"""
    options = _LISTS.get(command.program)
    return options is not None and any(map(options.fullmatch, command.args))


def owner(whose: str) -> str:
    """Who has a file, and why it is protected: "Codex, whose settings ..."."""
    if whose == "fairlead":
        return "fairlead, which judges each call of this agent"
    if whose == "a hook in force":
        return "a hook in force, which judges calls of this agent"
    return f"{whose}, which asks fairlead about each call because its settings say so"


WAY_OUT = "an agent does not change what judges it; {} it yourself, in a terminal of your own"

SYNTAX = re.compile(r"[\s;&|<>()`$]")


def only_reads(name: str, rest: list[str], mentions: Callable[[str], str | None]) -> bool:
    """Whether a program with these words changes nothing."""
    name = name.lower() if "-" in name else name  # cmdlets of PowerShell
    if name == "git":
        return _git_reads(rest) and not any(map(_OUTPUT.fullmatch, rest))
    if name == "fairlead":
        return _own_command(rest) is None and not any(word.startswith(("--o", "-o", "--sa")) for word in rest)
    if CODE.fullmatch(name) and rest[:2] == ["-m", "json.tool"]:
        return sum(word[:1] != "-" for word in rest[2:]) < 2
    if name == "npx" and rest:
        name, rest = os.path.basename(rest[0]).partition("@")[0], rest[1:]
    if name == "unzip":
        return _lists_archive(rest)
    if name in _VERIFIES:
        return rest[:1] != [] and _VERIFIES[name].fullmatch(rest[0]) is not None and not any(map(_TO_FILE.match, rest))
    if name in LINTERS:
        own = [word for word in rest if word[:1] == "-" or word in _CHECKS]
        return bool(own) and _CHECKS.issuperset(own)
    options = [word[:_LONGEST_OPTION] for word in rest]
    if name not in READS or any(map(UNLESS.get(name, _OUTPUT).fullmatch, options)):
        return False
    if name in SCRIPTED and name != "sed" and any(map(writes_unknown, rest)):
        return False
    # A script can write, too. Its files are words of their own.
    return name not in SCRIPTED or not any(SYNTAX.search(word) and mentions(word) for word in rest)


_VERIFIES = {"openssl": re.compile(r"dgst|md5|sha\d+|verify"), "gpg": re.compile(r"--verify")}
_LISTS_ARCHIVE = re.compile(r"-[a-ce-zA-HJ-NQ-Z]*[lptvZ].*", re.DOTALL)
"""Not `-Ppass`: what comes after the letters of options with a value is their value."""
_TAKES_NEXT = re.compile(r"-[a-zA-Z]*[dIOP]")
_TO_FILE = re.compile(r"--?(?:o|writerand|log|status-fi|attribute-fi)|-[a-z]*o")
"""Options of openssl and gpg that name a file to write, shortened, too."""
_LONGEST_OPTION = 200


def _lists_archive(rest: list[str]) -> bool:
    """Does unzip only list, test or print? Its options stand before the archive; what comes later names members."""
    words = iter(rest)
    for word in takewhile(lambda word: word[:1] == "-", words):
        if _LISTS_ARCHIVE.fullmatch(word):
            return True
        if _TAKES_NEXT.fullmatch(word):
            next(words, "")
    return False


def _git_reads(rest: list[str]) -> bool:
    """Does git leave all files of the work tree as they are?"""
    words = [w for before, w in zip(("", *rest), rest, strict=False) if before not in ("-C", "-c") and w[:1] != "-"]
    command = words[0] if words else "status"
    if command == "reset":
        return {"--hard", "--merge", "--keep"}.isdisjoint(rest)
    if command == "restore":
        return not {"-S", "--staged"}.isdisjoint(rest) and {"-W", "--worktree", "-SW", "-WS"}.isdisjoint(rest)
    if command == "stash":
        return words[1:2] in (["list"], ["show"])
    return command in GIT_READS


_READING_ACTIONS: dict[str, tuple[list[str], ...]] = {
    "approvals": ([], ["list"], ["show"]),
    "exception": ([], ["list"], ["request"]),
}
"""What these commands of fairlead do that changes nothing."""


def _own_command(rest: list[str]) -> str | None:
    """The name of a fairlead command that changes something; None for one that only reads."""
    if {"-h", "--help"} & {*takewhile(lambda word: word != "--", rest)}:
        return None
    words = [word for word in rest if word[:1] != "-"][:2]
    if words[:1] in (["diff"], ["replay"]) and any(word.rpartition("=")[2] == "run" for word in rest):
        return f"{words[0]} --external run"
    if words == ["init"] and any(word.startswith("--u") for word in rest):
        return "init --user"
    if not words or words[0] in OWN_READS or words[1:] in _READING_ACTIONS.get(words[0], ()):
        return None
    return words[0]


def control_problem(name: str, words: list[str], moved: bool) -> str | None:
    """Why a command is denied that ends or removes fairlead, runs its controls, or starts an agent without hooks."""
    if CODE.fullmatch(name):  # `python -mfairlead`, `python -Im fairlead`
        words = [part for word in words for part in _MODULE.sub(r"-m\n\1", word).split("\n")]
    names = {_PIP.sub("pip", os.path.basename(word)) for word in words}
    i = next((i for i, word in enumerate(words) if os.path.basename(word).partition(".")[0] == "fairlead"), -1)
    runs = name == "fairlead" or bool(names & RUNS) or ("-m" in words and bool(names & _RUNS_MODULES))
    if not runs and CODE.fullmatch(name):
        runs = i == 1 or "-m" in words[max(i - 2, 0) : i]
    if i >= 0 and runs and (command := _own_command(words[i + 1 :])):
        return f"`fairlead {command[:50]}` changes what judges this agent: {WAY_OUT.format('run')}"
    if names & REMOVES_PACKAGES and names & INSTALLERS and any(map(_OWN_PACKAGE.match, words)):
        return f"this takes fairlead away: {WAY_OUT.format('do')}"
    if names & INSTALLERS and any(map(_OWN_REQUIREMENT.search, _installed(words))):
        return f"this installs another fairlead in place of this one: {WAY_OUT.format('do')}"
    if _ends_fairlead(names, words):
        return f"this would end fairlead: {WAY_OUT.format('do')}"
    if names & AGENTS or any(map(_AGENT_PACKAGE.fullmatch, words)):
        if moved or HOOKS_OFF.search(" ".join(words)):
            return f"this starts an agent without its hooks: {WAY_OUT.format('start')}"
        if names & _SWITCHES_OFF and any(word.partition("@")[0] in _OWN_PART for word in names):
            return f"this takes an agent's hooks away: {WAY_OUT.format('do')}"
    return None


_RUNS_MODULES = frozenset({"runpy", "pdb", "profile", "cProfile", "trace"})
"""Modules of Python that run another module or script."""
_PIP = re.compile(r"^pip[\d.]+$")
_MODULE = re.compile(r"^-[bBdEiIOPqsSuvx]*m(?!\n)(.*)$", re.DOTALL)


def _ends_fairlead(names: set[str], words: list[str]) -> bool:
    """Does a command end or stop the process that judges, by its number, by its name, or with all others?"""
    is_own = any(re.fullmatch(rf"(?:-|.*[=,])?{os.getpid()}", word) for word in words)
    attaches = any(word == "-p" or word.startswith("--pid") for word in words)
    if names & DEBUGS and (is_own or (attaches and any("fairlead" in word for word in words))):
        return True
    if not names & KILLS or (not names & _SIGNALS and names & _ONLY_ASKS):
        return False
    if words[1:2] in (["-l"], ["-L"]):
        return False
    everything = ("kill" in names and words[-1] == "-1" and len(words) > 2) or "killall5" in names
    everything = everything or any(map(_USER_SERVICE.fullmatch, words))
    everything = everything or ("loginctl" in names and any(map(_ENDS_SESSIONS.match, words)) and _is_own_user(words))
    return everything or (is_own and not names.isdisjoint(_SIGNALS)) or any(map(_means_fairlead, words))


_ENDS_SESSIONS = re.compile(r"(?:kill|terminate)-(?:user|session)")


_USER_SERVICE = re.compile(r"user(?:@|-)(?:\d+|\$.*)(?:\..*)?")


def _is_own_user(words: list[str]) -> bool:
    own = {"$USER", "$LOGNAME", "self", os.environ.get("USER"), os.environ.get("LOGNAME")}
    return not own.isdisjoint(words) or (hasattr(os, "getuid") and str(os.getuid()) in words)


def says_control(words: list[str]) -> bool:
    """Do words say to change or end fairlead, in whatever order? Of these, a line is made that is not known."""
    if not any("fairlead" in word.lower() for word in words):
        return False
    return not KILLS.isdisjoint(words) or ("fairlead" in words and not _CONTROLS.isdisjoint(words))


_CONTROLS = words_of("pause resume monitor enforce trust approvals tokens serve stop restart install uninstall prune")


def changes_control(code: str) -> bool:
    """Does code use fairlead's own controls, or end this process? `os.kill(1234, 9)`"""
    return OWN_CONTROLS.search(code) is not None or _ends_process(code)


def _ends_process(code: str) -> bool:
    return "kill" in code and re.search(rf"\b{os.getpid()}\b", code) is not None


_COMMANDS = ("python -m fairlead.server", "fairlead serve")


_POSIX_CLASS = re.compile(r"\[:\w+:\]")


def _means_fairlead(word: str) -> bool:
    """Does a word name fairlead, by itself, as a part of it, or as a pattern? `pkill -f 'fair[l]ead'`"""
    if "fairlead" in word.lower():
        return True
    if word[:1] == "-" or len(word) < 4 or len(word) > 100:
        return False
    if COSTLY.search(word):
        return True
    word = _POSIX_CLASS.sub(r"\\w\\s", word).replace("[[", r"[\[")
    try:
        places = [(found, text.index("fairlead")) for text in _COMMANDS if (found := re.search(word, text))]
    except re.error:
        return False
    return any(len(range(max(found.start(), own), found.end())) > 3 for found, own in places)


def _installed(words: list[str]) -> list[str]:
    """The packages that a package manager installs; none if its command does something else."""
    at = next(i for i, word in enumerate(words) if _PIP.sub("pip", os.path.basename(word)) in INSTALLERS)
    rest = words[at + 1 :]
    while rest and (rest[0][:1] == "-" or rest[0] in ("pip", "tool")):
        rest = rest[1:]
    if not rest or rest[0] not in INSTALLS_PACKAGES:
        return []
    return [word for before, word in pairwise(rest) if before not in _INTO_FOLDER]


# --- commands ---------------------------------------------------------------------------------------


def moves_settings(command: Command) -> bool:
    """Does a command set or unset a variable that moves the settings of an agent?"""
    name, words = command.program, command.args
    names = set(command.assignments)
    if name in DECLARES | {"env"}:
        names |= {word.partition("=")[0] for word in words if "=" in word}
    if name == "exec" and any(map(_CLEARS_FOR_EXEC.fullmatch, takewhile(lambda word: word[:1] == "-", words))):
        return True
    if name == "export" and "-n" in words:
        names |= set(words)
    if name == "env":
        options = takewhile(lambda word: word[:1] == "-", words)
        if any(map(_CLEARS.fullmatch, options)) or any("$(...)" in unknown_of(word) for word in words[:1]):
            return True
        names |= {_UNSETS.sub("", word) or after for word, after in pairwise((*words, "")) if _UNSETS.match(word)}
    if name in ("unset", "read", "mapfile", "readarray", "let") or words[:1] == ["-v"]:  # `printf -v NAME`
        names |= set(words)
    return any(one in _MOVES or one.startswith("FAIRLEAD_") for one in names)


_UNSETS = re.compile(r"-u|--u[a-z]*=?")
_CLEARS = re.compile(r"-|-[a-zA-Z]*i[a-zA-Z]*|--i|--ignore-e[a-z]*|--ign?|--ignor?e?-?")
_CLEARS_FOR_EXEC = re.compile(r"-l?cl?")
_MOVES = frozenset({*MOVED, "HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", *HOOKS_OFF_VARIABLES})
SETS_MOVED = re.compile(
    rf"\$\{{(?:{'|'.join(_MOVES)}):?=|\b(?:for|select|let|getopts)[ \t]+[^;|&\n]{{0,40}}\b(?:{'|'.join(_MOVES)})\b"
)
"""Other ways to set such a variable: `: ${HOME:=/tmp}`, `for HOME in /tmp`."""
OTHER_USERS = frozenset({"sudo", "su", "doas", "runuser", "gosu", "su-exec", "setuidgid", "pkexec", "machinectl"})


def takes_folders(command: Command) -> bool:
    """Does a command change or remove all that is in a folder which it names?"""
    if command.program in ("fd", "fdfind"):
        search = search_of_fd(command.args)
        return search is not None and search[1] == ["*"]
    if command.program in TAKES_AWAY:
        before = ("", *command.args)
        return "-empty" not in before and not any(
            word in CHOOSES and last not in ("!", "-not") for last, word in pairwise(before)
        )
    if command.program == "rsync" and any(word.startswith("--del") for word in command.args):
        return ":" not in command.args[-1]  # what is on another machine is not protected
    return command.runs("git rm") and not command.has("--cached", "--dry-run")


def only_carries(command: Command) -> bool:
    """Does a command run others, and change nothing by itself?"""
    name = command.program
    if any(one.via[-1:] == (f"{name}()",) for one in command.inner):
        return True  # a function of the line
    wraps = (name in WRAPPERS and name not in DOES_MORE) or name in SHELLS or name in CARRIES
    return wraps and name not in CONTAINERS and command.carries


def finds_to_read(command: Command, mentions: Callable[[str], str | None]) -> bool:
    """Does `find` only run programs that read? `find . -exec grep x {} +`"""
    runs = [one for one in command.inner if len(one.via) == len(command.via) + 1]
    if not runs or any(word == "-delete" or word.startswith(("-fprint", "-fls")) for word in command.args):
        return False
    return all(_only_reads_inside(one, mentions) for one in runs)


def _only_reads_inside(command: Command, mentions: Callable[[str], str | None]) -> bool:
    """The same of one command, and of those in the line that it gives to a shell: `sh -c 'grep x "$1"'`."""
    if command.program in SHELLS and command.inner:
        return all(_only_reads_inside(one, mentions) for one in command.inner)
    unknown = any("{}" in path or unknown_of(path) for path in command.writes())
    return not unknown and only_reads(command.program, command.args, mentions)


def assigned_texts(command: Command) -> list[str]:
    """What a command sets variables to."""
    return [value for _, value in assigned_variables(command)]


def assigned_variables(command: Command) -> list[tuple[str, str]]:
    """The variables that a command sets, with their values."""
    words = command.args if command.program in DECLARES | {"env"} else ()
    settings = (word.partition("=") for word in words if "=" in word)
    return [*command.assignments.items(), *((name, value) for name, _, value in settings)]
