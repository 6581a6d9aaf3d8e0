"""Every host, every moment, everything that a hook can say there: what the CLI is told, and what else comes of it.

What a host takes is in `replies`, by hand. What it does not take follows `RULES`, and the journal says so.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from played import Played, captured, made, payload_of, saying
from replies import CODEX_SCHEMAS, EXIT_2, PLAIN, TAKES, allowed, filled, keys_of

from fairlead import (
    Approval,
    FairleadError,
    Hooks,
    Verdict,
    abort,
    allow,
    ask,
    change,
    deny,
    extend,
    inject,
    retry,
    skip,
    stop,
)
from fairlead import answer as answering
from fairlead.hosts.clis.effect import RULES
from fairlead.hosts.clis.handler import CliSessionState, answer, parse_event, read_payload
from fairlead.hosts.clis.mapping import ALL, EXPERIMENTAL, host_named
from fairlead.journal import Journal
from fairlead.journal.reading import Reader
from fairlead.lifecycle import EVENTS

HOSTS = (*ALL, *EXPERIMENTAL)
quick = settings(deadline=None, max_examples=60, derandomize=True, database=None)


def _safer(step: Any) -> Verdict:
    return change(args=safer(dict(step.args)))


def safer(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments, with the command changed; or with one more, where there is no command."""
    new = json.loads(json.dumps(args).replace("echo hi", "echo safe"))
    return dict(new if new != args else args | {"safe": True})


SAYS: dict[str, Callable[[Any], Verdict]] = {
    "deny": lambda step: deny("no"),
    "ask": lambda step: ask("may it?"),
    "allow": lambda step: allow("fine"),
    "stop": lambda step: stop("enough"),
    "abort": lambda step: abort("broken"),
    "extend": lambda step: extend("go on"),
    "skip": lambda step: skip("not now"),
    "retry": lambda step: retry("again"),
    "context": lambda step: inject("mind this"),
    "args": _safer,
    "result": lambda step: answering("cached"),
    "output": lambda step: change(output="cleaned"),
    "input": lambda step: change(input="other words"),
    "model": lambda step: change(model="another"),
    "messages": lambda step: change(messages=[{"role": "user", "content": "less"}]),
    "assistant": lambda step: answering("said"),
    "resolved": lambda step: change(resolved=True),
    "initial_message": lambda step: change(initial_message="look there"),
    "message": lambda step: change(message="calmly"),
    "content": lambda step: change(content="nicer"),
}
NO_ONE = "[judge] not approved: no approver is set; pass approver= to Hooks: may it?"
TEXTS = {
    "deny": "[judge] no", "ask": NO_ONE, "allow": "[judge] fine", "stop": "[judge] enough", "abort": "[judge] broken",
    "extend": "[judge] go on", "retry": "[judge] again", "context": "[judge] mind this",
}  # fmt: skip
INSTEAD = {"output": "cleaned", "input": "other words", "assistant": "said"}
"""What is put in the place of something."""
UNSHOWN = "[judge] the output must not be shown as it is, and cannot be changed here"


def sayable(ours: str) -> Iterator[str]:
    """What a hook may say at one of our events."""
    event = EVENTS[ours]
    for said in SAYS:
        if said in event.controls or said in event.changes or (said == "context" and event.context):
            yield said


def moments() -> Iterator[tuple[str, str]]:
    return ((host, event) for host in HOSTS for event in host_named(host).events)


def has_step(host: str, event: str) -> bool:
    """Whether the event has a step at all."""
    return host_named(host).events[event].parse(payload_of(host, event)) is not None


CASES = [
    pytest.param(host, event, said, id=f"{host}-{event}-{said}")
    for host, event in moments()
    for said in sayable(host_named(host).events[event].event)
    if has_step(host, event)
]


class Comes(NamedTuple):
    """What comes of something that a hook says."""

    reply: dict[str, Any]
    waits: list[str] = []
    """What is kept for the next event that takes context."""
    halts: str | None = None
    """Why no tool is to run until the user says something."""
    unsupported: tuple[str, ...] = ()


async def what_comes(host: str, event: str, said: str) -> Comes:
    ours = host_named(host).events[event].event
    payload = payload_of(host, event)
    cli = Played(host, saying(SAYS[said], ours))
    told = await cli.tell(event, payload)
    if told.code == 2:
        reply = {EXIT_2: told.text}
    else:
        reply = {PLAIN: told.text} if host == "kiro" and told.text else told.reply
    state = cli.state(payload)
    decision = next(made for made in cli.decisions if made.event == ours)
    return Comes(reply, state.context, state.halt, decision.unsupported)


def should_come(host: str, event: str, said: str) -> Comes:
    """What is in the table; and what the rules say, for what is not."""
    takes = TAKES[host][event]
    text = TEXTS.get(said, "[judge]")

    def reply(part: str, text: str = text) -> dict[str, Any]:
        payload = payload_of(host, event)
        return (
            dict(filled(takes[part], text, safer(args_of(host, payload)), INSTEAD.get(said))) if part in takes else {}
        )

    if said == "ask":  # no human answered, so it is a deny by now
        return Comes(reply("deny"))
    ours = host_named(host).events[event].event
    refused = text if ours == "session_start" and said in ("deny", "abort") else None  # for all of the session
    if said in takes:
        return Comes(reply(said), halts=refused)
    without = Comes({}, unsupported=(said,), halts=refused)
    after = ours.startswith("after_")
    match said:
        case "deny" if ours == "session_start":  # which an abort does, if the host has one
            return without._replace(reply=reply("abort"))
        case "deny":
            return without._replace(reply=reply("stop") if after else {})
        case "stop" | "abort":
            return without._replace(reply=reply("deny"), halts=text)
        case "args":
            tool, args = (
                tool_of(host, event),
                json.dumps(safer(args_of(host, payload_of(host, event))), separators=",:"),
            )
            again = f"[judge] Not run as it is. Call {tool} again with exactly this: {args}"
            return without._replace(reply=reply("deny", again))
        case "result":
            return without._replace(reply=reply("deny", "[judge] Not run: this is the answer: cached"))
        case "output" if "deny" in takes:
            return without._replace(reply=filled(takes["deny"], "[judge] cleaned"))
        case "output":  # a turn that cannot be stopped at once goes no further than to the next tool
            shown = filled(takes["stop"], UNSHOWN) if "stop" in takes else {}
            return without._replace(reply=shown, halts=None if "stop" in takes else UNSHOWN)
        case "input":
            other = "[judge] The message cannot be changed here. Send this instead: other words"
            return without._replace(reply=reply("deny", other))
        case "context" | "extend":
            return without._replace(waits=[text])
        case "retry" if "context" in takes:
            return without._replace(reply=reply("context"))
        case "retry":
            return without._replace(waits=[text])
    return without


