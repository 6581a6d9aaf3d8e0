"""What a tool call does, whatever the agent calls its tools; and aiming it somewhere else.

The calls are those of real agents: the ones in `CAPTURED` were seen on the wire of their hooks.
"""

import shlex
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairlead import Decision, Hooks, RegistrationError, Target, Tools, UnknownName, change, deny, skip_rest, stop
from fairlead import targets as targets_module
from fairlead.lifecycle import AfterTool, BeforeInput, BeforePermission, BeforeTool, ToolRequested
from fairlead.shell import read as read_line
from fairlead.tools import DEFAULT_TOOLS


class Call(NamedTuple):
    agent: str
    tool: str
    args: dict[str, Any]
    kind: str
    target: Target = Target()


def shell(agent: str, tool: str, args: dict[str, Any], command: str) -> Call:
    return Call(agent, tool, args, "shell", Target(command=command))


def read(agent: str, tool: str, args: dict[str, Any], *paths: str) -> Call:
    return Call(agent, tool, args, "read", Target(paths=paths))


def write(agent: str, tool: str, args: dict[str, Any], *paths: str) -> Call:
    return Call(agent, tool, args, "write", Target(paths=paths))


def search(agent: str, tool: str, args: dict[str, Any], *paths: str) -> Call:
    return Call(agent, tool, args, "search", Target(paths=paths))


def fetch(agent: str, tool: str, args: dict[str, Any], url: str | None = None) -> Call:
    return Call(agent, tool, args, "fetch", Target(url=url))


def ids(calls: list[Call]) -> list[str]:
    return [f"{call.agent}: {call.tool}" for call in calls]


PATCH = """*** Begin Patch
*** Update File: src/a.py
*** Move to: src/b.py
@@
-old
+new
*** Add File: docs/c.md
+text
*** Delete File: d.txt
*** End Patch
"""
PATCHED = ("src/a.py", "src/b.py", "docs/c.md", "d.txt")
DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-old\n+new\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n"

# As captured from Claude Code 2.1.325, Codex 0.166.0, Gemini CLI 0.61.0, Qwen Code 0.24.4, Copilot CLI 1.0.102,
# Droid 0.225.2, Cline 3.0.65 and OpenCode 1.18.33.
CAPTURED = [
    shell("claude", "Bash", {"command": "echo hi"}, "echo hi"),
    shell("codex", "Bash", {"command": "echo hi"}, "echo hi"),
    shell("gemini", "run_shell_command", {"command": "echo hi"}, "echo hi"),
    shell("qwen", "run_shell_command", {"command": "echo hi"}, "echo hi"),
    shell("copilot", "bash", {"command": "echo hi", "description": "mock call"}, "echo hi"),
    shell("copilot, pascal", "Bash", {"command": "echo hi", "description": "mock call"}, "echo hi"),
    shell(
        "droid",
        "Execute",
        {"command": "echo hi", "summary": "mock", "riskLevelReason": "x", "riskLevel": "low"},
        "echo hi",
    ),
    shell("cline", "run_commands", {"commands": ["echo hi"]}, "echo hi"),
    shell("opencode", "bash", {"command": "echo hi"}, "echo hi"),
]

