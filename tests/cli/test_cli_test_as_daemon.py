"""`fairlead test` decides as the daemon does, and as the launcher does where there is no daemon."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.hosts.clis.__main__ import decide
from fairlead.hosts.clis.mapping import ALL, EXPERIMENTAL, HookRequest, host_named
from fairlead.journal import Journal
from fairlead.journal.reading import Reader
from fairlead.runners.environment import PASSED
from fairlead.server.service import DispatchRequest, Service

HOSTS = (*ALL, *EXPERIMENTAL)
CAPTURES = Path(__file__).parents[1] / "hosts/clis/captures"
TOOLS = {
    "bash": {"command": "git push --force"},
    "Skill": {"skill": "deploy"},
    "Task": {"prompt": "look around"},
    "run_shell_command": {"command": "ls"},
    "execute": {"command": "cat fairlead.toml"},
    "apply_patch": {"input": "*** Begin Patch"},
    "mcp__files__read": {"path": "x"},
    "view": {"path": "/etc/hosts"},
    "no_such_tool": {"x": 1},
}
DEFAULTS = {
    "none": "",
    "unknown denied": '[defaults]\nunknown_tool = "deny"\n',
    "unknown asked": '[defaults]\nunknown_tool = "ask"\n',
    "kinds": '[[hook]]\nname = "shells"\non = "before_tool"\nmatch = { kind = "shell" }\nrule = "true"\ndeny = "no"\n',
    "monitored": '[defaults]\nunknown_tool = "deny"\nenforce = false\n'
    '[[hook]]\nname = "reads"\non = "before_tool"\nmatch = { kind = "read" }\nrule = "true"\ndeny = "no"\n',
    "own tools": '[defaults]\nunknown_tool = "deny"\n[[tool]]\nname = "no_such_tool"\nkind = "read"\n'
    '[[hook]]\nname = "changes"\non = "before_tool"\nshell = "echo \'{\\"args\\": {\\"x\\": 2}}\'"\n',
}
SAME = ("control", "reason", "hook", "cause", "stop_reason", "context", "warnings")


def variables() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in PASSED}


def ask_daemon(machine: Any, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the daemon decides on each step."""

    async def dispatch() -> list[dict[str, Any]]:
        machine.state.mkdir(mode=0o700, exist_ok=True)
        service = Service(machine.state, None)
        try:
            found = []
            for step in steps:
                can = {event: list(parts) for event, parts in host_named(step["host"]).capabilities().items()}
                asked = DispatchRequest(
                    step=step, root=str(machine.project), env=variables(), capabilities=can, deadline=0.01
                )
                found.append(msgspec.json.decode(msgspec.json.encode(await service.dispatch(asked))))
            return found
        finally:
            await service.aclose()

    return asyncio.run(dispatch())


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("defaults", DEFAULTS)
def test_it_decides_as_the_daemon_does(machine, run, host: str, defaults: str):
    machine.user(DEFAULTS[defaults])
    tried = [
        run(
            "test",
            "before_tool",
            "--host",
            host,
            "--set",
            f"tool={tool}",
            "--set",
            f"args:={json.dumps(args)}",
            "--json",
        )
        for tool, args in TOOLS.items()
    ]
    decided = ask_daemon(machine, [one.json["step"] for one in tried])
    for tool, one, daemon in zip(TOOLS, tried, decided, strict=True):
        told = one.json
        theirs = {name: daemon[name] for name in SAME} | {"context": [one["text"] for one in daemon["context"]]}
        mine = told["decision"]
        if mine["control"] == "ask":  # the daemon waits for a human, who does not come here
            assert (theirs["control"], theirs["hook"]) == ("deny", mine["hook"]), tool
            continue
        assert {name: mine[name] for name in SAME} == theirs, tool
        assert told["step"] == daemon["step"], tool
        assert [hook["hook"] for hook in told["hooks"]] == [ran[0] for ran in daemon["runs"]], tool
        assert mine["unsupported"] == daemon["unsupported"], tool


def test_a_tool_that_only_its_cli_s_table_knows_is_known(machine, run):
    machine.user(DEFAULTS["unknown denied"])
    skill = ("--set", "tool=Skill", "--set", "args.skill=deploy")
    assert run("test", "before_tool", "--host", "claude_code", *skill).code == 0
    assert run("test", "before_tool", "--host", "claude", *skill, "--json").json["step"]["host"] == "claude_code"
    assert run("test", "before_tool", *skill).code == 2


def test_a_host_that_does_not_exist_is_an_error(run):
    ended = run("test", "before_tool", "--host", "claud_code")
    assert (ended.code, "did you mean 'claude_code'?" in ended.err) == (1, True)


def first_call(host: str) -> tuple[str, dict[str, Any]] | None:
    """What a CLI was seen to send before it ran a tool."""
    moments, file = host_named(host).events, CAPTURES / f"{host}.jsonl"
    for one in map(json.loads, file.read_text().splitlines()) if file.exists() else ():
        for event, moment in moments.items():
            if moment.event == "before_tool" and one["event"] == event:
                return event, one["stdin"]
    return None


@pytest.mark.parametrize("host", [host for host in ALL if first_call(host) is not None])
@pytest.mark.parametrize("defaults", ["none", "unknown denied", "kinds", "monitored"])
def test_it_decides_as_a_cli_s_own_call_is_decided(machine, run, host: str, defaults: str):
    machine.user(DEFAULTS[defaults])
    event, payload = first_call(host)  # type: ignore[misc]
    payload |= {"cwd": str(machine.project)}
    asked = HookRequest(host=host, event=event, payload=json.dumps(payload), cwd=str(machine.project), env=variables())
    machine.state.mkdir(mode=0o700)

    async def hook() -> None:
        service = Service(machine.state, Journal(machine.state / "daemon.db"))
        try:
            await service.hook(asked)
        finally:
            await service.aclose()

    asyncio.run(hook())
    asyncio.run(decide(asked))
    for journal in (machine.state / "daemon.db", machine.state / "journal.db"):
        with Reader(journal) as reader:
            record = next(one for one in reader.records() if one.body["step"]["event"] == "before_tool")
        machine.file("step.json", json.dumps(record.body["step"]))
        told = run("test", "--step", "step.json", "--json").json
        decided = record.decision
        assert told["step"]["kind"] == decided.original.kind
        found = {name: getattr(decided, name) for name in SAME}
        found |= {"context": [str(text) for text in decided.context], "warnings": list(decided.warnings)}
        assert {name: told["decision"][name] for name in SAME} == found
        assert [one["hook"] for one in told["hooks"]] == [one.hook for one in decided.runs]
