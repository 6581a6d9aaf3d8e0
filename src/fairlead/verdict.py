"""Verdicts: make them, read them from JSON, check them against an event, apply and fold them.

A verdict is a value. Checking and applying never change it: they return a new verdict or a new step.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from .errors import MalformedVerdict, UnknownName, nearest
from .frozen import freeze
from .lifecycle import (
    CHANGEABLE,
    CONTROLS,
    EVENTS,
    STOP_REASONS,
    Control,
    Event,
    Step,
    StopReason,
    ToolStep,
    event_named,
)
from .result import read_result
from .tools import TARGET_FIELDS, Tools, server_of

if TYPE_CHECKING:
    from .hook import Hook

S = TypeVar("S", bound=Step)
Cause = Literal["policy", "failure", "approval"]

TEXT_LIMIT = 4096
"""Bytes of one text from a hook to a model or a user, unless the hook sets `text_limit`."""

CONTROL_ALIASES: dict[str, Control] = {"break": "stop", "continue": "extend"}
"""Other words for controls that a verdict in JSON may use."""
_TARGETS = frozenset(TARGET_FIELDS) - {"server", "dialect"}
_FIELDS = CHANGEABLE | _TARGETS
_OPTIONS = frozenset({"reason", "context", "warnings", "metadata", "name", "stop_reason"})
_WIRE_KEYS = ("control", "reason", "name", "stop_reason", "additional_context", "warnings", "metadata")


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one hook for one step. Make one with `deny(...)`, `change(...)` and so on."""

    control: Control = "proceed"
    reason: str | None = None
    name: str | None = None
    stop_reason: StopReason | None = None
    context: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    metadata: dict[str, Any] | None = None
    changes: dict[str, Any] = {}


# --- making ---------------------------------------------------------------------------------


