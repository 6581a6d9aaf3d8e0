"""Strands' messages and streams as plain messages that hooks read, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strands.tools.structured_output.structured_output_tool import StructuredOutputTool

from ....approvals import Approval
from ..messages import Message, as_text
from ..turn import Reply

REASONS = {
    "max_tokens": "max_tokens", "cancelled": "cancelled", "guardrail_intervened": "refusal",
    "content_filtered": "refusal", "limit_turns": "max_turn_requests", "limit_total_tokens": "max_tokens",
    "limit_output_tokens": "max_tokens",
}  # fmt: skip
"""Why a model or an agent has stopped early, as a `stop_reason`."""
FORM = "structured_output"
"""The attribute of a result with a structured answer."""
YES = ("y", "yes", "approve", "approved", "allow", "true")
"""Answers to an interrupt that let a call run, besides True."""
BLOCKS = frozenset({
    "text", "json", "image", "document", "video", "cachePoint", "guardContent", "citationsContent", "reasoningContent",
    "toolUse", "toolResult",
})  # fmt: skip
"""Strands' kinds of content."""


def is_form(tool: Any) -> bool:
    """Whether this is Strands' tool with which a model gives a structured answer, whatever a tool says of itself."""
    return type(tool) is StructuredOutputTool


# --- content --------------------------------------------------------------------------------------


def text_of(content: Any) -> str:
    return "\n".join(block["text"] for block in content or () if "text" in block)


def readable(content: Any) -> Any:
    """Content as hooks read it: a text, if there is nothing else in it."""
    if isinstance(content, str) or any(set(block) != {"text"} for block in content):
        return content
    return text_of(content)


def new_in(messages: list[Any]) -> int:
    """The number of user messages at the end."""
    number = 1
    while number < len(messages) and messages[-number]["role"] == messages[-number - 1]["role"] == "user":
        number += 1
    return number


def input_of(messages: list[Any]) -> Any:
    """The user's input: the content of the messages at the end."""
    new = messages[len(messages) - new_in(messages) :] if messages else []
    return readable([block for message in new for block in message["content"]]) if messages else ""


def blocks_of(content: Any) -> list[Any]:
    """Content that a hook gives, as Strands has it."""
    blocks = content if isinstance(content, list) else [as_text(content)]
    return [_block(block, {"text": as_text(block)}) for block in blocks]


def _block(block: Any, otherwise: Any) -> Any:
    if isinstance(block, str):
        return {"text": block}
    if set(block) == {"type", "text"}:
        return {"text": block["text"]}
    return block if len(block) == 1 and BLOCKS.issuperset(block) else otherwise


def result_of(output: Any) -> list[Any]:
    """Output that a hook gives for a tool, as the content of its result."""
    if output is None or isinstance(output, str):
        return [{"text": output or ""}]
    return [_block(block, {"json": block}) for block in output] if isinstance(output, list) else [{"json": output}]


def output_of(result: Any) -> Any:
    """A tool's result, as hooks read it."""
    content = result["content"] if result else []
    if all("text" in block for block in content):
        return text_of(content)
    return content[0]["json"] if len(content) == 1 and isinstance(content[0].get("json"), dict) else content


def approval_of(response: Any) -> Approval:
    """A human's answer to an interrupt. Only a clear yes lets the call run."""
    about = response if isinstance(response, Mapping) else {"response": response}
    answer, why = about.get("approved", about.get("response")), about.get("why") or about.get("reason")
    if answer is True or (isinstance(answer, str) and answer.strip().lower() in YES):
        return Approval("allow", about.get("who"), why)
    return Approval("deny", about.get("who"), why or (answer if isinstance(answer, str) and answer else None))


# --- messages -------------------------------------------------------------------------------------


def with_context(messages: list[Any], texts: list[str]) -> list[Any]:
    """A conversation with texts added at its end, to the user's message: roles must alternate."""
    blocks = [{"text": text} for text in texts]
    if blocks and messages and messages[-1]["role"] == "user":
        return [*messages[:-1], {**messages[-1], "content": [*messages[-1]["content"], *blocks]}]
    return [*messages, {"role": "user", "content": blocks}] if blocks else messages


