"""What a decision becomes in a host that cannot carry out everything.

A host lists what it can carry out at an event: controls, fields, and "context". Everything else in a decision follows
a rule, the same one in every host: see `RULES`. Nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from msgspec.structs import replace

from ...decision import Decision, deciding_approvals
from ...frozen import thaw
from ...lifecycle import BeforeInput, Control
from ...verdict import clean

RULES: dict[str, str] = {
    "deny": "At an event after the fact, the turn is stopped instead. At `session_start` every message and every tool "
    "call of the session is denied; at `session_end` it is only recorded. If the host cannot do that either, the "
    "journal marks the verdict as unsupported, fairlead logs an error, and `fairlead doctor` shows it.",
    "ask": "The question goes to `fairlead approvals`. Until a human approves, the operation is denied. A host that "
    "would run the tool never gets an `ask`.",
    "allow": "Ignored. The host's own permissions decide.",
    "stop": "The operation is denied. So is every tool call until the user's next message. At `session_start` the "
    "first message is denied, and every tool call until the second.",
    "abort": "The same as `stop`; at `session_start` the same as `deny`.",
    "args": "The call is denied. The reason tells the model which arguments to repeat it with.",
    "result": "The call is denied. The reason gives the model the result.",
    "output": "The output is withheld, and the reason gives the model the new output. If it cannot be withheld, the "
    "turn is stopped. If that is not possible either, every tool call is denied until the user's next message.",
    "input": "Text added before or after the message becomes context. Any other change refuses the message, and the "
    "reason says what to send instead.",
    "context": "It waits for the next event at which the host takes context.",
    "extend": "The turn ends. The reason waits, as context, for the next turn.",
    "skip": "Ignored. The operation runs.",
    "retry": "The tool is not run again. The model gets the reason as context.",
    "model": "Ignored. The call goes to the model that the host chose.",
    "messages": "Ignored. The messages go to the model unchanged.",
    "assistant": "Ignored. The model is called.",
    "initial_message": "Ignored. The subagent starts with the original message.",
    "message": "Ignored. The notification is shown unchanged.",
    "system_prompt": "Ignored. The prompt is used unchanged.",
}
"""What happens instead of what a host cannot carry out. The documentation has the same table."""


class Effect(msgspec.Struct):
    """What a host does about a decision: only what it can carry out."""

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
    """Texts for the model, in this answer."""
    later: list[str] = []
    """Texts for the model, at the next event that takes context."""
    warnings: list[str] = []
    """Texts for the user, not for the model."""
    halt: str | None = None
    """Why no tool runs until the user's next message, where the host cannot stop the turn or refuse the session."""


def effect_of(decision: Decision[Any], can: Collection[str]) -> Effect:
    """Return what a host with the capabilities `can` does about a decision."""
    effect = Effect()
    _control(decision, can, effect)
    for field in decision.changed:
        if field in _FIELDS and effect.deny is None:
            _FIELDS[field](decision, can, effect)
    effect.warnings = [
        f"[{each.hook.name}] {clean(text, each.hook.text_limit)}"
        for each in decision.verdicts
        for text in each.verdict.warnings
    ]
    texts = [text.signed for text in decision.context]  # the reason of an `extend` is one of them
    if effect.extend is not None:
        effect.extend = "\n\n".join(texts or ["Go on."])
    elif "context" in can:
        effect.context += texts
    else:
        effect.later += texts
    return effect


CARRIED: tuple[Control, ...] = ("stop", "deny", "ask", "extend", "skip", "allow")
"""The controls that an effect may have, the strongest first."""


def control_of(effect: Effect) -> Control:
    """Return the strongest control of an effect, which is the one that the CLI carries out."""
    return next((control for control in CARRIED if getattr(effect, control) is not None), "proceed")


# --- refining: an effect adapted to one payload -------------------------------------------------


def unchanged(effect: Effect, payload: object) -> Effect:
    """The CLI carries out the effect with every payload."""
    return effect


def hold_context(effect: Effect) -> Effect:
    """Keep the context for a later event, because this answer has no place for it."""
    return replace(effect, context=[], later=[*effect.context, *effect.later])


