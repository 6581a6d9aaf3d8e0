"""What each agent CLI takes for an answer, by hand, from what the real programs did with it.

`TAKES` has, for each CLI and each of its events, what it can carry out there, and the very reply that makes it do so.
In a reply, "TEXT" stands for the reason or the context, "ARGS" for the changed arguments, "OUTPUT" for what is put in
place of a tool's output. What is not here must never be sent, and follows the rules for what a host cannot do.
"""

from __future__ import annotations

from typing import Any

Replies = dict[str, Any]
Takes = dict[str, Replies]

NOTHING: Replies = {}
EXIT_2 = "exit 2"
PLAIN = "plain text"


def told(event: str, **keys: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **keys}}


def block(**more: Any) -> dict[str, Any]:
    return {"decision": "block", "reason": "TEXT", **more}


ENDS = {"continue": False, "stopReason": "TEXT"}


def context(event: str) -> Replies:
    return {"context": told(event, additionalContext="TEXT")}


def ends(reply: dict[str, Any] = ENDS) -> Replies:
    return {"stop": reply, "abort": reply}


def prompt(event: str) -> Replies:
    """A message to the agent, in the hosts that do as Claude Code does."""
    return {"deny": block(), **ends(block(**ENDS)), **context(event)}


def refused(event: str) -> dict[str, Any]:
    return told(event, permissionDecision="deny", permissionDecisionReason="TEXT")


