"""Whatever stands in a file: mistakes are noted, nothing else is raised, and no hook goes missing in silence."""

from __future__ import annotations

import json
import tomllib
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead import Hooks
from fairlead.config import ConfigError, load
from fairlead.config.document import Document

fuzz = settings(
    deadline=timedelta(seconds=10),  # so that what hangs is found
    max_examples=150,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

VALID = """\
disable = []

[defaults]
timeout = 5
on_failure = "closed"
enforce = true
unknown_tool = "ask"

[[tool]]
name = "deploy_*"
kind = "shell"
safety = "destructive"
command = "cmd"

[[hook]]
name = "no-force-push"
on = "before_tool"
match = { kind = "shell", tool = "{bash,sh*}" }
phase = "gate"
rule = 'target.command.matches("git push .*--force")'
deny = "Not {target.command}."

[[hook]]
name = "tests-before-done"
on = ["before_turn_end", "subagent_stop"]
command = ["true", "-q"]   # argv, no shell
exit = { 0 = "proceed", 1 = "veto" }
output = "context"
timeout = 120
on_failure = "open"
quarantine = [5, 30]

[[hook]]
name = "org-policy"
on = "*"
phase = "observe"
url = "https://policy.acme.example/steps"
detached = true
[hook.headers]
Authorization = { env = "HOME", prefix = "Bearer " }

[[hook]]
name = "cleaner"
on = "before_response"
rule = "true"
change.response = { match = 'sk-\\w+', replace = "[key]" }
enforce = false
"""

TOKENS = [
    "[[hook]]\n", "[[tool]]\n", "[defaults]\n", "[hook]\n", "[hook.match]\n", "[[hook.x]]\n", "disable = ", "\n",
    "\r\n", "name = ", "on = ", "rule = ", "deny = ", "shell = ", "command = ", "python = ", "url = ", "match = ",
    "exit = ", "may = ", "timeout = ", "priority = ", "phase = ", "env = ", "headers = ", "change = ", "prompt = ",
    "model = ", "locked = ", "kind = ", "'a'\n", '"a"\n', '"before_tool"\n', '"true"\n', '"{"\n', '"{tool}"\n',
    '["true"]\n', "[]\n", "{}\n", "{ a = 1 }\n", "{ kind = 'shell' }\n", "1\n", "-1\n", "0.5\n", "nan\n", "inf\n",
    "true\n", "false\n", "1979-05-27\n", '"""\n', "'''\n", "# x\n", "[", "]", "{", "}", ",", "=", ".", '"', "'",
    "\\", "\t", " ", "\ufeff", "é", "\0", "\x1b",
]  # fmt: skip


def entries(text: str) -> list[str]:
    """The names of the [[hook]] entries of a file that is TOML."""
    return [entry["name"] for entry in tomllib.loads(text).get("hook", [])]


def check(machine: Any, content: bytes, layer: str = "user") -> list[str] | None:
    """Load these bytes as one layer: the hooks that are in force, or None if there were mistakes, each with a place."""
    machine.write(**{layer: content})
    hooks, mistakes = Hooks(), None
    try:
        load(machine.workspace).apply(hooks)
    except ConfigError as error:
        mistakes = error.mistakes
    if mistakes is None:
        return [hook.name for hook in hooks if not hook.name.startswith("fairlead.")]
    lines = content.decode(errors="replace").replace("\r\n", "\n").split("\n")
    for mistake in mistakes:
        assert mistake.file == str(getattr(machine, layer))
        assert 1 <= mistake.line <= len(lines)
        assert 1 <= mistake.column <= len(lines[mistake.line - 1]) + 1
        assert mistake.problem
        assert str(mistake)
    assert (bool(mistakes), list(hooks)) == (True, [])
    return None


# --- documents ---------------------------------------------------------------------------------------------


@fuzz
@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_a_mistake(content: bytes):
    document = Document("fairlead.toml", content)
    assert bool(document.mistakes) != (_parsed(content) is not None)


@fuzz
@given(st.text(max_size=200))
def test_random_text_is_read_or_a_mistake(text: str):
    content = text.encode(errors="surrogatepass")
    document = Document("fairlead.toml", content)
    assert bool(document.mistakes) != (_parsed(content) is not None)


@fuzz
@given(st.lists(st.sampled_from(TOKENS), max_size=40).map("".join))
def test_text_that_looks_like_toml_is_read_or_a_mistake(text: str):
    document = Document("fairlead.toml", text.encode())
    assert repr(document.data) == repr(_parsed(text.encode()) or {})  # nan is not itself


def _parsed(content: bytes) -> dict[str, Any] | None:
    try:
        return tomllib.loads(content.decode())
    except ValueError:
        return None


# --- files -------------------------------------------------------------------------------------------------


@fuzz
@given(st.lists(st.sampled_from(TOKENS), max_size=40).map("".join), st.sampled_from(["system", "user"]))
def test_text_that_looks_like_a_configuration_is_loaded_or_refused(machine, text: str, layer: str):
    machine.write(system=None, user=None)
    registered = check(machine, text.encode(), layer)
    assert registered is None or registered == entries(text)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A sound configuration, somewhat damaged."""
    text = VALID
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        other = draw(st.integers(0, len(text)))
        text = draw(
            st.sampled_from([
                text[:start] + text[end:],
                text[:start] + draw(st.sampled_from(TOKENS)) + text[end:],
                text[:start] + text[other : other + 40] + text[start:],
                text[:start],
                _without_a_line(text, start),
            ])
        )  # fmt: skip
    return text


def _without_a_line(text: str, at: int) -> str:
    lines = text.split("\n")
    del lines[text.count("\n", 0, at)]
    return "\n".join(lines)


@fuzz
@given(mutations(), st.sampled_from(["system", "user", "project"]))
def test_a_damaged_configuration_is_loaded_or_refused(machine, text: str, layer: str):
    machine.write(system=None, user=None, project=None)
    registered = check(machine, text.encode(), layer)
    if registered is not None:
        assert registered == (entries(text) if layer != "project" else [])  # which no human has trusted


def test_the_configuration_that_is_damaged_is_sound_by_itself(machine):
    assert check(machine, VALID.encode()) == ["no-force-push", "tests-before-done", "org-policy", "cleaner"]


# --- entries -----------------------------------------------------------------------------------------------

words = st.sampled_from([
    "", "a", "true", "before_tool", "turn_end", "*", "gate", "observe", "open", "shell", "deny", "allow", "bash",
    "{a,b", "{a,b}", "tool == 'a'", "1 +", "policy:check", "policy.py:check", "https://a.example/", "http://a/",
    "{tool}", "HOME", "verdict", "context", "veto", "../x", "/", "/bin/sh", "\0", "\n", "ü", "-", "x" * 300,
])  # fmt: skip
scalars = st.one_of(
    words, words, st.booleans(), st.integers(-2, 300), st.sampled_from([0.5, -0.5, 1e300, float("inf"), float("nan")])
)
KEYS = [
    "name", "on", "match", "phase", "priority", "timeout", "on_failure", "enforce", "detached", "quarantine",
    "locked", "may", "python", "command", "shell", "worker", "url", "rule", "prompt", "wasm", "pack", "interpreter",
    "env", "exit", "output", "headers", "secret", "raw", "fields", "model", "template", "deny", "ask", "allow", "stop",
    "skip", "extend", "abort", "warn", "inject", "change", "tool", "kind", "safety", "outcome", "agent", "host",
    "prefix", "0", "1", "response", "command", "match", "replace", "append", "nonsense", "",
]  # fmt: skip
inner = st.one_of(
    scalars,
    st.lists(scalars, max_size=3),
    st.dictionaries(st.sampled_from(KEYS), scalars, max_size=3),
    st.dictionaries(
        st.sampled_from(KEYS), st.dictionaries(st.sampled_from(KEYS), scalars, max_size=2), min_size=1, max_size=2
    ),
)
hook_entries = st.builds(
    lambda sound, wild, dropped: {k: v for k, v in (sound | wild).items() if k not in dropped},
    st.sampled_from([
        {"name": "a", "on": "before_tool", "shell": "true"},
        {"name": "a", "on": "before_tool", "rule": "true", "deny": "no"},
        {"name": "a", "on": ["before_response"], "rule": "true", "change": {"response": {"append": "x"}}},
        {"name": "a", "on": "turn_end", "url": "https://a.example", "headers": {"A": {"env": "HOME"}}},
        {"name": "a", "on": "*", "worker": ["/bin/sh"], "phase": "observe"},
        {"name": "a", "on": "before_input", "prompt": "Judge.", "model": "acme:judge"},
        {"name": "a", "on": "before_tool", "python": "policy:check"},
    ]),
    st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    st.sets(st.sampled_from(KEYS[:3]), max_size=1),
)  # fmt: skip
others = st.dictionaries(
    st.sampled_from(["disable", "defaults", "tool", "nonsense"]),
    st.one_of(
        inner,
        st.lists(
            st.dictionaries(st.sampled_from(["name", "kind", "safety", "command", "paths", "host", "x"]), inner),
            max_size=2,
        ),
        st.dictionaries(
            st.sampled_from(["timeout", "on_failure", "enforce", "unknown_tool", "allow_hosts", "x"]), inner, max_size=3
        ),
    ),
    max_size=2,
)


def written(value: Any) -> str:
    """A value as TOML, all in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


@fuzz
@given(st.lists(hook_entries, min_size=1, max_size=2), others, st.sampled_from(["system", "user"]))
def test_an_entry_of_any_kind_is_registered_or_refused(
    machine, found: list[dict[str, Any]], rest: dict[str, Any], layer: str
):
    machine.write(system=None, user=None)
    text = "\n".join(f"{key} = {written(value)}" for key, value in rest.items())
    for entry in found:
        text += "\n[[hook]]\n" + "\n".join(f"{json.dumps(key)} = {written(value)}" for key, value in entry.items())
    registered = check(machine, text.encode(), layer)
    assert registered is None or registered == [entry["name"] for entry in found]


@pytest.mark.parametrize("count", [0, 1, 50])
def test_every_entry_is_registered(count: int, machine):
    text = "".join(f'[[hook]]\nname = "h{i}"\non = "before_tool"\nshell = "true"\n' for i in range(count))
    assert check(machine, text.encode()) == [f"h{i}" for i in range(count)]
