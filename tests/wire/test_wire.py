"""The wire: envelopes and the schemas derived from the table."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import EVENTS, Agent, FairleadError, Hooks, change, read_verdict
from fairlead.lifecycle import BeforeTool, Json
from fairlead.packs import NAMES
from fairlead.reference import events_page, write
from fairlead.result import encode_result, read_result
from fairlead.testing import every_step, step
from fairlead.verdict import MalformedVerdict
from fairlead.wire import decode_step, encode_step, envelope_schema, schemas, verdict_schema
from fairlead.wire.decisions import decode_decision, encode_decision
from fairlead.worker import verdict_of


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


@pytest.mark.parametrize("given", every_step(), ids=lambda s: s.event)
def test_a_field_of_the_wrong_type_is_named(given):
    data = json.loads(encode_step(given))
    for field in EVENTS[given.event].types:
        if field == "state" or EVENTS[given.event].types[field] == Json | None:
            continue
        with pytest.raises(FairleadError, match=f"{field} of {given.event}: "):
            decode_step(json.dumps(data | {field: 7.5 if field in ("messages", "results") else [[{}]]}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OUTPUTS = [
    (name, field) for name, event in EVENTS.items() for field in event.types if event.types[field] == Json | None
]


def test_every_field_that_carries_an_output_carries_any_json_value():
    assert OUTPUTS == [
        ("before_model", "assistant"), ("after_model", "output"), ("before_tool", "result"), ("after_tool", "output"),
        ("before_response", "response"), ("before_output", "content"),
    ]  # fmt: skip


@pytest.mark.parametrize(("event", "field"), OUTPUTS)
@given(json_values)
def test_any_json_value_is_encoded_and_decoded_alike(event, field, value):
    made = step(event, **{field: value})
    assert getattr(decode_step(encode_step(made)), field) == value
    sent = {"event": event, **({"tool": "t"} if EVENTS[event].about_tool else {}), field: value}
    assert json.loads(encode_step(decode_step(json.dumps(sent)))).get(field) == value


@pytest.mark.parametrize("event", ["before_tool", "after_tool"])
@given(json_values)
def test_any_json_value_is_in_a_record_and_comes_out_of_it(event, value):
    hooks, field = Hooks(), "result" if event == "before_tool" else "output"
    hooks.add(lambda step: change(metadata={"seen": True}), on=event, name="h")
    decision = hooks.dispatch_sync(step(event, **{field: value}))
    record = json.loads(msgspec.json.encode(encode_decision(decision)))
    assert getattr(decode_decision(record).step, field) == value


@given(json_values)
def test_a_result_is_read_as_it_was_written(value):
    read = read_result(json.loads(json.dumps(encode_result(value))))
    assert read == ("null" if value is None else value)


@given(json_values.filter(lambda value: value is not None))
def test_the_result_of_a_decision_is_a_verdict_again(value):
    hooks = Hooks()
    hooks.add(lambda step: {"result": {"kind": "json", "value": value}, "is_error": True}, on="before_tool", name="h")
    decision = hooks.dispatch_sync(step("before_tool"))
    again = Hooks()
    again.add(lambda step: json.loads(msgspec.json.encode(verdict_of(decision))), on="before_tool", name="worker")
    relayed = again.dispatch_sync(step("before_tool"))
    assert (relayed.step.result, relayed.step.is_error, relayed.failures) == (value, True, ())


VERDICTS = [
    {}, {"control": "deny", "reason": "x"}, {"control": "veto"}, {"control": "extend"}, {"control": "break"},
    {"control": "stop", "stop_reason": "refusal"}, {"control": "stop", "stop_reason": "odd"}, {"control": "retry"},
    {"additional_context": ["x"]}, {"additional_context": "x"}, {"args": {"a": 1}}, {"args": [1]}, {"result": "x"},
    {"result": 7}, {"result": [1]}, {"result": {"kind": "text", "text": "x"}}, {"result": {"kind": "bogus"}},
    {"result": {"kind": "json", "value": 7}}, {"result": {"kind": "json"}}, {"result": [{"kind": "x"}]},
    {"is_error": True},
    {"result": {"kind": "content", "blocks": [{"kind": "image", "mime": "image/png"}]}}, {"result": {"rows": 3}},
    {"output": {"a": 1}}, {"input": ["a", "b"]}, {"input": 7}, {"model": "m"},
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
    assert len(written) == 3 + (1 + len(NAMES)) + 2 * len(EVENTS)  # pages, packs, schemas
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