KNOWN = [
    shell("claude", "Bash", {"command": "make", "timeout": 5, "run_in_background": True}, "make"),
    read("claude", "Read", {"file_path": "/a.py", "offset": 1, "limit": 5}, "/a.py"),
    write("claude", "Write", {"file_path": "/a.py", "content": "path: x"}, "/a.py"),
    write("claude", "Edit", {"file_path": "/a.py", "old_string": "x", "new_string": "y"}, "/a.py"),
    write("claude", "MultiEdit", {"file_path": "/a.py", "edits": [{"old_string": "x"}]}, "/a.py"),
    write("claude", "NotebookEdit", {"notebook_path": "/a.ipynb", "new_source": "x"}, "/a.ipynb"),
    search("claude", "Glob", {"pattern": "**/*.py", "path": "/src"}, "/src"),
    search("claude", "Grep", {"pattern": "x", "path": "/src", "glob": "*.py"}, "/src"),
    fetch("claude", "WebFetch", {"url": "https://a.example/", "prompt": "sum up"}, "https://a.example/"),
    fetch("claude", "WebSearch", {"query": "x"}),
    Call("claude", "Task", {"prompt": "x", "subagent_type": "coder"}, "agent"),
    Call("claude", "Agent", {"prompt": "x", "subagent_type": "coder"}, "agent"),
    shell("codex", "shell", {"command": ["bash", "-lc", "ls | wc -l"], "workdir": "/src"}, "ls | wc -l"),
    shell("codex", "shell", {"command": ["git", "commit", "-m", "a b"]}, "git commit -m 'a b'"),
    shell("codex", "shell_command", {"command": "ls", "workdir": "/src"}, "ls"),
    shell("codex", "local_shell", {"command": ["zsh", "-c", "ls"]}, "ls"),
    shell("codex", "container.exec", {"command": ["bash", "-lc", "ls"]}, "ls"),
    shell("codex", "exec_command", {"cmd": "ls -la", "yield_time_ms": 1000}, "ls -la"),
    write("codex", "apply_patch", {"input": PATCH}, *PATCHED),
    write("codex hooks", "apply_patch", {"command": PATCH}, *PATCHED),
    read("codex", "view_image", {"path": "/a.png"}, "/a.png"),
    fetch("codex", "web_search", {"query": "x"}),
    read("gemini", "read_file", {"absolute_path": "/a.py"}, "/a.py"),
    read("gemini", "read_file", {"file_path": "/a.py", "start_line": 1}, "/a.py"),
    read("gemini", "read_many_files", {"paths": ["a.py", "b.py"]}, "a.py", "b.py"),
    read("gemini", "list_directory", {"dir_path": "/src"}, "/src"),
    write("gemini", "write_file", {"file_path": "/a.py", "content": "x"}, "/a.py"),
    write("gemini", "replace", {"file_path": "/a.py", "old_string": "x", "new_string": "y"}, "/a.py"),
    search("gemini", "glob", {"pattern": "*.py", "dir_path": "/src"}, "/src"),
    search("gemini", "search_file_content", {"pattern": "x", "dir_path": "/src"}, "/src"),
    search("gemini", "grep_search", {"pattern": "x", "dir_path": "/src"}, "/src"),
    fetch("gemini", "google_web_search", {"query": "x"}),
    fetch("gemini", "web_fetch", {"prompt": "sum up https://a.example/ please"}, "https://a.example/"),
    Call("gemini", "codebase_investigator", {"objective": "x"}, "agent"),
    write("qwen", "edit", {"file_path": "/a.py", "old_string": "x", "new_string": "y"}, "/a.py"),
    fetch("qwen", "web_fetch", {"url": "https://a.example/", "prompt": "x"}, "https://a.example/"),
    Call("qwen", "task", {"prompt": "x", "subagent_type": "coder"}, "agent"),
    read("copilot", "view", {"path": "/a.py", "view_range": [1, 5]}, "/a.py"),
    write("copilot", "create", {"path": "/a.py", "file_text": "x"}, "/a.py"),
    write("copilot", "edit", {"path": "/a.py", "old_str": "x", "new_str": "y"}, "/a.py"),
    search("copilot", "grep", {"pattern": "x", "path": "/src"}, "/src"),
    search("copilot", "glob", {"pattern": "*.py", "path": "/src"}, "/src"),
    fetch("copilot", "web_fetch", {"url": "https://a.example/"}, "https://a.example/"),
    read("droid", "Read", {"file_path": "/a.py"}, "/a.py"),
    read("droid", "LS", {"directory_path": "/src"}, "/src"),
    write("droid", "Create", {"file_path": "/a.py", "content": "x"}, "/a.py"),
    write("droid", "ApplyPatch", {"input": PATCH}, *PATCHED),
    search("droid", "Glob", {"patterns": ["*.py"], "folder": "/src"}, "/src"),
    search("droid", "Grep", {"pattern": "x", "path": "/src"}, "/src"),
    fetch("droid", "FetchUrl", {"url": "https://a.example/"}, "https://a.example/"),
    shell("cline", "run_commands", {"commands": ["cd /src", "make test"]}, "cd /src\nmake test"),
    shell("cline", "execute_command", {"command": "make", "requires_approval": False}, "make"),
    read("cline", "read_files", {"files": [{"path": "a.py"}, {"path": "b.py", "start_line": 1}]}, "a.py", "b.py"),
    read("cline", "read_file", {"path": "a.py"}, "a.py"),
    write("cline", "write_to_file", {"path": "a.py", "content": "x"}, "a.py"),
    write("cline", "replace_in_file", {"path": "a.py", "diff": "x"}, "a.py"),
    search("cline", "search_files", {"path": "src", "regex": "x"}, "src"),
    read("cline", "list_files", {"path": "src"}, "src"),
    fetch("cline", "browser_action", {"action": "launch", "url": "https://a.example/"}, "https://a.example/"),
    Call("cline", "use_mcp_tool", {"server_name": "jira", "tool_name": "get"}, "mcp", Target(server="jira")),
    Call("cline", "new_task", {"context": "x"}, "agent"),
    read("opencode", "read", {"filePath": "/a.py"}, "/a.py"),
    write("opencode", "write", {"filePath": "/a.py", "content": "x"}, "/a.py"),
    write("opencode", "edit", {"filePath": "/a.py", "oldString": "x", "newString": "y"}, "/a.py"),
    write("opencode", "apply_patch", {"patchText": PATCH}, *PATCHED),
    read("opencode", "list", {"path": "/src"}, "/src"),
    search("opencode", "grep", {"pattern": "x", "path": "/src"}, "/src"),
    fetch("opencode", "webfetch", {"url": "https://a.example/", "format": "text"}, "https://a.example/"),
    Call("opencode", "task", {"prompt": "x", "subagent_type": "build"}, "agent"),
    shell("cursor", "Shell", {"command": "ls", "cwd": "/src"}, "ls"),
    shell("cursor", "run_terminal_cmd", {"command": "ls", "is_background": False}, "ls"),
    read("cursor", "Read", {"path": "/a.py"}, "/a.py"),
    read("cursor", "read_file", {"target_file": "/a.py"}, "/a.py"),
    write("cursor", "Write", {"path": "/a.py", "contents": "x"}, "/a.py"),
    write("cursor", "StrReplace", {"path": "/a.py", "old_string": "x", "new_string": "y"}, "/a.py"),
    write("cursor", "edit_file", {"target_file": "/a.py", "code_edit": "x"}, "/a.py"),
    write("cursor", "delete_file", {"target_file": "/a.py"}, "/a.py"),
    write("cursor", "Delete", {"path": "/a.py"}, "/a.py"),
    search("cursor", "Grep", {"pattern": "x", "path": "/src"}, "/src"),
    search("cursor", "codebase_search", {"query": "x"}),
    write("anthropic", "str_replace_based_edit_tool", {"command": "create", "path": "/a.py"}, "/a.py"),
    read("anthropic", "str_replace_based_edit_tool", {"command": "view", "path": "/a.py"}, "/a.py"),
    read("anthropic", "str_replace_editor", {"command": "view", "path": "/a.py"}, "/a.py"),
    write("any", "apply_patch", {"patch": DIFF}, "src/a.py", "new.py"),
]
calls = pytest.mark.parametrize("call", CAPTURED + KNOWN, ids=ids(CAPTURED + KNOWN))

SAFETY = {"read": "read_only", "search": "read_only", "fetch": "network"}


@calls
def test_a_known_call_has_its_kind(call: Call) -> None:
    assert BeforeTool(tool=call.tool, args=call.args).kind == call.kind


@calls
def test_a_known_call_has_its_target(call: Call) -> None:
    assert BeforeTool(tool=call.tool, args=call.args).target == call.target


@calls
def test_a_known_call_has_its_safety(call: Call) -> None:
    assert BeforeTool(tool=call.tool, args=call.args).safety == SAFETY.get(call.kind, "mutating")


@pytest.mark.parametrize("kind", [ToolRequested, BeforeTool, BeforePermission, AfterTool])
def test_every_step_about_a_tool_is_classified(kind: Any) -> None:
    step = kind(tool="Bash", args={"command": "ls"})
    assert (step.kind, step.target, step.safety) == ("shell", Target(command="ls"), "mutating")


@pytest.mark.parametrize("name", ["read_file", "ReadFile", "readFile", "read-file", "READ_FILE"])
def test_a_name_is_known_however_it_is_written(name: str) -> None:
    assert BeforeTool(tool=name, args={"path": "a"}).kind == "read"


