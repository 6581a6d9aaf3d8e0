"""What a CLI carries out is what the journal says: every host, every moment, everything that a hook can say there.

What an answer does is read here from the answer itself, as the CLI reads it, and compared with what the decision says.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from played import Played, Said, captured, payload_of, saying
from pydantic_ai.models.test import TestModel
from test_answers import CASES, HOSTS, SAYS, has_step, moments, sayable

from fairlead import Hooks, Verdict, change, deny, extend, retry, stop
from fairlead.hosts.clis.handler import ENDS, EXTENDS
from fairlead.hosts.clis.mapping import host_named
from fairlead.hosts.loop.agent import EXTENDS as LOOP_EXTENDS
from fairlead.hosts.loop.agent import RETRIES, Agent
from fairlead.journal import Journal
from fairlead.journal.reading import Filter, Reader
from fairlead.lifecycle import AfterTool, BeforeTool


def what_it_does(host: str, event: str, said: Said) -> set[str]:
    """What a CLI does when it is told this. Two words, where both are true of it."""
    ours = host_named(host).events[event].event
    if said.code == 2:
        return {"deny"}
    reply = {} if host == "kiro" else said.reply
    specific = reply.get("hookSpecificOutput") or {}
    if reply.get("continue") is False:
        refuses_only = (host == "qwen" and ours == "after_tool") or host == "cursor"
        return {"deny"} if refuses_only else {"stop", "abort"}
    if reply.get("cancel"):  # Cline knows no other way to refuse a call of a tool that is not its own
        return {"deny", "stop", "abort"}
    if "stop" in reply:
        return {"stop", "abort"}
    if "llm_response" in specific:  # the model is not called, but it is answered
        return {"proceed"}
    if reply.get("interrupt"):
        return {"stop", "abort"}
    refusals = (
        specific.get("permissionDecision"), reply.get("permissionDecision"), reply.get("permission"),
        reply.get("behavior"), (specific.get("decision") or {}).get("behavior"), reply.get("decision"),
    )  # fmt: skip
    word = next((word for word in refusals if word), None)
    if "followup_message" in reply or (ours in ENDS and word in ("block", "deny")):
        return {"extend"}
    if word in ("block", "deny") or "deny" in reply or ("overrideInput" in reply and reply["overrideInput"] is None):
        return {"deny"}
    if word == "approve":
        return {"allow"}
    if word == "allow" and any(key in {**reply, **specific} for key in ("updatedInput", "updated_input")):
        return {"allow", "proceed"}  # new arguments are taken over only together with an `allow`
    if ours == "after_tool" and "updatedToolOutput" in specific:
        return {"deny", "proceed"}  # which puts something else in the place of the output, for either reason
    return {word or "proceed"}


async def effect_of(host: str, event: str, hooks: Hooks, payload: dict[str, Any] | None = None) -> tuple[Said, str]:
    cli = Played(host, hooks)
    said = await cli.tell(event, payload)
    decision = next(made for made in cli.decisions if made.event == host_named(host).events[event].event)
    return said, decision.effective


@pytest.mark.parametrize(("host", "event", "said"), CASES)
async def test_the_record_says_what_the_cli_does(host: str, event: str, said: str) -> None:
    told, effect = await effect_of(host, event, saying(SAYS[said], host_named(host).events[event].event))
    assert effect in what_it_does(host, event, told), told


@pytest.mark.parametrize(("host", "event"), [one for one in moments() if has_step(*one)])
async def test_the_record_says_what_the_cli_does_of_two_verdicts(host: str, event: str) -> None:
    ours = host_named(host).events[event].event
    for first, second in combinations(sayable(ours), 2):
        hooks = saying(SAYS[second], ours)
        hooks.add(SAYS[first], on=ours, name="first", priority=1)
        told, effect = await effect_of(host, event, hooks)
        assert effect in what_it_does(host, event, told), (first, second, told)


@pytest.mark.parametrize("host", HOSTS)
async def test_a_call_that_is_refused_after_a_stop_is_recorded_as_denied(host: str) -> None:
    for event, moment in host_named(host).events.items():
        if moment.event != "before_tool" or not has_step(host, event):
            continue
        payload = payload_of(host, event)
        cli = Played(host, saying(stop("enough"), "before_tool", times=1))
        await cli.tell(event, payload)
        cli.take()
        told = await cli.tell(event, payload)
        (effect,) = [made.effective for made in cli.decisions if made.event == "before_tool"]
        assert effect in what_it_does(host, event, told), (event, told)


@pytest.mark.parametrize("host", HOSTS)
async def test_a_turn_that_is_kept_alive_too_often_is_recorded_as_ending(host: str) -> None:
    for event, moment in host_named(host).events.items():
        if moment.event not in ENDS or "extend" not in moment.can:
            continue
        cli = Played(host, saying(extend("go on"), moment.event))
        for _ in range(EXTENDS + 1):
            told = await cli.tell(event)
        last = [made for made in cli.decisions if made.event == moment.event][-1]
        assert (last.control, last.effective) == ("extend", "proceed")
        assert what_it_does(host, event, told) == {"proceed"}


def kept(path: Path, **which: Any) -> list[str]:
    with Reader(path) as reader:
        return [str(record.body["step"]["event"]) for record in reader.records(Filter(**which))]


async def refused_in_the_journal(host: str, says: Verdict | Callable[[Any], Verdict], path: Path, calls: int) -> None:
    with Journal(path) as journal:
        hooks = Hooks(journal=journal)
        left = iter((says,))
        hooks.add(lambda step: next(left, None), on="before_tool", name="judge")
        cli = Played(host, hooks)
        for number in range(calls):
            await cli.tell("PreToolUse", captured(host, "PreToolUse", tool_use_id=f"call-{number}"))


async def test_codex_after_a_stop_is_found_among_the_denied(tmp_path: Path) -> None:
    await refused_in_the_journal("codex", stop("enough"), tmp_path / "journal.db", 2)
    assert kept(tmp_path / "journal.db", decision="deny") == ["before_tool", "before_tool"]


async def test_a_rewrite_that_qwen_cannot_do_is_found_among_the_denied(tmp_path: Path) -> None:
    await refused_in_the_journal("qwen", change(args={"command": "ls"}), tmp_path / "journal.db", 1)
    assert kept(tmp_path / "journal.db", decision="deny") == ["before_tool"]
    with Reader(tmp_path / "journal.db") as reader:
        assert [(stats.hook, stats.denials) for stats in reader.stats()] == [("judge", 1)]


async def test_what_a_hook_dispatches_itself_has_its_own_effect(tmp_path: Path) -> None:
    """A step that a hook dispatches is its own caller's to carry out, and not the CLI's."""
    hooks = Hooks(record=True)
    nested = []

    async def judge(step: Any) -> Verdict:
        if step.tool != "inner":
            nested.append(await hooks.dispatch(BeforeTool(tool="inner", args={})))
        return deny("no") if step.tool == "inner" else stop("enough")

    hooks.add(judge, on="before_tool")
    cli = Played("codex", hooks)
    await cli.tell("PreToolUse")
    assert [(made.control, made.effect) for made in nested] == [("deny", None)]


# --- the loop -------------------------------------------------------------------------------------


async def test_a_loop_records_that_it_extends_a_turn_only_so_often(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        hooks = Hooks(journal=journal)
        hooks.add(lambda step: extend("go on"), on="before_turn_end", name="keeper")
        await Agent(TestModel(custom_output_text="Done."), hooks=hooks).run("hi")
    with Reader(path) as reader:
        ends = [record.decision for record in reader.records(Filter(event="before_turn_end"))]
    assert [made.effective for made in ends] == ["extend"] * LOOP_EXTENDS + ["proceed"]


async def test_a_loop_records_that_it_retries_a_tool_only_so_often() -> None:
    assert RETRIES == 2
    hooks, seen = Hooks(), []
    hooks.add(lambda step: retry("again"), on="after_tool", name="again")
    session = hooks.session("s", host="loop")
    session.limits = {"retry": RETRIES}
    for attempt in (1, 2, 3):
        step = session.step(AfterTool, tool="bash", args={}, attempt=attempt)
        seen.append((await session.dispatch(step)).effective)
    assert seen == ["retry", "retry", "proceed"]


@pytest.mark.parametrize(
    ("can", "says", "effect"),
    [
        ({"deny"}, deny("no"), "deny"),
        ({"deny"}, stop("enough"), "proceed"),
        ({"stop"}, stop("enough"), "stop"),
        (set(), stop("enough"), "proceed"),
    ],
)
async def test_the_effect_in_a_framework_follows_from_what_it_can_do(can: set[str], says: Verdict, effect: str) -> None:
    hooks = Hooks()
    hooks.add(lambda step: says, on="before_tool", name="judge")
    session = hooks.session("s", capabilities={"before_tool": can})
    assert (await session.dispatch(session.step(BeforeTool, tool="bash", args={}))).effective == effect