def refuse_args(effect: Effect, tool: object) -> Effect:
    """Deny a call whose new arguments the CLI would not take over, and name them in the reason."""
    return replace(effect, deny=_repeat_with(tool, effect.args))


def limit_to(effect: Effect, can: Collection[str]) -> Effect:
    """Take away the controls that are not in `can`."""
    return replace(effect, **{control: None for control in CARRIED if control not in can})


# --- from a decision ----------------------------------------------------------------------------


def reason_of(decision: Decision[Any]) -> str:
    """Return the reason for the model or the user, with the name of the hook that gave it."""
    if len(deciding_approvals(decision.approvals)) > 1:
        return str(decision.reason)  # each question in it has the name of its hook
    reason = decision.reason or f"{decision.control} at {decision.event}"
    if decision.cause == "failure":
        failed = next((failure for failure in decision.failures if failure.control is not None), None)
        reason = f"refused, because the hook failed ({failed.kind}): {failed.error}" if failed else reason
    return f"[{decision.hook}] {reason}"


def _control(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
    control, reason = decision.control, reason_of(decision)
    if decision.denied or control in ("stop", "abort"):
        _refuse(decision, can, effect, reason)
    elif control in ("ask", "allow", "skip") and control in can:
        setattr(effect, control, reason)
    elif control == "ask":
        effect.deny = reason  # every host can deny at the events at which a hook may ask
    elif control == "extend" and "extend" in can:
        effect.extend = ""
    elif control == "retry" and decision.reason:
        (effect.context if "context" in can else effect.later).append(reason)


def _refuse(decision: Decision[Any], can: Collection[str], effect: Effect, reason: str) -> None:
    """Apply a deny, a stop or an abort. A host that cannot stop denies, and keeps denying."""
    ends = decision.control == "stop" or decision.aborts
    if "deny" in can:
        effect.deny = reason
    can_end = any(control in can for control in ("stop", "abort" if decision.aborts else decision.control))
    if can_end and (ends or effect.deny is None):
        effect.stop = reason
    elif ends:
        effect.halt = reason


def _args(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
    args = thaw(decision.step.args)
    if "args" in can:
        effect.args = args
    else:
        effect.deny = f"{_who(decision)} {_repeat_with(decision.step.tool, args)}"


def _repeat_with(tool: object, args: Any) -> str:
    """Return the reason for denying a call that must run with other arguments."""
    return f"Not run as it is. Call {tool} again with exactly this: {to_text(args)}"


def _result(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
    effect.deny = f"{_who(decision)} Not run: this is the answer: {to_text(thaw(decision.step.result))}"


def _output(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
    output = thaw(decision.step.output)
    if "output" in can:
        effect.output = output
    elif "deny" in can:
        effect.deny = f"{_who(decision)} {to_text(output)}"
    else:
        why = f"{_who(decision)} the output must not be shown as it is, and cannot be changed here"
        effect.stop, effect.halt = (why, None) if "stop" in can else (None, why)


def _input(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
    step, original = decision.step, decision.original
    assert isinstance(original, BeforeInput)  # noqa: S101
    if "input" in can:
        effect.input = thaw(step.input)
        return
    new, old = to_text(thaw(step.input)), to_text(thaw(original.input))
    if old and (new.startswith(old) or new.endswith(old)):
        added = new.removeprefix(old) if new.startswith(old) else new.removesuffix(old)
        (effect.context if "context" in can else effect.later).append(f"{_who(decision)} {added.strip()}")
    elif "deny" in can:
        effect.deny = f"{_who(decision)} The message cannot be changed here. Send this instead: {new}"


def _copy_field(field: str) -> Any:
    def copy(decision: Decision[Any], can: Collection[str], effect: Effect) -> None:
        if field in can:
            setattr(effect, field, thaw(getattr(decision.step, field)))

    return copy


_FIELDS: dict[str, Any] = {
    "args": _args, "result": _result, "output": _output, "input": _input,
    **{field: _copy_field(field) for field in ("model", "messages", "assistant")},
}  # fmt: skip


def _who(decision: Decision[Any]) -> str:
    """Return the hook that made the change: the last that changed anything."""
    names = [each.hook.name for each in decision.verdicts if each.verdict.changes]
    return f"[{names[-1] if names else decision.hook or 'fairlead'}]"


def to_text(value: Any) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
