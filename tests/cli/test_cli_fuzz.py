"""Whatever a user types, there is an answer in words and never a traceback."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fairlead.cli import main
from fairlead.lifecycle import EVENTS, HEADER

FUZZED = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
FIELDS = sorted({name for event in EVENTS.values() for name in (*event.fields, *HEADER)} - {"state"})
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(TEXTS, children, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from([*EVENTS, "force-push", "done"]) | TEXTS
PATHS = st.lists(st.sampled_from([*FIELDS, "command"]) | TEXTS, min_size=1, max_size=3).map(".".join)
SETS = (
    st.builds("{}={}".format, PATHS, TEXTS)
    | st.builds("args.{}:={}".format, TEXTS, VALUES.map(json.dumps))
    | TEXTS.map("args:={}".format)
    | TEXTS
)


def ends(*words: str) -> None:
    """How a command ends. It must not raise, nor write what could take a terminal over, nor fail without a word."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code
    written = out.getvalue() + err.getvalue()
    if not err.getvalue().startswith("usage:"):  # where argparse repeats what the user typed
        assert [c for c in written if c < " " and c != "\n"] == []
    assert code in (0, 1, 2)
    assert err.getvalue() if code == 1 else out.getvalue()


@pytest.fixture(autouse=True)
def _hook(machine):
    machine.user(
        '[[hook]]\nname = "judge"\non = ["before_tool", "after_tool"]\nmatch = { tool = "b*" }\n'
        'rule = "true"\ndeny = "no {tool}"\n'
    )


@FUZZED
@given(NAMES, st.lists(SETS, max_size=3))
@example("before_tool", ["args.command=" + "x" * 5000])
@example("before_tool", ["--"])
@example("before_tool", ["-C"])
def test_no_set_raises(event: str, sets: list[str]):
    ends("test", event, *(word for text in sets for word in ("--set", text)))


ENVELOPES = st.dictionaries(
    st.sampled_from([*FIELDS, "event", "fairlead"]) | TEXTS, VALUES | st.sampled_from(["bash", "shell"]), max_size=5
)


@FUZZED
@given(
    st.binary(max_size=60)
    | TEXTS.map(str.encode)
    | VALUES.map(json.dumps).map(str.encode)
    | st.builds(
        lambda event, fields: json.dumps({"event": event} | fields).encode(), st.sampled_from(list(EVENTS)), ENVELOPES
    )
    | st.builds(
        lambda args: json.dumps({"event": "before_tool", "tool": "bash", "args": args}).encode(),
        st.dictionaries(TEXTS, VALUES, max_size=4),
    )
)
def test_no_step_raises(content: bytes):
    Path("step.json").write_bytes(content)
    ends("test", "--step", "step.json")


@FUZZED
@given(
    st.lists(st.sampled_from(["test", "check", "events", "schema", "--json", "-C", "--help", "before_tool"]) | TEXTS)
)
def test_no_words_raise(words: list[str]):
    ends(*words)
