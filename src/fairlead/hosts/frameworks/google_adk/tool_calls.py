"""Tool calls in Google ADK, and what humans answer about them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from google.adk.plugins.plugin_manager import PluginManager

from ....approvals import Approval
from ....decision import Decision
from ....frozen import thaw
from ..adapter import MCP_SERVER, safety_from_hints, without
from ..flow import Flow, run_flow
from ..tool_call import ToolCall, ToolResult
from .messages import output_of
from .run import RUNNING, AdkRun, InvocationRuns, RunNatively, cause_of, invocation_of

if TYPE_CHECKING:
    from . import Fairlead

TRANSFER = "transfer_to_agent"


class Unanswered(BaseException):
    """Leaves a call that waits for a human. The framework asks, and calls the tool again with the answer."""

    def __init__(self, decision: Decision[Any] | None) -> None:
        self.decision = decision


# --- calls ----------------------------------------------------------------------------------------


def call_of(
    runs: InvocationRuns, run: AdkRun, tool: Any, args: dict[str, Any], context: Any, proposed: Any = "allow"
) -> ToolCall:
    return run.turn.tool(
        tool.name, args, context.function_call_id, RunNatively, proposed=proposed, read=output_of,
        ask=partial(_approval, runs, args, context), through=(Unanswered,), **_about(tool),
    )  # fmt: skip


async def finish(
    flow: Flow[ToolResult], tool: Any, context: Any, value: Any = None, error: BaseException | None = None
) -> tuple[ToolResult, bool]:
    """Finish a call. Gives its result, and whether a hook had the tool run again."""
    again = False
    while isinstance(result := await run_flow(flow, value, error), RunNatively):
        again, value, error = True, None, None
        try:
            value = await tool.run_async(args=result.args, tool_context=context)
        except Exception as raised:
            error = cause_of(raised)
    return result, again


async def judge_answer(
    runs: InvocationRuns, run: AdkRun, tool: Any, args: dict[str, Any], context: Any, answer: Any
) -> dict[str, Any] | None:
    """Have hooks judge what an earlier plugin has answered in place of the tool. Gives what the model reads instead."""
    call = call_of(runs, run, tool, args, context)
    call.ask = lambda decision: Approval(
        "deny", None, "another plugin has answered the call, and it cannot be asked about"
    )
    with without(run.turn, "before_tool", "args"):
        flow = call.perform()
        result: Any = await run_flow(flow)
        while isinstance(result, RunNatively):  # a retry gets the same answer
            result = await run_flow(flow, answer)
    return response_of(result) if result.replaced else None


def response_of(result: ToolResult) -> dict[str, Any]:
    if result.is_error:
        return {"error": result.text}
    return result.output if isinstance(result.output, dict) else {"result": result.output}


def is_delegated(tool: Any) -> bool:
    return getattr(getattr(tool, "agent", None), "mode", None) == "task"


def _about(tool: Any) -> dict[str, Any]:
    """What the framework knows of a tool."""
    if tool.name == TRANSFER or getattr(tool, "agent", None) is not None:
        return {"kind": "agent"}
    if (remote := getattr(tool, "raw_mcp_tool", None)) is None:
        return {}
    prefix = tool.name.removesuffix(remote.name).rstrip("_")  # `tool_name_prefix` of its toolset
    return {"server": prefix or MCP_SERVER, "remote": remote.name, **safety_from_hints(remote.annotations)}


# --- at the tool itself ---------------------------------------------------------------------------


def governed_tool(plugin: Fairlead, tool: Any) -> Any:
    """A copy of a tool that runs with the judged arguments only. The framework calls other callbacks after our plugin.

    An agent that is a tool and leaves out the plugins of its parent still has ours.
    """
    original = tool.__dict__.get(_ORIGINAL, tool)

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        if (running := RUNNING.get()) is not None:
            running.call.check(args, LATER_CODE)
        if not leaves_out_plugins(original):
            return await original.run_async(args=args, tool_context=tool_context)
        agent_tool, context = copy(original), copy(tool_context)
        agent_tool.include_plugins = True
        manager = PluginManager([plugin])
        context._invocation_context = invocation_of(tool_context).model_copy(update={"plugin_manager": manager})
        return await agent_tool.run_async(args=args, tool_context=context)

    governed = copy(original)
    governed.__dict__.update({_ORIGINAL: original, "run_async": run_async})
    return governed


class _Seal:
    """The `run_async` of a tool that checks its arguments itself."""

    def __init__(self, tool: Any, run: Any) -> None:
        self.tool, self.run = tool, run

    async def __call__(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        if (running := RUNNING.get()) is not None and running.tool is self.tool:
            running.call.check(args, LATER_CODE)
        return await self.run(args=args, tool_context=tool_context)


def seal(tool: Any) -> None:
    """Have a tool itself check its arguments, where the framework does not run a governed copy.

    That is so if a callback has added the tool, if a human has approved the call, and in a workflow.
    """
    run = tool.__dict__.get("run_async")
    if isinstance(run, _Seal) and run.tool is tool:
        return
    if run is None or isinstance(run, _Seal):  # a copy of a sealed tool has the other's
        run = partial(type(tool).run_async, tool)
    tool.__dict__["run_async"] = _Seal(tool, run)


LATER_CODE = "a callback or a plugin after Fairlead"
_ORIGINAL = "fairlead_original"


def leaves_out_plugins(tool: Any) -> bool:
    return getattr(tool, "include_plugins", True) is False


def is_governed(tool: Any) -> bool:
    return _ORIGINAL in tool.__dict__


# --- questions to a human -------------------------------------------------------------------------


async def requires_confirmation(tool: Any, args: dict[str, Any], context: Any) -> bool:
    """Whether the framework itself asks before it runs a tool. In older versions, the tool asks when it runs."""
    check = getattr(tool, "check_require_confirmation", None)
    with suppress(Exception):  # the framework checks again, and handles the error
        return check is not None and await check(args, context) is True
    return False


def request_confirmation(
    tool: Any, args: dict[str, Any], context: Any, decision: Decision[Any] | None
) -> dict[str, Any]:
    hint = _question(decision) or f"May {tool.name} be called?"
    context.request_confirmation(hint=hint + _naming(decision, args, context))
    context.actions.skip_summarization = True  # the model is not called before there is an answer
    return {"error": "This tool call requires confirmation, please approve or reject."}


def in_workflow(context: Any) -> bool:
    """Whether a node of a workflow runs the tool, and no agent. The framework asks by itself there, in another way."""
    return getattr(getattr(context, "node", None), "tool", None) is not None


def _shown_in_workflow(context: Any) -> Any:
    """The arguments that a human saw who was asked about a tool of a workflow."""
    questions = (call for call in _calls_in(context) if (call.id or "").endswith(f":{context.node_path}"))
    return next(((call.args or {}).get("payload", {}).get("args") for call in questions), None)


def is_answer(part: Any) -> bool:
    """Whether this is a human's answer to a question of the framework."""
    return part.function_response is not None and str(part.function_response.name).startswith("adk_request_")


