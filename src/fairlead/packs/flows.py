"""Where the data of a line comes from and goes to: downloads, decoders, interpreters, senders, files in between."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from ..shell import Command
from ..shell.words import unknown_of
from .lines import PackLine

SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "pwsh", "powershell"])
INTERPRETERS = SHELLS | frozenset(
    [
        "python",
        "python2",
        "python3",
        "node",
        "nodejs",
        "ruby",
        "perl",
        "php",
        "deno",
        "bun",
        "lua",
        "osascript",
        "Rscript",
        "tclsh",
    ]
)
_VERSIONED = re.compile(r"(python|node|ruby|perl|php|lua)[\d.]+|pypy3?")
_DESCRIPTOR = re.compile(r"(?:/dev|/proc/(?:self|thread-self|\d+))/fd/")
SOCKET = re.compile(r"/dev/(?:tcp|udp)/")


def is_interpreter(program: str) -> bool:
    return program in INTERPRETERS or bool(_VERSIONED.fullmatch(program))


_METHODS = r"[A-Z]+|get|post|put|patch|delete|head|options"


def urls_of(command: Command) -> list[str]:
    """The addresses that a download program is given."""
    own = [word for word in command.operands if word]
    if command.program in ("http", "https", "xh"):
        own = [
            word for word in own if not re.fullmatch(_METHODS, word) and not re.search(r"^[\w-]+(:=|==|=|:[^/])", word)
        ][:1]
    if url := command.options.get("--url"):
        own.append(url)
    return own


def is_download(command: Command, line: PackLine) -> bool:
    """Does it fetch something from another machine and write that to its output?"""
    if command.program in ("curl", "wget", "http", "https", "xh", "aria2c", "axel", "fetch", "lynx", "w3m"):
        if command.has("--help", "--version") and not urls_of(command):
            return False
        urls = urls_of(command)
        return not urls or not all(map(line.is_allowed, urls))
    if command.program in ("nc", "ncat", "netcat", "telnet", "iwr", "irm", "invoke-webrequest", "invoke-restmethod"):
        return True
    if command.program in ("ssh", "dig", "drill", "kdig"):  # a record of a name may be code, too
        return bool(command.operands)
    if command.program == "openssl":
        return "s_client" in command.args
    return any(SOCKET.match(redirect.target) and not redirect.writes for redirect in command.redirects)


def is_decoder(command: Command) -> bool:
    """Does it make other text of what it reads: base64 -d, xxd -r, gunzip, rev?"""
    match command.program:
        case "base64" | "base32" | "basenc":
            return command.has("--decode", "-d", "-D") or any(
                re.fullmatch(r"-[a-z]*[dD][a-z]*", word) for word in command.args
            )
        case "xxd":
            return any(re.fullmatch(r"-[a-z]*r[a-z]*", word) for word in command.args)
        case "openssl":
            return any(word in ("-d", "-base64") for word in command.args)
        case "gunzip" | "zcat" | "bzcat" | "xzcat" | "uudecode" | "rev":
            return True
        case "gzip" | "bzip2" | "xz" | "zstd":
            return any(re.fullmatch(r"-[a-z]*d[a-z]*|--decompress", word) for word in command.args)
        case "tar":
            return any(
                re.fullmatch(r"-?[a-z]*x[a-zA-Z]*O[a-z]*|-?[a-z]*O[a-zA-Z]*x[a-z]*|--to-stdout", word)
                for word in command.args
            )
    return False


def feeders(command: Command, line: PackLine, reads_input: bool = True) -> Iterator[Command]:
    """Whatever feeds a command: what is before it in its pipeline, and substitutions that it reads or is given.

    Without `reads_input`, only what becomes a word of it: substitutions, and what `xargs` reads.
    """
    seen: set[int] = set()
    left = (
        [*line.pipeline_of(command), *command.inner]
        if reads_input
        else [one for one in command.inner if one.via and "(" in one.via[-1]]
    )
    if any(one.operator == "<&" for one in command.redirects) or _DESCRIPTOR.match(script_of(command)):
        left += [inner for one in line.commands if one.program == "exec" for inner in one.inner]
    for carrier in _carriers(command, line):
        if reads_input or carrier.program in _MAKE_WORDS:
            left += line.pipeline_of(carrier)
        left += (one for one in carrier.inner if one.via and "(" in one.via[-1])  # substitutions in its words
    while left and len(seen) < 256:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        left += [*line.pipeline_of(one), *one.inner]


_MAKE_WORDS = frozenset({"xargs", "gxargs", "parallel"})


def _carriers(command: Command, line: PackLine) -> Iterator[Command]:
    """The commands that run this one: `sudo sh`, `xargs sh -c`."""
    if command.via:
        for other in line.commands:
            if other is not command and any(one is command for one in other.walk()):
                yield other


def script_of(command: Command) -> str:
    """The file that an interpreter, `source` or `.` runs. Empty if it runs none."""
    if command.program in ("source", "."):
        return command.operands[0] if command.operands else ""
    if not is_interpreter(command.program):
        return ""
    words = iter(command.args)
    for word in words:
        if word in ("-c", "-e", "-m") or re.fullmatch(r"-[a-z]*[cs]", word):
            return ""
        if re.fullmatch(r"[-+][a-zA-Z]*[oO]", word) or word in ("--rcfile", "--init-file", "-W", "-X", "-NoExit"):
            next(words, None)
        elif word.lower() in ("-file", "-f") and command.program in ("pwsh", "powershell"):
            return next(words, "")
        elif word[:1] not in ("-", "+") and word != "-":
            return word
        elif word == "--":
            return next(words, "")
    return ""


def reads_code(command: Command) -> bool:
    """Does an interpreter run what it reads?"""
    if command.program in ("source", "."):
        return bool(command.operands) and command.operands[0] in ("/dev/stdin", "-")
    if command.program in ("make", "gmake"):
        return command.options.get("--file") in ("-", "/dev/stdin")
    if not is_interpreter(command.program):
        return False
    if any(word in ("--help", "--version", "-V") for word in command.args):
        return False
    if any(word in ("-c", "-e", "-m", "-r") or re.fullmatch(r"-[a-z]*c", word) for word in command.args):
        return any(word in ("/dev/stdin", "-") for word in command.operands)
    script = script_of(command)
    return not script or script in ("-", "/dev/stdin")


def written_by(command: Command, line: PackLine) -> list[str]:
    """The files that a command writes: by redirection, or because it is told to."""
    if (found := line.written.get(id(command))) is None:  # several rules ask
        found = line.written[id(command)] = list(_written_by(command))
    return found


def _written_by(command: Command) -> Iterator[str]:
    yield from command.writes()
    if command.program not in _WRITES:
        return
    options = command.options
    match command.program:
        case "curl":
            if name := options.get("--output"):
                yield name
            if "--remote-name" in options:
                yield from (os.path.basename(url) for url in urls_of(command))
        case "wget":
            name = options.get("--output-document")
            if name != "-":
                yield from ([name] if name else (os.path.basename(url) for url in urls_of(command)))
        case "http" | "https" | "xh" | "aria2c" | "axel":
            if name := options.get("--output") or options.get("-o"):
                yield name
            elif command.program in ("aria2c", "axel") or command.has("--download"):
                yield from (os.path.basename(url) for url in urls_of(command))
        case "tee" | "truncate":
            yield from command.operands
        case "dd":
            yield from (word[3:] for word in command.args if word.startswith("of="))
        case "cp" | "mv" | "install" | "ln" | "link" | "rsync" | "scp":
            operands = command.operands
            if len(operands) > 1 and ":" not in operands[-1]:
                into = operands[-1]
                yield into
                if into.endswith("/") or "/" in into or into in (".", "..") or len(operands) > 2:  # it may be a folder
                    yield from (f"{into.rstrip('/')}/{os.path.basename(one)}" for one in operands[:-1])
        case "tar" | "zip" | "gpg" | "openssl" | "sqlite3":
            yield from filter(None, (options.get("--file"), options.get("-out"), options.get("--output")))
            if command.program == "zip":
                yield from command.operands[:1]
        case "gzip" | "bzip2" | "xz" | "zstd":
            ending = {"gzip": ".gz", "bzip2": ".bz2", "xz": ".xz", "zstd": ".zst"}[command.program]
            suffix = options.get("-S") or ending
            yield from (f"{one}{suffix}" for one in command.operands)


_WRITES = frozenset({
    "curl", "wget", "http", "https", "xh", "aria2c", "axel", "tee", "truncate", "dd", "cp", "mv", "install", "ln",
    "link", "rsync", "scp",
    "tar", "zip", "gpg", "openssl", "sqlite3", "gzip", "bzip2", "xz", "zstd",
})  # fmt: skip


def read_by(command: Command) -> Iterator[str]:
    """The files that a copying command reads, to say that what it writes has the same content."""
    if command.program in (
        "cp",
        "mv",
        "install",
        "ln",
        "link",
        "rsync",
        "scp",
        "cat",
        "gzip",
        "bzip2",
        "xz",
        "zstd",
        "base64",
        "zip",
        "tar",
    ):
        operands = command.operands
        yield from (
            operands[:-1] if command.program in ("cp", "mv", "install", "ln", "link", "rsync", "scp") else operands
        )
    if command.program == "dd":
        yield from (word[3:] for word in command.args if word.startswith("if="))
    yield from (redirect.target for redirect in command.redirects if redirect.operator == "<")


def tainted_files(line: PackLine, is_source: object) -> set[str]:
    """The files that hold what a source writes, copies of them included. `is_source` judges a command."""
    files: set[str] = set()
    for command in line.commands:
        gives = callable(is_source) and (is_source(command) or any(is_source(one) for one in line.pipeline_of(command)))
        if gives or any(_norm(path) in files for path in read_by(command)):
            files |= {_norm(path) for path in written_by(command, line) if path}
    return files


def _norm(path: str) -> str:
    return os.path.normpath(str(path)) if path else ""


def is_tainted(path: str, files: set[str]) -> bool:
    return bool(path) and _norm(path) in files


def unknown_substitution(word: str) -> bool:
    """Does a word depend on the output of another command?"""
    return any("(" in part for part in unknown_of(word))


__all__ = [
    "feeders", "is_decoder", "is_download", "is_interpreter", "is_tainted", "read_by", "reads_code",
    "script_of", "tainted_files", "unknown_substitution", "urls_of", "written_by",
]  # fmt: skip