GRANTED = {
    "deny": told("PermissionRequest", decision={"behavior": "deny", "message": "TEXT"}),
    "allow": told("PermissionRequest", decision={"behavior": "allow"}),
    "resolved": told("PermissionRequest", decision={"behavior": "allow"}),
}
KEPT = {"extend": block()}
_BASH = {"stdout": "OUTPUT", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
_SHOWN = told("PostToolUse", updatedToolOutput=_BASH)

CLAUDE_CODE: Takes = {
    "SessionStart": context("SessionStart"),
    "SessionEnd": NOTHING,
    "UserPromptSubmit": prompt("UserPromptSubmit"),
    "PreToolUse": {
        "deny": refused("PreToolUse"),
        "ask": told("PreToolUse", permissionDecision="ask", permissionDecisionReason="TEXT"),
        "allow": told("PreToolUse", permissionDecision="allow", permissionDecisionReason="TEXT"),
        "args": told("PreToolUse", updatedInput="ARGS"),
        **ends(refused("PreToolUse") | ENDS),  # without the refusal, the tool would still run
        **context("PreToolUse"),
    },
    "PermissionRequest": GRANTED,
    "PermissionDenied": NOTHING,
    "PostToolUse": {"deny": _SHOWN, "output": _SHOWN, **ends(_SHOWN | ENDS), **context("PostToolUse")},
    "PostToolUseFailure": {**ends(), **context("PostToolUseFailure")},
    "PostToolBatch": {**ends(), **context("PostToolBatch")},
    "Stop": {**KEPT, **ends()},
    "StopFailure": NOTHING,
    "SubagentStart": context("SubagentStart"),
    "SubagentStop": KEPT,
    "PreCompact": NOTHING,
    "PostCompact": NOTHING,
    "Notification": NOTHING,
    "MessageDisplay": NOTHING,
}

CODEX: Takes = {
    "SessionStart": {"abort": ENDS, **context("SessionStart")},
    "SessionEnd": NOTHING,
    "UserPromptSubmit": prompt("UserPromptSubmit"),
    "PreToolUse": {
        "deny": refused("PreToolUse"),
        "args": told("PreToolUse", permissionDecision="allow", updatedInput="ARGS"),
        **context("PreToolUse"),
    },
    "PermissionRequest": GRANTED,
    "PostToolUse": {"deny": block(), **context("PostToolUse")},
    "Stop": {**KEPT, **ends()},
    "SubagentStart": context("SubagentStart"),
    "SubagentStop": KEPT,
    "PreCompact": NOTHING,
    "PostCompact": NOTHING,
}

_REFUSED = {"decision": "deny", "reason": "TEXT"}
_ANSWER = {"candidates": [{"content": {"role": "model", "parts": ["OUTPUT"]}, "finishReason": "STOP"}]}

GEMINI: Takes = {
    "SessionStart": context("SessionStart"),
    "SessionEnd": NOTHING,
    "BeforeAgent": {"deny": _REFUSED, **ends(_REFUSED | ENDS), **context("BeforeAgent")},
    "BeforeModel": {
        "deny": _REFUSED,
        **ends(_REFUSED | ENDS),
        "model": told("BeforeModel", llm_request={"model": "another"}),
        "messages": told("BeforeModel", llm_request={"messages": [{"role": "user", "content": "less"}]}),
        "assistant": {"decision": "deny", "reason": "answered"} | told("BeforeModel", llm_response=_ANSWER),
    },
    "BeforeTool": {"deny": _REFUSED, **ends(_REFUSED | ENDS), "args": told("BeforeTool", tool_input="ARGS")},
    "AfterTool": {"deny": _REFUSED, **ends(_REFUSED | ENDS), **context("AfterTool")},
    "AfterAgent": {"extend": _REFUSED, **ends()},
    "AfterModel": NOTHING,
    "BeforeToolSelection": NOTHING,  # even {} would change the request
    "PreCompress": NOTHING,
    "Notification": NOTHING,
}

QWEN: Takes = {
    "SessionStart": context("SessionStart"),
    "SessionEnd": NOTHING,
    "UserPromptSubmit": prompt("UserPromptSubmit"),
    "PreToolUse": {"deny": refused("PreToolUse")},
    "PostToolUse": {"deny": ENDS, **context("PostToolUse")},
    "PostToolUseFailure": {"deny": ENDS, **context("PostToolUseFailure")},
    "PostToolBatch": context("PostToolBatch"),
    "Stop": KEPT,
    "SubagentStart": NOTHING,
    "SubagentStop": KEPT,
    "PreCompact": NOTHING,
    "Notification": NOTHING,
    "MessageDisplay": NOTHING,
    "InstructionsLoaded": NOTHING,
}

_ADDED = {"context": {"additionalContext": "TEXT"}}
_NOT_PERMITTED = {"behavior": "deny", "message": "TEXT"}
_PERMISSION = {
    "deny": _NOT_PERMITTED,
    "allow": {"behavior": "allow"},
    "resolved": {"behavior": "allow"},
    **ends({**_NOT_PERMITTED, "interrupt": True}),
}

COPILOT: Takes = {
    "sessionStart": _ADDED,
    "sessionEnd": NOTHING,
    "userPromptSubmitted": {"deny": block(), "input": {"modifiedPrompt": "OUTPUT"}, **_ADDED},
    "preToolUse": {
        "deny": {"permissionDecision": "deny", "permissionDecisionReason": "TEXT"},
        "allow": {"permissionDecision": "allow"},
        "args": {"modifiedArgs": "ARGS"},
        **_ADDED,
    },
    "permissionRequest": _PERMISSION,
    "postToolUse": {
        "deny": block(),
        "output": {"modifiedResult": {"resultType": "success", "textResultForLlm": "OUTPUT"}},
        **_ADDED,
    },
    "postToolUseFailure": _ADDED,
    "agentStop": KEPT,
    "subagentStart": _ADDED,
    "subagentStop": KEPT,
    "preCompact": NOTHING,
    "notification": NOTHING,
    "errorOccurred": NOTHING,
    "userPromptTransformed": NOTHING,
    # As Claude Code tells them.
    "SessionStart": NOTHING,
    "SessionEnd": NOTHING,
    "UserPromptSubmit": {"deny": block()},
    "PreToolUse": {
        "deny": refused("PreToolUse"), "args": told("PreToolUse", updatedInput="ARGS"), **context("PreToolUse"),
    },
    "PostToolUse": NOTHING,
    "PostToolUseFailure": NOTHING,
    "PermissionRequest": _PERMISSION,
    "Stop": KEPT,
    "SubagentStart": NOTHING,
    "SubagentStop": NOTHING,
    "PreCompact": NOTHING,
    "Notification": NOTHING,
}  # fmt: skip

DROID: Takes = {
    "SessionStart": context("SessionStart"),
    "SessionEnd": NOTHING,
    "UserPromptSubmit": prompt("UserPromptSubmit"),
    "PreToolUse": {
        "deny": refused("PreToolUse"),
        "allow": told("PreToolUse", permissionDecision="allow", permissionDecisionReason="TEXT"),
        "args": told("PreToolUse", updatedInput="ARGS"),
        **ends(refused("PreToolUse") | ENDS),
    },
    "PostToolUse": {**ends(), **context("PostToolUse")},
    "Stop": {**KEPT, **ends()},
    "SubagentStop": KEPT,
    "PreCompact": NOTHING,
    "Notification": NOTHING,
}

_CANCEL = {"cancel": True, "errorMessage": "TEXT"}
_BEFORE = {
    "deny": {"overrideInput": None, "context": "TEXT"}, "args": {"overrideInput": "ARGS"}, **ends(_CANCEL),
    "context": {"context": "TEXT"},
}  # fmt: skip
_AFTER = {**ends(_CANCEL), "context": {"context": "TEXT"}}

CLINE: Takes = {
    "TaskStart": NOTHING,
    "TaskResume": NOTHING,
    "UserPromptSubmit": NOTHING,
    "PreToolUse": _BEFORE,
    "PostToolUse": _AFTER,
    "TaskComplete": NOTHING,
    "TaskError": NOTHING,
    "TaskCancel": NOTHING,
    "SessionShutdown": NOTHING,
    "agent_start": NOTHING,
    "agent_resume": NOTHING,
    "prompt_submit": NOTHING,
    "tool_call": _BEFORE,
    "tool_result": _AFTER,
    "agent_end": NOTHING,
    "agent_error": NOTHING,
    "agent_abort": NOTHING,
    "session_shutdown": NOTHING,
}

_BOTH = {"deny": "TEXT", "stop": "TEXT"}

OPENCODE: Takes = {
    "event:session.created": NOTHING,
    "chat.message": {"deny": {"deny": "TEXT"}, **ends(_BOTH), "context": {"context": "TEXT"}},
    "PreToolUse": {"deny": {"deny": "TEXT"}, **ends(_BOTH), "args": {"args": "ARGS"}},
    "PostToolUse": {
        "deny": {"deny": "TEXT"}, **ends(_BOTH), "output": {"output": "OUTPUT"}, "context": {"context": "TEXT"},
    },
    "event:session.idle": NOTHING,
    "event:session.status": NOTHING,
}  # fmt: skip

_SAID = {"permission": "deny", "user_message": "TEXT", "agent_message": "TEXT"}
_UNSENT = {"continue": False, "user_message": "TEXT"}

CURSOR: Takes = {
    "sessionStart": {"context": {"additional_context": "TEXT"}},
    "sessionEnd": NOTHING,
    "beforeSubmitPrompt": {"deny": _UNSENT, **ends(_UNSENT)},
    "preToolUse": {
        "deny": _SAID, "allow": {"permission": "allow"}, "args": {"permission": "allow", "updated_input": "ARGS"},
    },
    "beforeTabFileRead": {"deny": _SAID},
    "postToolUse": {"context": {"additional_context": "TEXT"}},
    "postToolUseFailure": NOTHING,
    "subagentStart": {"deny": _SAID},
    "subagentStop": {"extend": {"followup_message": "TEXT"}},
    "preCompact": NOTHING,
    "stop": {"extend": {"followup_message": "TEXT"}},
}  # fmt: skip

_EXITS = {"deny": {EXIT_2: "TEXT"}}

WINDSURF: Takes = {
    "pre_user_prompt": _EXITS,
    "pre_run_command": _EXITS,
    "pre_read_code": _EXITS,
    "pre_write_code": _EXITS,
    "pre_mcp_tool_use": _EXITS,
    "post_run_command": NOTHING,
    "post_read_code": NOTHING,
    "post_write_code": NOTHING,
    "post_mcp_tool_use": NOTHING,
}

KIRO: Takes = {
    "agentSpawn": {"context": {PLAIN: "TEXT"}},
    "userPromptSubmit": {"context": {PLAIN: "TEXT"}},
    "preToolUse": _EXITS,
    "postToolUse": NOTHING,
    "stop": NOTHING,
    "SessionStart": {"context": {PLAIN: "TEXT"}},
    "UserPromptSubmit": _EXITS,
    "PreToolUse": _EXITS,
    "PostToolUse": NOTHING,
    "Stop": NOTHING,
}

GOOSE: Takes = {
    "SessionStart": NOTHING,
    "SessionEnd": NOTHING,
    "UserPromptSubmit": _EXITS,
    "PreToolUse": _EXITS,
    "PostToolUse": NOTHING,
    "PostToolUseFailure": NOTHING,
    "Stop": NOTHING,
    "PreCompact": NOTHING,
    "Notification": NOTHING,
}

DEVIN: Takes = {
    "SessionStart": NOTHING,
    "SessionEnd": NOTHING,
    "UserPromptSubmit": _EXITS,
    "PreToolUse": _EXITS,
    "PermissionRequest": {**_EXITS, "allow": {"decision": "approve"}, "resolved": {"decision": "approve"}},
    "PostToolUse": NOTHING,
    "Stop": {"extend": {"decision": "block", "reason": "TEXT"}},
}

TAKES: dict[str, Takes] = {
    "claude_code": CLAUDE_CODE, "codex": CODEX, "gemini": GEMINI, "qwen": QWEN, "copilot": COPILOT, "droid": DROID,
    "cline": CLINE, "opencode": OPENCODE, "cursor": CURSOR, "windsurf": WINDSURF, "kiro": KIRO, "goose": GOOSE,
    "devin": DEVIN,
}  # fmt: skip


def filled(reply: Any, text: str, args: Any = None, output: Any = None) -> Any:
    """A reply with something in the places that were left open."""
    if isinstance(reply, dict):
        return {key: filled(value, text, args, output) for key, value in reply.items()}
    if isinstance(reply, list):
        return [filled(value, text, args, output) for value in reply]
    given: dict[Any, Any] = {"TEXT": text, "ARGS": args, "OUTPUT": text if output is None else output}
    return given.get(reply, reply) if isinstance(reply, str) else reply


def keys_of(reply: Any, at: str = "") -> set[str]:
    """Every key of a reply, by its path."""
    if not isinstance(reply, dict):
        return set()
    return {f"{at}{key}" for key in reply} | {
        path for key, value in reply.items() for path in keys_of(value, f"{at}{key}.")
    }


def allowed(host: str, event: str) -> set[str]:
    """Every key that a CLI is known to take at an event."""
    return {path for reply in TAKES[host][event].values() for path in keys_of(reply)}


# --- Codex's own schemas ------------------------------------------------------------------------
# It throws the whole reply away, and goes on, if a key is unknown or a value is one that it rejects later.


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": required.split()}


_SOME = {"type": "string", "minLength": 1}
_COMMON: dict[str, Any] = {
    "continue": {"type": "boolean"}, "stopReason": _SOME, "suppressOutput": {"const": False}, "systemMessage": _SOME,
}  # fmt: skip
_UNSTOPPABLE: dict[str, Any] = {"continue": {"const": True}, "suppressOutput": {"const": False}, "systemMessage": _SOME}
_BLOCK: dict[str, Any] = {"decision": {"const": "block"}, "reason": _SOME}
_BLOCKS = {"dependentRequired": {"decision": ["reason"], "reason": ["decision"]}}


def _about(event: str, **properties: Any) -> dict[str, Any]:
    return _object("hookEventName", hookEventName={"const": event}, **properties)


def _says(event: str) -> dict[str, Any]:
    return {"hookSpecificOutput": _about(event, additionalContext=_SOME)}


_PRE = _about(
    "PreToolUse", permissionDecision={"enum": ["allow", "deny"]}, permissionDecisionReason=_SOME,
    updatedInput={"type": "object"}, additionalContext=_SOME,
) | {
    "allOf": [
        {
            "if": {"properties": {"permissionDecision": {"const": "deny"}}, "required": ["permissionDecision"]},
            "then": {"required": ["permissionDecisionReason"], "not": {"required": ["updatedInput"]}},
        },
        {
            "if": {"properties": {"permissionDecision": {"const": "allow"}}, "required": ["permissionDecision"]},
            "then": {"required": ["updatedInput"]},
        },
        {"dependentRequired": {"updatedInput": ["permissionDecision"]}},
    ]
}  # fmt: skip
_GRANT = _object("behavior", behavior={"enum": ["allow", "deny"]}, message=_SOME)

CODEX_SCHEMAS: dict[str, dict[str, Any]] = {
    "PreToolUse": _object(**_UNSTOPPABLE, **_BLOCK, hookSpecificOutput=_PRE) | _BLOCKS,
    "PostToolUse": _object(**_COMMON, **_BLOCK, **_says("PostToolUse")) | _BLOCKS,
    "PermissionRequest": _object(**_UNSTOPPABLE, hookSpecificOutput=_about("PermissionRequest", decision=_GRANT)),
    "UserPromptSubmit": _object(**_COMMON, **_BLOCK, **_says("UserPromptSubmit")) | _BLOCKS,
    "SessionStart": _object(**_COMMON, **_says("SessionStart")),
    "SubagentStart": _object(**_COMMON, **_says("SubagentStart")),
    "Stop": _object(**_COMMON, **_BLOCK) | _BLOCKS,
    "SubagentStop": _object(**_COMMON, **_BLOCK) | _BLOCKS,
    "PreCompact": _object(**_COMMON),
    "PostCompact": _object(**_COMMON),
    "SessionEnd": _object(),
}
