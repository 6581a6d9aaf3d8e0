"""What a decision comes to in a host that cannot do everything.

A host says what it can carry out at an event: controls, fields, and "context". Whatever else a decision wants follows
a rule, the same in every host, and never the rule "nothing happened": see `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec
from msgspec.structs import replace

from ..decision import Decision, deciding
from ..frozen import thaw
from ..lifecycle import BeforeInput, Control
from ..verdict import clean

RULES: dict[str, str] = {
    "deny": "At an event after the fact, the turn is stopped instead. Where that cannot be done either, it is in the "
    "journal as unsupported, logged as an error, and shown by `fairlead doctor`.",
    "ask": "The question goes to `fairlead approvals`; until somebody approves, it is a deny. It never reaches a host "
    "that would run the tool.",
    "allow": "The host goes by its own permissions, as if nothing had been said.",
    "stop": "The operation is denied, and so is every tool call until the user says something.",
    "abort": "As stop.",
    "args": "The call is denied, and the model is told with which arguments to repeat it.",
    "result": "The call is denied, and the model is told the answer as the reason.",
    "output": "The output is withheld, and the model is told the new output as the reason. Where it cannot be "
    "withheld, the turn is stopped, and where that cannot be done, every tool call is denied until the user says "
    "something.",
    "input": "What is put before or after the user's words becomes context. Any other change refuses the message, and "
    "says what to send.",
    "context": "It waits for the next event at which the host takes context.",
    "extend": "The turn ends. The reason waits, as context, for the next one.",
    "skip": "It is not left out.",
    "retry": "The tool is not run again. The reason is given as context.",
    "model": "The call goes to the model that the host chose.",
    "messages": "The messages go to the model as they are.",
    "assistant": "The model is called.",
    "initial_message": "The subagent starts with the message as it is.",
    "message": "The notification is shown as it is.",
    "system_prompt": "The prompt is used as it is.",
}
"""What happens to what a host cannot carry out. The documentation has this table, too."""


class Effect(msgspec.Struct):
    """What a host is to do: only what it can."""

    deny: str | None = None
    ask: str | None = None
    allow: str | None = None
    stop: str | None = None
    extend: str | None = None
    skip: str | None = None
    args: dict[str, Any] | None = None
    output: Any = None
    input: Any = None
    assistant: Any = None
    model: str | None = None
    messages: list[Any] | None = None
    context: list[str] = []
    """Texts for the model, now."""
    later: list[str] = []
    """Texts for the model, at the next event that takes any."""
    warnings: list[str] = []
    """Texts for the user, and not for the model."""
    halt: str | None = None
    """Why no tool is to run until the user says something, where the host cannot stop by itself."""


def effect_of(decision: Decision[Any], can: Collection[str]) -> Effect:
    """What a host that can do so much, and no more, is to do about a decision."""
    effect = Effect()
    _control(decision, can, effect)
    for field in decision.changed:
        if field in _FIELDS and effect.deny is None:
            _FIELDS[field](decision, can, effect)
    effect.warnings = [
        f"[{opinion.hook.name}] {clean(text)}" for opinion in decision.opinions for text in opinion.verdict.warnings
    ]
    texts = [text.signed for text in decision.context]  # what keeps a turn alive is among them
    if effect.extend is not None:
        effect.extend = "\n\n".join(texts or ["Go on."])
    elif "context" in can:
        effect.context += texts
    else:
        effect.later += texts
    return effect


CARRIED: tuple[Control, ...] = ("stop", "deny", "ask", "extend", "skip", "allow")
"""The controls that an effect may have, the strongest first."""


def control_of(effect: Effect, render: Callable[[Effect], Any]) -> Control:
    """What an effect comes to in the host's own words: the strongest control that makes a difference to them.

    `render` gives these words. It may refuse by itself what the host would not take over, and then sets `deny` or
    `stop`.
    """
    if (
        effect.args is None and effect.output is None and all(getattr(effect, control) is None for control in CARRIED)
    ):  # as a rule
        return "proceed"
    told = replace(effect)
    words = render(told)
    for control in CARRIED:
        if getattr(told, control) is not None and getattr(effect, control) is None:
            return control
    for control in CARRIED:
        if getattr(told, control) is not None:
            setattr(told, control, None)
            if render(replace(told)) != words:
                return control
    return "proceed"


def reason_of(decision: Decision[Any]) -> str:
    """Why, for the model or the user to read, with the name of the hook that says so."""
    if len(deciding(decision.approvals)) > 1:
        return str(decision.reason)  # in which each question has the name of its hook
    reason = decision.reason or f"{decision.control} at {decision.event}"
    if decision.cause == "failure":
        broke = next((failure for failure in decision.failures if failure.control is not None), None)
        reason = f"refused, because the hook failed ({broke.kind}): {broke.error}" if broke else reason
    return f"[{decision.hook}] {reason}"


def _control(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
    control, reason = decision.control, reason_of(decision)
    if decision.denied or control in ("stop", "abort"):
        _refuse(decision, can, effect, reason)
    elif control in ("ask", "allow", "skip") and control in can:
        setattr(effect, control, reason)
    elif control == "ask":
        effect.deny = reason  # which a host must be able to do, where a hook may ask
    elif control == "extend" and "extend" in can:
        effect.extend = ""
    elif control == "retry" and decision.reason:
        (effect.context if "context" in can else effect.later).append(reason)


def _refuse(decision: Decision[Any], can: Collection[str], effect: Effect, reason: str) -> None:
    """A deny, a stop or an abort. A host that cannot stop denies, and goes on denying."""
    ends = decision.control in ("stop", "abort")
    if "deny" in can:
        effect.deny = reason
    if ("stop" in can or decision.control in can) and (ends or effect.deny is None):
        effect.stop = reason
    elif ends:
        effect.halt = reason


def _args(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
    args = thaw(decision.step.args)
    if "args" in can:
        effect.args = args
    else:
        effect.deny = f"{_who(decision)} {to_repeat(decision.step.tool, args)}"


def to_repeat(tool: str, args: dict[str, Any]) -> str:
    """What the model is told of a call that would have to run with other arguments."""
    return f"Not run as it is. Call {tool} again with exactly this: {_as_text(args)}"


def _result(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
    effect.deny = f"{_who(decision)} Not run: this is the answer: {_as_text(thaw(decision.step.result))}"


def _output(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
    output = thaw(decision.step.output)
    if "output" in can:
        effect.output = output
    elif "deny" in can:
        effect.deny = f"{_who(decision)} {_as_text(output)}"
    else:
        why = f"{_who(decision)} the output must not be shown as it is, and cannot be changed here"
        effect.stop, effect.halt = (why, None) if "stop" in can else (None, why)


def _input(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
    step, came = decision.step, decision.original
    assert isinstance(came, BeforeInput)  # noqa: S101
    if "input" in can:
        effect.input = thaw(step.input)
        return
    new, old = _as_text(thaw(step.input)), _as_text(thaw(came.input))
    if old and (new.startswith(old) or new.endswith(old)):
        added = new.removeprefix(old) if new.startswith(old) else new.removesuffix(old)
        (effect.context if "context" in can else effect.later).append(f"{_who(decision)} {added.strip()}")
    elif "deny" in can:
        effect.deny = f"{_who(decision)} The message cannot be changed here. Send this instead: {new}"


def _kept(field: str) -> Any:
    def keep(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
        if field in can:
            setattr(effect, field, thaw(getattr(decision.step, field)))

    return keep


_FIELDS: dict[str, Any] = {
    "args": _args, "result": _result, "output": _output, "input": _input,
    **{field: _kept(field) for field in ("model", "messages", "assistant")},
}  # fmt: skip


def _who(decision: Decision[Any]) -> str:
    """The hook whose change it is: the last that changed anything."""
    names = [opinion.hook.name for opinion in decision.opinions if opinion.verdict.changes]
    return f"[{names[-1] if names else decision.hook or 'fairlead'}]"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
