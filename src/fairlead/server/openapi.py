"""The daemon's OpenAPI document, built from the lifecycle's schemas and a table of routes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from .. import __version__
from ..hosts.clis.install.settings import SCOPES as INSTALL_SCOPES
from ..hosts.clis.mapping import ALL, EXPERIMENTAL
from ..lifecycle import CONTROLS, EVENTS
from ..wire import envelope_schema
from .grants import SCOPES as GRANT_SCOPES
from .tokens import SCOPES

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_ENTRIES = [
    name if scope == "user" else f"{name}@{scope}" for name in (*ALL, *EXPERIMENTAL) for scope in INSTALL_SCOPES
] + ["cursor@team"]
"""The CLIs, and the scope of the entry that ran, as the launcher names them."""
_NULLABLE: Schema = {"type": ["string", "null"]}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_ACKNOWLEDGES = {
    "fairlead-acknowledges": "With any value: this caller acknowledges answers that have an `acknowledge` id"
}
_QUERY: dict[str, Schema] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
    "since": {"type": "number"},
    "until": {"type": "number"},
}
_ERROR: Schema = {
    "type": "object",
    "properties": {"error": _TEXT, "message": _TEXT, "variables": _TEXTS, "mistakes": _TEXTS},
    "required": ["error", "message"],
}
_STATUSES = {
    400: "The request is invalid; `message` says why",
    401: "There is no token",
    403: "This caller may not do this",
    404: "There is no such thing",
    405: "Not with this method",
    409: "It was answered already, or another call has it",
    411: "The body has no Content-Length",
    413: "The request holds too much, or the answer would",
    421: "The host is not this one",
    422: "The configuration of the folder has mistakes",
    428: "The hooks need variables that the request does not name; `variables` lists them",
    500: "The daemon failed, for example because it cannot write the journal",
    503: "The daemon is overloaded or about to end: apply your failure policy",
}


@cache
def document() -> Schema:
    """The document, as the daemon serves it."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fairlead",
            "version": __version__,
            "description": "One process that any program can ask: a step in, a decision out.",
        },
        "servers": [{"url": "http://localhost"}],
        "security": [{"token": []}],
        "paths": {
            "/v1/dispatch": {
                "post": _operation(
                    "dispatch",
                    "dispatch",
                    "Judge a step",
                    _with_receipt(_ref("Decision")),
                    body=_ref("Dispatch"),
                    headers=_ACKNOWLEDGES,
                    also=(422, 428, 503),
                ),
            },
            "/v1/hook": {
                "post": _operation(
                    "hook",
                    "dispatch",
                    "Answer an agent CLI's hook",
                    _with_receipt(_object(answer=_TEXT)),
                    body=_ref("Hook"),
                    headers=_ACKNOWLEDGES,
                    also=(422, 428, 503),
                ),
            },
            "/v1/acknowledge": {
                "post": _operation(
                    "acknowledge",
                    "dispatch",
                    "Say that an answer has arrived, so that the approvals in it are used up",
                    _object(acknowledged=_TEXT),
                    body=_ref("Acknowledgement"),
                    also=(404, 409),
                ),
            },
            "/v1/sessions": {
                "get": _operation(
                    "sessions", "read", "List the sessions", _object(sessions=_list(_object())), query=("root",)
                ),
            },
            "/v1/sessions/{session_id}": {
                "get": _operation(
                    "session",
                    "read",
                    "A session's state and counters",
                    _object(state={}, store=_object()),
                    path=("session_id",),
                    query=("root", "caller"),
                ),
                "delete": _operation(
                    "forget",
                    "admin",
                    "Forget a session",
                    _object(forgotten=_TEXT),
                    path=("session_id",),
                    query=("root", "caller"),
                ),
            },
            "/v1/approvals": {
                "get": _operation(
                    "approvals",
                    "read",
                    "List the open questions",
                    _object(approvals=_list(_ref("Question"))),
                    query=("all",),
                ),
            },
            "/v1/approvals/{id}": {
                "get": _operation(
                    "question", "read", "One question, with all that it shows", _ref("Question"), path=("id",)
                ),
                "post": _operation(
                    "answer",
                    "approve",
                    "Answer a question, once",
                    _ref("Question"),
                    body=_ref("Answer"),
                    path=("id",),
                    also=(409,),
                ),
            },
            "/v1/grants": {
                "get": _operation(
                    "grants", "read", "List the grants in force", _object(grants=_list(_ref("Grant"))), query=("all",)
                ),
            },
            "/v1/grants/{id}": {
                "delete": _operation(
                    "revoke", "approve", "End a grant at once", _ref("Grant"), path=("id",), also=(409,)
                ),
            },
            "/v1/decisions": {
                "get": _operation(
                    "decisions",
                    "read",
                    "Read the journal",
                    _object(decisions=_list(_object())),
                    query=(
                        "limit",
                        "event",
                        "tool",
                        "decision",
                        "hook",
                        "session",
                        "host",
                        "agent",
                        "user",
                        "since",
                        "until",
                    ),
                ),
            },
            "/v1/decisions/{id}": {
                "get": _operation("decision", "read", "One record of the journal", _object(id=_TEXT), path=("id",)),
            },
            "/v1/reload": {
                "post": _operation("reload", "admin", "Read all configuration again", _object(mistakes=_TEXTS))
            },
            "/v1/stop": {
                "post": _operation("stop", "admin", "Finish what is under way, and end", _object(status=_TEXT))
            },
            "/v1/health": {"get": _operation("health", None, "How the daemon is", _ref("Health"))},
            "/v1/openapi.json": {"get": _operation("openapi", None, "This document", _object(openapi=_TEXT))},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _schemas() -> dict[str, Schema]:
    return {
        "Error": _ERROR,
        "Dispatch": {
            "type": "object",
            "properties": {
                "step": {"oneOf": [_inline(envelope_schema(event)) for event in EVENTS]},
                "root": {**_NULLABLE, "description": "The folder whose configuration holds; the step's cwd if absent"},
                "env": {
                    "type": "object",
                    "additionalProperties": _NULLABLE,
                    "description": "For the hooks that name them",
                },
                "deadline": {
                    "type": ["number", "null"],
                    "description": "Seconds the host waits for a human",
                },
                "capabilities": {
                    "type": ["object", "null"],
                    "propertyNames": {"enum": list(EVENTS)},
                    "additionalProperties": _TEXTS,
                },
            },
            "required": ["step"],
            "additionalProperties": False,
        },
        "Hook": {
            "type": "object",
            "properties": {
                "host": {**_TEXT, "enum": _ENTRIES},
                "event": {**_TEXT, "description": "As the CLI calls it"},
                "payload": {**_TEXT, "description": "The CLI's own JSON, as it came"},
                "cwd": {**_TEXT, "description": "The folder whose configuration holds, if `told` names no other"},
                "env": {"type": "object", "additionalProperties": _NULLABLE},
                "told": {"type": "object", "additionalProperties": _TEXT, "description": "The CLI's own variables"},
                "deadline": {"type": ["number", "null"]},
            },
            "required": ["host", "event", "payload"],
            "additionalProperties": False,
        },
        "Acknowledgement": {**_object(id=_TEXT), "additionalProperties": False},
        "Decision": _object(
            control={"enum": list(CONTROLS)},
            denied={"type": "boolean"},
            reason=_NULLABLE,
            hook=_NULLABLE,
            cause=_NULLABLE,
            step=_object(),
            changed=_TEXTS,
            context=_list(_object(text=_TEXT, hook=_NULLABLE)),
            warnings=_TEXTS,
            policy=_TEXT,
        ),
        "Question": {
            **_object(id=_TEXT, state=_TEXT, hook=_NULLABLE, question=_NULLABLE, step=_object()),
            "description": "`changes` is what hooks changed of the step: [path, before, after]. `waits_until` is when "
            "the call that waits is denied without an answer. `grants` are the scopes that a grant may have, and "
            "`no_grant` says why there can be none. `shown` is a digest of the question: send it with the answer",
        },
        "Grant": _object(
            id=_TEXT,
            state=_TEXT,
            scope={"enum": list(GRANT_SCOPES)},
            hook=_NULLABLE,
            rule=_NULLABLE,
            summary=_TEXT,
            given={"type": "number"},
            expires={"type": "number"},
            who=_NULLABLE,
            uses={"type": "integer"},
        ),
        "Answer": {
            "type": "object",
            "properties": {
                "approve": {"type": "boolean"},
                "why": _NULLABLE,
                "who": _NULLABLE,
                "valid_for": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400},
                "shown": {**_NULLABLE, "description": "The question's `shown`: the answer is for just that"},
                "grant": {
                    "anyOf": [
                        {"type": "null"},
                        {
                            "type": "object",
                            "properties": {
                                "scope": {"enum": list(GRANT_SCOPES)},
                                "lasts": {"type": ["number", "null"], "exclusiveMinimum": 0},
                            },
                            "required": ["scope"],
                            "additionalProperties": False,
                        },
                    ],
                    "description": "Let the same call run later, too",
                },
            },
            "required": ["approve"],
            "additionalProperties": False,
        },
        "Health": _object(status=_TEXT, protocol={"type": "integer"}),
    }


