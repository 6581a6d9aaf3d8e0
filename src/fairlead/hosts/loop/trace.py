"""Prints a run of the loop: each message and call, what hooks did about it, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from time import monotonic
from typing import Any

from ...decision import Decision
from ...display import CONTROL_COLOURS, escape, paint, short
from ...frozen import thaw
from ...redaction.redactor import redact_text
from ...rendering import facts, grounds
from ..frameworks.messages import as_text
from .agent import Moment


class Trace:
    """Prints moments as they come, and sums them up."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.controls: Counter[str] = Counter()
        self.hooks: Counter[str] = Counter()
        self.hook_time = 0.0
        self.failures = 0
        self._started = monotonic()

    def show(self, moment: Moment) -> None:
        if moment.decision is None:
            return  # the text is shown when it is whole
        self._count(moment.decision)
        for line in lines_of(moment.decision):
            print(redact_text(line), flush=True)

    def _count(self, decision: Decision[Any]) -> None:
        self.events[decision.event] += 1
        self.controls[decision.control] += 1
        self.failures += len(decision.failures)
        for run in decision.runs:
            self.hooks[run.hook] += 1
            self.hook_time += run.duration

    def summary(self) -> str:
        """What it all came to."""
        took = monotonic() - self._started
        decided = ", ".join(f"{n} {control}" for control, n in self.controls.most_common())
        runs = ", ".join(f"{escape(name)} {n}" for name, n in self.hooks.most_common())
        share = self.hook_time / took if took else 0.0
        return "\n".join([
            f"{paint('events', 'bold')}     {sum(self.events.values())} of {len(self.events)} kinds",
            f"{paint('hooks run', 'bold')}  {sum(self.hooks.values())}: {runs or 'none'}",
            f"{paint('decisions', 'bold')}  {decided}; {self.failures} hook failure{'' if self.failures == 1 else 's'}",
            f"{paint('time', 'bold')}       {took:.1f} s, of which hooks {self.hook_time:.2f} s ({share:.0%})",
        ])  # fmt: skip


def lines_of(decision: Decision[Any]) -> Iterator[str]:
    """One step: what it was, if that is worth a line, and what hooks made of it."""
    if head := _head(decision):
        yield head
    for line in _effects(decision):
        yield f"{'':10}{paint(decision.event, 'dim')}  {line}"


def _head(decision: Decision[Any]) -> str | None:
    step = decision.step
    match decision.event:
        case "before_input":
            return _line("user", as_text(thaw(step.input)))
        case "after_model" if not step.error and as_text(thaw(step.output)).strip():
            return _line("model", as_text(thaw(step.output)))
        case "tool_requested":
            return _line("tool", f"{step.tool} {_target(step)}")
        case "after_tool":
            return _line("error" if step.is_error else "result", step.error or as_text(thaw(step.output)), "dim")
        case "notification" if decision.control != "skip":
            return _line("note", step.message)
        case "subagent_start":
            return _line("agent", f"{step.agent_name}: {step.initial_message}")
        case "before_output" if decision.control != "deny":
            return f"{paint(' answer', 'bold')}   {escape(as_text(thaw(step.content)), keep_lines=True)}"
        case "error":
            return _line("error", f"{step.error} ({step.where})")
    return None


def _line(who: str, text: str, *colours: str) -> str:
    return f"{paint(f'{who:>7}', 'bold')}   {paint(short(text, 110), *colours) if colours else short(text, 110)}"


def _target(step: Any) -> str:
    target = step.target
    return target.command or target.url or " ".join(target.paths) or short(thaw(step.args), 80)


def _effects(decision: Decision[Any]) -> Iterator[str]:
    if decision.control != "proceed":
        control = paint(decision.control.upper(), "bold", CONTROL_COLOURS.get(decision.control, "blue"))
        yield control + short(grounds(decision), 110)
    for label, text, colour in facts(decision):
        if label in ("changed", "context", "warning") and not text.startswith("state: "):
            yield f"{paint(label, colour)} {short(text, 110)}"
