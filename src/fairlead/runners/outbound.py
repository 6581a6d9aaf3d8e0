"""Encodes steps for a service or a model, so that it judges the step that runs.

Redaction must not change what is judged: a command could be dressed up as a secret, and the judge would not see it.
So a hook that judges fails where redaction would touch a field that it judges. An observer only watches, and is sent
redacted steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from ..engine.threads import active_offload, threads
from ..errors import RunnerFailed, UnknownName
from ..lifecycle import EVENTS, Step, iter_events
from ..redaction.redactor import Redactor, current, redact, redact_text
from ..wire.steps import encode_step, plain_envelope
from .template import NotJSON, Template, names_of

TOOL_FIELDS = ("tool", "args", "target")
"""The fields that are judged at every event about a tool."""
_LISTED = 5
_REDACTED = "redaction would change what is judged, so set raw = true to send steps as they are, secrets included"


class CannotShow(RunnerFailed):
    """A hook would not judge what runs: redaction would change it, or JSON cannot write it. It names the places."""

    def __init__(self, paths: Iterable[str], why: str = _REDACTED) -> None:
        found = list(dict.fromkeys(paths))
        more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        super().__init__(f"could not be shown: {', '.join(found[:_LISTED])}{more}; {why}")
        self.paths = found


class StepEncoder:
    """Encodes steps for hooks that judge and for hooks that observe.

    `raw` sends steps as they are. `fields` are judged in addition to `tool`, `args` and `target` at events about a
    tool, and `input` at before_input.
    """

    def __init__(self, *, raw: bool = False, fields: Collection[str] = (), template: str | None = None) -> None:
        self._raw = raw
        self._fields = check_fields(fields)
        self._template = None if template is None else Template(template)

    async def for_judge(self, step: Step) -> bytes:
        """Encode a step for a hook that gates or transforms. Raises `CannotShow` if it would not see what runs."""
        if self._template is not None:
            fill = partial(self._fill, step, self._template)
            return (fill() if active_offload.get() is None else await threads.run(fill)).encode()
        if self._raw:
            return encode_step(step)
        body, touched = await self._redacted(step, self._judged_fields(step))
        if touched:
            raise CannotShow(touched)
        return body

    async def for_observer(self, step: Step) -> bytes:
        """Encode a step for an observer, without secrets."""
        if self._raw:
            return encode_step(step) if self._template is None else self._template.fill(step).encode()
        if self._template is not None:
            fill = partial(_fill_redacted, step, self._template)
            return (fill() if active_offload.get() is None else await threads.run(fill)).encode()
        return (await self._redacted(step, ()))[0]

    async def _redacted(self, step: Step, judged: tuple[str, ...]) -> tuple[bytes, list[str]]:
        call, work = active_offload.get(), (current(), plain_envelope(step), judged)
        return _redacted(*work) if call is None else await call(_redacted, *work)

    def _judged_fields(self, step: Step) -> tuple[str, ...]:
        if EVENTS[step.event].about_tool:
            return (*TOOL_FIELDS, *self._fields)
        return ("input", *self._fields) if step.event == "before_input" else self._fields

    def _fill(self, step: Step, template: Template) -> str:
        """The template's text. All that it shows of judged fields is shown as it is, or this raises."""
        fields = self._judged_fields(step)
        try:
            shown = template.parts(step)
            parts = shown if self._raw else template.parts(step, redact)
        except NotJSON as problem:
            raise CannotShow([redact_text(problem.path)], f"{problem.kind} is no JSON value") from None
        if self._raw:
            return "".join(shown)
        touched: list[str] = []
        judged: list[tuple[int, int, str]] = []
        at = 0
        for index, part in enumerate(parts):
            path = template.paths[index // 2] if index % 2 else ""
            if path.partition(".")[0] in fields:
                judged.append((at, at + len(part), path))
                if part != shown[index]:
                    touched += _touched(step, path)
            at += len(part)
        text = "".join(parts)
        for start, end, _ in () if touched else current().spans(text):  # beside its neighbours, a text may be a secret
            touched += [path for first, last, path in judged if start < last and first < end]
        if touched:
            raise CannotShow(touched)
        return redact_text(text)


def _redacted(redactor: Redactor, data: Any, judged: tuple[str, ...]) -> tuple[bytes, list[str]]:
    """A step without its secrets as JSON, and the paths in judged fields where something was taken out."""
    clean, taken = redactor.record(data)
    touched = [one.path for one in taken if one.path.partition(".")[0] in judged]
    return msgspec.json.encode(clean), touched


def _fill_redacted(step: Step, template: Template) -> str:
    return redact_text(template.fill(step, redact))


def _touched(step: Step, path: str) -> Iterator[str]:
    """What redaction changes of the part of a step that a template shows."""
    name = path.partition(".")[0]
    value = msgspec.to_builtins(getattr(step, name), builtin_types=(bytes, bytearray))
    _, taken = current().record({name: value})
    inside = [one.path for one in taken if f"{one.path}.".startswith(f"{path}.") or path.startswith(f"{one.path}.")]
    yield from inside or [path]


def check_fields(fields: Collection[str], on: str | Iterable[str] = "*") -> tuple[str, ...]:
    """The fields that a hook judges, if steps of these events have them."""
    if isinstance(fields, str):
        raise TypeError(f"fields is a list of names, not {fields!r}")
    events = [event.name for event in iter_events(on)]
    known = dict.fromkeys(name for event in events for name in names_of(event))
    where = f" of {' and '.join(events)}" if len(events) < 4 else " of any event"
    for name in fields:
        if name not in known:
            raise UnknownName("field", name, known, where)
    return tuple(fields)