@pytest.mark.parametrize("args", [{}, {"command": None}, {"command": []}, {"command": True}])
def test_a_shell_without_a_command_has_an_empty_one(args: dict[str, Any]) -> None:
    assert BeforeTool(tool="Bash", args=args).target == Target(command="")


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["bash", "-lc", "ls | wc"], "ls | wc"),
        (["bash", "-c", "ls"], "ls"),
        (["sh", "-c", "ls"], "ls"),
        (["/bin/zsh", "-lic", "ls"], "ls"),
        (["ls"], "ls"),
        (["ls", "-la", "a b"], "ls -la 'a b'"),
        (["bash", "-c", "ls", "zero"], "bash -c ls zero"),
        (["bash", "-l", "-c", "rm -rf /"], "bash -l -c 'rm -rf /'"),
        (["gcc", "-c", "main.c"], "gcc -c main.c"),
        (["git", "-c", "alias.x=!sh"], "git -c 'alias.x=!sh'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_list_of_words_reads_as_its_command(argv: list[str], command: str) -> None:
    assert BeforeTool(tool="shell", args={"command": argv}).target == Target(command=command)


@pytest.mark.parametrize(
    "commands",
    [["rm -rf /"], ["ls", "rm -rf /"], ["rm -rf /", "ls", "pwd"], ["rm -rf /", "-c", "ls"]],
    ids=["alone", "last", "first", "before a flag"],
)
def test_no_command_of_a_list_is_hidden(commands: list[str]) -> None:
    command = BeforeTool(tool="run_commands", args={"commands": commands}).target.command
    assert "rm -rf /" in (command or "")


@pytest.mark.parametrize("tool", ["Read", "Write", "Grep"])
def test_all_paths_of_a_call_are_its_target(tool: str) -> None:
    step = BeforeTool(tool=tool, args={"path": "a", "file_path": "b", "paths": ["c", "d"]})
    assert sorted(step.target.paths) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("tool", "args", "target"),
    [
        ("exec_command", {"cmd": "rm -rf /", "command": "ls"}, Target(command="ls\nrm -rf /")),
        ("write_stdin", {"session_id": 1, "chars": "rm -rf /\n"}, Target(command="rm -rf /\n")),
        ("run_commands", {"commands": [{"command": "rm", "args": ["-rf", "/"]}, "ls"]}, Target(command="rm -rf /\nls")),
        ("move_file", {"source": "a", "destination": "b"}, Target(paths=("a", "b"))),
        ("read_many_files", {"include": ["a", "b"]}, Target(paths=("a", "b"))),
        (
            "fetch",
            {"urls": ["https://a.example", "https://b.example"]},
            Target(url="https://a.example\nhttps://b.example"),
        ),
        ("house_tool", {"command": "rm", "path": "a", "url": "u"}, Target("rm", ("a",), "u")),
    ],
    ids=["a decoy", "a running shell", "objects", "two ends", "include", "two urls", "an unknown tool"],
)
def test_nothing_hides_behind_another_argument(tool: str, args: dict[str, Any], target: Target) -> None:
    assert BeforeTool(tool=tool, args=args).target == target


@pytest.mark.parametrize(
    ("tool", "args", "command"),
    [
        ("exec_command", {"cmd": "rm", "command": "ls"}, "pwd"),
        ("shell", {"command": ["ls", "-la"]}, "ls | wc -l"),
        ("shell", {"command": ["ls", "-la"]}, "ls 'unclosed"),
    ],
    ids=["which of two", "a pipe without a shell", "an open quote"],
)
def test_a_command_that_would_not_arrive_as_meant_is_malformed(tool: str, args: dict[str, Any], command: str) -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(command=command), on="before_tool", name="h")
    decision = decide(hooks, tool, args)
    assert (decision.failures[0].kind, decision.step.args) == ("malformed", args)


# --- a program and its words, given apart --------------------------------------------------------

SHELLS = ["bash", "run_command", "execute_command", "terminal", "run_bash", "my_exec", "mcp__box__run"]
REST = ["args", "arguments", "argv", "command_args"]
word = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
program = st.from_regex(r"[a-z]{1,5}", fullmatch=True).filter(lambda name: not name.endswith("sh"))
command_words = st.tuples(program, st.lists(word, max_size=5)).map(lambda parts: [parts[0], *parts[1]])


def run_by(command: str | None) -> list[list[str]]:
    """The words of each command that a shell would run."""
    line = read_line(command or "", "/")
    assert line.sound
    return [
        [*(f"{name}={value}" for name, value in one.assignments.items()), *([one.path, *one.args] if one.path else [])]
        for one in line.tree
    ]


def test_a_word_of_an_argv_is_kept_where_the_command_has_several() -> None:
    step = BeforeTool(tool="bash", args={"command": ["a", "b"], "argv": ["a", "c"]})
    assert step.target.command == "a b a c"


@given(
    words=command_words, at=st.integers(0, 6), tool=st.sampled_from(SHELLS), key=st.sampled_from(REST), form=st.data()
)
def test_a_command_reads_the_same_however_its_words_are_divided(
    words: list[str], at: int, tool: str, key: str, form: st.DataObject
) -> None:
    command, rest = words[:at], words[at:]
    if key == "argv" and command == rest[:1]:
        rest = [*command, *rest]  # a process is given its own name first
    args: dict[str, Any] = {
        "command": form.draw(st.sampled_from([command, shlex.join(command)])),
        key: form.draw(st.sampled_from([rest, shlex.join(rest)])) if key != "argv" else rest,
    }
    step = BeforeTool(tool=tool, args=args)
    assert run_by(step.target.command) == [words]
    assert step.kind in ("shell", "mcp")


@given(
    old=command_words, new=command_words, at=st.integers(1, 6), tool=st.sampled_from(SHELLS), key=st.sampled_from(REST),
    form=st.data(),
)  # fmt: skip
def test_a_changed_command_is_the_target_however_the_old_words_were_divided(
    old: list[str], new: list[str], at: int, tool: str, key: str, form: st.DataObject
) -> None:
    args: dict[str, Any] = {
        "command": form.draw(st.sampled_from([old[:at], shlex.join(old[:at])])),
        key: form.draw(st.sampled_from([old[at:], shlex.join(old[at:])])),
        "timeout": 5,
    }
    wanted = shlex.join(new)
    assume(key != "argv" or new[1:2] != new[:1])
    step = seen_after(change(command=wanted), tool, args)
    assert step.target.command == wanted
    assert step.args["timeout"] == 5


@pytest.mark.parametrize("word", [";", "&&", "(a)", "a|b", "'", '"', "\\", "\\;", "'; x '", "a b"])
def test_a_quoted_operator_is_a_word_for_a_tool_without_a_shell(word: str) -> None:
    step = seen_after(change(command=shlex.join(["echo", word])), "bash", {"command": ["ls"]})
    assert step.args["command"] == ["echo", word]


@pytest.mark.parametrize("command", ["a; b", "a 'x' && b", 'a "x" | b', "a \\' ; b \\'", "a > b", "(a)"])
def test_an_operator_that_no_shell_would_see_is_refused(command: str) -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(command=command), on="before_tool")
    decision = hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": ["ls"]}))
    assert (decision.control, decision.cause) == ("deny", "failure")


