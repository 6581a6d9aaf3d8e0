"""Tools: what a tool call does, whatever the agent calls its tools.

Every agent has a shell, and each names it differently. A `Tools` table turns a host's own
(tool, args) into a kind, a target and a safety class, and back: `change(command=...)`
becomes the argument that this host's tool takes. The default table knows the names of
the common agents and frameworks; users add their own with `hooks.tools.add(...)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import msgspec

from .errors import UnknownName
from .glob import compile_glob

if TYPE_CHECKING:
    from .shell import Command

Kind = Literal["shell", "read", "write", "search", "fetch", "mcp", "agent", "unknown"]
Safety = Literal["read_only", "mutating", "destructive", "network"]
KINDS: tuple[str, ...] = get_args(Kind)
SAFETIES: tuple[str, ...] = get_args(Safety)

_SAFETY_OF_KIND: dict[Kind, Safety] = {"read": "read_only", "search": "read_only", "fetch": "network"}


UnknownTool = Literal["proceed", "ask", "deny"]
"""What happens to a call to a tool that no table knows, in order of strictness."""
UNKNOWN_TOOL: tuple[UnknownTool, ...] = get_args(UnknownTool)


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
        from .shell import commands_of  # only who asks for it pays for it

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
_COMMAND_ARGS = ("command", "cmd", "commands", "commandline", "script", "code", "chars")
_REST_ARGS = ("args", "arguments", "argv", "commandargs", "cmdargs")
"""Arguments that hold the rest of a command, where a tool takes a program and its words apart."""
_PATH_ARGS = (
    "filepath", "absolutepath", "notebookpath", "targetfile", "path", "paths", "filepaths", "filename", "file", "files",
    "dirpath", "directory", "directorypath", "targetdirectory", "folder", "source", "destination", "oldpath", "newpath",
    "moveto", "include", "edits",
)  # fmt: skip
_PATCH_ARGS = ("input", "patch", "patchtext", "diff", "command")
_URL_ARGS = ("url", "urls", "uri")
_SERVER_ARGS = ("server", "servername", "mcpserver")
_TARGET_ARGS = frozenset((*_COMMAND_ARGS[:2], *_PATH_ARGS, *_URL_ARGS, "prompt", *_SERVER_ARGS))
"""Arguments that hold the target of a tool of unknown kind."""
_KIND_ARGS = frozenset((*_COMMAND_ARGS[:2], *_URL_ARGS))
"""Arguments that also say its kind. A path does not: it may be read or written."""


class ToolSpec(msgspec.Struct, frozen=True):
    """How to read one tool: its kind, and which arguments hold its target."""

    kind: Kind
    safety: Safety
    command: tuple[str, ...] = _COMMAND_ARGS
    paths: tuple[str, ...] = _PATH_ARGS
    url: tuple[str, ...] = _URL_ARGS
    server: str | None = None
    patch: bool = False
    guessed: bool = False
    """No table knows the tool: the kind follows from its arguments."""


class Classified(NamedTuple):
    """What a tool call does: its kind, target and safety."""

    kind: Kind
    target: Target
    safety: Safety


# The names are compared without case and separators: ReadFile, read_file and read-file are one.
_NAMES: dict[Kind, str] = {
    "shell": """Bash shell local_shell shell_command exec exec_command execute execute_command execute_bash
        container.exec run_command run_commands run_in_terminal run_shell run_shell_command run_terminal_cmd terminal
        developer__shell ShellTool unified_exec container_exec powershell code_execution execute_code python
        code_interpreter write_stdin write_bash BashTool bash_tool sh zsh pwsh run_powershell execute_powershell
        run_pwsh cmd.exe run_cmd_exe""",
    "read": """Read read_file read_files read_many_files read_text_file view view_file view_image cat open_file
        fs_read NotebookRead LS list list_dir list_directory list_files read_notebook ReadFileTool file_read
        get_file_contents read_media_file list_allowed_directories directory_tree get_file_info""",
    "write": """Write Edit MultiEdit NotebookEdit write_file write_to_file replace replace_in_file edit
        edit_file edit_notebook create create_file str_replace insert insert_edit_into_file insert_content
        multi_edit delete delete_file remove_file move_file rename_file fs_write search_replace search_and_replace
        apply_diff write_to_file_tool file_write save_file create_directory""",
    "search": """Grep Glob grep_search glob_search search search_file_content search_files search_code find find_files
        search_codebase file_search codebase_search list_code_definition_names ripgrep rg tool_search ToolSearch
        semantic_search""",
    "fetch": """WebFetch WebSearch web_fetch web_search web_search_call google_web_search fetch fetch_url
        fetch_webpage fetch_web_content FetchUrl http_request read_url_content open_url browser_action browser_navigate
        http_get url_context google_search duckduckgo_search tavily_search""",
    "agent": """Task Agent subagent run_subagent runSubagent spawn_agent delegate_to_agent delegate_work
        delegate_work_to_coworker new_task use_subagents dispatch_agent launch_agent SendMessage
        codebase_investigator""",
    "mcp": "use_mcp_tool access_mcp_resource read_mcp_resource list_mcp_resources",
}
_PATCH_TOOLS = ("apply_patch", "ApplyPatch", "patch")
_EDITORS = ("str_replace_editor", "str_replace_based_edit_tool", "text_editor", "text_editor_20250728", "editor",
            "developer__text_editor")  # fmt: skip
# Patterns are compiled when they are first used, which most imports never do.
_MCP_NAME = r"(?s)mcp__(?P<a>.+?)__.|mcp_(?P<b>[^_]+)_.|(?P<c>[^_].*?)___.|MCP:."
_PATCH_PATH = r"(?m)^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |\+\+\+ (?:b/)?|--- (?:a/)?)([^\t\r\n]+)"
_URL = r"https?://[^\s\"'<>]+"
_SHELL = r"(?:.*/)?(?:ba|z|da|k|a|fi)?sh"
_DIALECT = r".*?(powershell|pwsh|cmdexe)(?:exe|core|tool|command|script|7)?"
_SHELL_FLAGS = r"-[a-z]*c"


_SEPARATORS = str.maketrans("", "", "_-.")


def _normal(name: str) -> str:
    return name.translate(_SEPARATORS).casefold()


def _spec(kind: Kind, safety: Safety | None = None, **where: Any) -> ToolSpec:
    return ToolSpec(kind, safety or _SAFETY_OF_KIND.get(kind, "mutating"), **where)


_DEFAULTS: dict[str, ToolSpec] = {
    _normal(name): _spec(kind) for kind, names in _NAMES.items() for name in names.split()
}
_DEFAULTS |= {_normal(name): _spec("write", patch=True) for name in _PATCH_TOOLS}
_SPEC_OF_KIND: dict[Kind, ToolSpec] = {kind: _spec(kind) for kind in get_args(Kind)}
# An editor whose `command` argument says what it does: view reads, everything else writes.
_EDITOR_VIEW, _EDITOR_EDIT = _spec("read"), _spec("write")
_DEFAULTS |= {_normal(name): _EDITOR_EDIT for name in _EDITORS}
# A tool that no table knows is taken to run the command, or to fetch the URL, in its arguments. It may do more with
# them, so it is mutating, and all of its arguments are its target.
_GUESSED_SHELL, _GUESSED_FETCH = _spec("shell", guessed=True), _spec("fetch", "mutating", guessed=True)


@lru_cache(maxsize=4096)
def _default_spec(tool: str) -> ToolSpec:
    if match := re.match(_MCP_NAME, tool):
        return _served(tool[match.end() - 1 :], match["a"] or match["b"] or match["c"])
    if found := _DEFAULTS.get(_normal(tool)):
        return found
    if tool.startswith("transfer_to_"):
        return _spec("agent")
    return _SPEC_OF_KIND["unknown"]


def _served(name: str, server: str | None) -> ToolSpec:
    """How to read a tool of an MCP server: its kind is what it does, as far as its name says that.

    Its arguments say nothing about its kind: else a model could add one to get past the gates of the kind mcp. And a
    server names its tools as it likes, so none of them is harmless by its name.
    """
    found = _DEFAULTS.get(_normal(name))
    return msgspec.structs.replace(_spec("mcp") if found is None else found, server=server, safety="mutating")


@lru_cache(maxsize=4096)
def dialect_of(tool: str) -> Literal["posix", "powershell", "cmd"]:
    """Whose syntax the commands of a tool have, by its name."""
    found = re.fullmatch(_DIALECT, _normal(tool), re.DOTALL)
    return "posix" if found is None else "cmd" if found[1] == "cmdexe" else "powershell"


def is_named(tool: str) -> bool:
    """Whether the default table knows a tool, by its name."""
    return _default_spec(tool).kind != "unknown"


def guess(args: Mapping[str, Any]) -> ToolSpec:
    """How to read a call to a tool that no table knows: a gate on shells must see each command that is run."""
    if _KIND_ARGS.isdisjoint(map(_normal_key, args)):
        return _SPEC_OF_KIND["unknown"]
    if _command_text(args, _COMMAND_ARGS[:2]):
        return _GUESSED_SHELL
    return _GUESSED_FETCH if any(_texts(args, _URL_ARGS)) else _SPEC_OF_KIND["unknown"]


_Entry = tuple[re.Pattern[str], str | None, ToolSpec, str]
"""A compiled glob, the only host it applies to, how to read its tools, and the glob itself."""


def _entry_for(tool: str, host: str | None, entries: tuple[_Entry, ...]) -> ToolSpec | None:
    for pattern, only_host, spec, _ in entries:
        if (only_host is None or only_host == host) and pattern.fullmatch(tool):
            return spec
    return None


def _with_server(spec: ToolSpec, tool: str, server: str | None) -> ToolSpec:
    """An entry of a table, with the server of the tool: that of its name, or the one that the host knows."""
    if spec.server == "*":
        prefix, *rest = re.split(r"__|[/-]", tool, maxsplit=1)
        if spec.kind == "mcp" and rest:
            return _served(rest[0], prefix)
        return msgspec.structs.replace(spec, server=prefix)
    return spec if spec.server or server is None else msgspec.structs.replace(spec, server=server)


def _entry_to_builtins(entry: _Entry) -> dict[str, Any]:
    _, host, spec, glob = entry
    plain, usual = msgspec.to_builtins(spec), msgspec.to_builtins(ToolSpec(spec.kind, spec.safety))
    where = {name: value for name, value in plain.items() if value != usual[name]}
    only = {} if host is None else {"host": host}
    return {"tool": glob, **only, "kind": spec.kind, "safety": spec.safety, **where}


class Tools:
    """A table of tools: added entries first, the newest winning (some for one host only), then the defaults."""

    def __init__(self) -> None:
        self._own: tuple[_Entry, ...] = ()
        self._configured: tuple[_Entry, ...] = ()
        self._unknown: tuple[_Entry, ...] = ()  # only for tools that nothing else knows

    def __bool__(self) -> bool:
        """True when there are entries beyond the defaults."""
        return bool(self._own or self._configured or self._unknown)

    def configure(self, configured: Tools, unknown: Tools) -> None:
        """Take over the entries of two other tables, in place of those taken over before.

        `configured` yields to what was added here; `unknown` to everything else, defaults included,
        so that it can describe new tools but never redescribe one.
        """
        self._configured, self._unknown = configured._own, unknown._own

    def add(
        self,
        pattern: str,
        kind: Kind,
        *,
        safety: Safety | None = None,
        command: str | Sequence[str] | None = None,
        paths: str | Sequence[str] | None = None,
        url: str | Sequence[str] | None = None,
        server: str | None = None,
        host: str | None = None,
    ) -> None:
        """Say what the tools matching a glob do, and which arguments hold their target.

        The newest entry that matches wins. `host` limits it to one host's steps. The server `"*"` is the one that
        the tool's name begins with.
        """
        if kind not in KINDS:
            raise UnknownName("kind", kind, KINDS, f" for tool {pattern!r}")
        if safety is not None and safety not in SAFETIES:
            raise UnknownName("safety", safety, SAFETIES, f" for tool {pattern!r}")
        where: dict[str, Any] = {"server": server}
        for field, names in (("command", command), ("paths", paths), ("url", url)):
            if names is not None:
                where[field] = tuple(map(_normal, (names,) if isinstance(names, str) else names))
        self._own = ((compile_glob(pattern), host, _spec(kind, safety, **where), pattern), *self._own)

    def describes(self, tool: str, host: str | None = None) -> bool:
        """True when an entry that was added here, and not one that was taken over, describes this tool."""
        return _entry_for(tool, host, self._own) is not None

    def to_builtins(self) -> dict[str, list[dict[str, Any]]]:
        """The entries beyond the defaults as plain data, those that win first.

        `tools` win over the defaults; `unknown_tools` describe only tools that nothing else does.
        """
        groups = {"tools": (*self._own, *self._configured), "unknown_tools": self._unknown}
        return {name: list(map(_entry_to_builtins, entries)) for name, entries in groups.items() if entries}

    @classmethod
    def joined(cls, tables: Iterable[Tools]) -> Tools:
        """A table of all entries that were added to these. Those of an earlier table win."""
        made = cls()
        made._own = tuple(entry for table in tables for entry in table._own)
        return made

    def extend(self, other: Tools) -> None:
        """Take over another table's entries. They win over those that are there."""
        self._own = (*other._own, *self._own)

    def spec(
        self,
        tool: str,
        args: Mapping[str, Any],
        host: str | None = None,
        kind: Kind | None = None,
        server: str | None = None,
    ) -> ToolSpec:
        """How to read a call; as one of `kind`, where that is known better. `server` is the MCP server of the tool."""
        spec = self._spec(tool, args, host, server)
        return spec if kind is None or (kind == spec.kind and not spec.guessed) else _SPEC_OF_KIND[kind]

    def _spec(self, tool: str, args: Mapping[str, Any], host: str | None, server: str | None) -> ToolSpec:
        if self._own or self._configured:
            found = _entry_for(tool, host, (*self._own, *self._configured))
            if found is not None:
                return _with_server(found, tool, server)
        spec = _default_spec(tool)
        if spec.server is None and server is not None:
            spec = _served(tool, server)
        if spec.kind == "unknown":
            found = _entry_for(tool, host, self._unknown) if self._unknown else None
            return guess(args) if found is None else _with_server(found, tool, server)
        return _EDITOR_VIEW if spec is _EDITOR_EDIT and args.get("command") == "view" else spec

    def knows(self, tool: str, host: str | None = None) -> bool:
        """True when a user's entry, not a default, describes this tool."""
        if _entry_for(tool, host, (*self._own, *self._configured)) is not None:
            return True
        return _default_spec(tool).kind == "unknown" and _entry_for(tool, host, self._unknown) is not None

    def classify(
        self,
        tool: str,
        args: Mapping[str, Any],
        host: str | None = None,
        kind: Kind | None = None,
        server: str | None = None,
    ) -> Classified:
        """Kind, target and safety of one call; a kind or a server that the host is sure of is taken as it is."""
        spec = self.spec(tool, args, host, kind, server)
        target = target_of(spec, args)
        if target.command and (dialect := dialect_of(tool)) != "posix":
            target = msgspec.structs.replace(target, dialect=dialect)
        return Classified(spec.kind, target, spec.safety)

    def rewrite(
        self,
        tool: str,
        args: Mapping[str, Any],
        changes: Mapping[str, Any],
        host: str | None = None,
        kind: Kind | None = None,
        server: str | None = None,
    ) -> dict[str, Any]:
        """The arguments that aim this tool at a new target. Raises if the tool has no such argument."""
        spec = self.spec(tool, args, host, kind, server)
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


