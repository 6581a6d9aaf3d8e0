"""The lifecycle of an agent: 26 events, each with one typed step.

The classes say what each step carries. The `Lifecycle` table at the end says, per event,
what a hook may do about it. Everything else (the `hooks.on.<event>` decorators, the check of
a verdict, the JSON Schemas, the events page of the docs) is derived from these two.
"""

# No `from __future__ import annotations` here: the fields' types are read while importing, and
# turning strings back into types would double the time that takes.

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    overload,
)

import msgspec
from msgspec.structs import force_setattr

from .errors import FairleadError, ReadOnlyError, UnknownName, closest
from .frozen import FrozenDict, FrozenList, freeze
from .tools import DEFAULT_TOOLS, Kind, Safety, Target

if TYPE_CHECKING:
    from typing import NoReturn

    from .registry import Decorate

Control = Literal[
    "proceed", "deny", "ask", "allow", "skip", "stop", "extend", "retry", "abort", "skip_rest"
]  # fmt: skip
CONTROLS: tuple[Control, ...] = get_args(Control)
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
STOP_REASONS: tuple[StopReason, ...] = get_args(StopReason)
Outcome = Literal["ok", "error", "denied", "aborted", "answered"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Veto = Literal["abort", "deny", "stop", "skip", "extend"]
FailurePolicy = Literal["closed", "open", "abort"]
FAILURE_POLICIES: tuple[FailurePolicy, ...] = get_args(FailurePolicy)

Json = Union[str, int, float, bool, list[Any], dict[str, Any]]
"""Any JSON value: what a tool may return. Null is None."""
Content = Union[str, dict[str, Any], list[dict[str, Any]]]
"""What a hook may write instead: text, an object, or a list of content blocks."""
Output = Annotated[Json, Content]
"""A field that carries any JSON value, and that a hook may set to `Content` only."""
Input = Union[str, list[Union[str, dict[str, Any]]]]
"""The input of a user: text, or a list of texts and content blocks."""


class Agent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which agent a step belongs to. A subagent names its parent's id."""

    id: str | None = None
    name: str | None = None
    parent: str | None = None


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _StepType(msgspec.StructMeta):
    """The metaclass of steps: a misspelt field or value is an error that suggests the right one."""

    _choices: tuple[tuple[str, tuple[Any, ...]], ...]

    def __call__(cls, *args: Any, **fields: Any) -> Any:  # noqa: N805 (a class is made by its metaclass)
        if args:
            raise TypeError(f"steps are built by keyword: {cls.__name__}({cls.__struct_fields__[0]}={args[0]!r})")
        return build(cls, fields)


def build(kind: Any, fields: dict[str, Any]) -> Any:
    """Build a step: `kind(**fields)` without another copy of the fields."""
    for name, valid in kind._choices:
        if name in fields and fields[name] not in valid:
            raise UnknownName(name, fields[name], valid[:-1], f" of {kind.__name__}")
    try:
        return _build(kind, **fields)
    except TypeError as error:
        unknown = fields.keys() - set(kind.__struct_fields__)
        if not unknown or isinstance(error, FairleadError):
            raise
        where = f" of {kind.__name__}"
        raise UnknownName("field", min(unknown), kind.__struct_fields__, where) from None


_build: Any = msgspec.StructMeta.__call__  # super() would look this up on every step


def _event_name(class_name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()


class Step(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=_event_name, metaclass=_StepType
):  # fmt: skip
    """One moment of an agent's life. It is read-only. `session.step(...)` fills the header."""

    event: ClassVar[str]
    _containers: ClassVar[tuple[str, ...]]
    _choices: ClassVar[tuple[tuple[str, tuple[Any, ...]], ...]] = ()

    session_id: str | None = None
    root_session_id: str | None = None
    turn_id: str | None = None
    request_id: str | None = None
    checkpoint_id: str | None = None
    agent: Agent | None = None
    host: str | None = None
    cwd: str | None = None
    user_id: str | None = None
    channel: str | None = None
    thread_id: str | None = None
    sequence: int | None = None
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in self._containers:
            value = getattr(self, name)
            if value is not None:
                force_setattr(self, name, freeze(value))


HEADER: tuple[str, ...] = Step.__struct_fields__


class ToolStep(Step):
    """A step about one tool call. Kind, target and safety follow from tool and args unless you set them."""

    tool: str
    args: dict[str, Any] = msgspec.field(default_factory=FrozenDict)
    kind: Kind = None  # type: ignore[assignment]
    target: Target = None  # type: ignore[assignment]
    safety: Safety = None  # type: ignore[assignment]
    call_id: str | None = None
    origin: str = "chat"

    def __post_init__(self) -> None:
        if not isinstance(self.tool, str):
            raise TypeError(f"tool of a {type(self).__name__} must be a string, not {self.tool!r}")
        if not isinstance(self.args, dict):
            raise TypeError(f"args of a {type(self).__name__} must be a dict, not {self.args!r}")
        Step.__post_init__(self)
        if self.kind is None or self.target is None or self.safety is None:
            kind, target, safety = DEFAULT_TOOLS.classify(self.tool, self.args, kind=self.kind)
            force_setattr(self, "kind", kind)
            if self.target is None:
                force_setattr(self, "target", target)
            if self.safety is None:
                force_setattr(self, "safety", safety)


class SessionStart(Step):
    """A session begins."""

    source: Literal["new", "resume", "fork"] = "new"


class SessionEnd(Step):
    """A session is over."""

    reason: str | None = None


class BeforeRequest(Step):
    """A request is about to be worked on; hooks may prepare the state they share."""

    state: Any = None


class AfterRequest(Step):
    """A request was worked on, or failed."""

    state: Any = None
    error: str | None = None


class BeforeInput(Step):
    """A message arrives from a user, a continuation or a background job."""

    source: Literal["user", "continuation", "background"] = "user"
    input: Input = ""
    prepend_input: Input | None = None


class AfterInput(Step):
    """The message is part of the conversation."""

    committed_len: int = 0


class TurnStart(Step):
    """A turn begins."""

    is_subagent: bool = False
    agent_type: str | None = None


class BeforePrompt(Step):
    """The system prompt is about to be used."""

    system_prompt: str | None = None
    user_message: str | None = None


class BeforeCompact(Step):
    """The conversation is about to be compacted."""

    message_count: int | None = None
    token_estimate: int | None = None
    threshold: int | None = None


class AfterCompact(Step):
    """The conversation was compacted."""

    message_count: int | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None


class BeforeModel(Step):
    """The model is about to be called."""

    model: str | None = None
    messages: list[Any] | None = None
    message_count: int | None = None
    attempt: int = 1
    assistant: Output | None = None


class AfterModel(Step):
    """The model answered, or failed."""

    model: str | None = None
    output: Output | None = None
    usage: dict[str, Any] | None = None
    stop_reason: str | None = None
    error: str | None = None


class ToolRequested(ToolStep):
    """The model asked for a tool."""


class BeforeTool(ToolStep):
    """A tool is about to run."""

    result: Output | None = None
    is_error: bool | None = None


if TYPE_CHECKING:

    class ShellTarget(Target, frozen=True):
        """The target of a shell call: its command is always a text."""

        command: str = ""

    class ShellCall(BeforeTool):
        """The step of a `before_tool(kind="shell")` hook, for type checkers: `target.command` is a `str`."""

        target: ShellTarget = ShellTarget()

else:
    ShellCall = BeforeTool  # at run time they are the same


class BeforePermission(ToolStep):
    """The host is about to decide whether the tool may run."""

    proposed: Literal["allow", "ask", "deny"] | None = None
    resolved: bool | None = None


class AfterPermission(ToolStep):
    """The host has decided whether the tool may run."""

    granted: bool = False


class AfterTool(ToolStep):
    """A tool call is over: it ran, failed, was denied, aborted or answered by a hook.

    `output` is what the model reads, also of a failed or refused call: to redact it, change `output`. `error` says what
    went wrong, for hooks and the journal, and never reaches the model by itself.
    """

    outcome: Outcome = "ok"
    executed: bool = True
    output: Output | None = None
    is_error: bool = False
    error: str | None = None
    duration: float | None = None
    attempt: int = 1


class AfterToolBatch(Step):
    """All tool calls of one model response are over.

    Of each, `results` have its `tool`, `call_id`, `outcome` and `is_error`: None where the host does not say.
    """

    results: list[Any] = msgspec.field(default_factory=FrozenList)


class BeforeTurnEnd(Step):
    """The turn is about to end."""

    stop_reason: str = "end_turn"
    continues_so_far: int = 0
    voluntary: bool = True


class BeforeResponse(Step):
    """The final response is about to be taken."""

    response: Output | None = None


class BeforeOutput(Step):
    """Something is about to be shown or sent to the user."""

    content: Output | None = None


class TurnEnd(Step):
    """The turn is over."""

    stop_reason: str | None = None
    iterations: int | None = None
    response_length: int | None = None


class SubagentStart(Step):
    """A subagent is about to start."""

    agent_name: str | None = None
    initial_message: str | None = None


class SubagentStop(Step):
    """A subagent is about to stop."""

    agent_name: str | None = None
    reason: str | None = None
    continues_so_far: int = 0


class Notification(Step):
    """The agent tells the user something."""

    message: str = ""
    level: str = "info"


class Error(Step):
    """Something failed."""

    error: str | None = None
    where: str | None = None


S = TypeVar("S", bound=Step)

_EVERYWHERE: tuple[Control, ...] = ("proceed", "abort", "skip_rest")


class Event(Generic[S]):
    """One event of the lifecycle: its step class, and what hooks may do about it."""

    name: str

    def __init__(
        self,
        step: type[S],
        *,
        change: str = "",
        controls: str = "",
        veto: Veto | None = None,
        stop: bool = False,
        context: bool = True,
        also: str = "",
    ) -> None:
        self.step = step
        self.name = step.event = _event_name(step.__name__)
        self.changes: tuple[str, ...] = tuple(change.split())
        self.controls = frozenset[str]((*_EVERYWHERE, *controls.split(), *(("stop",) if stop else ())))
        self.veto: Veto | None = veto
        self.context = context
        self.also: tuple[str, ...] = tuple(also.split())
        self.about_tool = issubclass(step, ToolStep)
        self.fields = tuple(name for name in step.__struct_fields__ if name not in HEADER)
        bases = [base for base in reversed(step.__mro__) if issubclass(base, Step)]
        hints = {name: kind for base in bases for name, kind in base.__annotations__.items()}
        self.types: dict[str, Any] = {name: _without_notes(hints[name], 0) for name in step.__struct_fields__}
        self.settable: dict[str, Any] = {name: _without_notes(hints[name], 1) for name in self.changes}  # for a hook
        self.answer = next((name for name in ("result", "assistant") if name in self.changes), None)
        own = (name for name in self.fields if name != "state" and _may_hold(self.types[name]))
        step._containers = (*own, "metadata")
        step._choices = tuple((name, (*valid, None)) for name in self.fields if (valid := _choices(self.types[name])))
        step.__setattr__ = step.__delattr__ = _read_only  # type: ignore[method-assign,assignment]

    def control_on_failure(self, policy: FailurePolicy) -> Control | None:
        """The control that a hook's failure leads to at this event; None where the agent goes on.

        "closed" applies the event's veto where that refuses something, and "abort" fails the request.
        """
        if policy == "abort":
            return "abort"
        return self.veto if policy == "closed" and self.veto in ("abort", "deny", "stop") else None

    def __repr__(self) -> str:
        return f"<event {self.name}>"


class EventRow(Event[S]):
    """An event as a row of the table. On `hooks.on` it reads as the decorator for its step."""

    @overload
    def __get__(self, on: None, owner: type) -> "EventRow[S]": ...
    @overload
    def __get__(self, on: "Lifecycle", owner: type) -> "Decorate[S]": ...
    def __get__(self, on: "Lifecycle | None", owner: type) -> "EventRow[S] | Decorate[S]":
        return self if on is None else on._decorate(self)


def _without_notes(hint: Any, place: int) -> Any:
    """The type of a field, where it is annotated with another one: the first of the two, or the second."""
    options = get_args(hint) if getattr(hint, "__origin__", None) is Union else (hint,)
    found = [(option.__origin__, *option.__metadata__)[place] if _has_note(option) else option for option in options]
    return Union[tuple(found)] if any(map(_has_note, options)) else hint


def _has_note(hint: Any) -> bool:
    return hasattr(hint, "__metadata__")


@cache  # most fields are a text or nothing
def _choices(hint: Any) -> tuple[Any, ...]:
    """The values that a field may have, where its type is a `Literal`."""
    if getattr(hint, "__origin__", None) is Literal:
        return get_args(hint)
    return next((found for option in get_args(hint) if (found := _choices(option))), ())


@cache
def _may_hold(hint: Any) -> bool:
    """Whether a field of this type can hold a dict or a list, which must then be frozen."""
    return hint is Any or getattr(hint, "__origin__", hint) in (dict, list) or any(map(_may_hold, get_args(hint)))


def _read_only(step: Step, name: str, value: object = None) -> "NoReturn":
    raise ReadOnlyError(f"steps are read-only: return change({name}=...) to change what the agent does at {step.event}")


class Lifecycle:
    """The table. `hooks.on` is one of these, so that an editor completes every event.

    `also` are the names that other hook systems have for an event: errors about unknown events suggest ours.
    """

    session_start = EventRow(SessionStart, controls="deny", veto="abort", stop=True, also="after_session_enter")
    session_end = EventRow(SessionEnd, controls="deny", context=False)
    before_request = EventRow(BeforeRequest, change="state session_id checkpoint_id", veto="abort")
    after_request = EventRow(AfterRequest, change="state checkpoint_id", veto="abort")
    before_input = EventRow(
        BeforeInput, change="input prepend_input", controls="deny", veto="deny", stop=True,
        also="before_ingest before_inbound inbound",
    )  # fmt: skip
    after_input = EventRow(AfterInput, veto="stop", stop=True, also="after_ingest")
    turn_start = EventRow(TurnStart, veto="stop", stop=True, also="after_turn_enter")
    before_prompt = EventRow(BeforePrompt, change="system_prompt", veto="stop", stop=True, also="before_prompt_build")
    before_compact = EventRow(BeforeCompact, controls="skip", veto="skip", stop=True, also="pre_compact")
    after_compact = EventRow(AfterCompact, stop=True, also="post_compact")
    before_model = EventRow(
        BeforeModel, change="model messages assistant", controls="deny", veto="stop", stop=True,
        also="before_inference before_generate",
    )  # fmt: skip
    after_model = EventRow(
        AfterModel, change="output", controls="deny", veto="deny", stop=True, also="after_inference after_generate"
    )
    tool_requested = EventRow(ToolRequested, stop=True, also="tool_call_requested")
    before_tool = EventRow(
        BeforeTool, change="args result is_error", controls="deny ask allow", veto="deny", stop=True,
        also="before_tool_execution before_tool_call before_tool_apply pre_tool_use tool_call",
    )  # fmt: skip
    before_permission = EventRow(BeforePermission, change="resolved", controls="deny ask allow", veto="deny", stop=True)
    after_permission = EventRow(AfterPermission, stop=True)
    after_tool = EventRow(
        AfterTool, change="output", controls="deny retry", veto="deny", stop=True,
        also="after_tool_execution after_tool_call after_tool_apply post_tool_use post_tool_use_failure "
        "tool_call_aborted",
    )  # fmt: skip
    after_tool_batch = EventRow(AfterToolBatch, veto="stop", stop=True)
    before_turn_end = EventRow(BeforeTurnEnd, controls="extend", veto="extend", stop=True)
    before_response = EventRow(
        BeforeResponse, change="response", controls="deny", veto="deny", context=False,
        also="transform_response response_transform",
    )  # fmt: skip
    before_output = EventRow(
        BeforeOutput, change="content", controls="deny", veto="deny", context=False, also="before_outbound outbound"
    )
    turn_end = EventRow(TurnEnd, context=False, also="agent_loop_end")
    subagent_start = EventRow(SubagentStart, change="initial_message", controls="deny", veto="deny")
    subagent_stop = EventRow(SubagentStop, controls="extend", veto="extend")
    notification = EventRow(Notification, change="message", controls="skip", veto="skip", context=False)
    error = EventRow(Error, context=False)

    def _decorate(self, event: Event[S]) -> "Decorate[S]":
        raise NotImplementedError


EVENTS: dict[str, Event[Any]] = {name: event for name, event in vars(Lifecycle).items() if isinstance(event, EventRow)}
GUARDING = ("before_tool", "before_input", "before_permission")
"""Events at which a step without an answer is refused. At the others there is nothing to refuse."""
CHANGEABLE: frozenset[str] = frozenset(field for event in EVENTS.values() for field in event.changes)


def event_named(name: object) -> Event[Any]:
    """The event with this name. Raises `UnknownName`, with a suggestion, if there is none."""
    try:
        return EVENTS[name]  # type: ignore[index]
    except (KeyError, TypeError):
        raise UnknownName("event", name, EVENTS, meant=event_meant_by(name)) from None


def _letters(name: str) -> str:
    """A name as `event_also_named` compares it: `onSessionStart`, `SessionStart` and `session_start` are one."""
    return re.sub("[^a-z]", "", name.lower()).removeprefix("on")


@cache  # needed only for an error
def _names_by_letters() -> dict[str, str]:
    return {_letters(also): name for name, event in EVENTS.items() for also in (name, *event.also)}


def event_also_named(name: object) -> str | None:
    """Our name of the event that another hook system calls so, in any casing."""
    return _names_by_letters().get(_letters(name)) if isinstance(name, str) and len(name) < 100 else None


def event_meant_by(name: object) -> str | None:
    """Our name of the event for which this is a misspelt name, ours or another hook system's."""
    if not isinstance(name, str) or len(name) >= 100:
        return None
    known = _names_by_letters()
    return known.get(closest(_letters(name), known, 0.8) or "")


def iter_events(on: str | Iterable[str]) -> Iterator[Event[Any]]:
    """The events that `on=` names; `"*"` is all of them."""
    if on == "*":
        yield from EVENTS.values()
    elif isinstance(on, str) or not isinstance(on, Iterable):
        yield event_named(on)
    else:
        for name in on:
            yield event_named(name)


__all__ = [
    *(event.step.__name__ for event in EVENTS.values()),
    "Agent", "CONTROLS", "Content", "Control", "EVENTS", "Event", "Input", "Json", "Lifecycle", "Step", "StopReason",
    "ToolStep", "event_named",
]  # fmt: skip