APART = {
    "a list": ({"command": "git", "args": ["push", "--force"]}, "git push --force"),
    "a text": ({"command": "git", "args": "push --force"}, "git push --force"),
    "a command line": ({"command": "git -C /a", "args": ["push", "a b"]}, "git -C /a push 'a b'"),
    "another name": ({"cmd": "git", "arguments": ["push"]}, "git push"),
    "its own name first": ({"command": "git", "argv": ["git", "push"]}, "git push"),
    "a shell": ({"command": "bash", "args": ["-lc", "git push | cat"]}, "git push | cat"),
    "a shell in a list": ({"command": ["bash", "-lc"], "args": ["git push | cat"]}, "git push | cat"),
    "no command": ({"argv": ["git", "push", "--force"]}, "git push --force"),
    "an empty command": ({"command": "", "args": ["git", "push"]}, "git push"),
    "an unknown name": ({"program": "git", "args": ["push", "--force"]}, "git push --force"),
    "two commands": ({"command": "ls", "cmd": "git", "args": ["push"]}, "ls push\ngit push"),
    "several lines": ({"commands": ["git", "ls"], "args": ["push"]}, "git push\nls push"),
    "objects": ({"commands": [{"command": "git push", "args": ["--force"]}]}, "git push --force"),
    "an object with more": ({"commands": [{"command": "ls", "then": "rm x"}]}, "ls\n'rm x'"),
    "numbers": ({"command": "sleep", "args": [5]}, "sleep 5"),
    "nothing": ({"command": "ls -l", "args": []}, "ls -l"),
}


@pytest.mark.parametrize(("args", "command"), APART.values(), ids=APART)
def test_what_is_given_apart_from_a_command_is_a_part_of_it(args: dict[str, Any], command: str) -> None:
    assert BeforeTool(tool="bash", args=args).target == Target(command=command)


def test_a_users_tool_whose_command_is_called_args_has_nothing_beside_it() -> None:
    hooks = own("runner", "shell", command="args")
    assert decide(hooks, "runner", {"args": "git push", "command": "ignored"}).step.target.command == "git push"


REPLACED = {
    "a list": ({"command": "git", "args": ["push", "-f"]}, {"command": "ls", "args": ["-l", "a b"]}),
    "a text": ({"command": "git", "args": "push -f"}, {"command": "ls -l 'a b'", "args": ""}),
    "both lists": ({"command": ["git"], "args": ["push"]}, {"command": ["ls", "-l", "a b"], "args": []}),
    "an empty list": ({"command": "git push", "args": []}, {"command": "ls -l 'a b'", "args": []}),
    "its own name first": ({"command": "git", "argv": ["git", "push"]}, {"command": "ls", "argv": ["ls", "-l", "a b"]}),
    "a shell": ({"command": "bash", "args": ["-c", "git push"]}, {"command": "bash", "args": ["-c", "ls -l 'a b'"]}),
    "no command": ({"argv": ["git", "push"]}, {"argv": ["ls", "-l", "a b"]}),
}


@pytest.mark.parametrize(("args", "wanted"), REPLACED.values(), ids=REPLACED)
def test_a_changed_command_leaves_nothing_of_the_old_one(args: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert seen_after(change(command="ls -l 'a b'"), "bash", args).args == wanted


@pytest.mark.parametrize("args", [{"program": "git", "args": ["push"]}, {"line": "git push"}], ids=["apart", "whole"])
def test_a_command_by_an_unknown_name_is_not_changed_beside_it(args: dict[str, Any]) -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(command="ls"), on="before_tool", name="h")
    decision = decide(hooks, "bash", args)
    assert (decision.failures[0].kind, decision.step.args) == ("malformed", args)


def test_a_tool_that_no_table_knows_is_warned_of_by_default() -> None:
    assert "'house_tool' is of unknown kind" in decide(Hooks(), "house_tool").warnings[0]


# --- MCP --------------------------------------------------------------------------------------

MCP = [
    ("mcp__github__create_issue", "github", "mcp"),
    ("mcp__my_server__tool", "my_server", "mcp"),
    ("mcp__plugin_github_github__create_issue", "plugin_github_github", "mcp"),
    ("mcp__a__b__c", "a", "mcp"),
    ("mcp__fs__read_file", "fs", "read"),
    ("mcp__shell__Bash", "shell", "shell"),
    ("mcp_github_create_issue", "github", "mcp"),
    ("linear___list_issues", "linear", "mcp"),
    ("file___search", "file", "search"),
]


@pytest.mark.parametrize(("tool", "server", "kind"), MCP)
def test_an_mcp_tool_has_the_kind_of_what_it_does_and_its_server(tool: str, server: str, kind: str) -> None:
    step = BeforeTool(tool=tool)
    assert (step.kind, step.target.server, step.safety) == (kind, server, "mutating")


@pytest.mark.parametrize(("name", "kind"), [("shell", "shell"), ("read_file", "read"), ("query", "mcp")])
def test_a_host_that_knows_the_server_gets_the_same_as_by_the_long_name(name: str, kind: str) -> None:
    args = {"command": "ls", "path": "a"}
    by_name = Tools().classify(f"mcp__box__{name}", args)
    assert Tools().classify(name, args, server="box") == by_name
    assert (by_name.kind, by_name.target.server) == (kind, "box")


async def test_a_tool_of_a_server_stays_one_when_its_arguments_change() -> None:
    kind, target, safety = Tools().classify("query", {"q": "a"}, server="db")
    hooks = Hooks()
    hooks.add(lambda step: change(args={"q": "b"}), on="before_tool", name="h")
    step = BeforeTool(tool="query", args={"q": "a"}, kind=kind, target=target, safety=safety)
    after = (await hooks.dispatch(step)).step
    assert (after.kind, after.target.server, after.safety) == ("mcp", "db", "mutating")


def test_arguments_do_not_make_a_tool_one_of_a_server() -> None:
    hooks = Hooks(unknown_tool="deny")
    assert decide(hooks, "house_tool", {"command": "ls", "server": "db"}).denied


def test_the_arguments_of_an_mcp_tool_are_read() -> None:
    args = {"command": "ls", "path": "/a", "url": "https://a.example/"}
    assert BeforeTool(tool="mcp__x__y", args=args).target == Target("ls", ("/a",), "https://a.example/", "x")


def test_an_mcp_tool_is_mutating_until_told_otherwise() -> None:
    assert BeforeTool(tool="mcp__github__get_issue").safety == "mutating"


@pytest.mark.parametrize("tool", ["mcp", "mcp__", "mcp__x", "mcp__x__", "___x", ""])
def test_a_name_that_only_looks_like_mcp_is_unknown(tool: str) -> None:
    assert BeforeTool(tool=tool).kind == "unknown"


# --- unknown tools ----------------------------------------------------------------------------

UNKNOWN = ["launch_missiles", "TodoWrite", "lookup_order", "Bashful", "unread"]


@pytest.mark.parametrize("tool", UNKNOWN)
def test_a_tool_in_no_table_is_unknown_and_mutating(tool: str) -> None:
    step = BeforeTool(tool=tool, args={"path": "/a"})
    assert (step.kind, step.safety) == ("unknown", "mutating")


@pytest.mark.parametrize("tool", [*UNKNOWN, "run_bash", "execute_shell", "cmd"])
def test_a_tool_in_no_table_that_is_given_a_command_is_a_shell(tool: str) -> None:
    step = BeforeTool(tool=tool, args={"command": "ls", "path": "/a", "url": "https://a.example/"})
    assert (step.kind, step.safety, step.target) == ("shell", "mutating", Target("ls", ("/a",), "https://a.example/"))