def args_of(host: str, payload: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, wherever a CLI has them."""
    if payload.get("hook_event_name") == "beforeTabFileRead":
        return {"file_path": payload["file_path"]}
    for key in ("tool_input", "toolArgs", "toolInput"):
        if isinstance(payload.get(key), dict):
            found = dict(payload[key])
            return {"command": "echo hi", "user_prompt": "run echo hi"} if host == "windsurf" else found
    call = payload.get("tool_call") or payload.get("raw_input") or {}
    return dict(call.get("input") or call.get("args") or {})


def tool_of(host: str, event: str) -> str:
    if host == "windsurf":
        names = {"pre_run_command": "run_command", "pre_read_code": "read_file", "pre_write_code": "write_file"}
        return names.get(event, "mcp__None__None")
    if event == "beforeTabFileRead":
        return "TabRead"
    payload = payload_of(host, event)
    return str(payload.get("tool_name") or payload.get("toolName") or payload["tool_call"]["name"])


# --- the table ----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_says_that_it_can_do_what_it_takes_and_no_more(host: str) -> None:
    can = {event: set(moment.can) for event, moment in host_named(host).events.items()}
    assert can == {event: set(takes) for event, takes in TAKES[host].items()}


@pytest.mark.parametrize(("host", "event", "said"), CASES)
async def test_what_a_hook_says_is_carried_out_as_far_as_the_host_goes(host: str, event: str, said: str) -> None:
    if host == "windsurf" and event == "pre_mcp_tool_use" and said == "args":
        pytest.skip("its arguments are somewhere else, and it takes none")
    assert await what_comes(host, event, said) == should_come(host, event, said)


def test_there_is_a_rule_for_everything_that_a_host_may_be_unable_to_do() -> None:
    sayable_anywhere = {said for event in EVENTS for said in sayable(event)} - {"resolved", "content"}
    assert sayable_anywhere <= RULES.keys()


@pytest.mark.parametrize(("host", "event"), [one for one in moments() if has_step(*one)])
async def test_whatever_is_said_at_once_a_reply_has_only_keys_that_the_host_takes(host: str, event: str) -> None:
    ours = host_named(host).events[event].event
    known = allowed(host, event)
    for first, second in combinations(sayable(ours), 2):
        hooks = saying(SAYS[second], ours)
        hooks.add(SAYS[first], on=ours, name="first", priority=1)
        told = await Played(host, hooks).tell(event)
        if told.code == 0 and host != "kiro":
            opened = [key for key in known if key.endswith(("updatedInput", "tool_input", "modifiedArgs", "args",
                                                             "overrideInput", "updated_input"))]  # fmt: skip
            keys = {key for key in keys_of(told.reply) if not any(key.startswith(f"{open_}.") for open_ in opened)}
            assert keys <= known, (first, second, told.reply)


@pytest.mark.parametrize("event", TAKES["codex"])
async def test_codex_takes_every_reply(event: str) -> None:
    ours = host_named("codex").events[event].event
    validator = Draft202012Validator(CODEX_SCHEMAS[event])
    says = list(sayable(ours))
    for first, second in [*combinations(says, 2), *((said, said) for said in says)]:
        hooks = saying(SAYS[second], ours)
        hooks.add(SAYS[first], on=ours, name="first", priority=1)
        told = await Played("codex", hooks).tell(event)
        assert not list(validator.iter_errors(told.reply)), (first, second, told.reply)


@pytest.mark.parametrize("tool", ["Bash", "apply_patch", "mcp__demo__add", "view_image"])
@pytest.mark.parametrize("new", [{"command": "ls"}, {"command": 7}, {"other": "x"}, {"command": "ls", "workdir": "/"}])
async def test_codex_takes_changed_arguments_or_refuses_the_call(tool: str, new: dict[str, Any]) -> None:
    """Of its own tools, Codex takes over the command alone; anything else would run as it was, or not at all."""
    payload = captured("codex", "PreToolUse", tool_name=tool)
    reply = (await Played("codex", saying(change(args=new), "before_tool")).tell("PreToolUse", payload)).reply
    assert Draft202012Validator(CODEX_SCHEMAS["PreToolUse"]).is_valid(reply), reply
    told = reply["hookSpecificOutput"]
    if tool.startswith("mcp__") or new == {"command": "ls"}:
        assert (told["permissionDecision"], told["updatedInput"]) == ("allow", new)
    else:
        assert told["permissionDecision"] == "deny"
        assert json.dumps(new, separators=(",", ":")) in told["permissionDecisionReason"]


async def test_a_change_that_codex_does_not_take_over_is_a_denied_call_for_those_who_watch() -> None:
    cli = Played("codex", saying(change(args={"other": "x"}), "before_tool"))
    await cli.tell("PreToolUse")
    assert [step.outcome for step in cli.steps("after_tool")] == ["denied"]


@pytest.mark.parametrize("host", HOSTS)
async def test_what_a_host_cannot_do_is_in_the_journal(host: str, tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.db") as journal:
        expected = []
        for case in CASES:
            event, said = case.values[1:]
            if case.values[0] != host or not (missing := should_come(host, str(event), str(said)).unsupported):
                continue
            ours = host_named(host).events[str(event)].event
            hooks = Hooks(journal=journal)
            hooks.add(SAYS[str(said)], on=ours, name="judge")
            await Played(host, hooks).tell(str(event))
            expected.append((ours, missing))
    with Reader(tmp_path / "journal.db") as reader:
        found = [
            (record.body["step"]["event"], tuple(said["unsupported"] for said in record.body.get("said", ())
                                                 if "unsupported" in said))
            for record in reader.records()
        ]  # fmt: skip
    assert expected
    assert sorted(entry for entry in found if entry[1]) == sorted(expected)


@pytest.mark.parametrize("host", HOSTS)
async def test_a_deny_that_cannot_be_carried_out_is_logged_as_an_error(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    for event, takes in TAKES[host].items():
        ours = host_named(host).events[event].event
        if "deny" not in EVENTS[ours].controls or not has_step(host, event):
            continue
        caplog.clear()
        await Played(host, saying(deny("no"), ours)).tell(event)
        instead = "stop" if ours.startswith("after_") else "deny"
        lost = ours != "session_start" and "deny" not in takes and instead not in takes
        errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == lost, (event, errors)
        assert all("[judge] no" in error for error in errors)


# --- the start of a session ---------------------------------------------------------------------

STARTS = tuple(
    host for host in HOSTS if "session_start" in {moment.event for moment in host_named(host).events.values()}
)


class OneSession(Played):
    """A CLI with one session, which starts, gets a message, and wants to run a tool."""

    async def refusals(self, *ours: str) -> list[str]:
        """The events among these at which the CLI is told to refuse."""
        names = {moment.event: name for name, moment in reversed(self.host.events.items())}
        first = payload_of(self.host.name, names["session_start"])
        refused = []
        for one in ours:
            ids = {key: value for key, value in first.items() if key in SESSION_IDS}
            payload = payload_of(self.host.name, names[one]) | ids
            said = await self.tell(names[one], payload)
            refused += [one] * ("closed" in said.text)
        return refused


SESSION_IDS = ("session_id", "sessionId", "sessionContext", "taskId", "conversation_id", "trajectory_id")


def refusable(host: str, *ours: str) -> list[str]:
    """The events among these that the host can deny."""
    events = host_named(host).events
    return [one for one in ours if "deny" in events[named(host, one)].can]


def broken(step: Any) -> Verdict | None:
    raise ValueError("closed")


@pytest.mark.parametrize("says", [deny("closed"), abort("closed"), broken], ids=["deny", "abort", "failure"])
@pytest.mark.parametrize("host", STARTS)
async def test_a_session_that_may_not_start_gets_no_message_and_runs_no_tool(host: str, says: Any) -> None:
    cli = OneSession(host, saying(says, "session_start"))
    twice = ("before_input", "before_tool") * 2  # also after the user's second message
    await cli.refusals("session_start")
    assert await cli.refusals(*twice) == refusable(host, *twice)
    (reason,) = {str(state.halt) for state in cli.states.values() if state.halt}
    assert reason.endswith("; start a new session to try again") == (says is broken)


@pytest.mark.parametrize("host", STARTS)
async def test_a_stop_at_the_start_ends_the_first_turn_only(host: str) -> None:
    cli = OneSession(host, saying(stop("closed"), "session_start"))
    turn = ("before_input", "before_tool")
    assert [one for one in await cli.refusals("session_start", *turn) if one in turn] == refusable(host, *turn)
    assert await cli.refusals(*turn) == []


@pytest.mark.parametrize("host", STARTS)
async def test_a_session_that_hooks_accept_when_it_is_resumed_goes_on(host: str) -> None:
    cli = OneSession(host, saying(deny("closed"), "session_start", times=1))
    await cli.refusals("session_start")
    assert await cli.refusals("session_start", "before_input", "before_tool") == []


# --- asking -------------------------------------------------------------------------------------


async def leave_it_to_the_host(request: Any) -> Approval:
    return Approval("ask", request.step.host)


async def approve(request: Any) -> Approval:
    return Approval("allow", "ann")


async def test_claude_code_asks_its_user() -> None:
    hooks = saying(ask("may it?"), "before_tool")
    hooks.approver = leave_it_to_the_host
    reply = (await Played("claude_code", hooks).tell("PreToolUse")).reply
    assert reply == filled(TAKES["claude_code"]["PreToolUse"]["ask"], "[judge] may it?")


@pytest.mark.parametrize("host", HOSTS)
async def test_a_host_shows_what_every_hook_asks(host: str) -> None:
    event = next(name for name, moment in host_named(host).events.items() if moment.event == "before_tool")
    hooks = saying(ask("spend 5 EUR?"), "before_tool")
    hooks.add(lambda step: ask("delete it?"), on="before_tool", name="ops", phase="gate")
    hooks.approver = leave_it_to_the_host
    told = await Played(host, hooks).tell(event)
    control = "ask" if host == "claude_code" else "deny"
    expected = filled(TAKES[host][event][control], "[judge] spend 5 EUR?\n[ops] delete it?")
    assert ({EXIT_2: told.text} if told.code == 2 else told.reply) == expected


@pytest.mark.parametrize("asks", [True, False])
async def test_what_a_hook_asks_is_not_answered_by_another_when_claude_code_wants_a_permission(asks: bool) -> None:
    hooks = saying(allow(), "before_permission")
    hooks.approver = leave_it_to_the_host
    if asks:
        hooks.add(lambda step: ask("spend 5 EUR?"), on="before_tool", name="budget")
    cli, call = Played("claude_code", hooks), payload_of("claude_code", "PreToolUse")
    told = []
    for _ in range(2):  # some models give the next call the same id
        await cli.tell("PreToolUse", call)
        told.append((await cli.tell("PermissionRequest", call)).reply)
        hooks.unregister("budget") if asks and "budget" in hooks else None
    granted = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}
    assert told == [{} if asks else granted, granted]
    assert cli.decisions[1].unsupported == (("allow",) if asks else ())


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "claude_code"])
async def test_a_question_never_reaches_a_host_that_would_run_the_tool(host: str) -> None:
    event = next(name for name, moment in host_named(host).events.items() if moment.event == "before_tool")
    hooks = saying(ask("may it?"), "before_tool")
    hooks.approver = leave_it_to_the_host
    told = await Played(host, hooks).tell(event)
    expected = filled(TAKES[host][event]["deny"], "[judge] may it?")
    assert ({EXIT_2: told.text} if told.code == 2 else told.reply) == expected


@pytest.mark.parametrize("host", HOSTS)
async def test_a_question_that_was_approved_is_an_allow(host: str) -> None:
    event = next(name for name, moment in host_named(host).events.items() if moment.event == "before_tool")
    hooks = saying(ask("may it?"), "before_tool")
    hooks.approver = approve
    takes = TAKES[host][event]
    expected = filled(takes["allow"], "[judge] may it?") if "allow" in takes else {}
    assert (await Played(host, hooks).tell(event)).reply == expected


# --- halting ------------------------------------------------------------------------------------


def named(host: str, ours: str) -> str:
    """The CLI's name of one of our events."""
    moments = host_named(host).events
    return next(name for name, moment in moments.items() if moment.event == ours and moment.installed)


def refusal(host: str, text: str) -> dict[str, Any]:
    return dict(filled(TAKES[host][named(host, "before_tool")]["deny"], text))


async def refused(cli: Played, event: str | None = None) -> str | None:
    """Why a tool call is refused now, if it is."""
    event = event or named(cli.host.name, "before_tool")
    told = await cli.tell(event)
    if told.code == 2:
        return told.text
    return next((text for text in strings(told.reply) if told.reply == refusal(cli.host.name, text)), None)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)


