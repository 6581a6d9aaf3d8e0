"""What programs do to protected files: which only read, which run code, and which switch hooks off."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from itertools import pairwise

from .guarded_files import words_of
from .protected_paths import MOVED

AGENTS = frozenset({
    "claude", "cline", "codex", "copilot", "cursor-agent", "droid", "gemini", "goose", "kiro-cli", "opencode", "qwen",
})  # fmt: skip
HOOKS_OFF = re.compile(
    r"disableAllHooks|--bare\b|--setting-sources|--disable[ =](?:codex_)?hooks|features\.(?:codex_)?hooks"
    rf"|\b(?:HOME|CLAUDE_CODE_SIMPLE|{'|'.join(MOVED)})="
)


READS = words_of("""
    cat ls head tail less more bat grep egrep fgrep rg ag ack stat wc diff cmp comm file jq md5sum sha1sum sha256sum
    sha512sum shasum cksum b2sum realpath readlink basename dirname test [ [[ echo printf true false : pwd which type
    whereis du df nl od hexdump strings cut fold rev tac tr paste column cd pushd popd pgrep pidof ps export declare
    local readonly typeset unset find fd sort tree sed awk gawk mawk yq open xdg-open code cursor subl""")
UNLESS = {
    name: re.compile(rf"--output.*|{words}")
    for names, words in {
        "find": r"-delete|-exec.*|-ok.*|-fprint.*|-fls",
        "fd": r"-[xX]|--exec.*",
        "sort tree less": r"-[a-zA-Z]*[oO].*",
        "sed yq": r"-[a-zA-Z]*i.*|--in-?place.*",
        "awk gawk mawk": r"-i|--include.*|inplace",
        "rg": r"--pre.*",
    }.items()
    for name in names.split()
}
"""Words with which these programs write or run something."""
_UNKNOWN_OUTPUT = re.compile(
    r"print[^;}\n\"]*(?:\"[^\"]*\"[^;}\n\"]*)*(?:>\s*[^\"\s=>0-9]|\|\s*\"\s*\w*sh\b)|\bsystem\s*\((?!\s*\"[^\"]*\"\s*\))"
)
"""What a script of awk writes to a file, or has a shell run, that stands nowhere in it: `print > FILENAME`."""
SCRIPTED = frozenset({"sed", "awk", "gawk", "mawk"})
_OUTPUT = re.compile(r"--output.*")
_SED_FILE = re.compile(r"[wW]\s*([^\s;}]+)")
_OUTPUT_OPTION = re.compile(r"(?:-[a-zA-Z]*[oO]|--output=?)(.*)", re.DOTALL)
_VOLUME = re.compile(r"(?:-v|--volume|--mount)(?:=(.*))?", re.DOTALL)
CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
DOES_MORE = words_of("git tar rsync sort split zip rg man npm npx make gmake script strace ltrace time")
"""Programs that run others, and change files by themselves, too."""


def written_words(name: str, rest: list[str]) -> list[str] | None:
    """The words that name what a program writes, where it only reads the others. None: it may change any."""
    operands = [word for word in rest if word[:1] != "-" or word == "-"]
    if name in ("sort", "tree", "less", "time", "strace", "ltrace"):
        found = [(one[1], after) for word, after in pairwise((*rest, "")) if (one := _OUTPUT_OPTION.fullmatch(word))]
        return [glued or after for glued, after in found]
    if name in ("xxd", "uniq"):
        return operands[1:]
    if name == "split":
        return operands[1:]
    if name in CONTAINERS:
        found = [(one[1], after) for word, after in pairwise((*rest, "")) if (one := _VOLUME.fullmatch(word))]
        values = [value or after for value, after in found]
        return [value for value in values if not re.search(r":ro\b|,(?:ro|readonly)\b", value)]
    return None


def files_of_sed(rest: list[str]) -> list[str]:
    """The files that may stand in a script of sed: `w file`, `s/a/b/wfile`."""
    return [name for word in rest for name in _SED_FILE.findall(word)]
_PATTERN = re.compile(r"[.*?\[(|^$]")
GIT_READS = words_of("""
    add annotate blame branch cat-file check-ignore commit describe diff fetch for-each-ref grep log ls-files
    ls-remote ls-tree merge-base notes push reflog remote rev-list rev-parse shortlog show show-ref status tag""")
OWN_READS = words_of(
    "check completion demo doctor events export help hooks init log run schema show stats tail test verify"
)
TAKES_AWAY = frozenset({"rm", "mv", "find", "fd", "shred", "unlink", "rmdir", "trash"})
CHANGES_UNNAMED = frozenset({"cp", "rsync", "chmod", "chown", "chgrp", "chattr", "setfacl"})
"""Programs that may change files which they do not name."""
CHOOSES = words_of("-name -iname -path -ipath -wholename -regex -iregex")
DECODES = frozenset({"base64", "xxd", "rev"})
"""Programs whose output the reader knows, and in which a name may be hidden."""
OWN_CONTROLS = re.compile(r"\bfairlead(?:\.|\s+import\s+)(?:cli|enforcement|approvals|config)\b")
"""Parts of fairlead that code has no business with, unless it changes them."""
KILLS = frozenset({"kill", "pkill", "killall", "skill", "systemctl", "launchctl", "service", "fuser"})
_ONLY_ASKS = frozenset({"status", "is-active", "is-enabled", "show", "list-units", "list", "print", "-l", "-L"})
RUNS = frozenset({"uv", "uvx", "pipx", "poetry", "pdm", "hatch", "rye", "sudo", "doas", "env", "nohup", "timeout"})
INSTALLERS = words_of("pip pip2 pip3 pipx uv poetry pdm hatch rye pipenv conda mamba micromamba easy_install")
REMOVES_PACKAGES = words_of("uninstall remove rm uninject")
_OWN_PACKAGE = re.compile(r"fairlead(?![\w./-])")
INSTALLS_PACKAGES = words_of("install add upgrade update reinstall inject")
_OWN_REQUIREMENT = re.compile(
    r"(?:^|[/=@+#,\s])fairlead(?=/*$|[\[=<>!~;@#?&,\s]|\.git(?:$|[@#?/])|-\d[^/]*$)", re.IGNORECASE
)
"""What stands for fairlead where packages are installed: its name, with a version or extras, an address, an archive."""
_INTO_FOLDER = words_of("-t --target --prefix --root -d --dest --src")
"""Options of package managers whose values are folders."""
CODE = re.compile(
    r"(?:python|pypy|ipython|node|nodejs|deno|bun|tsx|perl|ruby|php|lua|osascript|Rscript|tclsh|expect|ed|ex|n?vim?|emacs"
    r"|patch|apply_?patch|sqlite3|m4|dc|gdb|sed|[gm]?awk)[\d.]*"
)
"""Programs that run code from their words or input, or apply a patch."""

WAY_OUT = "an agent does not change what judges it; {} it yourself, in a terminal of your own"

SYNTAX = re.compile(r"[\s;&|<>()`$]")


def only_reads(name: str, rest: list[str], mentions: Callable[[str], str | None]) -> bool:
    """Whether a program with these words changes nothing."""
    if name == "git":
        words = (w for before, w in zip(("", *rest), rest, strict=False) if before not in ("-C", "-c") and w[:1] != "-")
        return next(words, "status") in GIT_READS and not any(map(_OUTPUT.fullmatch, rest))
    if name == "fairlead":
        return _own_command(rest) is None
    if name not in READS or any(map(UNLESS.get(name, _OUTPUT).fullmatch, rest)):
        return False
    if name in SCRIPTED and name != "sed" and any(map(_UNKNOWN_OUTPUT.search, rest)):
        return False
    # A script can write, too. Its files are words of their own.
    return name not in SCRIPTED or not any(SYNTAX.search(word) and mentions(word) for word in rest)


def _own_command(rest: list[str]) -> str | None:
    """The name of a fairlead command that changes something; None for one that only reads."""
    words = [word for word in rest if word[:1] != "-"][:2]
    if not words or words[0] in OWN_READS or (words[0] == "approvals" and words[1:] in ([], ["list"], ["show"])):
        return None
    return words[0]


def control_problem(name: str, words: list[str], names: set[str], moved: bool) -> str | None:
    """Why a command is denied that ends or removes fairlead, runs its controls, or starts an agent without hooks."""
    if CODE.fullmatch(name):  # `python -mfairlead`
        words = [part for word in words for part in (("-m", word[2:]) if word[:2] == "-m" and word[2:] else (word,))]
    i = next((i for i, word in enumerate(words) if os.path.basename(word).partition(".")[0] == "fairlead"), -1)
    runs = name == "fairlead" or names & RUNS or (CODE.fullmatch(name) and (i == 1 or words[max(i - 1, 0)] == "-m"))
    if i >= 0 and runs and (command := _own_command(words[i + 1 :])):
        return f"`fairlead {command[:50]}` changes what judges this agent: {WAY_OUT.format('run')}"
    if names & REMOVES_PACKAGES and names & INSTALLERS and any(map(_OWN_PACKAGE.match, words)):
        return f"this takes fairlead away: {WAY_OUT.format('do')}"
    if names & INSTALLERS and any(map(_OWN_REQUIREMENT.search, _installed(words))):
        return f"this installs another fairlead in place of this one: {WAY_OUT.format('do')}"
    kills = names & KILLS and not names & _ONLY_ASKS
    if kills and (any(map(_means_fairlead, words)) or ("kill" in names and str(os.getpid()) in words)):
        return f"this would end fairlead: {WAY_OUT.format('do')}"
    if names & AGENTS and (moved or HOOKS_OFF.search(" ".join(words))):
        return f"this starts an agent without its hooks: {WAY_OUT.format('start')}"
    return None


def _means_fairlead(word: str) -> bool:
    """Does a word name fairlead, by itself or as a pattern? `pkill -f 'fair[l]ead'`"""
    if "fairlead" in word.lower():
        return True
    if not _PATTERN.search(word) or len(word) > 100:
        return False
    try:
        return re.search(word, "python -m fairlead.server") is not None
    except re.error:
        return False


def _installed(words: list[str]) -> list[str]:
    """The packages that a package manager installs; none if its command does something else."""
    at = next(i for i, word in enumerate(words) if os.path.basename(word) in INSTALLERS)
    rest = words[at + 1 :]
    while rest and (rest[0][:1] == "-" or rest[0] in ("pip", "tool")):
        rest = rest[1:]
    if not rest or rest[0] not in INSTALLS_PACKAGES:
        return []
    return [word for before, word in pairwise(rest) if before not in _INTO_FOLDER]