@pytest.mark.parametrize(
    "name", ["commandLine", "command_line", "CommandLine", "cmdline", "shell_command", "bash_command"]
)
def test_a_tool_in_no_table_is_a_shell_by_any_plain_name_of_a_command(name: str) -> None:
    step = BeforeTool(tool="launch_missiles", args={name: "git push -f"})
    assert (step.kind, step.target) == ("shell", Target("git push -f"))


@pytest.mark.parametrize("tool", UNKNOWN)
def test_a_tool_in_no_table_that_is_given_a_url_fetches(tool: str) -> None:
    step = BeforeTool(tool=tool, args={"url": "https://a.example/", "path": "/a"})
    assert (step.kind, step.safety, step.target) == ("fetch", "mutating", Target(None, ("/a",), "https://a.example/"))


@given(
    tool=st.text() | st.sampled_from([*UNKNOWN, "run_bash", "Read", "Task", "str_replace_editor", "use_mcp_tool"]),
    args=st.dictionaries(
        st.sampled_from(["command", "Command", "cmd", "script", "code", "commands", "path", "url", "prompt", "x"]),
        st.text(min_size=1) | st.lists(st.text(min_size=1)) | st.integers(),
    ),
)
def test_whatever_a_tool_is_called_a_gate_on_shells_sees_its_command(tool: str, args: dict[str, Any]) -> None:
    seen: list[BeforeTool] = []
    hooks = Hooks()
    hooks.add(seen.append, on="before_tool", kind="shell", phase="gate", name="gate")
    step = BeforeTool(tool=tool, args=args)
    hooks.dispatch_sync(step)
    assert bool(seen) == (step.kind == "shell")
    if step.target.command and step.kind != "mcp":
        assert seen


def test_a_command_of_a_tool_in_no_table_can_be_changed() -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(command="ls -l"), on="before_tool", kind="shell", name="h")
    assert decide(hooks, "run_bash", {"cmd": "ls", "why": "?"}).step.args == {"cmd": "ls -l", "why": "?"}


def test_a_kind_that_the_host_gives_is_not_guessed_at() -> None:
    step = BeforeTool(tool="house_tool", args={"command": "ls", "script": "rm"}, kind="shell")
    assert step.target == Target("ls\nrm")
    assert BeforeTool(tool="house_tool", args={"command": "ls"}, kind="read").kind == "read"


@pytest.mark.parametrize("args", [{}, {"command": "ls"}, {"url": "https://a.example/"}])
def test_the_policy_for_unknown_tools_holds_whatever_their_arguments_say(args: dict[str, Any]) -> None:
    assert decide(Hooks(unknown_tool="deny"), "launch_missiles", args).control == "deny"


def test_an_unknown_tool_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    session = Hooks().session()
    for _ in range(3):
        session.dispatch_sync(session.step(BeforeTool, tool="frobnicate_once"))
        session.dispatch_sync(session.step(BeforeTool, tool="Bash"))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "'frobnicate_once' is of unknown kind; classify it with [[tool]]" in caplog.text


def decide(hooks: Hooks, tool: str, args: dict[str, Any] | None = None, **fields: Any) -> Decision[BeforeTool]:
    return hooks.dispatch_sync(BeforeTool(tool=tool, args=args or {}, **fields))


def test_an_unknown_tool_proceeds_with_a_warning() -> None:
    decision = decide(Hooks(unknown_tool="proceed"), "launch_missiles")
    assert decision.control == "proceed"
    assert "launch_missiles" in " ".join(decision.warnings)


def test_an_unknown_tool_may_be_denied() -> None:
    decision = decide(Hooks(unknown_tool="deny"), "launch_missiles")
    assert (decision.control, decision.cause) == ("deny", "policy")
    assert "launch_missiles" in (decision.reason or "")


@pytest.mark.parametrize("answer", ["allow", "deny"])
def test_an_unknown_tool_may_be_asked_about(answer: str) -> None:
    asked = []

    async def approver(request: Any) -> Any:
        asked.append(request)
        return (answer, "ann")

    decision = decide(Hooks(unknown_tool="ask", approver=approver), "launch_missiles")
    assert (decision.control, decision.cause) == (answer, "approval")
    assert "launch_missiles" in asked[0].question


@pytest.mark.parametrize("policy", ["proceed", "ask", "deny"])
def test_a_known_tool_is_none_of_the_policys_business(policy: Any) -> None:
    decision = decide(Hooks(unknown_tool=policy), "Bash", {"command": "ls"})
    assert (decision.control, decision.warnings, decision.verdicts) == ("proceed", (), ())


def test_a_tool_that_the_user_classified_is_known() -> None:
    hooks = Hooks(unknown_tool="deny")
    hooks.tools.add("lookup_*", "read")
    assert decide(hooks, "lookup_order").control == "proceed"


def test_a_tool_that_the_host_classified_is_known() -> None:
    assert decide(Hooks(unknown_tool="deny"), "lookup_order", kind="read").control == "proceed"


def test_a_tool_that_a_host_calls_unknown_is_unknown() -> None:
    assert decide(Hooks(unknown_tool="deny"), "Bash", {"command": "ls"}, kind="unknown").control == "deny"


def test_an_unknown_policy_for_unknown_tools_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"'denny'.*did you mean 'deny'"):
        Hooks(unknown_tool="denny")  # type: ignore[arg-type]


# --- what the host says -------------------------------------------------------------------------


def test_a_hosts_explicit_kind_is_kept() -> None:
    step = BeforeTool(tool="Bash", args={"path": "a"}, kind="read")
    assert (step.kind, step.safety, step.target) == ("read", "read_only", Target(paths=("a",)))


def test_a_hosts_explicit_kind_is_kept_through_dispatch() -> None:
    assert decide(Hooks(), "Bash", {"path": "a"}, kind="read").step.kind == "read"


def test_a_hosts_explicit_kind_is_kept_when_arguments_change() -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(args={"path": "b"}), on="before_tool", name="h")
    step = decide(hooks, "launch_missiles", {"path": "a"}, kind="read").step
    assert (step.kind, step.target) == ("read", Target(paths=("b",)))


def test_a_hosts_explicit_safety_is_kept_when_arguments_change() -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(args={"command": "pwd"}), on="before_tool", name="h")
    assert decide(hooks, "Bash", {"command": "ls"}, safety="destructive").step.safety == "destructive"


def test_a_hosts_explicit_target_is_kept_when_only_the_result_changes() -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(result="x"), on="before_tool", name="h")
    step = decide(hooks, "Bash", {}, target=Target(command="ls")).step
    assert (step.target, step.result) == (Target(command="ls"), "x")


def test_a_hosts_explicit_target_is_kept() -> None:
    step = BeforeTool(tool="Bash", args={}, target=Target(command="ls"))
    assert (step.kind, step.target) == ("shell", Target(command="ls"))