CANNOT_STOP = [host for host in HOSTS if "stop" not in TAKES[host][named(host, "before_tool")]]


@pytest.mark.parametrize("host", CANNOT_STOP)
@pytest.mark.parametrize("said", ["stop", "abort"])
async def test_a_host_that_cannot_stop_runs_no_tool_until_the_user_says_something(host: str, said: str) -> None:
    cli = Played(host, saying(SAYS[said], "before_tool", times=1))
    whys = [await refused(cli) for _ in range(3)]
    assert whys == [TEXTS[said]] * 3
    await cli.tell(named(host, "before_input"), payload_of(host, named(host, "before_input")) | same(cli))
    assert await refused(cli) is None


def same(cli: Played) -> dict[str, Any]:
    """What makes a payload one of the session that a CLI is in."""
    (session_id,) = cli.states
    keys = ("session_id", "sessionId", "taskId", "conversation_id", "trajectory_id")
    return dict.fromkeys(keys, session_id) | {"input": {"sessionID": session_id}}


@pytest.mark.parametrize("host", CANNOT_STOP)
async def test_a_call_that_is_refused_because_of_a_stop_is_told_to_those_who_watch(host: str) -> None:
    cli = Played(host, saying(stop("enough"), "before_tool", times=1))
    for _ in range(2):
        await refused(cli)
    assert [step.error for step in cli.steps("after_tool")] == ["[judge] enough"] * 2


