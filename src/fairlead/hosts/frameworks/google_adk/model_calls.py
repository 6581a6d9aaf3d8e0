"""Requests to the model in Google ADK: what is sent, and what becomes of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry

from ....errors import UnknownName
from ....lifecycle import BeforeModel
from ..flow import Flow, run_flow
from ..messages import Message, as_text
from ..turn import ModelCall, ModelResult, rewritten
from .delegation import judge_delegations
from .messages import calls_of, content_of, joined, message_of, reply_of, text_of, units_of, user_content, with_text
from .run import AdkRun, InvocationRuns, RunNatively, invocation_of

Models = Mapping[str, Any]
"""The models that a hook may switch to, by name."""


def model_flow(models: Models, run: AdkRun, context: Any) -> Flow[ModelResult]:
    def messages() -> list[Message]:
        if BeforeModel not in run.turn.subscribed_steps:
            return []
        return [message_of(unit) for unit in units_of(run.turn.with_injected(run.contents, user_content))]

    return run.turn.ask(run.model, messages, partial(_call, models, run, context), reply_of)


async def _call(models: Models, run: AdkRun, context: Any, call: ModelCall) -> Any:
    """Call the model: by the framework, the first time; here, when it is repeated or is another."""
    turn, request = run.turn, run.request
    if call.messages is not None:
        units = units_of(turn.with_injected(run.contents, user_content))
        request.contents = joined(rewritten(units, [message_of(unit) for unit in units], call.messages, content_of))
    turn.place(len(run.contents), call.context)
    if call.messages is None:
        request.contents = turn.with_injected(run.contents, user_content)
    request.model, model, natively, run.natively = run.model, None, run.natively, False
    if call.model is not None:
        model = _model(models, call.model, await _model_of(run.agent, context))
        request.model = model if isinstance(model, str) else model.model
    if model is None or isinstance(model, str):
        if natively:
            return RunNatively({})
        model = await _model_of(run.agent, context)
    invocation_of(context).increment_llm_call_count()
    reply = LlmResponse()
    async for piece in model.generate_content_async(request, stream=False):
        reply = reply if piece.partial else piece
    return reply


def _model(models: Models, name: str, current: Any) -> Any:
    """The model of this name, or only the name if the agent's own model takes it, too."""
    found = models.get(name, name)
    if not isinstance(found, str):
        return found
    try:
        kind = LLMRegistry.resolve(found)
    except ValueError:
        raise UnknownName("model", name, [*models, current.model]) from None
    return found if isinstance(current, kind) else LLMRegistry.new_llm(found)


async def _model_of(agent: Any, context: Any) -> Any:
    resolve = getattr(agent, "canonical_model_async", None)
    return agent.canonical_model if resolve is None else await resolve(context)


def instruct(request: Any, before: str, after: str) -> None:
    """Put one instruction in the place of another."""
    known = request.config.system_instruction
    if not isinstance(known, str) or not before or before not in known:
        request.config.system_instruction = f"{after}\n\n{known}" if isinstance(known, str) else after
    else:
        request.config.system_instruction = known.replace(before, after, 1)


async def conclude(
    models: Models, runs: InvocationRuns, run: AdkRun, context: Any, result: ModelResult, native: Any = None
) -> Any:
    """Take the model's answer. Calls the model again as long as hooks extend the turn.

    Gives the reply to use instead, None for the native one.
    """
    while True:
        turn = run.turn
        reply = result.native if result.native is not None else with_text(result.text)
        if result.native is not None and result.text is not None:
            reply = with_text(result.text, reply)
        if turn.over:
            await run.end_with(None)
            return with_text(run.shown)
        if calls_of(reply.content):
            reply = await judge_delegations(runs, run, context, reply)
            if calls_of(reply.content):
                break
            result = await run_flow(model_flow(models, run, context))
            continue
        if getattr(run.agent, "code_executor", None) is not None:
            break  # the event shows whether the turn goes on
        turn.stop_reason = reply_of(reply).stop_reason or "end_turn"
        text = text_of(reply.content)
        feedback = await run_flow(turn.ending()) or await run.end_with(text)
        if feedback is None:
            if run.shown != text:
                reply = with_text(run.shown, None if run.shown is None else reply)
            break
        if run.ended:
            run.renew()
            feedback = as_text(await run.begin(invocation_of(context), run.agent, feedback, "continuation"))
        answer = [(context.agent_name, reply.content)] if reply.content is not None else []
        await run.add(context, *answer, ("user", user_content(feedback)))
        result = await run_flow(model_flow(models, run, context))
    return None if reply is native else reply