def units_of(messages: list[Any]) -> list[Any]:
    """A conversation in pieces that are one plain message each."""
    units: list[Any] = []
    for message in messages:
        if message["role"] == "assistant":
            units.append(message)
        else:
            units += [{"role": "user", "content": [block]} for block in message["content"]]
    return units


def merged(units: list[Any]) -> list[Any]:
    """The pieces as a conversation again."""
    messages: list[Any] = []
    for unit in units:
        if messages and messages[-1]["role"] == unit["role"]:
            messages[-1] = {**messages[-1], "content": [*messages[-1]["content"], *unit["content"]]}
        else:
            messages.append(unit)
    return messages


def plain_of(units: list[Any]) -> list[Message]:
    plain: list[Message] = []
    tools: dict[str, str] = {}
    for unit in units:
        content = unit["content"]
        if unit["role"] == "assistant":
            uses = [block["toolUse"] for block in content if "toolUse" in block]
            tools |= {use["toolUseId"]: use["name"] for use in uses}
            calls = [{"id": use["toolUseId"], "tool": use["name"], "args": use["input"]} for use in uses]
            message: Message = {"role": "assistant", "content": text_of(content)}
            plain.append(message | ({"tool_calls": calls} if calls else {}))
        elif "toolResult" in content[0]:
            result = content[0]["toolResult"]
            plain.append({
                "role": "tool", "call_id": result["toolUseId"], "tool": tools.get(result["toolUseId"], ""),
                "content": output_of(result), "is_error": result.get("status") == "error",
            })  # fmt: skip
        else:
            plain.append({"role": "user", "content": readable(content)})
    return plain


def unit_of(message: Message) -> Any:
    """A message that a hook made, as Strands has it."""
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        calls = [
            {"toolUse": {"toolUseId": call["id"], "name": call["tool"], "input": call["args"]}}
            for call in message.get("tool_calls") or ()
        ]
        text = [{"text": as_text(content)}] if content or not calls else []
        return {"role": "assistant", "content": [*text, *calls]}
    if role == "tool":
        status = "error" if message.get("is_error") else "success"
        result = {"toolUseId": message["call_id"], "status": status, "content": result_of(content)}
        return {"role": "user", "content": [{"toolResult": result}]}
    return {"role": "user", "content": blocks_of(content)}


# --- what a model streams -------------------------------------------------------------------------


def reply_of(chunks: Any) -> Reply:
    texts, reason, usage = [""], "end_turn", None
    for chunk in chunks or ():
        if "contentBlockDelta" in chunk:
            texts[-1] += chunk["contentBlockDelta"]["delta"].get("text", "")
        elif "contentBlockStop" in chunk:
            texts.append("")
        elif "messageStop" in chunk:
            reason = REASONS.get(chunk["messageStop"].get("stopReason"), "end_turn")
        elif "metadata" in chunk:
            counts = chunk["metadata"].get("usage") or {}
            usage = {"input_tokens": counts.get("inputTokens", 0), "output_tokens": counts.get("outputTokens", 0)}
    return Reply("\n".join(filter(None, texts)), usage, reason)


def calls_tools(chunks: Any) -> bool:
    return any("toolUse" in (chunk.get("contentBlockStart") or {}).get("start", ()) for chunk in chunks or ())


def chunks_of(chunks: list[Any], text: str | None) -> list[Any]:
    """A reply with another text, in the place of its own, or before the tool calls."""
    if text is None:
        return chunks
    new: list[Any] = [{"contentBlockDelta": {"delta": {"text": text}}}, {"contentBlockStop": {}}]
    new = [{"contentBlockStart": {"start": {}}}, *new] if text else []
    if not chunks:
        return [{"messageStart": {"role": "assistant"}}, *new, {"messageStop": {"stopReason": "end_turn"}}]
    found: list[Any] = []
    block: list[Any] = []
    for chunk in chunks:
        block.append(chunk)
        if "contentBlockStart" in chunk or "contentBlockDelta" in chunk:
            continue
        is_text = any("text" in one.get("contentBlockDelta", {}).get("delta", ()) for one in block)
        if is_text or "messageStop" in chunk or calls_tools(block):
            found += new
            new = []
        found += [] if is_text else block

        block = []
    return found + block
