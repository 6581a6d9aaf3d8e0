"""Asking a model in Google ADK: what it is sent, and what becomes of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry

from ...errors import UnknownName
from ...lifecycle import BeforeModel
from ..model import Message, as_text
from ..turn import Asked, Asking, rewritten
from ..work import Work, drive
from .delegating import judge_delegations
from .messages import calls_of, content_of, joined, message_of, reply_of, saying, text_of, units_of, user_content
from .run import Line, Native, Run, invocation_of

Models = Mapping[str, Any]
"""Those that a hook may switch to, by name."""


def ask(models: Models, line: Line, context: Any) -> Work[Asked]:
    def messages() -> list[Message]:
        if BeforeModel not in line.turn.heard:
            return []
        return [message_of(unit) for unit in units_of(line.turn.woven(line.contents, user_content))]

    return line.turn.ask(line.model, messages, partial(_call, models, line, context), reply_of)


async def _call(models: Models, line: Line, context: Any, asking: Asking) -> Any:
    """Ask the model: by the framework, the first time; by ourselves, when it is asked again or is another."""
    turn, request = line.turn, line.request
    if asking.messages is not None:
        units = units_of(turn.woven(line.contents, user_content))
        request.contents = joined(rewritten(units, [message_of(unit) for unit in units], asking.messages, content_of))
    turn.place(len(line.contents), asking.context)
    if asking.messages is None:
        request.contents = turn.woven(line.contents, user_content)
    request.model, model, natively, line.natively = line.model, None, line.natively, False
    if asking.model is not None:
        model = _model(models, asking.model, await _model_of(line.agent, context))
        request.model = model if isinstance(model, str) else model.model
    if model is None or isinstance(model, str):
        if natively:
            return Native({})
        model = await _model_of(line.agent, context)
    invocation_of(context).increment_llm_call_count()
    reply = LlmResponse()
    async for piece in model.generate_content_async(request, stream=False):
        reply = reply if piece.partial else piece
    return reply


def _model(models: Models, name: str, current: Any) -> Any:
    """The model of this name; only its name, if the agent's own model goes by that as well."""
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
    told = request.config.system_instruction
    if not isinstance(told, str) or not before or before not in told:
        request.config.system_instruction = f"{after}\n\n{told}" if isinstance(told, str) else after
    else:
        request.config.system_instruction = told.replace(before, after, 1)


async def answered(models: Models, run: Run, line: Line, context: Any, asked: Asked, native: Any = None) -> Any:
    """The model has answered, or a hook for it. Gives the reply to take instead, None for the native one."""
    turn = line.turn
    while True:
        reply = asked.native if asked.native is not None else saying(asked.text)
        if asked.native is not None and asked.text is not None:
            reply = saying(asked.text, reply)
        if turn.over:
            await line.end(None)
            return saying(line.shown)
        if calls_of(reply.content):
            reply = await judge_delegations(run, line, context, reply)
            if calls_of(reply.content):
                break
            asked = await drive(ask(models, line, context))
            continue
        if getattr(line.agent, "code_executor", None) is not None:
            break  # it is seen at the event whether the turn goes on
        turn.stop_reason = reply_of(reply).stop_reason or "end_turn"
        text = text_of(reply.content)
        feedback = await drive(turn.ending()) or await line.end(text)
        if feedback is None:
            if line.shown != text:
                reply = saying(line.shown, None if line.shown is None else reply)
            break
        if line.ended:
            line.turn = turn = turn.again()
            line.ended = False
            feedback = as_text(await line.begin(invocation_of(context), line.agent, feedback, "continuation"))
        said = [(context.agent_name, reply.content)] if reply.content is not None else []
        await line.add(context, *said, ("user", user_content(feedback)))
        asked = await drive(ask(models, line, context))
    return None if reply is native else reply