async def test_a_subagent_that_comes_back_does_not_lift_a_halt() -> None:
    """Claude Code tells of it as if the user had said something."""
    cli = Played("codex", saying(stop("enough"), "before_tool", times=1))
    await refused(cli)
    note = captured("codex", "UserPromptSubmit", prompt="<task-notification>it is done</task-notification>")
    await cli.tell("UserPromptSubmit", note)
    assert await refused(cli) == "[judge] enough"


async def test_a_subagents_prompt_does_not_lift_a_halt() -> None:
    cli = Played("codex", saying(stop("enough"), "before_tool", times=1))
    await refused(cli)
    await cli.tell("UserPromptSubmit", captured("codex", "UserPromptSubmit", agent_id="a", prompt="do it"))
    assert await refused(cli) == "[judge] enough"


async def test_what_keeps_a_turn_alive_does_not_lift_a_halt() -> None:
    hooks = saying(stop("enough"), "before_tool", times=1)
    hooks.add(lambda step: extend("go on"), on="before_turn_end", name="keeper")
    cli = Played("copilot", hooks)
    await refused(cli)
    kept = (await cli.tell("agentStop")).reply["reason"]
    await cli.tell("userPromptSubmitted", captured("copilot", "userPromptSubmitted", prompt=kept))
    assert await refused(cli) == "[judge] enough"


@pytest.mark.parametrize("host", ["copilot", "windsurf", "goose"])
async def test_a_stop_at_the_start_of_a_turn_holds_where_the_host_cannot_stop(host: str) -> None:
    cli = Played(host, saying(stop("enough"), "turn_start"))
    event = named(host, "before_input")
    await cli.tell(event, payload_of(host, event))
    assert await refused(cli) == "[judge] enough"


async def test_a_stop_at_the_start_of_a_turn_stops_where_the_host_can() -> None:
    reply = (await Played("claude_code", saying(stop("enough"), "turn_start")).tell("UserPromptSubmit")).reply
    assert (reply["continue"], reply["stopReason"]) == (False, "[judge] enough")


# --- waiting ------------------------------------------------------------------------------------

LATE = {
    "claude_code": ("Stop", "UserPromptSubmit"), "codex": ("Stop", "UserPromptSubmit"),
    "gemini": ("BeforeTool", "AfterTool"), "qwen": ("PreToolUse", "PostToolUse"),
    "copilot": ("agentStop", "userPromptSubmitted"), "droid": ("PreToolUse", "PostToolUse"),
    "cline": ("TaskStart", "PreToolUse"), "opencode": ("PreToolUse", "PostToolUse"),
    "cursor": ("beforeSubmitPrompt", "postToolUse"), "kiro": ("preToolUse", "userPromptSubmit"),
}  # fmt: skip
"""An event that takes no context, and a later one that does."""


