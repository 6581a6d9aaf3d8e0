"""Every event and everything that a hook may do there, tried in the framework: what its table says is what it does.

Where the table says that it can, it must be seen to. Where it cannot, the decision must say so; and where the event
does not fire there, the suite must not expect it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from driver import Call, Played, Say, call
from scene import Scene, aborted, has

from fairlead import EVENTS, Unenforceable, Verdict, answer, change, deny, extend, inject, retry, stop
from fairlead import abort as abort_verdict
from fairlead import allow as allow_verdict
from fairlead import ask as ask_verdict

WHY = "because of 4711"
SELDOM = ("before_compact", "after_compact", "notification")
"""Events that no scene here brings about: where an adapter fires them, it has tests of its own."""
ONLY_SEEN = ("session_end", "turn_end", "error")
"""Events at which there is nothing to be carried out."""
LS = call("shell", command="ls")
Seen = Callable[[Scene, Played], bool]


class Cell:
    """What a hook says, in which scene, and how one can tell that it was carried out."""

    def __init__(
        self, said: Verdict, seen: Seen, *script: Say | Call, once: bool = False, twice: bool = False, **options: Any
    ) -> None:
        self.said, self.seen, self.script, self.once, self.twice, self.options = (
            said, seen, script, once, twice, options,
        )  # fmt: skip


def told(scene: Scene, played: Played) -> bool:
    """The model has read it."""
    return any(has(request, WHY) for request in played.sent)


def told_at_once(scene: Scene, played: Played) -> bool:
    return bool(played.sent) and has(played.sent[0], WHY)


def unasked(scene: Scene, played: Played) -> bool:
    """The model was never asked, and the user is told why."""
    return played.sent == [] and WHY in (played.output or "")


def ended(scene: Scene, played: Played) -> bool:
    """The model was not asked again, and the user is told why."""
    return len(played.sent) == 1 and WHY in (played.output or "")


def not_run(scene: Scene, played: Played) -> bool:
    return scene.ran == [] and told(scene, played)


def not_run_and_ended(scene: Scene, played: Played) -> bool:
    return scene.ran == [] and ended(scene, played)


def failed(scene: Scene, played: Played) -> bool:
    return aborted(played.error)


def shown(text: str) -> Seen:
    return lambda scene, played: played.output == text


def later(field: str, value: Any) -> Seen:
    """A header field of the steps that follow."""

    def seen(scene: Scene, played: Played) -> bool:
        after = [decision.step for decision in scene.decisions if decision.event in ("turn_start", "before_request")]
        return getattr(after[-1], field) == value

    return seen


def state(scene: Scene, played: Played) -> bool:
    return scene.decisions[-1].event in EVENTS and scene.of("after_request")[-1].original.state == {"kept": 1}


CONTEXT = inject(WHY)
CELLS: dict[tuple[str, str], Cell] = {
    ("session_start", "deny"): Cell(deny(WHY), failed),
    ("session_start", "stop"): Cell(stop(WHY), unasked),
    ("session_end", "deny"): Cell(
        deny(WHY), lambda s, p: [one.reason for one in s.of("session_end")] == [WHY] and p.error is None
    ),
    ("session_start", "context"): Cell(CONTEXT, told_at_once),
    ("before_request", "context"): Cell(CONTEXT, told_at_once),
    ("before_request", "state"): Cell(change(state={"kept": 1}), state),
    ("before_request", "session_id"): Cell(change(session_id="other"), later("session_id", "other")),
    ("before_request", "checkpoint_id"): Cell(change(checkpoint_id="c1"), later("checkpoint_id", "c1")),
    ("after_request", "context"): Cell(CONTEXT, lambda s, p: has(p.sent[-1], WHY), twice=True),
    ("after_request", "state"): Cell(
        change(state={"kept": 1}), lambda s, p: s.of("before_request")[-1].original.state == {"kept": 1}, twice=True
    ),
    ("after_request", "checkpoint_id"): Cell(
        change(checkpoint_id="c1"), lambda s, p: s.of("before_request")[-1].original.checkpoint_id == "c1", twice=True
    ),
    ("before_input", "deny"): Cell(deny(WHY), unasked),
    ("before_input", "stop"): Cell(stop(WHY), unasked),
    ("before_input", "input"): Cell(
        change(input=WHY), lambda s, p: has(p.sent[0], WHY, "user") and not has(p.sent[0], "Go.", "user")
    ),
    ("before_input", "prepend_input"): Cell(
        change(prepend_input=WHY), lambda s, p: has(p.sent[0], WHY, "user") and has(p.sent[0], "Go.", "user")
    ),
    ("before_input", "context"): Cell(CONTEXT, told_at_once),
    ("after_input", "stop"): Cell(stop(WHY), unasked),
    ("after_input", "context"): Cell(CONTEXT, told_at_once),
    ("turn_start", "stop"): Cell(stop(WHY), unasked),
    ("turn_start", "context"): Cell(CONTEXT, told_at_once),
    ("before_prompt", "stop"): Cell(stop(WHY), unasked),
    ("before_prompt", "context"): Cell(CONTEXT, told_at_once),
    ("before_prompt", "system_prompt"): Cell(
        change(system_prompt=WHY), lambda s, p: has(p.sent[0], WHY, "system") and not has(p.sent[0], "Be brief.")
    ),
    ("before_model", "deny"): Cell(deny(WHY), lambda s, p: told_at_once(s, p) and p.output == "Done.", once=True),
    ("before_model", "stop"): Cell(stop(WHY), unasked),
    ("before_model", "context"): Cell(CONTEXT, told_at_once),
    ("before_model", "model"): Cell(change(model="second"), lambda s, p: p.models == ["second"]),
    ("before_model", "messages"): Cell(
        change(messages=[{"role": "user", "content": WHY}]),
        lambda s, p: has(p.sent[0], WHY, "user") and not has(p.sent[0], "Go."),
    ),
    ("before_model", "assistant"): Cell(answer(WHY), lambda s, p: p.sent == [] and p.output == WHY),
    ("after_model", "deny"): Cell(
        deny(WHY), lambda s, p: has(p.sent[1], WHY) and p.output == "Done.", Say("Secret."), once=True
    ),
    ("after_model", "stop"): Cell(stop(WHY), ended, Say("Secret.")),
    ("after_model", "context"): Cell(CONTEXT, lambda s, p: has(p.sent[1], WHY), LS, once=True),
    ("after_model", "output"): Cell(change(output=WHY), shown(WHY), Say("Secret.")),
    ("tool_requested", "stop"): Cell(stop(WHY), not_run_and_ended, LS),
    ("tool_requested", "context"): Cell(CONTEXT, lambda s, p: has(p.sent[1], WHY), LS),
    ("before_tool", "deny"): Cell(deny(WHY), not_run, LS),
    ("before_tool", "ask"): Cell(ask_verdict(WHY), lambda s, p: len(s.ran) == 1, LS, approve=True),
    ("before_tool", "allow"): Cell(allow_verdict(WHY), lambda s, p: len(s.ran) == 1, LS),
    ("before_tool", "stop"): Cell(stop(WHY), not_run_and_ended, LS),
    ("before_tool", "context"): Cell(CONTEXT, lambda s, p: has(p.sent[1], WHY), LS),
    ("before_tool", "args"): Cell(
        change(args={"command": WHY}), lambda s, p: s.ran == [("shell", {"command": WHY})], LS
    ),
    ("before_tool", "result"): Cell(answer(WHY), lambda s, p: s.ran == [] and has(p.sent[1], WHY, "tool"), LS),
    ("before_tool", "is_error"): Cell(
        change(result=WHY, is_error=True),
        lambda s, p: s.ran == [] and has(p.sent[1], WHY, "tool") and s.steps("after_tool")[0].is_error,
        LS,
    ),
    ("before_permission", "deny"): Cell(deny(WHY), not_run, LS),
    ("before_permission", "ask"): Cell(ask_verdict(WHY), lambda s, p: len(s.ran) == 1, LS, approve=True),
    ("before_permission", "allow"): Cell(allow_verdict(WHY), lambda s, p: len(s.ran) == 1, LS),
    ("before_permission", "resolved"): Cell(change(resolved=False), lambda s, p: s.ran == [], LS),
    ("before_permission", "stop"): Cell(stop(WHY), not_run_and_ended, LS),
    ("before_permission", "context"): Cell(CONTEXT, lambda s, p: has(p.sent[1], WHY), LS),
    ("after_permission", "stop"): Cell(stop(WHY), not_run_and_ended, LS),
    ("after_permission", "context"): Cell(CONTEXT, lambda s, p: has(p.sent[1], WHY), LS),
    ("after_tool", "deny"): Cell(
        deny(WHY), lambda s, p: has(p.sent[1], WHY, "tool") and not has(p.sent[1], "ran ls"), LS
    ),
    ("after_tool", "stop"): Cell(stop(WHY), lambda s, p: len(s.ran) == 1 and ended(s, p), LS),
    ("after_tool", "retry"): Cell(
        retry(WHY), lambda s, p: len(s.ran) == 2 and has(p.sent[1], "worked", "tool"), call("flaky", why="x"), once=True
    ),
    ("after_tool", "output"): Cell(
        change(output=WHY), lambda s, p: has(p.sent[1], WHY, "tool") and not has(p.sent[1], "ran ls"), LS
    ),
    ("after_tool", "context"): Cell(CONTEXT, lambda s, p: has(p.sent[1], WHY) and has(p.sent[1], "ran ls"), LS),
    ("after_tool_batch", "stop"): Cell(stop(WHY), lambda s, p: len(s.ran) == 1 and ended(s, p), LS),
    ("after_tool_batch", "context"): Cell(CONTEXT, lambda s, p: has(p.sent[1], WHY), LS),
    ("before_turn_end", "extend"): Cell(
        extend(WHY), lambda s, p: len(p.sent) == 2 and has(p.sent[1], WHY, "user") and p.output == "Done.",
        Say("First."), once=True,
    ),
    ("before_turn_end", "stop"): Cell(
        stop(WHY, stop_reason="refusal"),
        lambda s, p: p.output == "Done." and s.steps("turn_end")[0].stop_reason == "refusal",
    ),
    ("before_turn_end", "context"): Cell(CONTEXT, lambda s, p: has(p.sent[0], WHY), twice=True),
    ("before_response", "deny"): Cell(
        deny(WHY), lambda s, p: WHY in (p.output or "") and "Secret" not in (p.output or ""), Say("Secret.")
    ),
    ("before_response", "response"): Cell(change(response=WHY), shown(WHY), Say("Secret.")),
    ("before_output", "deny"): Cell(deny(WHY), lambda s, p: not p.output, Say("Secret.")),
    ("before_output", "content"): Cell(change(content=WHY), shown(WHY), Say("Secret.")),
    ("subagent_start", "deny"): Cell(
        deny(WHY), lambda s, p: not any(has(request, "Help me.", "user") for request in p.sent),
        call("helper", message="Help me."), helper=[Say("Helped.")],
    ),
    ("subagent_start", "initial_message"): Cell(
        change(initial_message=WHY), lambda s, p: any(has(request, WHY, "user") for request in p.sent),
        call("helper", message="Help me."), helper=[Say("Helped.")],
    ),
    ("subagent_start", "context"): Cell(CONTEXT, told, call("helper", message="Help me."), helper=[Say("Helped.")]),
    ("subagent_stop", "extend"): Cell(
        extend(WHY), told, call("helper", message="Help me."), helper=[Say("Half."), Say("Helped.")], once=True
    ),
    ("subagent_stop", "context"): Cell(CONTEXT, told, call("helper", message="Help me."), helper=[Say("Helped.")]),
}  # fmt: skip
ABORTS = {
    event: Cell(abort_verdict(WHY), failed, LS, helper=[Say("Helped.")] if event.startswith("subagent") else None)
    for event in EVENTS
    if event not in (*SELDOM, *ONLY_SEEN, "subagent_start", "subagent_stop")
}
CELLS |= {(event, "abort"): cell for event, cell in ABORTS.items()}


def test_every_part_of_every_event_has_a_cell() -> None:
    parts = {
        (name, part)
        for name, event in EVENTS.items()
        for part in (*event.controls, *event.changes, *(["context"] if event.context else []))
        if name not in SELDOM and part not in ("proceed", "skip_rest", "abort")
    }
    assert parts == {cell for cell in CELLS if cell[1] != "abort"}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(cell))
async def test_cell(scene: Scene, cell: tuple[str, str]) -> None:
    (event, part), how = cell, CELLS[cell]
    scene.add(how.said, on=event, once=how.once)
    options = {key: value for key, value in how.options.items() if value is not None}
    if options.get("helper") and not scene.driver.helpers:
        options.pop("helper")
    if options.get("approve") and not scene.driver.interrupts:
        options.pop("approve")
    if how.twice:
        scene.adapter = scene.driver.adapter(scene.hooks)
        options["session_id"] = "s1"
        await scene.play(*how.script, **options)
    played = await scene.play(*how.script, **options)
    if how.twice:
        await scene.driver.close(scene.adapter)
    if scene.can(event, part):
        assert how.seen(scene, played), (played, [str(decision) for decision in scene.decisions])
    elif part == "ask" and scene.can(event):  # then the approver of the hooks is asked; here there is none
        scene.seen = "approver"
        assert scene.ran == []
    elif scene.can(event):
        scene.seen = "reported"
        told = "input" if part == "prepend_input" else part  # into which it is folded
        assert (event, told) in scene.reported or _unenforceable(played.error), (played, scene.reported)
    else:
        scene.seen = "silent"
        assert event not in scene.events


def _unenforceable(error: BaseException | None) -> bool:
    return error is not None and (
        isinstance(error, Unenforceable) or _unenforceable(error.__cause__ or error.__context__)
    )


async def test_the_events_that_fire_are_those_of_the_table(scene: Scene) -> None:
    helper = [Say("Helped.")] if scene.driver.helpers else None
    script = [LS, *([call("helper", message="Help me.")] if helper else [])]
    await scene.play(*script, **({"helper": helper} if helper else {}))
    await scene.play(call("fail", why="broken"))  # which ends the request in some frameworks
    assert set(scene.events) == {event for event in EVENTS if scene.can(event) and event not in SELDOM}
