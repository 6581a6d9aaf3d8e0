"""Tools: what a tool call does, whatever the agent calls its tools.

Every agent has a shell, and each names it differently. A `Tools` table turns a host's own
(tool, args) into a kind, a target and a safety class, and back: `change(command=...)`
becomes the argument that this host's tool takes. The default table knows the names of
the common agents and frameworks; users add their own with `hooks.tools.add(...)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from .errors import UnknownName
from .glob import compile_glob
from .targets import (
    KIND_ARGS,
    KINDS,
    PLAIN_COMMAND_ARGS,
    SAFETIES,
    TARGET_FIELDS,
    URL_ARGS,
    Kind,
    Safety,
    Target,
    ToolSpec,
    command_text,
    normal_key,
    normal_name,
    rewritten,
    server_of,
    target_of,
    texts_in,
)

__all__ = [
    "DEFAULT_TOOLS", "KINDS", "SAFETIES", "TARGET_FIELDS", "UNKNOWN_TOOL", "Classified", "Kind", "Safety", "Target",
    "ToolSpec", "Tools", "UnknownTool", "View", "dialect_of", "guess", "is_named", "server_of", "target_of",
]  # fmt: skip

_SAFETY_OF_KIND: dict[Kind, Safety] = {"read": "read_only", "search": "read_only", "fetch": "network"}


UnknownTool = Literal["proceed", "ask", "deny"]
"""What happens to a call to a tool that no table knows, in order of strictness."""
UNKNOWN_TOOL: tuple[UnknownTool, ...] = get_args(UnknownTool)


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
        run_pwsh cmd.exe run_cmd_exe run_python execute_python python_repl run_python_code run_code run_javascript""",
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
# Patterns are compiled when they are first used, which most imports never do; see also `targets`.
_MCP_NAME = r"(?s)mcp__(?P<a>.+?)__.|mcp_(?P<b>[^_]+)_.|(?P<c>[^_].*?)___.|MCP:."
_DIALECT = r".*?(powershell|pwsh|cmdexe)(?:exe|core|tool|command|script|7)?"


def _spec(kind: Kind, safety: Safety | None = None, **where: Any) -> ToolSpec:
    return ToolSpec(kind, safety or _SAFETY_OF_KIND.get(kind, "mutating"), **where)


_DEFAULTS: dict[str, ToolSpec] = {
    normal_name(name): _spec(kind) for kind, names in _NAMES.items() for name in names.split()
}
_DEFAULTS |= {normal_name(name): _spec("write", patch=True) for name in _PATCH_TOOLS}
_SPEC_OF_KIND: dict[Kind, ToolSpec] = {kind: _spec(kind) for kind in get_args(Kind)}
# An editor whose `command` argument says what it does: view reads, everything else writes.
_EDITOR_VIEW, _EDITOR_EDIT = _spec("read"), _spec("write")
_DEFAULTS |= {normal_name(name): _EDITOR_EDIT for name in _EDITORS}
# A tool that no table knows is taken to run the command, or to fetch the URL, in its arguments. It may do more with
# them, so it is mutating, and all of its arguments are its target.
_GUESSED_SHELL, _GUESSED_FETCH = _spec("shell", guessed=True), _spec("fetch", "mutating", guessed=True)


@lru_cache(maxsize=4096)
def _default_spec(tool: str) -> ToolSpec:
    if match := re.match(_MCP_NAME, tool):
        return _served(tool[match.end() - 1 :], match["a"] or match["b"] or match["c"])
    if found := _DEFAULTS.get(normal_name(tool)):
        return found
    if tool.startswith("transfer_to_"):
        return _spec("agent")
    return _SPEC_OF_KIND["unknown"]


def _served(name: str, server: str | None) -> ToolSpec:
    """How to read a tool of an MCP server: its kind is what it does, as far as its name says that.

    Its arguments say nothing about its kind: else a model could add one to get past the gates of the kind mcp. And a
    server names its tools as it likes, so none of them is harmless by its name.
    """
    found = _DEFAULTS.get(normal_name(name))
    return msgspec.structs.replace(_spec("mcp") if found is None else found, server=server, safety="mutating")


@lru_cache(maxsize=4096)
def dialect_of(tool: str) -> Literal["posix", "powershell", "cmd"]:
    """Whose syntax the commands of a tool have, by its name."""
    found = re.fullmatch(_DIALECT, normal_name(tool), re.DOTALL)
    return "posix" if found is None else "cmd" if found[1] == "cmdexe" else "powershell"


def is_named(tool: str) -> bool:
    """Whether the default table knows a tool, by its name."""
    return _default_spec(tool).kind != "unknown"


def guess(args: Mapping[str, Any]) -> ToolSpec:
    """How to read a call to a tool that no table knows: a gate on shells must see each command that is run."""
    if KIND_ARGS.isdisjoint(map(normal_key, args)):
        return _SPEC_OF_KIND["unknown"]
    if command_text(args, PLAIN_COMMAND_ARGS):
        return _GUESSED_SHELL
    return _GUESSED_FETCH if any(texts_in(args, URL_ARGS)) else _SPEC_OF_KIND["unknown"]


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
                where[field] = tuple(map(normal_name, (names,) if isinstance(names, str) else names))
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
        return rewritten(tool, spec, args, changes)


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