def _inline(schema: Schema) -> Schema:
    """An envelope's schema, with its own definitions inside."""
    definitions = schema.pop("$defs", {})
    schema.pop("$schema", None)
    schema["required"] = [name for name in schema["required"] if name != "fairlead"]  # this version is what is meant
    return _resolved(schema, definitions)  # type: ignore[no-any-return]


def _resolved(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if "$ref" in value:
            return _resolved(definitions[value["$ref"].rpartition("/")[2]], definitions)
        return {key: _resolved(item, definitions) for key, item in value.items()}
    return [_resolved(item, definitions) for item in value] if isinstance(value, list) else value


def _operation(
    name: str,
    scope: str | None,
    text: str,
    answer: Schema,
    *,
    body: Schema | None = None,
    path: tuple[str, ...] = (),
    query: tuple[str, ...] = (),
    headers: Mapping[str, str] = MappingProxyType({}),
    also: tuple[int, ...] = (),
) -> Schema:
    statuses = [400, 403, 405, 421, 500, *also]
    statuses += [401] if scope is not None else []
    statuses += [404] if path or name == "decisions" else []
    statuses += [411] if body is not None else []
    statuses += [413] if body is not None or name == "decisions" else []
    operation: Schema = {
        "operationId": name,
        "summary": text if scope is None else f"{text} (scope {scope})",
        "parameters": [
            *({"name": one, "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}} for one in path),
            *({"name": one, "in": "query", "schema": _QUERY.get(one, _TEXT)} for one in query),
            *({"name": one, "in": "header", "schema": _TEXT, "description": what} for one, what in headers.items()),
        ],
        "responses": {
            "200": {"description": text, "content": _json(answer)},
            **{
                str(code): {"description": _STATUSES[code], "content": _json(_ref("Error"))}
                for code in sorted(statuses)
            },
        },
    }
    if scope is None:
        operation["security"] = []
    elif scope not in SCOPES:
        raise ValueError(scope)
    if body is not None:
        operation["requestBody"] = {"required": True, "content": _json(body)}
    return operation


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(**properties: Schema) -> Schema:
    return (
        {"type": "object", "properties": properties, "required": list(properties)} if properties else {"type": "object"}
    )


def _with_receipt(answer: Schema) -> Schema:
    """An answer to a caller that acknowledges it."""
    receipt = {**_TEXT, "description": "If approvals were used for this: what to acknowledge, within a second"}
    return {"allOf": [answer, {"type": "object", "properties": {"acknowledge": receipt}}]}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}