def shown(told: Any) -> str:
    return str(told.text)


@pytest.mark.parametrize("host", LATE)
async def test_context_waits_for_the_next_event_that_takes_it_and_is_given_once(host: str) -> None:
    early, late = LATE[host]
    cli = Played(host, saying(inject("mind this"), host_named(host).events[early].event, times=1))
    said = [shown(await cli.tell(event, in_one_session(host, event))) for event in (early, late, late)]
    assert [text.count("[judge] mind this") for text in said] == [0, 1, 0]


def in_one_session(host: str, event: str) -> dict[str, Any]:
    payload = payload_of(host, event)
    return payload | {"sessionContext": {"rootSessionId": "one"}} if host == "cline" else payload


@pytest.mark.parametrize("host", LATE)
async def test_context_that_waits_is_not_lost_on_something_that_is_refused(host: str) -> None:
    early, late = LATE[host]
    ours = host_named(host).events[late].event
    takes = TAKES[host][late]
    if "deny" not in takes and "stop" not in takes:
        pytest.skip("nothing can be refused there")
    hooks = saying(inject("mind this"), host_named(host).events[early].event, times=1)
    once = iter([deny("no")])
    hooks.add(lambda step: next(once, None), on=ours, name="bouncer")
    cli = Played(host, hooks)
    said = [shown(await cli.tell(event, in_one_session(host, event))) for event in (early, late, late)]
    heard_of = sum(text.count("[judge] mind this") for text in said[1:])
    refused_prompt = ours == "before_input" and "[judge] mind this" in said[1]
    assert (heard_of, refused_prompt) == (1, False), said


@pytest.mark.parametrize("host", ["cline", "cursor", "windsurf", "goose"])
async def test_context_at_the_start_of_a_turn_waits_where_the_prompt_takes_none(host: str) -> None:
    cli = Played(host, saying(inject("mind this"), "turn_start"))
    event = named(host, "before_input")
    payload = {**made(event), "userPromptSubmit": {"prompt": "hi"}}
    await cli.tell(event, payload)
    assert cli.state(payload).context == ["[judge] mind this"]


@pytest.mark.parametrize("host", ["claude_code", "codex", "copilot", "cline"])
async def test_context_about_a_denied_call_reaches_the_model_or_waits(host: str) -> None:
    """The call is over for those who watch, and what they say of that is not lost."""
    hooks = saying(deny("no"), "before_tool")
    hooks.add(lambda step: inject("that was denied"), on="after_tool", outcome="denied", name="watcher")
    cli, event = Played(host, hooks), named(host, "before_tool")
    payload = payload_of(host, event)
    told = await cli.tell(event, payload)
    assert "[watcher] that was denied" in told.text or cli.state(payload).context == ["[watcher] that was denied"]


@quick
@given(st.lists(st.integers(0, 3), max_size=60))
def test_what_waits_is_bounded_and_in_order_and_delivered_once(moves: list[int]) -> None:
    """Any number of texts at an event that takes none, in between events that do."""
    numbers = iter(range(1000))
    cli = Played("gemini", saying(lambda step: inject(f"note {next(numbers)}"), "before_tool"))
    delivered: list[int] = []
    kept: list[int] = []
    added = 0

    async def play() -> None:
        nonlocal added, kept
        for move in moves:
            for _ in range(move * 4):
                await cli.tell("BeforeTool")
                kept = [*kept, added][-16:]
                added += 1
            text = shown(await cli.tell("AfterTool"))
            found = [int(line.rpartition(" ")[2]) for line in json.dumps(text).split("[judge]")[1:]
                     for line in [line.partition("\\")[0].partition('"')[0].strip()]]  # fmt: skip
            assert found == kept
            delivered.extend(found)
            kept = []

    run(play())
    assert len(delivered) == len(set(delivered))


# --- keeping a turn alive -----------------------------------------------------------------------

KEEPERS = [host for host in HOSTS if "extend" in host_named(host).can("before_turn_end")]


@pytest.mark.parametrize("host", KEEPERS)
async def test_a_turn_is_kept_alive_three_times_and_then_ends(host: str) -> None:
    cli, event = Played(host, saying(extend("go on"), "before_turn_end")), named(host, "before_turn_end")
    replies = [(await cli.tell(event)).reply for _ in range(4)]
    assert [reply != {} for reply in replies] == [True, True, True, False]
    assert [step.continues_so_far for step in cli.steps("before_turn_end")] == [0, 1, 2, 3]
    assert len(cli.steps("turn_end")) == 1


@pytest.mark.parametrize("host", KEEPERS)
async def test_the_next_turn_can_be_kept_alive_again(host: str) -> None:
    cli, event = Played(host, saying(extend("go on"), "before_turn_end")), named(host, "before_turn_end")
    for _ in range(2):
        await cli.tell(event)
    before = named(host, "before_input")
    await cli.tell(before, payload_of(host, before) | same(cli))
    replies = [(await cli.tell(event)).reply for _ in range(4)]
    assert [reply != {} for reply in replies] == [True, True, True, False]


@pytest.mark.parametrize("host", ["gemini", "qwen", "copilot"])
async def test_what_kept_a_turn_alive_comes_back_as_a_continuation_of_it(host: str) -> None:
    """These put it to themselves as if the user had said it."""
    cli = Played(host, saying(extend("go on"), "before_turn_end"))
    before, end = named(host, "before_input"), named(host, "before_turn_end")
    await cli.tell(before)
    ended = []
    for _ in range(4):
        reply = (await cli.tell(end)).reply
        ended.append(reply == {})
        if reply:
            await cli.tell(before, captured(host, before, prompt=reply["reason"]))
    assert ended == [False, False, False, True]
    assert [step.source for step in cli.steps("before_input")] == ["user", *["continuation"] * 3]
    assert len({step.turn_id for step in cli.steps("before_turn_end")}) == 1


