"""The wire: envelopes and the schemas derived from the table."""

from __future__ import annotations

import json

import jsonschema
import pytest

from fairlead import EVENTS, Agent, FairleadError, read_verdict
from fairlead.lifecycle import BeforeTool
from fairlead.reference import events_page, write
from fairlead.testing import every_step, step
from fairlead.verdict import MalformedVerdict
from fairlead.wire import decode_step, encode_step, envelope_schema, schemas, verdict_schema


def test_an_envelope_is_the_event_the_header_and_the_fields_without_what_is_none():
    given = BeforeTool(tool="bash", args={"command": "ls"}, session_id="s", agent=Agent("a", "lead"))
    assert json.loads(encode_step(given)) == {
        "fairlead": 1, "event": "before_tool", "session_id": "s", "agent": {"id": "a", "name": "lead"},
        "tool": "bash", "args": {"command": "ls"}, "kind": "shell", "target": {"command": "ls"}, "safety": "mutating",
        "origin": "chat",
    }  # fmt: skip


@pytest.mark.parametrize("given", every_step(), ids=lambda s: s.event)
def test_a_step_survives_the_wire(given):
    assert decode_step(encode_step(given)) == given


@pytest.mark.parametrize("given", every_step(), ids=lambda s: s.event)
def test_every_envelope_fits_its_schema(given):
    jsonschema.Draft202012Validator(envelope_schema(given.event)).validate(json.loads(encode_step(given)))


@pytest.mark.parametrize("event", EVENTS)
def test_every_schema_is_a_sound_schema(event: str):
    for schema in schemas()[event].values():
        jsonschema.Draft202012Validator.check_schema(schema)


GARBAGE = [
    b"", b"nonsense", b"[]", b"null", b'{"event": "before_tol"}', b'{"event": "before_tool"}', b'{"tool": "x"}',
    b'{"event": "before_tool", "tool": 7}', b'{"event": "before_tool", "tool": "x", "colour": 1}', b"\xff\xfe",
    b'{"fairlead": 2, "event": "turn_start"}', b"[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("data", GARBAGE, ids=lambda data: repr(data[:30]))
def test_what_is_not_an_envelope_is_refused_with_an_error_of_ours(data: bytes):
    with pytest.raises(FairleadError):
        decode_step(data)


def test_an_unknown_event_on_the_wire_suggests_the_nearest():
    with pytest.raises(FairleadError, match="did you mean 'before_tool'"):
        decode_step(b'{"event": "before_tol"}')


VERDICTS = [
    {}, {"control": "deny", "reason": "x"}, {"control": "veto"}, {"control": "extend"}, {"control": "break"},
    {"control": "stop", "stop_reason": "refusal"}, {"control": "stop", "stop_reason": "odd"}, {"control": "retry"},
    {"additional_context": ["x"]}, {"additional_context": "x"}, {"args": {"a": 1}}, {"args": [1]}, {"result": "x"},
    {"result": 7}, {"result": [1]}, {"output": {"a": 1}}, {"input": ["a", "b"]}, {"input": 7}, {"model": "m"},
    {"resolved": True}, {"resolved": "yes"}, {"control": None, "args": None}, {"colour": "red"}, {"command": "ls"},
    {"warnings": ["w"], "metadata": {"k": 1}, "name": "n"}, {"metadata": [1]}, {"state": {"a": 1}}, {"content": "x"},
]  # fmt: skip


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("data", VERDICTS, ids=json.dumps)
def test_the_verdict_schema_and_the_reader_agree(event: str, data: dict):
    """What the schema refuses the engine refuses, and the other way round."""
    from fairlead.verdict import check

    try:
        check(read_verdict(data, EVENTS[event]), step(event), EVENTS[event])
        taken = True
    except MalformedVerdict:
        taken = False
    assert jsonschema.Draft202012Validator(verdict_schema(event)).is_valid(data) == taken


def test_the_events_page_has_every_event_field_and_change():
    page = events_page()
    for name, event in EVENTS.items():
        section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for field in event.fields:
            assert f"- `{field}`: " in section


def test_the_reference_is_written_to_a_folder(tmp_path):
    written = write(tmp_path)
    assert len(written) == 3 + 2 * len(EVENTS)
    assert (
        json.loads((tmp_path / "schemas" / "before_tool.verdict.json").read_text())["title"] == "Verdict on before_tool"
    )


def test_a_step_is_encoded_once_for_all_hooks_that_see_it():
    given = step("before_tool")
    assert encode_step(given) is encode_step(given)


def test_a_state_that_hooks_edit_in_place_is_encoded_as_it_is():
    given = step("before_request", state={"n": 1})
    before = encode_step(given)
    given.state["n"] = 2
    assert (b'"n":1' in before, b'"n":2' in encode_step(given)) == (True, True)
