"""What a tool call acts on: reads its target out of the arguments, and writes a new one into them.

An argument is known by its name, as the common agents and frameworks name theirs. `tools.py` has the tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

if TYPE_CHECKING:
    from .shell import Command

Kind = Literal["shell", "read", "write", "search", "fetch", "mcp", "agent", "unknown"]
Safety = Literal["read_only", "mutating", "destructive", "network"]
KINDS: tuple[str, ...] = get_args(Kind)
SAFETIES: tuple[str, ...] = get_args(Safety)


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a tool call is aimed at. A shell tool always has a `command`, possibly empty."""

    command: str | None = None
    paths: tuple[str, ...] = ()
    url: str | None = None
    server: str | None = None
    dialect: Literal["posix", "powershell", "cmd"] = "posix"
    """Whose syntax the command has."""

    @property
    def commands(self) -> list[Command]:
        """The commands of a shell's line, those inside others included. Read when first asked for; see `shell`."""
        from .shell import commands_of  # most steps are judged without it

        return commands_of(self.command, self.dialect) if self.command else []

    def runs(self, words: str, *options: str) -> bool:
        """Does a command of the line run this, with any of these options if there are some?

        `target.runs("git push", "--force")` is true of `cd x && sudo git push origin -f`.
        """
        return any(one.runs(words) and (not options or one.has(*options)) for one in self.commands)


TARGET_FIELDS: tuple[str, ...] = Target.__struct_fields__
_NOWHERE = Target()

# Arguments that carry a target, by the names that agents give them, most specific first. Like the
# names of tools they are compared without case and separators: filePath, file_path and FilePath are one.
PLAIN_COMMAND_ARGS = ("command", "cmd", "commandline", "cmdline", "shellcommand", "bashcommand")
"""Arguments that hold a command in a tool of any name."""
COMMAND_ARGS = (*PLAIN_COMMAND_ARGS[:2], "commands", *PLAIN_COMMAND_ARGS[2:], "script", "code", "chars")
_REST_ARGS = ("args", "arguments", "argv", "commandargs", "cmdargs")
"""Arguments that hold the rest of a command, where a tool takes a program and its words apart."""
_PATH_ARGS = (
    "filepath", "absolutepath", "notebookpath", "targetfile", "path", "paths", "filepaths", "filename", "file", "files",
    "dirpath", "directory", "directorypath", "targetdirectory", "folder", "source", "destination", "oldpath", "newpath",
    "moveto", "include", "edits",
)  # fmt: skip
_PATCH_ARGS = ("input", "patch", "patchtext", "diff", "command")
URL_ARGS = ("url", "urls", "uri")
_SERVER_ARGS = ("server", "servername", "mcpserver")
_TARGET_ARGS = frozenset((*PLAIN_COMMAND_ARGS, *_PATH_ARGS, *URL_ARGS, "prompt", *_SERVER_ARGS))
"""Arguments that hold the target of a tool of unknown kind."""
KIND_ARGS = frozenset((*PLAIN_COMMAND_ARGS, *URL_ARGS))
"""Arguments that also say its kind. A path does not: it may be read or written."""


class ToolSpec(msgspec.Struct, frozen=True):
    """How to read one tool: its kind, and which arguments hold its target."""

    kind: Kind
    safety: Safety
    command: tuple[str, ...] = COMMAND_ARGS
    paths: tuple[str, ...] = _PATH_ARGS
    url: tuple[str, ...] = URL_ARGS
    server: str | None = None
    patch: bool = False
    guessed: bool = False
    """No table knows the tool: the kind follows from its arguments."""


# Patterns are compiled when they are first used, which most imports never do.
_PATCH_PATH = r"(?m)^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |\+\+\+ (?:b/)?|--- (?:a/)?)([^\t\r\n]+)"
_URL = r"https?://[^\s\"'<>]+"
_SHELL = r"(?:.*/)?(?:ba|z|da|k|a|fi)?sh"
_SHELL_FLAGS = r"-[a-z]*c"
_SEPARATORS = str.maketrans("", "", "_-.")


def normal_name(name: str) -> str:
    return name.translate(_SEPARATORS).casefold()


def target_of(spec: ToolSpec, args: Mapping[str, Any]) -> Target:
    """Where these arguments aim. Every kind's arguments are read, so an odd tool hides nothing."""
    kind, server = "unknown" if spec.guessed else spec.kind, spec.server
    if kind == "shell":
        command = command_text(args, spec.command) or (args and _odd_command(args, spec.command)) or ""
        return Target(command, server=server)
    if kind == "read" or kind == "write" or kind == "search":
        return Target(paths=(*texts_in(args, spec.paths), *_patched(args, spec)), server=server)
    if kind == "fetch":
        return Target(url=_url_text(args, spec.url), server=server)
    if kind == "agent":
        return _NOWHERE if server is None else Target(server=server)
    plain = spec.paths is _PATH_ARGS and spec.url is URL_ARGS
    if plain and spec.server is None and _TARGET_ARGS.isdisjoint(map(normal_key, args)):
        return _NOWHERE  # most custom tools
    return Target(  # an MCP tool, or one that no table knows: whatever its arguments give away
        command=command_text(args, _command_args(spec)) or None,
        paths=tuple(texts_in(args, spec.paths)),
        url=_url_text(args, spec.url),
        server=server or next(texts_in(args, _SERVER_ARGS), None),
    )


