"""The tool calls of Google ADK, and what humans say of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from ...approvals import Approval
from ...decision import Decision
from ...frozen import thaw
from ..tool_call import Called, ToolCall
from ..work import Work
from .messages import output_of
from .run import Line, Native, Run, advance, cause_of, invocation_of

TRANSFER = "transfer_to_agent"


class Unanswered(BaseException):
    """A human is asked by the framework's own means; the call goes on when the answer is there."""

    def __init__(self, asking: Decision[Any] | None) -> None:
        self.asking = asking


# --- calls ----------------------------------------------------------------------------------------


def call_of(run: Run, line: Line, tool: Any, args: dict[str, Any], context: Any, proposed: Any = "allow") -> ToolCall:
    return line.turn.tool(
        tool.name, args, context.function_call_id, Native, proposed=proposed, read=output_of,
        ask=partial(_approval, run, args, context), through=(Unanswered,), **_about(tool),
    )  # fmt: skip


async def finish(
    work: Work[Called], tool: Any, context: Any, value: Any = None, error: BaseException | None = None
) -> tuple[Called, bool]:
    """The call is over, unless a hook wants it to be tried again: whether it was."""
    again = False
    while isinstance(came := await advance(work, value, error), Native):
        again, value, error = True, None, None
        try:
            value = await tool.run_async(args=came.args, tool_context=context)
        except Exception as raised:
            error = cause_of(raised)
    return came, again


def response_of(called: Called) -> dict[str, Any]:
    if called.is_error:
        return {"error": called.text}
    return called.output if isinstance(called.output, dict) else {"result": called.output}


def is_delegated(tool: Any) -> bool:
    return getattr(getattr(tool, "agent", None), "mode", None) == "task"


def _about(tool: Any) -> dict[str, Any]:
    """What the framework knows of a tool."""
    if tool.name == TRANSFER or getattr(tool, "agent", None) is not None:
        return {"kind": "agent"}
    hints = getattr(getattr(tool, "raw_mcp_tool", None), "annotations", None)
    return {"safety": "destructive"} if getattr(hints, "destructiveHint", None) else {}


# --- questions to a human -------------------------------------------------------------------------


async def requires_confirmation(tool: Any, args: dict[str, Any], context: Any) -> bool:
    """Whether the framework itself asks before it runs this. In older versions the tool does, when it runs."""
    check = getattr(tool, "check_require_confirmation", None)
    with suppress(Exception):  # which is the framework's to deal with: it checks again
        return check is not None and await check(args, context) is True
    return False


def request_confirmation(tool: Any, args: dict[str, Any], context: Any, asking: Decision[Any] | None) -> dict[str, Any]:
    hint = _question(asking) or f"May {tool.name} be called?"
    context.request_confirmation(hint=hint + _naming(asking, args, context))
    context.actions.skip_summarization = True  # the model is not asked before there is an answer
    return {"error": "This tool call requires confirmation, please approve or reject."}


def is_answer(part: Any) -> bool:
    """Whether a human answers what the framework has asked."""
    return part.function_response is not None and str(part.function_response.name).startswith("adk_request_")


def _approval(run: Run, args: dict[str, Any], context: Any, asking: Decision[Any] | None) -> Approval:
    """A human's answer, by the framework's own means. What the question was stands in the session."""
    if run.nested:
        return Approval("deny", None, "nobody can be asked from inside an agent that is a tool")
    answer = context.tool_confirmation
    if answer is None:
        raise Unanswered(asking)
    asked = (call.args or {} for call in _calls_in(context) if call.name == "adk_request_confirmation")
    shown = next((one for one in asked if one["originalFunctionCall"].get("id") == context.function_call_id), None)
    hint, naming = "" if shown is None else shown["toolConfirmation"]["hint"], _naming(asking, args, context)
    if answer.confirmed and not (shown and _names(hint, naming)):
        return Approval("deny", None, "its arguments are not those that were approved")
    if answer.confirmed and (question := _question(asking)) and hint != question + naming:
        return Approval("deny", None, f"what was approved is something else than this: {question}")
    return Approval("allow" if answer.confirmed else "deny", "the user")


def _question(asking: Decision[Any] | None) -> str | None:
    """What hooks ask, if any does."""
    if asking is None or asking.control != "ask":
        return None
    return asking.reason or f"{asking.hook} wants a human to decide"


def _calls_in(context: Any) -> Iterator[Any]:
    """The calls in a session, of the latest event first."""
    for event in reversed(invocation_of(context).session.events):
        yield from event.get_function_calls()


def _naming(asking: Decision[Any] | None, args: dict[str, Any], context: Any) -> str:
    """What a question says of the arguments. The framework itself shows those that the model gave."""
    final = args if asking is None else thaw(asking.step.args)
    given = next((call.args or {} for call in _calls_in(context) if call.id == context.function_call_id), None)
    told = msgspec.json.encode(final, enc_hook=str, order="deterministic").decode()
    return "" if final == given else f" It will be called with {told}."


def _names(hint: str, naming: str) -> bool:
    """Whether a question did say this of them."""
    return hint.endswith(naming) if naming else not re.search(r" It will be called with \{.*\}\.$", hint, re.DOTALL)
