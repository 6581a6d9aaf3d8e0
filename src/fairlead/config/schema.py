"""The JSON Schema of fairlead.toml, for editors. It is made of the tables by which the file is read."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from ..hook import MAX_TEXT_LIMIT, PHASES
from ..journal.anchor import Anchor
from ..lifecycle import CONTROLS, EVENTS, FAILURE_POLICIES
from ..packs.rules import LEVELS
from ..runners.command import OUTPUTS
from ..tools import KINDS, SAFETIES, UNKNOWN_TOOL
from ..verdict import POWERS
from . import approvals, hook_entry, journaling, layers
from .packs import ANSWERS, EXEMPTION, LIMITS, MATCHES, PACK, pack_names

FILE_NAME = "fairlead.schema.json"
DIALECT = "http://json-schema.org/draft-07/schema#"  # the newest that editors of TOML understand

_Schema = dict[str, Any]
_TEXT: _Schema = {"type": "string"}
_TEXTS: _Schema = {"type": "array", "items": _TEXT}
_JSON_TYPES = {str: "string", dict: "object", bool: "boolean", int: "integer", float: "number", list: "array"}


def config_schema() -> _Schema:
    """The JSON Schema of a fairlead.toml, of whichever layer."""
    properties: _Schema = {
        "packs": _list({"anyOf": [{"enum": list(pack_names())}, _TEXT]}),  # other packages ship packs, too
        "pack": {
            "type": "object",
            "properties": {name: _table(_pack(name)) for name in pack_names()},
            "additionalProperties": _table(_pack()),
        },
        "exemption": _list(_exemption()),
        "hook": {"type": "array", "items": _hook()},
        "tool": {"type": "array", "items": _tool()},
        "defaults": _table({key: _DEFAULTS[key] for key in layers.DEFAULTS}),
        "disable": _TEXTS,
        "journal": _table({key: _checked(check) for key, check in journaling.JOURNAL.items()}),
        "approvals": _table(
            {"notify": {**_list(_target()), "maxItems": approvals.TARGETS}, "grants": {"type": "boolean"}}
        ),
        "redact": _table({"names": _TEXTS, "patterns": _TEXTS, "values": _list(_variable())}),
    }
    return {
        "$schema": DIALECT,
        "title": "fairlead.toml",
        "description": "Hooks for AI agents. `fairlead schema config` prints this schema.",
        **_table({key: properties[key] for key in layers.TOP}),
    }


def _pack(name: str = "") -> _Schema:
    """The options of a pack."""
    known: _Schema = {
        "level": {"enum": list(LEVELS)}, "verdict": {"enum": list(ANSWERS)}, "protect": _TEXTS, "allow_hosts": _TEXTS,
        "enforce": {"type": "boolean"}, "locked": {"type": "boolean"},
    }  # fmt: skip
    limit: _Schema = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": False}]}
    limits = dict.fromkeys(LIMITS, limit) if name == "budgets" else {}
    return {key: known[key] for key in PACK} | limits


def _exemption() -> _Schema:
    """An exemption: from which rule, and about which command, path or URL."""
    until = {"description": "a date, such as 2030-01-31"}
    table = _table({key: until if key == "until" else _TEXT for key in EXEMPTION}, ("rule", "reason"))
    return {**table, "oneOf": [{"required": [key]} for key in MATCHES]}


def _target() -> _Schema:
    """One way to tell a person of a question."""
    known: _Schema = {
        "desktop": {"const": True}, "command": {**_TEXTS, "minItems": 1}, "url": _VALUE,
        "secret": _variable(prefix=_TEXT), "body": {"enum": list(approvals.BODIES)},
    }  # fmt: skip
    forms = approvals.OF_FORM.items()
    tables = [_table({key: known[key] for key in (form, *keys)}, (form,)) for form, keys in forms]
    return {"anyOf": [{"const": "desktop"}, *tables]}


def _table(properties: _Schema, required: tuple[str, ...] = ()) -> _Schema:
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({"required": list(required)} if required else {}),
    }


def _list(items: _Schema) -> _Schema:
    return {"type": "array", "items": items}


def _one_or_more(one: _Schema) -> _Schema:
    return {"anyOf": [one, _list(one)]}


def _variable(**more: _Schema) -> _Schema:
    """What a file says of a value that it does not hold: the name of the variable that does."""
    return _table({"env": _TEXT, **more}, required=("env",))


# --- hooks ----------------------------------------------------------------------------------------


def _hook() -> _Schema:
    forms = [form for form in hook_entry.FORMS if form not in hook_entry.LATER]
    of_forms = {key for keys in hook_entry.OF_FORM.values() for key in keys}
    keys = dict.fromkeys((*hook_entry.COMMON, *forms, *sorted(of_forms)))
    return {
        **_table({key: _option(key) for key in keys}, required=("name", "on")),
        "oneOf": [{"required": [form]} for form in forms],
        "allOf": [_without(form, sorted(of_forms - set(hook_entry.OF_FORM[form]))) for form in forms],
    }


def _without(form: str, keys: list[str]) -> _Schema:
    """A hook of this form does not take these keys."""
    return {"if": {"required": [form]}, "then": {"properties": dict.fromkeys(keys, False)}}


def _option(key: str) -> _Schema:
    """One key of a hook: the shape that the reader demands, and the words it takes, where they are a few."""
    shape = _MORE[key] if key in _MORE else _shape(*hook_entry.SHAPES[key])
    return {"description": hook_entry.SHAPES[key][1], **shape} if key in hook_entry.SHAPES else shape


def _shape(kinds: tuple[type, ...], _: str = "") -> _Schema:
    types = [_JSON_TYPES[kind] for kind in kinds]
    return {"type": types[0] if len(types) == 1 else types}


_EVENT: _Schema = {"enum": [*EVENTS]}
_TIMEOUT: _Schema = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": False}]}
_VALUE: _Schema = {"anyOf": [_TEXT, _variable(prefix=_TEXT)]}
_WORDS_OF_FILTERS = {"kind": KINDS, "safety": SAFETIES}
_MORE: dict[str, _Schema] = {
    "on": {"anyOf": [{"enum": [*EVENTS, "*"]}, {**_list(_EVENT), "minItems": 1}]},
    "match": _table({
        key: _one_or_more({"enum": [*_WORDS_OF_FILTERS[key]]} if key in _WORDS_OF_FILTERS else _TEXT)
        for key in hook_entry.FILTERS
    }),
    "phase": {"enum": [*PHASES]},
    "on_failure": {"enum": [*FAILURE_POLICIES]},
    "output": {"enum": [*OUTPUTS]},
    "timeout": _TIMEOUT,
    "text_limit": {"type": "integer", "minimum": 1, "maximum": MAX_TEXT_LIMIT},
    "quarantine": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    "may": _list({"enum": [*POWERS, hook_entry.RAW]}),
    "exit": {
        "type": "object",
        "propertyNames": {"pattern": "^[0-9]{1,3}$"},
        "additionalProperties": {"enum": [*CONTROLS, "veto"]},
    },
    "headers": {"type": "object", "additionalProperties": _VALUE},
    "secret": _variable(prefix=_TEXT),
    "env": {"anyOf": [_TEXTS, {"type": "object", "additionalProperties": _VALUE}]},
    "command": {**_TEXTS, "minItems": 1},
    "worker": {**_TEXTS, "minItems": 1},
    "fields": _TEXTS,
}  # fmt: skip


# --- the other tables -----------------------------------------------------------------------------


def _tool() -> _Schema:
    words: dict[str, _Schema] = {"kind": {"enum": [*KINDS]}, "safety": {"enum": [*SAFETIES]}}
    words["paths"] = _one_or_more(_TEXT)
    return _table({key: words.get(key, _TEXT) for key in layers.TOOL}, required=("name", "kind"))


_DEFAULTS: dict[str, _Schema] = {
    **{key: _option(key) for key in ("timeout", "on_failure", "enforce")},
    **{key: {"enum": [*UNKNOWN_TOOL]} for key in ("unknown_tool", "untrusted")},
    **dict.fromkeys(("allow_hosts", "trust_signers"), _TEXTS),
}


def _checked(check: Any) -> _Schema:
    """What a check of the table [journal] lets pass."""
    if isinstance(check, partial) and check.func is journaling.one_of:
        return {"enum": [*check.args[0]]}
    if isinstance(check, partial):  # an amount, such as "30d" or 5
        return {"type": ["string", "number"]}
    if check is journaling.read_anchor:
        fields = msgspec.json.schema(Anchor)["$defs"]["Anchor"]["properties"]
        return _table(fields | {"every": {"type": ["string", "number"]}})
    return {"type": "boolean"} if check is journaling.boolean else _TEXT