@pytest.mark.parametrize("host", [host for host in KEEPERS if "subagent_stop" in host_named(host).capabilities()])
async def test_a_subagent_is_kept_alive_three_times_and_then_stops(host: str) -> None:
    cli, event = Played(host, saying(extend("go on"), "subagent_stop")), named(host, "subagent_stop")
    replies = [(await cli.tell(event)).reply for _ in range(4)]
    assert [reply != {} for reply in replies] == [True, True, True, False]
    assert [step.continues_so_far for step in cli.steps("subagent_stop")] == [0, 1, 2, 3]


async def test_the_end_of_a_subagents_turn_does_not_let_the_agents_own_be_kept_alive_for_longer() -> None:
    cli = Played("copilot", saying(lambda step: None if step.agent.parent else extend("go on"), "before_turn_end"))
    session = captured("copilot", "agentStop")["sessionId"]
    inside = captured("copilot", "agentStop", sessionId="child", agentId="child", parentAgentId=session)
    kept = 0
    for _ in range(4):
        kept += (await cli.tell("agentStop")).reply != {}
        await cli.tell("agentStop", inside)
    assert kept == 3


@pytest.mark.parametrize("host", [host for host in HOSTS if host not in KEEPERS and host in LATE])
async def test_a_turn_that_cannot_be_kept_alive_ends_and_the_next_reads_why(host: str) -> None:
    cli = Played(host, saying(extend("go on"), "before_turn_end", times=1))
    end, late = named(host, "before_turn_end"), LATE[host][1]
    assert (await cli.tell(end, in_one_session(host, end))).reply == {}
    assert "[judge] go on" in shown(await cli.tell(late, in_one_session(host, late)))


async def test_context_beside_an_extension_is_part_of_what_the_model_reads_next() -> None:
    cli = Played("claude_code", saying(extend("go on", context="the tests fail"), "before_turn_end"))
    assert (await cli.tell("Stop")).reply == {"decision": "block", "reason": "[judge] go on\n\n[judge] the tests fail"}


async def test_an_extension_without_a_word_says_to_go_on() -> None:
    assert (await Played("codex", saying(extend(), "before_turn_end")).tell("Stop")).reply["reason"] == "Go on."


# --- words of the user --------------------------------------------------------------------------


@pytest.mark.parametrize("host", [host for host in HOSTS if "input" not in TAKES[host][named(host, "before_input")]])
@pytest.mark.parametrize("added", ["before", "after"])
async def test_what_is_put_around_the_users_words_is_context(host: str, added: str) -> None:
    def around(step: Any) -> Verdict:
        return change(input=f"{step.input} mind this" if added == "after" else f"mind this {step.input}")

    event = named(host, "before_input")
    cli, payload = Played(host, saying(around, "before_input")), payload_of(host, event)
    payload |= {"userPromptSubmit": {"prompt": "run echo hi"}} if host == "cline" else {}
    told = await cli.tell(event, payload)
    takes = "context" in TAKES[host][event]
    assert ("[judge] mind this" in told.text, cli.state(payload).context) == (
        takes, [] if takes else ["[judge] mind this"],
    )  # fmt: skip


@pytest.mark.parametrize("host", ["cline", "kiro"])
async def test_a_message_that_cannot_be_refused_begins_a_turn(host: str) -> None:
    event = named(host, "before_input")
    cli = Played(host, saying(change(input="other words"), "before_input"))
    await cli.tell(event, payload_of(host, event) | {"userPromptSubmit": {"prompt": "run echo hi"}})
    assert len(cli.steps("turn_start")) == 1


@pytest.mark.parametrize("host", [host for host in HOSTS if "deny" in TAKES[host][named(host, "before_input")]])
async def test_a_message_that_was_refused_begins_no_turn(host: str) -> None:
    event = named(host, "before_input")
    cli = Played(host, saying(deny("no"), "before_input"))
    await cli.tell(event)
    assert cli.steps("turn_start") == []


# --- what only one host does --------------------------------------------------------------------


@pytest.mark.parametrize("new", ["cleaned", {"ok": True}, [{"type": "text", "text": "cleaned"}]])
@pytest.mark.parametrize("tool", ["Bash", "Read", "mcp__demo__echo", "Write", "Unheard"])
async def test_claude_code_gets_new_output_in_the_tools_own_shape_or_the_turn_ends(tool: str, new: Any) -> None:
    payload = next((one for one in found("claude_code", "PostToolUse") if one["tool_name"] == tool), None)
    payload = payload or captured("claude_code", "PostToolUse", tool_name=tool, tool_response="a text")
    reply = (await Played("claude_code", saying(change(output=new), "after_tool")).tell("PostToolUse", payload)).reply
    told = reply.get("hookSpecificOutput", {})
    as_text = {str: new, dict: '{"ok":true}', list: "cleaned"}[type(new)]
    if tool == "Bash":
        assert told["updatedToolOutput"] == {**payload["tool_response"], "stdout": as_text}
    elif tool == "Read":
        assert told["updatedToolOutput"]["file"] == {**payload["tool_response"]["file"], "content": as_text}
    elif tool == "mcp__demo__echo":
        blocks = new if isinstance(new, list) else [{"type": "text", "text": as_text}]
        assert told["updatedMCPToolOutput"] == blocks
    else:
        assert (told, reply["continue"]) == ({}, False)


def found(host: str, event: str) -> list[dict[str, Any]]:
    from played import captures

    return [one.payload for one in captures(host) if one.event == event]