DEFAULT_TOOLS = Tools()


class View:
    """How the hooks of one file see tool calls, where other files describe tools, too.

    What another file says adds to what a hook sees and takes nothing away: the target holds what all of them find.
    """

    def __init__(self, tools: Tools, table: Tools) -> None:
        self._tools = tools
        self._table = table

    def readings(self, step: Any) -> list[Any]:
        """The step as the file describes its tool, as the table does, and as the tool's name alone says."""
        tool, host = getattr(step, "tool", None), step.host
        if tool is None or self._table.describes(tool, host) or not self._table.knows(tool, host):
            return [step]
        table = Classified(step.kind, step.target, step.safety)
        own, plain = (
            tools.classify(tool, step.args, host, server=server_of(step)) for tools in (self._tools, DEFAULT_TOOLS)
        )
        found = list(dict.fromkeys((table, own, plain) if own.kind == "unknown" else (own, table, plain)))
        target = reduce(_both, (reading.target for reading in found))
        return [msgspec.structs.replace(step, kind=kind, target=target, safety=safety) for kind, _, safety in found]


def _both(one: Target, other: Target) -> Target:
    return Target(
        command=_lines(one.command, other.command),
        paths=tuple(dict.fromkeys((*one.paths, *other.paths))),
        url=_lines(one.url, other.url),
        server=one.server or other.server,
        dialect=one.dialect,
    )


