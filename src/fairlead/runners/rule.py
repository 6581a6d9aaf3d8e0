"""The rule runner: a CEL expression over the step, and the verdict when it is true.

The names of an expression are the step's fields, and `step` for all of them. What can be known to
be wrong is found when the rule is made: unknown names and functions, regular expressions, and what
an event does not take. What evaluating it on a step may cost is bounded before it begins.
"""

from __future__ import annotations

import re
from collections.abc import Coroutine, Iterable, Mapping
from functools import lru_cache
from time import perf_counter
from typing import Any, get_args, get_origin

import msgspec

from ..engine.threads import LoopShare, loop_share
from ..errors import MalformedVerdict, UnknownName
from ..lifecycle import HEADER, Event, Step, StopReason, iter_events
from ..verdict import Verdict, check
from .cost import BUDGET, TooCostly, as_json
from .expression import FREE, QUICK, Expression, Reading, RuleFailed, first_line, type_name
from .regex import Limit, Regex, TooSlow
from .syntax import BadRule
from .template import Template

OUTCOMES = ("deny", "ask", "allow", "stop", "skip", "extend", "abort", "warn", "inject", "change")
"""The outcomes of a rule that is true. The first seven exclude one another."""
_CONTROLS = OUTCOMES[:7]
EDITS = ("match", "replace", "prepend", "append")
"""How `change` edits the text of a field."""

_UNDEFINED = re.compile(r"Undefined variable or function: '(\w+)'")
_WRONG_TYPES = ("No such overload", "Unsupported operation")