def _texts(value: str | Iterable[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _verdict(
    control: Control,
    text: str | None,
    /,
    *,
    reason: str | None = None,
    name: str | None = None,
    stop_reason: StopReason | None = None,
    context: str | Iterable[str] | None = None,
    warnings: str | Iterable[str] | None = None,
    metadata: dict[str, Any] | None = None,
    **changes: Any,
) -> Verdict:
    if unknown := changes.keys() - _FIELDS - {"answer"}:
        raise UnknownName("field", min(unknown), _FIELDS | _OPTIONS, " in a verdict")
    if stop_reason is not None and stop_reason not in STOP_REASONS:
        raise UnknownName("stop_reason", stop_reason, STOP_REASONS)
    changes = {field: value for field, value in changes.items() if value is not None}
    reason = text if text is not None else reason
    return Verdict(control, reason, name, stop_reason, _texts(context), _texts(warnings), metadata, changes)


def deny(reason: str | None = None, /, **also: Any) -> Verdict:
    """Refuse this operation. The reason goes to the model or the user."""
    return _verdict("deny", reason, **also)


def ask(question: str | None = None, /, **also: Any) -> Verdict:
    """Let a human decide."""
    return _verdict("ask", question, **also)


def allow(reason: str | None = None, /, **also: Any) -> Verdict:
    """Grant a permission, so that the host does not apply its own policy."""
    return _verdict("allow", reason, **also)


def skip(reason: str | None = None, /, **also: Any) -> Verdict:
    """Leave this operation out and go on."""
    return _verdict("skip", reason, **also)


def stop(reason: str | None = None, /, stop_reason: StopReason = "end_turn", **also: Any) -> Verdict:
    """End the turn."""
    return _verdict("stop", reason, stop_reason=stop_reason, **also)


def extend(feedback: str | None = None, /, **also: Any) -> Verdict:
    """Do not end the turn: the feedback becomes the next user message."""
    return _verdict("extend", feedback, **also)


def abort(reason: str | None = None, /, name: str | None = None, **also: Any) -> Verdict:
    """Fail the whole request."""
    return _verdict("abort", reason, name=name, **also)


def retry(reason: str | None = None, /, **also: Any) -> Verdict:
    """Run the same tool call again."""
    return _verdict("retry", reason, **also)


def skip_rest(reason: str | None = None, /, **also: Any) -> Verdict:
    """Run no further transforms. Gates and observers still run."""
    return _verdict("skip_rest", reason, **also)


def change(reason: str | None = None, /, **changes: Any) -> Verdict:
    """Change fields of the step: `change(args={...})`, `change(command="ls")`."""
    return _verdict("proceed", reason, **changes)


def inject(context: str | None = None, /, **also: Any) -> Verdict:
    """Add context for the model."""
    return _verdict("proceed", None, context=context, **also)


def answer(result: Any = "", /, *, is_error: bool | None = None, **also: Any) -> Verdict:
    """Answer in place of the tool (at before_tool) or of the model (at before_model)."""
    return _verdict("proceed", None, answer=result, is_error=is_error, **also)


def warn(warning: str | None = None, /, **also: Any) -> Verdict:
    """Add a warning to the decision."""
    return _verdict("proceed", None, warnings=warning, **also)


# --- reading --------------------------------------------------------------------------------


def read_verdict(data: bytes | str | Mapping[str, Any], event: Event[Any] | str) -> Verdict:
    """A verdict from its JSON object, if the event takes it. Raises `MalformedVerdict`."""
    event = event_named(event) if isinstance(event, str) else event
    return check(_read(data, event), None, event)


def encode_verdict(verdict: Verdict | None, event: Event[Any] | str) -> bytes:
    """A verdict as JSON, which `read_verdict` reads back. Raises `MalformedVerdict` if the event does not take it."""
    import json  # most programs write no verdicts

    event = event_named(event) if isinstance(event, str) else event
    if verdict is None:
        return b"null"
    checked = check(verdict, None, event)
    parts = {
        "control": None if checked.control == "proceed" else checked.control,
        "reason": checked.reason,
        "name": checked.name,
        "stop_reason": checked.stop_reason,
        "additional_context": checked.context or None,
        "warnings": checked.warnings or None,
        "metadata": checked.metadata,
    }
    written = {key: value for key, value in parts.items() if value is not None} | checked.changes
    try:
        data = msgspec.json.encode(written)
        json.dumps(msgspec.to_builtins(written, str_keys=True), allow_nan=False)  # msgspec writes NaN as null
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise MalformedVerdict("verdict", f"cannot be written as JSON: {error}") from None
    return data


def _read(data: Any, event: Event[Any]) -> Verdict:
    """A verdict in the words of the wire, not yet checked in full."""
    if isinstance(data, (bytes, str)):
        try:
            data = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise MalformedVerdict("verdict", f"not JSON: {error}") from None
        if data is None:
            return Verdict()
    if not isinstance(data, Mapping):
        raise MalformedVerdict("verdict", f"must be an object, not {_kind(data)}")
    fields = {key: value for key, value in data.items() if value is not None}
    control = _read_control(fields.pop("control", "proceed"), event)
    parts = {key: fields.pop(key) for key in _WIRE_KEYS if key in fields}
    for key in fields:
        if key not in event.changes and not (key in _TARGETS and "args" in event.changes):
            valid = (*_WIRE_KEYS, *event.changes)
            raise MalformedVerdict(str(key), f"{event.name} takes no such key{nearest(key, valid)}")
    context = _read_texts(parts.pop("additional_context", ()), "additional_context")
    warnings = _read_texts(parts.pop("warnings", ()), "warnings")
    if control == "stop":
        parts.setdefault("stop_reason", "end_turn")
    return Verdict(control=control, context=context, warnings=warnings, changes=fields, **parts)


def _read_control(word: Any, event: Event[Any]) -> Control:
    if word == "veto":
        if event.veto is None:
            raise MalformedVerdict("control", f"{event.name} has nothing to veto")
        return event.veto
    if not isinstance(word, str) or (word not in CONTROLS and word not in CONTROL_ALIASES):
        raise MalformedVerdict("control", f"unknown control {word!r}{nearest(word, (*CONTROLS, 'veto'))}")
    return CONTROL_ALIASES.get(word, word)  # type: ignore[arg-type]


def _read_texts(value: Any, field: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise MalformedVerdict(field, f"must be a list of strings, not {_kind(value)}")
    return tuple(value)


def _kind(value: object) -> str:
    from .redaction.redactor import redact_text  # redact before cutting: half a secret is not recognised

    text = redact_text(repr(value))
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


# --- checking -------------------------------------------------------------------------------

LOOSENING = frozenset({"allow", "skip_rest"})


def check(
    result: Any, step: Step | None, event: Event[Any], *, may_change: bool = True, may_loosen: bool = True
) -> Verdict:
    """Turn what a hook returned into a verdict that this event takes. Raises `MalformedVerdict`."""
    if isinstance(result, Verdict):
        verdict = result
    elif isinstance(result, Mapping):
        verdict = _read(result, event)
    else:
        raise MalformedVerdict("verdict", f"a hook returns a verdict or None, not {_kind(result)}")
    _check_parts(verdict)
    control, changes = verdict.control, verdict.changes
    if control not in event.controls:
        if control not in CONTROLS:
            raise MalformedVerdict("control", f"unknown control {control!r}{nearest(control, CONTROLS)}")
        raise MalformedVerdict("control", f"{event.name} does not take {control!r}{nearest('', event.controls)}")
    if verdict.stop_reason is not None and control != "stop":
        raise MalformedVerdict("stop_reason", f"goes with stop, not with {control}")
    if verdict.context and not event.context:
        raise MalformedVerdict("additional_context", f"{event.name} takes no context")
    if control == "retry" and not getattr(step, "executed", True):
        raise MalformedVerdict("control", "retry: nothing was executed that could be tried again")
    if changes:
        if not may_change:
            raise MalformedVerdict(min(changes), "a gate only judges; register the hook as a transform to change")
        if "answer" in changes and event.answer in changes:
            raise MalformedVerdict("answer", f"given twice, as answer(...) and as {event.answer}=")
        changes = {
            name: _check_change(name, value, event)
            for name, value in ((_resolve(field, event), value) for field, value in changes.items())
        }
        if "result" not in changes:
            changes.pop("is_error", None)  # it describes the result of its own verdict
        control = _control_of_resolved(control, changes)
        verdict = replace(verdict, control=control, changes=changes)
    if verdict.metadata:  # the hook may change its own copy later
        verdict = replace(verdict, metadata=freeze(verdict.metadata))
    if control in LOOSENING and not may_loosen:
        raise MalformedVerdict("control", f"{control}: a project's hook may not loosen what others hold")
    return verdict


def _check_parts(verdict: Verdict) -> None:
    for field in ("reason", "name"):
        value = getattr(verdict, field)
        if value is not None and not isinstance(value, str):
            raise MalformedVerdict(field, f"must be a string, not {_kind(value)}")
    _read_texts(verdict.context, "additional_context")
    _read_texts(verdict.warnings, "warnings")
    if verdict.stop_reason is not None and verdict.stop_reason not in STOP_REASONS:
        problem = f"unknown stop_reason {verdict.stop_reason!r}{nearest(verdict.stop_reason, STOP_REASONS)}"
        raise MalformedVerdict("stop_reason", problem)
    for field in ("metadata", "changes"):
        value = getattr(verdict, field)
        if value is not None and not isinstance(value, dict):
            raise MalformedVerdict(field, f"must be an object, not {_kind(value)}")


def _resolve(field: str, event: Event[Any]) -> str:
    """The step's own name for a changed field."""
    if field in event.changes or (field in _TARGETS and "args" in event.changes):
        return field
    if field == "answer" and event.answer:
        return event.answer
    if field == "answer":
        places = " and ".join(name for name, other in EVENTS.items() if other.answer)
        raise MalformedVerdict("answer", f"{event.name} cannot be answered; {places} can")
    can = f"a hook may change {', '.join(event.changes)}" if event.changes else "nothing may be changed"
    raise MalformedVerdict(field, f"cannot be changed at {event.name}; {can} there")


def _check_change(field: str, value: Any, event: Event[Any]) -> Any:
    if field in _TARGETS:
        kind: Any = str | list[str] if field == "paths" else str
    else:
        kind = event.settable[field]
    if field == "result":
        read_result(value)  # `apply` reads it; the verdict keeps what the hook wrote
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise MalformedVerdict(field, str(error)) from None


def _control_of_resolved(control: Control, changes: dict[str, Any]) -> Control:
    """`resolved` true or false reads as allow or deny."""
    if "resolved" not in changes:
        return control
    resolved: Control = "allow" if changes["resolved"] else "deny"
    if control not in ("proceed", resolved):
        raise MalformedVerdict("resolved", f"says {resolved}, while the control says {control}")
    return resolved


POWERS = (*(control for control in CONTROLS if control != "proceed"), "change", "answer", "inject", "warn")
"""Everything that a verdict can do. The option `may` limits a hook to some of it."""


def keep_within(result: Any, event: Event[Any], may: Collection[str], never: Collection[str] = ()) -> None:
    """Raise `MalformedVerdict` if a verdict does more than `may` allows. `never` cannot be added to `may`."""
    if result is None:
        return
    verdict = check(result, None, event)
    answers = (event.answer, "is_error")
    fields = verdict.changes.keys() - {"resolved"}  # it is another way to write a control
    used = {"answer" if field in answers else "change" for field in fields}
    used |= {word for word, texts in (("inject", verdict.context), ("warn", verdict.warnings)) if texts}
    if verdict.control != "proceed":
        used.add(verdict.control)
    for word in sorted(used - set(may)):
        way_out = "" if word in never else f"; add {word!r} to its may = [...]"
        raise MalformedVerdict(word, f"this hook may only {', '.join(may)}{way_out}")


# --- applying -------------------------------------------------------------------------------


def apply(step: S, changes: Mapping[str, Any], tools: Tools) -> S:
    """The step with these checked changes, all of them or none. The target follows the arguments."""
    if not changes:
        return step
    new = dict(changes)
    prefix = new.pop("prepend_input", None)
    if prefix is not None:
        new["input"] = _prepend(prefix, new.get("input", getattr(step, "input", "")))
    if "result" in new:
        new["result"] = read_result(new["result"])
        new.setdefault("is_error", None)  # the result replaces an earlier one, error or not
    if isinstance(step, ToolStep):
        aim = {field: new.pop(field) for field in _TARGETS & new.keys()}
        if aim or "args" in new:
            new |= _aimed(step, new.get("args", step.args), aim, tools)
    return replace(step, **new)


def _prepend(prefix: Any, value: Any) -> Any:
    if isinstance(prefix, str) and isinstance(value, str):
        return prefix + value
    return [*_as_list(prefix), *_as_list(value)]


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _aimed(step: ToolStep, args: Any, aim: dict[str, Any], tools: Tools) -> dict[str, Any]:
    # A kind that the host has set itself stays. A kind from the table is looked up again.
    server = server_of(step)  # whatever its arguments become
    before = tools.classify(step.tool, step.args, step.host, server=server)
    sure = None if step.kind == before.kind else step.kind
    if aim:
        try:
            args = tools.rewrite(step.tool, args, aim, step.host, sure, server)
        except ValueError as error:
            raise MalformedVerdict(min(aim), str(error)) from None
    kind, target, safety = tools.classify(step.tool, args, step.host, sure, server)
    new = {"args": freeze(args), "kind": kind, "target": target}
    return new if step.safety != before.safety else new | {"safety": safety}


# --- folding --------------------------------------------------------------------------------

SEVERITY: dict[str, int] = {
    "abort": 6, "stop": 5, "deny": 4, "ask": 3, "skip": 2, "extend": 2, "retry": 2, "allow": 1,
    "proceed": 0, "skip_rest": 0,
}  # fmt: skip
ENDING = frozenset({"abort", "stop", "deny", "skip", "extend", "retry"})
"""Controls that end the transform phase."""


class HookVerdict(msgspec.Struct, frozen=True):
    """A checked verdict and its hook. `error` is what the hook raised, if that aborts the request."""

    hook: Hook
    verdict: Verdict
    cause: Cause = "policy"
    error: BaseException | None = None


def fold(verdicts: Sequence[HookVerdict]) -> HookVerdict | None:
    """The verdict that decides: the most severe one, and among equals the first in order."""
    if not verdicts:
        return None
    winner = max(verdicts, key=_severity)
    return winner if _severity(winner) else None


def _severity(hook_verdict: HookVerdict) -> int:
    return SEVERITY[hook_verdict.verdict.control]


_UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
_CUT = " [cut]"
_LONGEST_WORD = 256
_LAST_WORD = re.compile(rf"(?<![\w+/=.~%-])[\w+/=.~%-]{{1,{_LONGEST_WORD}}}\Z", re.ASCII)


def clean(text: str, limit: int | None = None) -> str:
    """A hook's text, safe to show: no control or bidi characters, at most `limit` bytes (4 KiB if None)."""
    limit = limit or TEXT_LIMIT
    if not text.isprintable():
        text = re.sub(_UNSAFE, "", text)
    if len(text) <= limit // 4:  # a character has at most four bytes
        return text
    data = text.encode()
    if len(data) <= limit:
        return text
    return _whole_words(data[: max(limit - len(_CUT), 0)].decode(errors="ignore")) + _CUT


def cut_warnings(hook: Hook, verdict: Verdict) -> list[str]:
    """A warning for each text of a verdict that is longer than it may be."""
    limit, way_out = hook.text_limit or TEXT_LIMIT, "; text_limit= sets the limit"
    reason = ("reason", limit, way_out) if verdict.control != "ask" else ("question", TEXT_LIMIT, "")
    texts = {
        reason: (verdict.reason or "",),
        ("context", limit, way_out): verdict.context,
        ("warning", limit, way_out): verdict.warnings,
    }
    return [
        f"hook {hook.name!r}: a {part} of {size:,} bytes was cut to {most:,}{way_out}"
        for (part, most, way_out), some in texts.items()
        for text in some
        if len(text) > most // 4 and (size := len(re.sub(_UNSAFE, "", text).encode())) > most
    ]


def _whole_words(text: str) -> str:
    """A cut text without its last, incomplete word: half a secret would not be recognised."""
    word = _LAST_WORD.search(text[-_LONGEST_WORD - 1 :])
    return text if word is None else text[: -len(word[0])].rstrip()


__all__ = [
    "HookVerdict", "Verdict", "abort", "allow", "answer", "ask", "change", "check", "deny", "encode_verdict", "extend",
    "fold", "inject", "read_verdict", "retry", "skip", "skip_rest", "stop", "warn",
]  # fmt: skip
