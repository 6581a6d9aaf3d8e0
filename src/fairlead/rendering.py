"""A decision in words: the same for `str()`, `fairlead show`, `test` and `log`, and the trace of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .frozen import thaw
from .verdict import Verdict, clean

if TYPE_CHECKING:
    from .decision import Decision, HookRun

ABSENT: Any = object()
"""In place of a value that is not there, before or after a change."""
DERIVED = ("kind", "target", "safety")
"""Fields that follow from the arguments of a tool call. A change there is no news."""

Style = Callable[..., str]
"""Makes a text safe for where it is shown, and colours it: `style(text, *colours)`."""


class Fact(NamedTuple):
    """One line about how a decision was made."""

    label: str
    text: str
    colour: str = ""


def headline(decision: Decision[Any]) -> str:
    """The decision in one line: "before_tool bash: deny by no-force-push: Force-push is off here."."""
    tool = getattr(decision.original, "tool", None)
    effect = f" (in effect: {decision.effect})" if decision.effect is not None else ""
    return clean(f"{decision.event}{f' {tool}' if tool else ''}: {decision.control}{effect}") + grounds(decision)


def grounds(decision: Decision[Any]) -> str:
    """What stands behind a control: " by no-force-push: Force-push is off here."."""
    words = f" ({decision.stop_reason})" if decision.stop_reason else ""
    words += f" by {decision.hook}" if decision.hook else ""
    words += f" ({decision.cause})" if decision.cause not in (None, "policy") else ""
    return clean(words) + _because(decision.reason)


def _because(reason: str | None) -> str:
    return f": {clean(reason)}" if reason else ""


def render(decision: Decision[Any]) -> Iterator[str]:
    """The headline, and below it how the decision was made."""
    yield headline(decision)
    for label, text, _ in facts(decision):
        yield f"  {label:<12} {text}"


def render_in_full(decision: Decision[Any], style: Style) -> Iterator[str]:
    """How a decision was made, with details of each run, a diff of each change, and tracebacks."""
    for label, text, colour in facts(decision, full=True):
        yield style(f"  {label:<12} {text}", colour)
    for change in changes(decision):
        yield from (style(line, colour) for line, colour in _diff(change))
    for failure in decision.failures:
        if failure.traceback:
            yield style(f"  {'traceback':<12} of {failure.hook}", "")
            yield from (style(f"    {line}", "dim") for line in failure.traceback.splitlines())


def facts(decision: Decision[Any], *, full: bool = False) -> Iterator[Fact]:
    """How a decision was made. `full` has details of each run, and leaves changes to `changes`."""
    yield from _runs(decision, full)
    for name in decision.changed if not full else ():
        if name not in DERIVED:
            old, new = getattr(decision.original, name), getattr(decision.step, name)
            yield Fact("changed", f"{name}: {_short(old)} -> {_short(new)}", "blue")
    for name in decision.unchanged:
        yield Fact("no effect", f"{name} is as it was: nothing in it was changed", "yellow")
    for text in decision.context:
        yield Fact("context", f"{_short(text)} (from {text.hook})", "blue")
    for warning in decision.warnings:
        yield Fact("warning", warning, "yellow")
    for failure in decision.failures:
        if failure.control is not None and str(failure) != decision.reason:
            yield Fact("failure", str(failure), "red")
    for seen in decision.monitored:
        yield Fact("monitored", f"{seen.hook} would {in_words(seen.verdict)}", "yellow")
    for one in decision.approvals:
        yield Fact("approval", f"{one.approval.answer} to {clean(one.hook)}{_because(one.approval.why)}")
    for part in decision.unsupported:
        yield Fact("unsupported", part, "yellow")
    if decision.unanswered is not None:
        yield Fact("unanswered", clean(decision.unanswered), "yellow")


# --- what each hook did ---------------------------------------------------------------------------


def _runs(decision: Decision[Any], full: bool) -> Iterator[Fact]:
    runs = decision.runs
    names = [f"{run.hook} ({run.phase})" for run in runs]
    width = max(map(len, names), default=0)
    for name, run in zip(names, runs, strict=True):
        text = f"{name:<{width}} in {run.duration * 1000:.3f} ms: {_outcome(decision, run)}"
        yield Fact("ran", text + (_details(run) if full else ""))


def _outcome(decision: Decision[Any], run: HookRun) -> str:
    """What came of one run. Why it failed is a fact of its own."""
    if run.outcome == "none":
        return "no opinion"
    return _cut((run.outcome == "verdict" and answer_of(decision, run.hook)) or run.outcome, 200)


def _details(run: HookRun) -> str:
    details = (run.details or {}).items()
    words = " ".join(f"{key}={_as_text(value, 40)}" for key, value in details if value not in ("", None))
    return f"  [{words}]" if words else ""


def answer_of(decision: Decision[Any], hook: str) -> str | None:
    """What one hook answered, in a few words: its verdict, or why it failed."""
    for failure in decision.failures:
        if failure.hook == hook:
            return failure.error
    for seen in decision.monitored:
        if seen.hook == hook:
            return f"would {in_words(seen.verdict)}"
    return next((in_words(one.verdict) for one in decision.verdicts if one.hook.name == hook), None)


def in_words(verdict: Verdict) -> str:
    """A verdict in a few words: "deny: not on Friday; warn: careful"."""
    words = [] if verdict.control == "proceed" else [f"{verdict.control}{_because(verdict.reason)}"]
    words += [f"change {field}" for field in verdict.changes]
    words += [f"inject {clean(text)!r}" for text in verdict.context]
    words += [f"warn: {clean(text)}" for text in verdict.warnings]
    return "; ".join(words) or "proceed"


# --- what changed ---------------------------------------------------------------------------------


class FieldChange(NamedTuple):
    """A value that hooks changed: the field, or the part of it, such as args.command."""

    path: str
    old: Any
    new: Any


def changes(decision: Decision[Any]) -> Iterator[FieldChange]:
    """What of the step changed, down to the keys of each field."""
    for name in decision.changed:
        old, new = thaw(getattr(decision.original, name)), thaw(getattr(decision.step, name))
        if isinstance(old, dict) and isinstance(new, dict):
            for key in {**old, **new}:
                if key not in new or key not in old or old[key] != new[key]:
                    yield FieldChange(f"{name}.{key}", old.get(key, ABSENT), new.get(key, ABSENT))
        elif name not in DERIVED:
            yield FieldChange(name, old, new)


def _diff(change: FieldChange) -> Iterator[tuple[str, str]]:
    """The lines of a change, and the colour of each. A text of many lines is compared line by line."""
    path, old, new = change
    if any(isinstance(value, str) and "\n" in value for value in (old, new)):
        from difflib import unified_diff
        from itertools import islice

        yield f"  {'changed':<12} {path}", ""
        before, after = ("" if value is ABSENT else str(value) for value in (old, new))
        for line in islice(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2), 2, None):
            if not line.startswith("@@"):
                yield f"    {line}", {"+": "green", "-": "red"}.get(line[:1], "dim")
        return
    if old is not ABSENT:
        yield f"  - {path}: {_as_text(old)}", "red"
    if new is not ABSENT:
        yield f"  + {path}: {_as_text(new)}", "green"


def _as_text(value: Any, limit: int = 100) -> str:
    import msgspec

    return _cut(value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode(), limit)


def _short(value: Any) -> str:
    return _cut(repr(str(value)) if isinstance(value, str) else repr(thaw(value)), 100)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