class Rule:
    """A hook that is an expression. `Rule("tool == 'rm'", on="before_tool", deny="Not here.")`

    Texts are templates. `change={"response": {"match": "sk-\\\\w+", "replace": "[key]"}}` edits a field.
    """

    form = "rule"

    def __init__(self, expression: str, *, on: str | Iterable[str], tried: bool = True, **outcomes: Any) -> None:
        events = list(iter_events(on))
        if not events:
            raise BadRule("on= names no event")
        self._outcomes = _read_outcomes(outcomes, events)
        self._expression = Expression(expression, events)
        prefilter = self._expression.prefilter
        self._excludes = None if prefilter is None else prefilter.excludes
        self._source = msgspec.json.encode((expression, [event.name for event in events], outcomes))
        for event in events:
            self._check_outcomes(event)
            if tried:  # on an ordinary step of each event; else it is only looked at
                self._check_on_sample(event)

    def __repr__(self) -> str:
        return f"<rule {self._expression.text}>"

    @property
    def reads(self) -> set[str] | None:
        """The fields that decide what the rule does, such as `target.command`. None if any field may."""
        read = self._expression.fields_read
        if read is None:
            return None
        paths = {path for what in self._outcomes.values() for path in _paths_of(what)}
        return read | {path.partition(".")[0] for path in paths}

    def __call__(self, step: Step) -> Verdict | Coroutine[Any, Any, Verdict | None] | None:
        if self._excludes is not None and self._excludes(step):
            return None
        share = loop_share.get()
        if share is None:
            return self._judge(step, self._read(step))
        reading = self._read(step)
        if share.left <= 0 or reading.cost > QUICK:
            return self._judge_elsewhere(step, share)
        began = perf_counter()
        try:
            return self._judge(step, reading)
        finally:
            share.left -= perf_counter() - began

    async def _judge_elsewhere(self, step: Step, share: LoopShare) -> Verdict | None:
        """Judge a step in another process. The library holds the interpreter, so a thread would not do."""
        found: Verdict | None = await share.call(judge, self._source, step)
        return found

    def _judge(self, step: Step, reading: Reading) -> Verdict | None:
        held = self._evaluate(reading)
        if held is not True and held is not False:
            raise RuleFailed(f"a rule is true or false, and this one gave {type_name(held)}")
        return self._verdict(step) if held else None

    def _read(self, step: Step) -> Reading:
        try:
            return self._expression.read(step)
        except (TypeError, ValueError) as error:  # of a value that is no JSON
            raise RuleFailed(first_line(error)) from None

    def _evaluate(self, reading: Reading) -> Any:
        try:
            return self._expression.evaluate(reading)
        except KeyError as error:
            problem = f"{error} is not set; guard it with has()"
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            problem = first_line(error)
            unset = _UNDEFINED.search(problem)
            if unset is not None and unset[1] in self._expression.names:
                problem = f"{unset[1]} is not set; guard it with has({unset[1]})"
            elif unset is not None or problem.startswith(_WRONG_TYPES):
                problem = self._expression.type_problem(reading)
        raise RuleFailed(problem)

    def _verdict(self, step: Step) -> Verdict:
        control: Any = "proceed"
        reason, context, warnings, changes = None, [], [], {}
        for word, what in self._outcomes.items():
            if word == "change":
                limit = Limit(BUDGET / 1e9)
                edited = {field: edit.apply(field, step, limit) for field, edit in what.items()}
                changes = {field: value for field, value in edited.items() if value is not None}
            elif word == "inject":
                context.append(what.fill(step))
            elif word == "warn":
                warnings.append(what.fill(step))
            else:
                control, reason = word, what.fill(step) or None
        stop_reason: StopReason | None = "end_turn" if control == "stop" else None
        return Verdict(control, reason, None, stop_reason, tuple(context), tuple(warnings), None, changes)

    # --- checking -----------------------------------------------------------------------------

    def _check_outcomes(self, event: Event[Any]) -> None:
        """Whether the event takes what the rule would say."""
        control: Any = next((word for word in self._outcomes if word in _CONTROLS), "proceed")
        context = ("",) if "inject" in self._outcomes else ()
        try:
            check(Verdict(control, context=context), None, event)
        except MalformedVerdict as problem:
            raise BadRule(str(problem).removeprefix("malformed verdict: ")) from None
        for field in self._outcomes.get("change", ()):
            takes = _text_fields(event)
            if field not in takes:
                raise UnknownName("field", field, takes, f" to change at {event.name}")

    def _check_on_sample(self, event: Event[Any]) -> None:
        """An expression that says nothing about what is free-form must work on any step."""
        from ..samples import step as sample

        try:
            held = self._evaluate(self._read(sample(event.name)))
        except RuleFailed as problem:
            if not FREE & set(self._expression.names) and "not set" not in str(problem):
                raise BadRule(f"on {event.name}: {problem}") from None
        else:
            if not isinstance(held, bool):
                raise BadRule(f"a rule is true or false, and this one gives {held!r} on a {event.name}")


@lru_cache(1024)
def _rule_of(source: bytes) -> Rule:
    expression, on, outcomes = msgspec.json.decode(source)
    return Rule(expression, on=on, tried=False, **outcomes)


def judge(source: bytes, step: Step) -> Verdict | None:
    """What a rule says about a step, in a process that was sent both."""
    rule = _rule_of(source)
    return rule._judge(step, rule._read(step))


# --- what it says -----------------------------------------------------------------------------


def _read_outcomes(outcomes: Mapping[str, Any], events: list[Event[Any]]) -> dict[str, Any]:
    for word in outcomes:
        if word not in OUTCOMES:
            raise UnknownName("outcome", word, OUTCOMES, " of a rule")
    chosen = {word: what for word, what in outcomes.items() if what is not None}
    controls = [word for word in chosen if word in _CONTROLS]
    if not chosen:
        raise BadRule(f"what is to happen when the rule holds? Add one of {', '.join(OUTCOMES)}")
    if len(controls) > 1:
        raise BadRule(f"a rule cannot both {controls[0]} and {controls[1]}")
    names = [event.name for event in events]
    return {word: _read_outcome(word, what, names) for word, what in chosen.items()}