@pytest.mark.parametrize(
    ("kind", "args", "changes", "wanted"),
    [
        ("shell", {"command": "ls"}, {"command": "pwd"}, {"command": "pwd"}),
        ("write", {"path": "a"}, {"paths": "b"}, {"path": "b"}),
        ("fetch", {"url": "https://a.example/"}, {"url": "https://b.example/"}, {"url": "https://b.example/"}),
    ],
    ids=["command", "paths", "url"],
)
def test_a_tool_whose_kind_only_the_host_knows_can_be_aimed(
    kind: Any, args: dict[str, Any], changes: dict[str, Any], wanted: dict[str, Any]
) -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(**changes), on="before_tool", name="h")
    decision = decide(hooks, "house_tool", args, kind=kind)
    assert (decision.failures, decision.step.args) == ((), wanted)


# --- the target follows the arguments -----------------------------------------------------------


def seen_after(said: Any, tool: str, args: dict[str, Any], **fields: Any) -> BeforeTool:
    """The step as the hook after the one that said this sees it."""
    hooks, seen = Hooks(), []
    hooks.add(lambda step: said, on="before_tool", name="first")
    hooks.add(lambda step: seen.append(step), on="before_tool", name="next")
    decision = decide(hooks, tool, args, **fields)
    assert decision.failures == ()
    assert seen[0] is decision.step
    return seen[0]


@pytest.mark.parametrize(
    ("tool", "args", "new", "target"),
    [
        ("Bash", {"command": "ls"}, {"command": "pwd"}, Target(command="pwd")),
        ("Bash", {"command": "ls"}, {}, Target(command="")),
        ("shell", {"command": ["ls"]}, {"command": ["bash", "-lc", "pwd"]}, Target(command="pwd")),
        ("Write", {"file_path": "a"}, {"file_path": "b"}, Target(paths=("b",))),
        ("WebFetch", {"url": "https://a.example/"}, {"url": "https://b.example/"}, Target(url="https://b.example/")),
        ("apply_patch", {"input": ""}, {"input": PATCH}, Target(paths=PATCHED)),
        ("mcp__x__y", {"path": "a"}, {"path": "b"}, Target(paths=("b",), server="x")),
    ],
)
def test_the_next_hook_sees_the_new_target(
    tool: str, args: dict[str, Any], new: dict[str, Any], target: Target
) -> None:
    assert seen_after(change(args=new), tool, args).target == target


def test_a_stale_target_of_the_host_does_not_survive_a_change() -> None:
    step = seen_after(change(args={"command": "pwd"}), "Bash", {"command": "ls"}, target=Target(command="ls"))
    assert step.target.command == "pwd"


AIMED = {
    "text": ("Bash", {"command": "ls", "timeout": 5}, "pwd -P", {"command": "pwd -P", "timeout": 5}),
    "cmd": ("exec_command", {"cmd": "ls", "tty": True}, "pwd -P", {"cmd": "pwd -P", "tty": True}),
    "shell call": ("shell", {"command": ["bash", "-lc", "ls"]}, "ls | wc", {"command": ["bash", "-lc", "ls | wc"]}),
    "words": ("shell", {"command": ["ls", "-la"]}, "rm 'a b'", {"command": ["rm", "a b"]}),
    "one word": ("shell", {"command": ["ls"]}, "ls -la", {"command": ["ls", "-la"]}),
    "words, one of them -c": ("shell", {"command": ["gcc", "-c", "a.c"]}, "ls -la", {"command": ["ls", "-la"]}),
    "one command": ("run_commands", {"commands": ["ls"]}, "pwd -P", {"commands": ["pwd -P"]}),
    "two commands": ("run_commands", {"commands": ["ls", "make"]}, "pwd -P", {"commands": ["pwd -P"]}),
    "three commands": ("run_commands", {"commands": ["ls", "-c", "make"]}, "pwd -P", {"commands": ["pwd -P"]}),
    "no command yet": ("Bash", {}, "pwd", {"command": "pwd"}),
}


@pytest.mark.parametrize(("tool", "args", "command", "wanted"), AIMED.values(), ids=AIMED)
def test_a_changed_command_takes_the_shape_of_the_tools_own_argument(
    tool: str, args: dict[str, Any], command: str, wanted: dict[str, Any]
) -> None:
    assert seen_after(change(command=command), tool, args).args == wanted


@pytest.mark.parametrize(("tool", "args", "command", "wanted"), AIMED.values(), ids=AIMED)
def test_a_changed_command_is_the_target_of_the_next_hook(
    tool: str, args: dict[str, Any], command: str, wanted: dict[str, Any]
) -> None:
    assert seen_after(change(command=command), tool, args).target == Target(command=command)


@pytest.mark.parametrize(
    ("tool", "args", "paths", "wanted"),
    [
        ("Write", {"file_path": "a", "content": "x"}, "b", {"file_path": "b", "content": "x"}),
        ("Write", {"file_path": "a"}, ["b"], {"file_path": "b"}),
        ("write", {"filePath": "a"}, "b", {"filePath": "b"}),
        ("Read", {"path": "a"}, "b", {"path": "b"}),
        ("read_many_files", {"paths": ["a", "b"]}, ["c", "d", "e"], {"paths": ["c", "d", "e"]}),
        ("read_many_files", {"paths": ["a"]}, "c", {"paths": ["c"]}),
        ("Grep", {"pattern": "x", "path": "a"}, "b", {"pattern": "x", "path": "b"}),
        ("mcp__fs__read", {"path": "a"}, "b", {"path": "b"}),
    ],
)
def test_changed_paths_take_the_shape_of_the_tools_own_argument(
    tool: str, args: dict[str, Any], paths: Any, wanted: dict[str, Any]
) -> None:
    step = seen_after(change(paths=paths), tool, args)
    assert step.args == wanted
    assert step.target.paths == ((paths,) if isinstance(paths, str) else tuple(paths))


@pytest.mark.parametrize(
    ("tool", "args", "wanted"),
    [
        ("WebFetch", {"url": "https://a.example/", "prompt": "x"}, {"url": "https://b.example/", "prompt": "x"}),
        ("fetch", {"urls": ["https://a.example/"]}, {"urls": ["https://b.example/"]}),
        ("mcp__web__get", {"url": "https://a.example/"}, {"url": "https://b.example/"}),
    ],
)
def test_a_changed_url_takes_the_shape_of_the_tools_own_argument(
    tool: str, args: dict[str, Any], wanted: dict[str, Any]
) -> None:
    step = seen_after(change(url="https://b.example/"), tool, args)
    assert (step.args, step.target.url) == (wanted, "https://b.example/")