async def test_cline_loses_the_whole_run_only_for_tools_that_would_run_without_input() -> None:
    replies = {}
    for payload in found("cline", "tool_call"):
        reply = (await Played("cline", saying(deny("no"), "before_tool")).tell("tool_call", payload)).reply
        replies[payload["tool_call"]["name"]] = reply
    assert replies.pop("svr__ping") == {"cancel": True, "errorMessage": "[judge] no"}
    assert all(reply == {"overrideInput": None, "context": "[judge] no"} for reply in replies.values())


async def test_claude_code_is_not_told_where_the_output_is_that_was_withheld() -> None:
    """Of an output that is too large, Claude Code tells the model in which file it is; blocks go before the text."""
    payload = captured("claude_code", "PostToolUse")
    payload["tool_response"] |= {
        "persistedOutputPath": "/home/dev/.claude/projects/p/tool-results/b1.txt", "persistedOutputSize": 70893,
        "rawOutputPath": "/tmp/raw.txt", "structuredContent": [{"type": "text", "text": "as it was"}],
    }  # fmt: skip
    reply = (await Played("claude_code", saying(deny("no"), "after_tool")).tell("PostToolUse", payload)).reply
    told = reply["hookSpecificOutput"]["updatedToolOutput"]
    assert told == {**captured("claude_code", "PostToolUse")["tool_response"], "stdout": "[judge] no"}


async def test_copilot_gets_a_changed_patch_as_the_text_that_it_is() -> None:
    payload = next(one for one in found("copilot", "preToolUse") if one["toolName"] == "apply_patch")
    assert isinstance(payload["toolArgs"], str)
    cli = Played("copilot", saying(change(args={"input": "another patch"}), "before_tool"))
    assert (await cli.tell("preToolUse", payload)).reply == {"modifiedArgs": "another patch"}


async def test_copilot_gets_changed_arguments_also_if_they_came_as_json_in_a_text() -> None:
    payload = captured("copilot", "preToolUse", toolName="bash", toolArgs='{"command": "rm x"}')
    cli = Played("copilot", saying(change(args={"command": "ls"}), "before_tool"))
    assert (await cli.tell("preToolUse", payload)).reply == {"modifiedArgs": {"command": "ls"}}


async def test_copilot_is_refused_a_patch_that_a_hook_made_no_text_of() -> None:
    payload = next(one for one in found("copilot", "preToolUse") if one["toolName"] == "apply_patch")
    cli = Played("copilot", saying(change(args={"patch": "another"}), "before_tool"))
    assert (await cli.tell("preToolUse", payload)).reply["permissionDecision"] == "deny"


async def test_droid_is_refused_a_call_from_which_a_hook_takes_an_argument() -> None:
    """Droid keeps what is not named anew, so that the call would run with it."""
    payload = captured("droid", "PreToolUse", tool_name="Execute", tool_input={"command": "ls", "fireAndForget": True})
    cli = Played("droid", saying(change(args={"command": "ls -l"}), "before_tool"))
    told = (await cli.tell("PreToolUse", payload)).reply["hookSpecificOutput"]
    assert (told["permissionDecision"], "updatedInput" in told) == ("deny", False)
    assert '{"command":"ls -l"}' in told["permissionDecisionReason"]


async def test_copilot_gets_a_changed_prompt_as_text() -> None:
    cli = Played("copilot", saying(change(input=[{"type": "text", "text": "clean"}]), "before_input"))
    assert (await cli.tell("userPromptSubmitted")).reply["modifiedPrompt"] == "clean"


@pytest.mark.parametrize("host", ["claude_code", "codex", "gemini", "qwen", "copilot", "droid"])
async def test_a_prompt_that_is_no_text_is_refused(host: str) -> None:
    event = named(host, "before_input")
    for prompt in (["forbidden"], {"text": "forbidden"}):
        payload = {**payload_of(host, event), "prompt": prompt}
        with pytest.raises(FairleadError, match="prompt"):
            await Played(host, saying(deny("no"), "before_input")).tell(event, payload)


@pytest.mark.parametrize("order", [("bad", "good"), ("good", "bad")])
async def test_a_call_whose_id_was_denied_for_another_one_is_told_of_when_it_is_over(order: tuple[str, str]) -> None:
    """Not every model gives each of its calls an id of its own."""
    hooks = Hooks()
    hooks.add(lambda step: deny("no") if step.args["command"] == "bad" else None, on="before_tool", name="before")
    hooks.add(lambda step: deny("withheld") if step.executed else None, on="after_tool", name="after")
    cli = Played("codex", hooks)
    about = {command: {"tool_use_id": "call_0", "tool_input": {"command": command}} for command in order}
    for command in order:
        await cli.tell("PreToolUse", captured("codex", "PreToolUse", **about[command]))
    reply = (await cli.tell("PostToolUse", captured("codex", "PostToolUse", **about["good"]))).reply
    assert reply["decision"] == "block"


def test_every_event_that_is_installed_for_claude_code_is_known_where_copilot_runs_it() -> None:
    """Copilot runs what a project has for Claude Code, too; what it does not know there is refused where it guards."""
    installed = {name for name, moment in host_named("claude_code").events.items() if moment.installed}
    fired = {"SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse",
             "PostToolUseFailure", "Stop", "SubagentStart", "SubagentStop", "PreCompact", "Notification"}  # fmt: skip
    assert installed & fired <= host_named("copilot").events.keys()


async def test_copilot_asks_for_permission_in_its_own_words_whatever_name_it_is_asked_for_by() -> None:
    """Its payload was seen to be camelCase, though the hook was registered by Claude Code's name."""
    cli = Played("copilot", saying(deny("no"), "before_permission"))
    reply = (await cli.tell("PermissionRequest", captured("copilot", "permissionRequest"))).reply
    assert reply == {"behavior": "deny", "message": "[judge] no"}
    assert cli.steps("before_permission")[0].target.command == "echo hi"