def _read_outcome(word: str, what: Any, events: list[str]) -> Any:
    if word != "change":
        if not isinstance(what, str):
            raise BadRule(f"{word} takes a text, not {what!r}")
        return Template(what, events)
    if not isinstance(what, Mapping) or not what:
        raise BadRule('change names fields and what becomes of each: { response = { append = "..." } }')
    return {field: Edit(field, edits, events) for field, edits in what.items()}


def _paths_of(what: Any) -> Iterable[str]:
    """The fields that an outcome shows or edits."""
    if isinstance(what, Template):
        return what.paths
    found = [path for edit in what.values() for path in edit.paths]
    return [*found, *("args" if field in ("command", "url") else field for field in what)]


class Edit:
    """What becomes of the text of one field: `replace` (of what `match` finds, or of all), `prepend`, `append`."""

    def __init__(self, field: str, edits: Any, events: list[str]) -> None:
        if not isinstance(edits, Mapping) or not edits or not all(isinstance(v, str) for v in edits.values()):
            raise BadRule(f"change.{field} takes texts for {', '.join(EDITS)}")
        for word in edits:
            if word not in EDITS:
                raise UnknownName("edit", word, EDITS, f" of change.{field}")
        if "match" in edits and "replace" not in edits:
            raise BadRule(f"change.{field}: match finds something; replace says what it becomes")
        self._match = Regex(edits["match"]) if "match" in edits else None
        self._texts = {word: Template(text, events) for word, text in edits.items() if word != "match"}

    @property
    def paths(self) -> list[str]:
        """The places in its texts that are filled in from the step."""
        return [path for text in self._texts.values() for path in text.paths]

    def apply(self, field: str, step: Step, limit: Limit) -> Any:
        """What becomes of the field, or None for nothing. Raises `RuleFailed` if that takes too long."""
        texts = {word: "".join(template.parts(step)) for word, template in self._texts.items()}
        value = getattr(step.target, field) if field in ("command", "url") else getattr(step, field)  # type: ignore[attr-defined]
        if value is None and self._match is not None:
            return None  # in what is not set, nothing is found
        if value is None:
            value = ""
        if "replace" in texts:
            try:
                value = self._replaced(value, texts["replace"], limit)
            except UnicodeError as error:
                raise RuleFailed(f"{field}: {error}") from None
            except TooCostly as problem:
                raise RuleFailed(f"replacing in {field} could take too long: {problem}") from None
            except TooSlow:
                raise RuleFailed(f"replacing in {field} takes too long") from None
        return _around(texts.get("prepend", ""), value, texts.get("append", ""), field)

    def _replaced(self, value: Any, text: str, limit: Limit) -> Any:
        if self._match is None:
            return text
        regex = self._match

        def replaced(value: Any) -> Any:
            if isinstance(value, str):
                return regex.replace(value, text, limit)
            if isinstance(value, list):
                return [replaced(item) for item in value]
            if isinstance(value, dict):
                return {key: item if key == "type" else replaced(item) for key, item in value.items()}
            return value

        as_json(value)  # which says so if it is too much
        return replaced(value)


def _around(before: str, value: Any, after: str, field: str) -> Any:
    if not before and not after:
        return value
    if isinstance(value, str):
        return before + value + after
    if isinstance(value, list):
        plain = field in ("input", "prepend_input")  # which may hold texts beside blocks
        added = [text if plain else {"type": "text", "text": text} for text in (before, after)]
        return [*(added[:1] if before else ()), *value, *(added[1:] if after else ())]
    raise RuleFailed(f"{field} is {type(value).__name__}, not text that something could be added to")


def _text_fields(event: Event[Any]) -> tuple[str, ...]:
    """The fields whose text a rule may edit."""
    fields = [name for name in event.changes if _is_text(event.settable[name]) and name not in HEADER]
    return (*fields, *(("command", "url") if "args" in event.changes else ()))


def _is_text(hint: Any) -> bool:
    return hint is str or (get_origin(hint) is not dict and str in get_args(hint))


__all__ = ["EDITS", "OUTCOMES", "BadRule", "Rule", "RuleFailed"]