@pytest.mark.parametrize(
    ("tool", "args", "changes"),
    [
        ("Bash", {"command": "ls"}, {"paths": "a"}),
        ("Bash", {"command": "ls"}, {"url": "https://a.example/"}),
        ("Read", {"file_path": "a"}, {"command": "ls"}),
        ("Read", {"file_path": "a"}, {"url": "https://a.example/"}),
        ("Read", {"file_path": "a"}, {"paths": ["a", "b"]}),
        ("Read", {"file_path": "a"}, {"paths": []}),
        ("str_replace_based_edit_tool", {"command": "create", "path": "a"}, {"command": "view"}),
        ("WebFetch", {"url": "https://a.example/"}, {"command": "ls"}),
        ("WebFetch", {"url": "https://a.example/"}, {"paths": "a"}),
        ("apply_patch", {"input": PATCH}, {"paths": "a"}),
        ("Task", {"prompt": "x"}, {"command": "ls"}),
        ("mcp__x__y", {}, {"command": "ls"}),
        ("launch_missiles", {"path": "a"}, {"paths": "b"}),
        ("shell", {"command": ["ls", "-la"]}, {"command": "it's"}),
        ("Bash", {"command": "ls"}, {"command": ["pwd"]}),
        ("Bash", {"command": "ls"}, {"command": 5}),
        ("Read", {"file_path": "a"}, {"paths": 5}),
        ("Read", {"file_path": "a"}, {"paths": ["a", 5]}),
    ],
)
def test_aiming_where_the_tool_has_no_such_argument_is_malformed(
    tool: str, args: dict[str, Any], changes: dict[str, Any]
) -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(**changes), on="before_tool", name="h", on_failure="open")
    decision = decide(hooks, tool, args)
    assert decision.step.args == args
    assert decision.failures[0].kind == "malformed"
    assert f": {next(iter(changes))}: " in decision.failures[0].error


def test_a_server_cannot_be_changed() -> None:
    with pytest.raises(UnknownName, match="server"):
        change(server="other")


def test_command_and_args_may_be_changed_together() -> None:
    step = seen_after(change(args={"command": "x", "timeout": 9}, command="pwd"), "Bash", {"command": "ls"})
    assert step.args == {"command": "pwd", "timeout": 9}


def test_a_gate_sees_the_final_target() -> None:
    hooks, seen = Hooks(), []
    hooks.add(lambda step: seen.append(step.target.command), on="before_tool", phase="gate", name="gate")
    hooks.add(lambda step: change(command="pwd"), on="before_tool", name="transform")
    decide(hooks, "Bash", {"command": "ls"})
    assert seen == ["pwd"]


# --- a change may make another kind of call -----------------------------------------------------

VIEW = {"command": "view", "path": "/etc/passwd"}
CREATE = {"command": "create", "path": "/etc/passwd", "file_text": ""}
EDITORS = ["str_replace_based_edit_tool", "str_replace_editor", "text_editor_20250728"]


@pytest.mark.parametrize("tool", EDITORS)
@pytest.mark.parametrize("command", ["create", "str_replace", "insert", "undo_edit", "", None])
def test_an_editor_reads_only_when_it_views(tool: str, command: Any) -> None:
    assert BeforeTool(tool=tool, args=VIEW).kind == "read"
    assert BeforeTool(tool=tool, args={"command": command, "path": "a"}).kind == "write"


MAKING_IT_A_WRITE = {"change": change(args=CREATE), "skip_rest": skip_rest(args=CREATE), "stop": stop(args=CREATE)}


@pytest.mark.parametrize("said", MAKING_IT_A_WRITE.values(), ids=MAKING_IT_A_WRITE)
@pytest.mark.parametrize("filters", [{"kind": "write"}, {"safety": "mutating"}], ids=["kind", "safety"])
def test_a_read_that_became_a_write_is_judged_by_the_gates_for_writes(said: Any, filters: dict[str, Any]) -> None:
    hooks = Hooks()
    hooks.add(lambda step: said, on="before_tool", name="turncoat")
    hooks.add(lambda step: deny("read-only here"), on="before_tool", phase="gate", name="gate", **filters)
    decision = decide(hooks, "str_replace_based_edit_tool", VIEW)
    assert decision.step.kind == "write"
    assert decision.denied


def test_several_async_gates_for_writes_judge_it_too() -> None:
    async def allowing(step: Any) -> None:
        return None

    async def denying(step: Any) -> Any:
        return deny("read-only here")

    hooks = Hooks()
    hooks.add(lambda step: change(args=CREATE), on="before_tool", name="turncoat")
    hooks.add(allowing, on="before_tool", phase="gate", kind="write")
    hooks.add(denying, on="before_tool", phase="gate", kind="write")
    assert decide(hooks, "str_replace_based_edit_tool", VIEW).control == "deny"


def test_a_read_that_became_a_write_is_not_judged_by_the_gates_for_reads() -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(args=CREATE), on="before_tool", name="turncoat")
    hooks.add(lambda step: deny("no reading"), on="before_tool", phase="gate", kind="read", name="gate")
    assert decide(hooks, "str_replace_based_edit_tool", VIEW).control == "proceed"


def test_a_read_that_became_a_write_is_watched_by_the_observers_of_writes() -> None:
    hooks, seen = Hooks(), []
    hooks.add(lambda step: change(args=CREATE), on="before_tool", name="turncoat")
    hooks.add(lambda step: seen.append(step.kind), on="before_tool", phase="observe", kind="write", name="observer")
    decide(hooks, "str_replace_based_edit_tool", VIEW)
    assert seen == ["write"]


def test_a_transform_registered_for_reads_still_runs_after_the_change() -> None:
    hooks, seen = Hooks(), []
    hooks.add(lambda step: change(args=CREATE), on="before_tool", name="turncoat")
    hooks.add(lambda step: seen.append(step.kind), on="before_tool", kind="read", name="reader")
    decide(hooks, "str_replace_based_edit_tool", VIEW)
    assert seen == ["write"]


def test_safety_follows_the_kind() -> None:
    assert seen_after(change(args=CREATE), "str_replace_based_edit_tool", VIEW).safety == "mutating"


# --- one's own tools --------------------------------------------------------------------------


def own(*args: Any, **options: Any) -> Hooks:
    hooks = Hooks()
    hooks.tools.add(*args, **options)
    return hooks


def test_a_users_tool_has_its_kind_and_the_safety_of_that_kind() -> None:
    step = decide(own("lookup_order", "read"), "lookup_order").step
    assert (step.kind, step.safety) == ("read", "read_only")


def test_a_users_tool_has_its_own_safety() -> None:
    assert decide(own("drop_table", "write", safety="destructive"), "drop_table").step.safety == "destructive"