def _lines(one: str | None, other: str | None) -> str | None:
    return f"{one}\n{other}" if one and other and one != other else one or other


def target_of(spec: ToolSpec, args: Mapping[str, Any]) -> Target:
    """Where these arguments aim. Every kind's arguments are read, so an odd tool hides nothing."""
    kind, server = "unknown" if spec.guessed else spec.kind, spec.server
    if kind == "shell":
        command = _command_text(args, spec.command) or (args and _odd_command(args, spec.command)) or ""
        return Target(command, server=server)
    if kind == "read" or kind == "write" or kind == "search":
        return Target(paths=(*_texts(args, spec.paths), *_patched(args, spec)), server=server)
    if kind == "fetch":
        return Target(url=_url_text(args, spec.url), server=server)
    if kind == "agent":
        return _NOWHERE if server is None else Target(server=server)
    plain = spec.paths is _PATH_ARGS and spec.url is _URL_ARGS
    if plain and spec.server is None and _TARGET_ARGS.isdisjoint(map(_normal_key, args)):
        return _NOWHERE  # most custom tools
    return Target(  # an MCP tool, or one that no table knows: whatever its arguments give away
        command=_command_text(args, spec.command if spec is _GUESSED_SHELL else _COMMAND_ARGS[:2]) or None,
        paths=tuple(_texts(args, spec.paths)),
        url=_url_text(args, spec.url),
        server=server or next(_texts(args, _SERVER_ARGS), None),
    )