async def test_gemini_gets_nothing_at_all_where_even_an_empty_object_says_something() -> None:
    assert (await Played("gemini", saying(deny("no"), "before_model")).tell("BeforeToolSelection")).text == ""


@pytest.mark.parametrize(("host", "event"), [one for one in moments() if one[0] != "kiro"])
async def test_no_opinion_is_no_output(host: str, event: str) -> None:
    told = await Played(host).tell(event)
    assert (told.code, told.text) == (0, "{}" if host_named(host).needs_reply else "")


async def test_a_hook_that_broke_is_told_from_one_that_refused() -> None:
    def broken(step: Any) -> Verdict:
        raise RuntimeError("kaputt")

    reply = (await Played("claude_code", saying(broken, "before_tool")).tell("PreToolUse")).reply
    why = reply["hookSpecificOutput"]["permissionDecisionReason"]
    assert why.startswith("[judge] refused, because the hook failed (error): ")
    assert "kaputt" in why


# --- whatever a CLI says ------------------------------------------------------------------------

_FIELDS = sorted({key for host in ALL for one in found(host, "PreToolUse") + found(host, "BeforeTool") for key in one}
                 | {"prompt", "tool_response", "tool_result", "tool_call", "toolName", "toolArgs", "sessionId",
                    "toolResult", "error", "event", "raw_input", "raw_output", "input", "output", "agent_id",
                    "llm_request", "llm_response", "workspaceRoots", "workspace_roots", "sessionContext", "tool_info",
                    "agent_action_name", "userPromptSubmit", "source", "reason", "stop_reason", "stopReason",
                    "message", "notification_type", "delta", "tool_calls", "is_interrupt", "duration_ms",
                    "token_count", "agentId", "parentAgentId", "transformedPrompt"})  # fmt: skip
_names = st.text() | st.sampled_from(_FIELDS)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.sampled_from(_FIELDS), inner, max_size=4)
    ),
    max_leaves=8,
)
_payloads = st.dictionaries(_names, _json, max_size=8)
_moments = st.sampled_from(list(moments()))
_says = st.sampled_from([None, *SAYS])


def run(coroutine: Any) -> Any:
    import asyncio

    return asyncio.run(coroutine)


async def told_of(host: str, event: str, said: str, hooks: Hooks) -> str:
    cli = Played(host, hooks)
    given = read_payload(cli.host, event, said)
    return await answer(parse_event(cli.host, event, given), CliSessionState(), cli._dispatch)


def is_an_answer(told: str) -> bool:
    return told[:2] in ("0:", "2:") and told.endswith(":end")


@settings(quick, max_examples=400)
@given(_moments, _payloads, _says)
@example(("claude_code", "PreToolUse"), {"tool_name": "Bash", "tool_input": {"n": 2**70}}, None)
@example(("claude_code", "PreToolUse"), {"tool_name": "Bash", "tool_input": {"n": -(2**70)}}, "args")
@example(("copilot", "errorOccurred"), {"error": ["?"]}, None)
@example(("codex", "UserPromptSubmit"), {"prompt": "\x00\u202e"}, "deny")
def test_any_json_object_is_answered_or_refused_with_a_clear_error(
    moment: tuple[str, str], payload: dict[str, Any], said: str | None
) -> None:
    host, event = moment
    ours = host_named(host).events[event].event
    hooks = saying(SAYS[said], ours) if said is not None and said in sayable(ours) else Hooks()
    try:
        told = run(told_of(host, event, json.dumps(payload), hooks))
    except FairleadError:
        return
    assert is_an_answer(told)


@pytest.mark.parametrize("depth", [50, 400, 1000, 100_000])
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "UserPromptSubmit", "PostToolBatch"])
def test_any_depth_is_answered_or_refused_with_a_clear_error(event: str, depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    parts = ("tool_input", "tool_response", "prompt", "error")
    said = f'{{"tool_name":"Bash",{",".join(f"{json.dumps(part)}:{deep}" for part in parts)},"tool_calls":[{deep}]}}'
    try:
        told = run(told_of("claude_code", event, said, Hooks()))
    except FairleadError:
        return
    assert is_an_answer(told)


@quick
@given(_moments, st.text() | st.binary().map(lambda given: given.decode("utf-8", "replace")))
@example(("claude_code", "PreToolUse"), "[1]")
@example(("claude_code", "PreToolUse"), '"\ud800"')
@example(("claude_code", "PreToolUse"), '{"a": NaN}')
@example(("claude_code", "PreToolUse"), '{"a": 1}{"b": 2}')
def test_what_is_no_json_object_is_refused_with_a_clear_error(moment: tuple[str, str], said: str) -> None:
    host, event = moment
    try:
        told = run(told_of(host, event, said, Hooks()))
    except FairleadError as error:
        assert host_named(host).title in str(error)  # noqa: PT017
    else:
        assert is_an_answer(told)
        assert isinstance(json.loads(said), dict)


@quick
@given(st.lists(st.sampled_from(["end", "input", "tool", "subagent"]), max_size=40))
def test_however_a_session_goes_no_turn_is_kept_alive_more_than_three_times(moves: list[str]) -> None:
    cli = Played("codex", saying(extend("go on"), "before_turn_end"))
    names = {"end": "Stop", "input": "UserPromptSubmit", "tool": "PreToolUse", "subagent": "UserPromptSubmit"}
    kept = 0

    async def play() -> None:
        nonlocal kept
        for move in moves:
            about = {"agent_id": "a"} if move == "subagent" else {}
            said = await cli.tell(names[move], captured("codex", names[move], **about))
            if move == "end":
                kept = kept + 1 if said.text else 0
            elif move == "input":
                kept = 0
            assert kept <= 3

    run(play())


@pytest.mark.parametrize("host", HOSTS)
def test_an_event_that_no_host_has_is_refused_with_the_way_out(host: str) -> None:
    with pytest.raises(FairleadError, match="fairlead install"):
        read_payload(host_named(host), "Unheard", "{}")