@pytest.mark.parametrize(
    ("kind", "options", "args", "target"),
    [
        ("shell", {"command": "line"}, {"line": "ls"}, Target(command="ls")),
        ("write", {"paths": "destination"}, {"destination": "a"}, Target(paths=("a",))),
        ("write", {"paths": ["source", "destination"]}, {"source": "a", "destination": "b"}, Target(paths=("a", "b"))),
        ("fetch", {"url": "link"}, {"link": "https://a.example/"}, Target(url="https://a.example/")),
        ("mcp", {"server": "jira"}, {}, Target(server="jira")),
        ("shell", {}, {"command": "ls"}, Target(command="ls")),
    ],
)
def test_a_users_tool_says_which_arguments_hold_its_target(
    kind: Any, options: dict[str, Any], args: dict[str, Any], target: Target
) -> None:
    assert decide(own("mine", kind, **options), "mine", args).step.target == target


def test_a_users_tool_can_be_aimed() -> None:
    hooks = own("mine", "shell", command="line")
    hooks.add(lambda step: change(command="pwd"), on="before_tool", name="h")
    assert decide(hooks, "mine", {"line": "ls"}).step.args == {"line": "pwd"}


def test_a_users_tool_is_matched_by_its_kind() -> None:
    hooks = own("mine", "shell", command="line")
    hooks.add(lambda step: deny("no"), on="before_tool", kind="shell", phase="gate", name="gate")
    assert decide(hooks, "mine", {"line": "ls"}).control == "deny"


@pytest.mark.parametrize(
    ("pattern", "tool", "kind"),
    [
        ("acme_*", "acme_get", "read"),
        ("acme_*", "acmeget", "unknown"),
        ("acme_?", "acme_1", "read"),
        ("acme_?", "acme_12", "unknown"),
        ("{get,list}_*", "list_orders", "read"),
        ("{get,list}_*", "drop_orders", "unknown"),
        ("mcp__jira__get_*", "mcp__jira__get_issue", "read"),
        ("mcp__jira__get_*", "mcp__jira__create_issue", "mcp"),
    ],
)
def test_a_users_tool_may_be_a_glob(pattern: str, tool: str, kind: str) -> None:
    assert decide(own(pattern, "read"), tool).step.kind == kind


def test_the_newest_entry_that_matches_wins() -> None:
    hooks = own("acme_*", "read")
    hooks.tools.add("acme_drop", "write")
    assert [decide(hooks, tool).step.kind for tool in ("acme_drop", "acme_get")] == ["write", "read"]


def test_an_own_table_leaves_steps_without_a_tool_alone() -> None:
    hooks = Hooks()
    hooks.tools.add("mine", "shell")
    hooks.add(lambda step: deny("no"), on="before_input", name="h")
    assert hooks.dispatch_sync(BeforeInput(input="x")).control == "deny"


def test_a_users_entry_wins_over_the_default() -> None:
    assert decide(own("Read", "write"), "Read", {"path": "a"}).step.kind == "write"


@pytest.mark.parametrize(("host", "kind"), [("acme", "read"), ("other", "unknown"), (None, "unknown")])
def test_a_users_entry_may_be_for_one_host(host: str | None, kind: str) -> None:
    assert decide(own("mine", "read", host="acme"), "mine", host=host).step.kind == kind


@pytest.mark.parametrize(("host", "kind"), [("acme", "write"), ("other", "read"), (None, "read")])
def test_one_hosts_entry_does_not_hide_the_entry_for_all(host: str | None, kind: str) -> None:
    hooks = own("mine", "read")
    hooks.tools.add("mine", "write", host="acme")
    assert decide(hooks, "mine", host=host).step.kind == kind


def test_one_hosts_entry_does_not_overrule_another_hosts_explicit_kind() -> None:
    assert decide(own("mine", "shell", host="acme"), "mine", host="other", kind="read").step.kind == "read"


def test_one_hosts_entry_is_not_used_when_arguments_change_at_another() -> None:
    hooks = own("Bash", "shell", command="line", host="acme")
    hooks.add(lambda step: change(args={"command": "pwd", "line": "x"}), on="before_tool", name="h")
    assert decide(hooks, "Bash", {"command": "ls"}, host="other").step.target == Target(command="pwd")


def test_the_target_of_a_hosts_own_tool_follows_its_arguments() -> None:
    hooks, seen = own("mine", "shell", command="line", host="acme"), []
    hooks.add(lambda step: change(args={"line": "pwd"}), on="before_tool", name="first")
    hooks.add(lambda step: seen.append(step.target.command), on="before_tool", name="next")
    decide(hooks, "mine", {"line": "ls"}, host="acme")
    assert seen == ["pwd"]


def test_an_entry_takes_effect_after_hooks_were_registered_and_run() -> None:
    hooks = Hooks()
    hooks.add(lambda step: deny("no"), on="before_tool", kind="shell", phase="gate", name="gate")
    before = decide(hooks, "mine").control
    hooks.tools.add("mine", "shell")
    assert (before, decide(hooks, "mine").control) == ("proceed", "deny")


def test_one_hooks_tools_are_not_anothers() -> None:
    own("mine", "shell")
    assert decide(Hooks(), "mine").step.kind == "unknown"


def test_adding_to_one_table_leaves_the_default_alone() -> None:
    own("mine", "shell")
    assert DEFAULT_TOOLS.classify("mine", {}).kind == "unknown"


def test_a_table_is_true_when_it_has_entries() -> None:
    tools = Tools()
    assert not tools
    tools.add("mine", "shell")
    assert tools


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        (("mine", "shel"), {}, r"kind 'shel'.*'mine'.*did you mean 'shell'"),
        (("mine", "shell"), {"safety": "readonly"}, r"safety 'readonly'.*'mine'.*did you mean 'read_only'"),
    ],
)
def test_a_misspelt_entry_suggests_the_nearest(args: Any, options: Any, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        Hooks().tools.add(*args, **options)


@pytest.mark.parametrize("pattern", ["", "a{b", "a}b", None, 5])
def test_a_bad_glob_is_refused(pattern: Any) -> None:
    with pytest.raises(RegistrationError, match="glob"):
        Hooks().tools.add(pattern, "shell")


def test_a_refused_entry_changes_nothing() -> None:
    hooks = Hooks()
    with pytest.raises(UnknownName):
        hooks.tools.add("mine", "shel")
    assert not hooks.tools


def test_long_keys_are_read_as_short_ones_are_and_not_remembered() -> None:
    long = "_" * 1000 + "Com-Mand"
    before = targets_module._short_key.cache_info().currsize
    assert Tools().classify("bash", {long: "ls"}).target.command == "ls"
    assert targets_module._short_key.cache_info().currsize == before


@pytest.mark.parametrize("first", ["cwd", "program"])
def test_the_order_of_arguments_hides_no_program(first: str) -> None:
    args = {"program": "git", "args": ["push", "--force"], "cwd": "/w"}
    args = {first: args[first], **args}
    lines = BeforeTool(tool="shell", args=args).target.command.splitlines()
    assert "git push --force" in lines


def test_words_beside_a_folder_are_a_command_of_their_own() -> None:
    lines = BeforeTool(tool="shell", args={"argv": ["rm", "-rf", "/x"], "cwd": "/w"}).target.command.splitlines()
    assert "rm -rf /x" in lines