def _approval(runs: InvocationRuns, args: dict[str, Any], context: Any, decision: Decision[Any] | None) -> Approval:
    """A human's answer, by the framework's own confirmation. The session has the question."""
    if runs.nested:
        return Approval("deny", None, "an agent that is a tool cannot ask a human")
    answer = context.tool_confirmation
    if in_workflow(context) and _question(decision):
        return Approval("deny", None, "a tool of a workflow cannot ask a human for a hook: give the hooks an approver")
    if answer is None:
        raise Unanswered(decision)
    if in_workflow(context):
        if answer.confirmed and _shown_in_workflow(context) != (args if decision is None else thaw(decision.step.args)):
            return Approval("deny", None, "its arguments are not those that were approved")
        return Approval("allow" if answer.confirmed else "deny", "the user")
    questions = (call.args or {} for call in _calls_in(context) if call.name == "adk_request_confirmation")
    shown = next((one for one in questions if one["originalFunctionCall"].get("id") == context.function_call_id), None)
    hint, naming = "" if shown is None else shown["toolConfirmation"]["hint"], _naming(decision, args, context)
    if answer.confirmed and not (shown and _names(hint, naming)):
        return Approval("deny", None, "its arguments are not those that were approved")
    if answer.confirmed and (question := _question(decision)) and hint != question + naming:
        return Approval("deny", None, f"what was approved is something else than this: {question}")
    return Approval("allow" if answer.confirmed else "deny", "the user")


def _question(decision: Decision[Any] | None) -> str | None:
    """The question of hooks, if any asks."""
    if decision is None or decision.control != "ask":
        return None
    return decision.reason or f"{decision.hook} wants a human to decide"


def _calls_in(context: Any) -> Iterator[Any]:
    """The calls in a session, of the latest event first."""
    for event in reversed(invocation_of(context).session.events):
        yield from event.get_function_calls()


def _naming(decision: Decision[Any] | None, args: dict[str, Any], context: Any) -> str:
    """The part of a question that shows changed arguments. The framework itself shows the model's."""
    final = args if decision is None else thaw(decision.step.args)
    original = next((call.args or {} for call in _calls_in(context) if call.id == context.function_call_id), None)
    shown = msgspec.json.encode(final, enc_hook=str, order="deterministic").decode()
    return "" if final == original else f" It will be called with {shown}."


def _names(hint: str, naming: str) -> bool:
    """Whether a question showed these arguments."""
    return hint.endswith(naming) if naming else not re.search(r" It will be called with \{.*\}\.$", hint, re.DOTALL)
