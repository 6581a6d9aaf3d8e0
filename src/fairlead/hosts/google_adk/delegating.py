"""Agents of the mode "task" in Google ADK: started as soon as the model calls them, so their tools never run."""

from __future__ import annotations

from typing import Any

from google.genai import types

from ...session import new_id
from ..tool_call import Called
from .messages import output_of
from .run import Line, Native, Run, advance, helper_of, under_way
from .tools import is_delegated, response_of


async def judge_delegations(run: Run, line: Line, context: Any, reply: Any) -> Any:
    """The reply, without those delegations that are refused."""
    refused: list[tuple[Any, dict[str, Any]]] = []
    for part in reply.content.parts:
        tool = line.request.tools_dict.get(part.function_call.name) if part.function_call else None
        if is_delegated(tool):
            if not part.function_call.id or part.function_call.id in run.calls:
                part.function_call.id = new_id("adk-call")
            answer = await _judge(run, line, tool, part.function_call)
            refused += [(part, answer)] if answer is not None else []
    if not refused:
        return reply
    calls = [part for part, _ in refused]
    results = [
        types.FunctionResponse(id=part.function_call.id, name=part.function_call.name, response=answer)
        for part, answer in refused
    ]
    told = types.Content(role="user", parts=[types.Part(function_response=result) for result in results])
    asked = types.Content(role="model", parts=calls)
    await line.add(context, (context.agent_name, asked), (context.agent_name, told))
    rest = types.Content(role="model", parts=[part for part in reply.content.parts if part not in calls])
    return reply.model_copy(update={"content": rest})


async def _judge(run: Run, line: Line, tool: Any, call: Any) -> dict[str, Any] | None:
    """What the model is told instead, if this one may not be."""
    args = dict(call.args or {})
    work = line.turn.tool(tool.name, args, call.id, Native, read=output_of, kind="agent").work()
    came = await advance(work)
    if isinstance(came, Called):
        return response_of(came)
    why: str | None = "the arguments of a delegation cannot be changed"  # they stand in the model's message
    if came.args == args:
        helper = await helper_of(line.turn, tool.agent.name, args.get("request", args))
        why = helper.shown if helper.ended else None
        run.lines[tool.agent.name, None] = helper
    if why is not None:
        return response_of(await advance(work, {"error": why}))
    run.calls[call.id] = work
    return None


async def delegated(run: Run, event: Any) -> Any:
    """An agent to which a task was given is done with it. A retry gets the same result again."""
    parts, changed = [], False
    for part in event.content.parts:
        result = part.function_response
        work = await under_way(run.calls.pop(run.call_of(result.id), None)) if result is not None else None
        while work is not None:
            called = await advance(work, result.response)
            if not isinstance(called, Native):
                if called.replaced:
                    result, changed = result.model_copy(update={"response": response_of(called)}), True
                break
        parts.append(types.Part(function_response=result) if result is not None else part)
    content = types.Content(role=event.content.role, parts=parts)
    return event.model_copy(update={"content": content}) if changed else None