def _command_args(spec: ToolSpec) -> tuple[str, ...]:
    return spec.command if spec.guessed and spec.kind == "shell" else PLAIN_COMMAND_ARGS


def server_of(step: Any) -> str | None:
    """The MCP server that a step's tool is known to be of. What the model's arguments call a server does not count."""
    server: str | None = step.target.server
    return None if server is None or server in texts_in(step.args, _SERVER_ARGS) else server


def normal_key(key: str) -> str:
    return _short_key(key) if len(key) <= _SHORT_KEY else normal_name(key)


_SHORT_KEY = 64
"""Characters of a key that is remembered. Longer ones would be remembered at length."""


@lru_cache(maxsize=4096)
def _short_key(key: str) -> str:
    return normal_name(key)


def _present(args: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    """The arguments that go by one of these names, however they are written, in the names' order."""
    found = [(names.index(normal), key) for key in args if (normal := normal_key(key)) in names]
    return [key for _, key in sorted(found)] if len(found) > 1 else [key for _, key in found]


def texts_in(args: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    """The strings under these names, lists of strings spread out."""
    for key in _present(args, names):
        value = args[key]
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, str):
                    yield item
                elif isinstance(item, dict):  # read_file(files=[{path: ...}])
                    yield from texts_in(item, names)


def _url_text(args: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The URL; several are joined by newlines, so that none hides behind another."""
    found = list(texts_in(args, names)) or re.findall(_URL, next(texts_in(args, ("prompt",)), ""))
    return "\n".join(found) or None


def command_text(args: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The command; several arguments that could be it are all shown, so that none is a decoy."""
    present = _present(args, names)
    rest_keys = _rest_keys(args, names) if len(args) > 1 else ()
    if not rest_keys:
        texts = [text for key in present if (text := _one_command(key, args[key]))]
    else:  # run(command=git, args=[push, --force])
        commands = [key for key in present if _one_command(key, args[key])] or present[:1]
        texts = [_one_command(key, args[key], _rest(args, rest_keys, args[key])) for key in commands]
    return texts[0] if len(texts) == 1 else "\n".join(texts)


def _odd_command(args: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The command of a shell tool whose argument names are unknown: all of its arguments."""
    rest_keys = _rest_keys(args, names)
    words = list(_words_in({key: value for key, value in args.items() if key not in rest_keys}))
    if not rest_keys:
        return "\n".join(words)
    lines = [_with_rest(word, _rest(args, rest_keys, word)) for word in words]
    if len(words) != 1 or "argv" in map(normal_key, rest_keys):  # the program may be none of them, but in the rest
        lines.append(_with_rest("", _rest(args, rest_keys, None)))
    return "\n".join(filter(None, lines))


def _one_command(key: str, value: Any, rest: list[str] | str = "") -> str:
    if isinstance(value, str):
        return _with_rest(value, rest)
    if isinstance(value, dict):
        return _with_rest(_command_in(value), rest)
    if not isinstance(value, (list, tuple)):
        return _with_rest("", rest)
    if normal_key(key) == "commands":  # a list of command lines; any other is a list of words
        return "\n".join(_one_command("", line, rest) for line in value)
    return _with_rest(list(_words_in(value)), rest)


def _command_in(value: dict[str, Any]) -> str:
    """run_commands(commands=[{command: rm, args: [-rf, /]}]): the command, and whatever else may be one."""
    read = {*_present(value, COMMAND_ARGS), *_rest_keys(value, ())}
    others = _joined(_words_in({key: item for key, item in value.items() if key not in read}))
    return "\n".join(filter(None, (command_text(value, COMMAND_ARGS), others)))


def _rest_keys(args: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    """The arguments that hold the rest of a command, unless they are known to hold all of it."""
    return [key for key in _present(args, _REST_ARGS) if normal_key(key) not in names]


def _rest(args: Mapping[str, Any], keys: Sequence[str], command: Any) -> list[str] | str:
    """The words after the command; or, where one of these arguments is a text, the rest of the command line."""
    parts = [args[key] if isinstance(args[key], str) else list(_words_in(args[key])) for key in keys]
    for i, key in enumerate(keys):
        if _names_its_program(key, parts[i], command):
            parts[i] = parts[i][1:]
    if not any(isinstance(part, str) for part in parts):
        return [word for part in parts for word in part]
    return " ".join(part if isinstance(part, str) else _joined(part) for part in parts if part)


def _names_its_program(key: str, part: Any, command: Any) -> bool:
    """exec(command=git, argv=[git, push]): the first word of an argv is the program, if that is all of the command."""
    words = [command] if isinstance(command, str) else list(islice(_words_in(command), 2))
    return normal_key(key) == "argv" and isinstance(part, (list, tuple)) and [*part[:1]] == words


def _with_rest(command: list[str] | str, rest: list[str] | str) -> str:
    """A command line made of a command and its separate arguments."""
    if isinstance(command, str) and not rest:
        return command
    if isinstance(rest, list) or not rest:
        if isinstance(command, str) and _is_word(command):
            command = [command]
        if isinstance(command, list):
            words = [*command, *rest]
            return words[2] if _is_shell_call(words) else _joined(words)
    parts = (part if isinstance(part, str) else _joined(part) for part in (command, rest))
    return " ".join(filter(None, parts))


def _is_word(text: str) -> bool:
    """Whether a shell takes a text for one word, as it is. Anything else is a command line by itself."""
    return bool(text) and _joined((text,)) == text


def _joined(words: Iterable[str]) -> str:
    import shlex  # most commands are one text

    return shlex.join(words)


def _words_in(value: Any) -> Iterator[str]:
    """Every text in a value, however deep: an odd shape hides nothing."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _words_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _words_in(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)


def _is_shell_call(argv: Sequence[str]) -> bool:
    """["bash", "-lc", "ls | wc"]: the command is the script, not the words around it."""
    return len(argv) == 3 and bool(re.fullmatch(_SHELL, argv[0]) and re.fullmatch(_SHELL_FLAGS, argv[1]))


def _patched(args: Mapping[str, Any], spec: ToolSpec) -> Iterator[str]:
    if spec.patch:
        for text in texts_in(args, _PATCH_ARGS):
            yield from dict.fromkeys(p.strip() for p in re.findall(_PATCH_PATH, text) if p.strip() != "/dev/null")


def rewritten(tool: str, spec: ToolSpec, args: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that aim a tool at a new target. Raises `ValueError` if it has no such argument."""
    new = dict(args)
    for field, value in changes.items():
        key = _rewritable(spec, field, args)
        if key is None:
            raise ValueError(f"tool {tool!r} has no argument that holds its {field}; use args=")
        if field == "command":
            new |= _rewrite_command(args, spec.command, key, value)
        else:
            new[key] = _REWRITE[field](args.get(key), value)
    return new


def _rewritable(spec: ToolSpec, field: str, args: Mapping[str, Any]) -> str | None:
    """The argument to change: the one that holds the target now, or the tool's first choice for it."""
    keys: tuple[str, ...] = getattr(spec, field) if field in ("command", *_REWRITE) else ()
    present = _present(args, keys)
    if field == "command" and sum(bool(_one_command(key, args[key])) for key in present) > 1:
        return None  # it is not known which of them the host will run
    applies = (field == "command" and spec.kind == "shell") or (field == "url" and spec.kind == "fetch")
    applies = applies or (field == "paths" and spec.kind in ("read", "write", "search") and not spec.patch)
    if not applies and spec.kind != "mcp" and spec.server is None:
        return None
    if field == "command" and not present and _odd_command(args, keys):
        rest_keys = _rest_keys(args, keys)  # any other argument would be run unchanged
        return rest_keys[0] if len(rest_keys) == len(args) else None
    return next(iter(present), keys[0] if keys and applies else None)


def _rewrite_command(args: Mapping[str, Any], names: tuple[str, ...], key: str, new: str) -> dict[str, Any]:
    """The arguments that hold a new command, in the shape of the old one. Nothing of the old one stays."""
    old = args.get(key)
    rest_keys = [other for other in _rest_keys(args, names) if other != key]
    rest, emptied = _rest(args, rest_keys, old), {other: _emptied(args[other]) for other in rest_keys}
    if normal_key(key) == "commands":
        return {key: [new], **emptied}
    if isinstance(old, (list, tuple)):
        words = [*old, *rest] if isinstance(rest, list) else [*old]
        return {key: [*words[:2], new] if _is_shell_call(words) else _words(new), **emptied}
    if not isinstance(old, str) or not rest or isinstance(rest, str):
        return {key: new, **emptied}
    program, *words = [old, rest[0], new] if _is_shell_call([old, *rest]) else _words(new) or [""]
    filled = next(other for other in rest_keys if args[other])
    named = [program] if _names_its_program(filled, args[filled], old) else []
    return {key: program, **emptied, filled: named + words}


def _emptied(value: Any) -> Any:
    return "" if isinstance(value, str) else {} if isinstance(value, dict) else []


_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_OPERATOR = re.compile(r"[();<>|&]+")


def _words(command: str) -> list[str]:
    """A command line as words, for a tool that has no shell to understand anything else."""
    import shlex

    if operator := _OPERATOR.search(_QUOTED.sub("", command)):
        raise ValueError(f"this tool takes a list of words, and no shell would see {operator[0]!r}; use args=")
    return shlex.split(command)


def _rewrite_paths(old: Any, new: str | Sequence[str]) -> Any:
    paths = [new] if isinstance(new, str) else list(new)
    if isinstance(old, (list, tuple)):
        return paths
    if len(paths) != 1:
        raise ValueError(f"this tool takes one path, not {len(paths)}; use args=")
    return paths[0]


def _rewrite_url(old: Any, new: str) -> Any:
    return [new] if isinstance(old, (list, tuple)) else new


_REWRITE = {"paths": _rewrite_paths, "url": _rewrite_url}