def server_of(step: Any) -> str | None:
    """The MCP server that a step's tool is known to be of. What the model's arguments call a server does not count."""
    server: str | None = step.target.server
    return None if server is None or server in _texts(step.args, _SERVER_ARGS) else server


def _normal_key(key: str) -> str:
    return _short_key(key) if len(key) <= _SHORT_KEY else _normal(key)


_SHORT_KEY = 64
"""Characters of a key that is remembered. Longer ones would be remembered at length."""


@lru_cache(maxsize=4096)
def _short_key(key: str) -> str:
    return _normal(key)


def _present(args: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    """The arguments that go by one of these names, however they are written, in the names' order."""
    found = [(names.index(normal), key) for key in args if (normal := _normal_key(key)) in names]
    return [key for _, key in sorted(found)] if len(found) > 1 else [key for _, key in found]


def _texts(args: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
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
                    yield from _texts(item, names)


def _url_text(args: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The URL; several are joined by newlines, so that none hides behind another."""
    found = list(_texts(args, names)) or re.findall(_URL, next(_texts(args, ("prompt",)), ""))
    return "\n".join(found) or None


def _command_text(args: Mapping[str, Any], names: tuple[str, ...]) -> str:
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
    if len(words) != 1 or "argv" in map(_normal_key, rest_keys):  # the program may be none of them, but in the rest
        lines.append(_with_rest("", _rest(args, rest_keys, None)))
    return "\n".join(filter(None, lines))


def _one_command(key: str, value: Any, rest: list[str] | str = "") -> str:
    if isinstance(value, str):
        return _with_rest(value, rest)
    if isinstance(value, dict):
        return _with_rest(_command_in(value), rest)
    if not isinstance(value, (list, tuple)):
        return _with_rest("", rest)
    if _normal_key(key) == "commands":  # a list of command lines; any other is a list of words
        return "\n".join(_one_command("", line, rest) for line in value)
    return _with_rest(list(_words_in(value)), rest)


def _command_in(value: dict[str, Any]) -> str:
    """run_commands(commands=[{command: rm, args: [-rf, /]}]): the command, and whatever else may be one."""
    read = {*_present(value, _COMMAND_ARGS), *_rest_keys(value, ())}
    others = _joined(_words_in({key: item for key, item in value.items() if key not in read}))
    return "\n".join(filter(None, (_command_text(value, _COMMAND_ARGS), others)))


def _rest_keys(args: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    """The arguments that hold the rest of a command, unless they are known to hold all of it."""
    return [key for key in _present(args, _REST_ARGS) if _normal_key(key) not in names]


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
    return _normal_key(key) == "argv" and isinstance(part, (list, tuple)) and [*part[:1]] == words


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
        for text in _texts(args, _PATCH_ARGS):
            yield from dict.fromkeys(p.strip() for p in re.findall(_PATCH_PATH, text) if p.strip() != "/dev/null")


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
    if _normal_key(key) == "commands":
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
