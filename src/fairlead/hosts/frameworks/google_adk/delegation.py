"""Agents of the mode "task" in Google ADK. They start as soon as the model calls them: their tools never run."""

from __future__ import annotations

from typing import Any

from google.genai import types

from ....session import new_id
from ..flow import run_flow
from ..tool_call import ToolResult
from .messages import output_of
from .run import AdkRun, InvocationRuns, RunNatively, flow_of, start_run
from .tool_calls import is_delegated, response_of


async def judge_delegations(runs: InvocationRuns, run: AdkRun, context: Any, reply: Any) -> Any:
    """The reply, without the delegations that hooks refuse."""
    refused: list[tuple[Any, dict[str, Any]]] = []
    for part in reply.content.parts:
        tool = run.request.tools_dict.get(part.function_call.name) if part.function_call else None
        if is_delegated(tool):
            if not part.function_call.id or part.function_call.id in runs.calls:
                part.function_call.id = new_id("adk-call")
            answer = await _judge(runs, run, tool, part.function_call)
            refused += [(part, answer)] if answer is not None else []
    if not refused:
        return reply
    calls = [part for part, _ in refused]
    results = [
        types.FunctionResponse(id=part.function_call.id, name=part.function_call.name, response=answer)
        for part, answer in refused
    ]
    answers = types.Content(role="user", parts=[types.Part(function_response=result) for result in results])
    requests = types.Content(role="model", parts=calls)
    await run.add(context, (context.agent_name, requests), (context.agent_name, answers))
    rest = types.Content(role="model", parts=[part for part in reply.content.parts if part not in calls])
    return reply.model_copy(update={"content": rest})


async def _judge(runs: InvocationRuns, run: AdkRun, tool: Any, call: Any) -> dict[str, Any] | None:
    """The response for the model, if hooks refuse the delegation or answer it."""
    args = dict(call.args or {})
    flow = run.turn.tool(tool.name, args, call.id, RunNatively, read=output_of, kind="agent").perform()
    result: Any = await run_flow(flow)
    if isinstance(result, ToolResult):
        return response_of(result)
    why: str | None = "the arguments of a delegation cannot be changed"  # the model's message has them
    if result.args == args:
        subagent = await start_run(run.turn, tool.agent.name, args.get("request", args))
        why = subagent.shown if subagent.ended else None
        runs.by_agent[tool.agent.name, None] = subagent
    if why is not None:
        return response_of(await run_flow(flow, {"error": why}))
    runs.calls[call.id] = flow
    return None


async def end_delegations(runs: InvocationRuns, event: Any) -> Any:
    """Finish the delegations whose agents are done. A retry gets the same result again."""
    parts, changed = [], False
    for part in event.content.parts:
        response = part.function_response
        flow = await flow_of(runs.calls.pop(runs.call_of(response.id), None)) if response is not None else None
        while flow is not None:
            result: Any = await run_flow(flow, response.response)
            if not isinstance(result, RunNatively):
                if result.replaced:
                    response, changed = response.model_copy(update={"response": response_of(result)}), True
                break
        parts.append(types.Part(function_response=response) if response is not None else part)
    content = types.Content(role=event.content.role, parts=parts)
    return event.model_copy(update={"content": content}) if changed else None
