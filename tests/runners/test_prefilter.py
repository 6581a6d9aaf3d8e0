"""The prefilter of rules: it never hides a match, and never an error."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.lifecycle import BeforeTool
from fairlead.runners.prefilter import literals_of
from fairlead.runners.rule import Rule, RuleFailed

TEXTS = (
    "git push --force",
    "git push",
    "ls",
    "rm -rf /",
    "",
    "push",
    "gît push",
    "x" * 3_000,
    "a.b",
    "aab",
    "docker rm x",
)
CONJUNCTS = (
    'target.command.contains("push")', 'target.command.matches("git push.*--force")',
    'target.command.startsWith("git")', 'size(target.command) > 4',
    'target.command.endsWith("force")', 'target.command.matches("rm|docker rm")', 'target.command.matches("a+b")',
    'target.url.contains("x")', 'target.server == "box"', 'tool == "bash"', 'tool != "sh"', "has(target.url)",
    'kind == "shell"', "args.n > 3", 'args["m"] == "x"',  'target.command.matches("a\\\\.b")',
    '(target.command.contains("push") || target.command.contains("rm"))', '!target.command.contains("rm")', "5",
    '(target.command.contains("push") || target.command.contains("rm") || target.command.matches("a+b"))',
    '(target.command.contains("push") || target.command.contains("rm") || args.n > 3)',
    '(target.command.contains("push") || args.n > 3)', "metadata.x.y", "cwd.contains('repo')",
)  # fmt: skip


def outcome(rule: Rule, step: BeforeTool) -> str:
    try:
        return str(rule(step))
    except RuleFailed as error:
        return f"fails: {error}"


@given(
    parts=st.lists(st.sampled_from(CONJUNCTS), min_size=1, max_size=4),
    text=st.sampled_from(TEXTS),
    tool=st.sampled_from(("bash", "sh", "WebFetch")),
    args=st.sampled_from(({}, {"n": 5}, {"n": 1, "m": "x"}, {"n": "x"})),
)
@settings(max_examples=400, deadline=None)
def test_a_rule_decides_and_fails_as_without_its_prefilter(
    parts: list[str], text: str, tool: str, args: dict[str, object]
):
    rule = Rule(" && ".join(parts), on="before_tool", tried=False, deny="no")
    plain = Rule(" && ".join(parts), on="before_tool", tried=False, deny="no")
    plain._excludes = None
    step = BeforeTool(tool=tool, args={"command": text, **args}, cwd="/repo")
    assert outcome(rule, step) == outcome(plain, step)


PATTERNS = st.recursive(
    st.sampled_from(["ab", "cd ", "x", r"\.", r"\-", ".", "[a-c]", "[^a]", "^", "$", "git push"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map("|".join),
        st.tuples(inner, st.sampled_from("*+?")).map(lambda pair: f"({pair[0]}){pair[1]}"),
        st.tuples(st.sampled_from("abx"), st.sampled_from(["*", "+", "?", "{2}"])).map("".join),
    ),
    max_leaves=8,
)


@given(pattern=PATTERNS, data=st.data())
@settings(max_examples=400, deadline=None)
def test_one_of_the_literals_stands_in_whatever_a_pattern_matches(pattern: str, data: st.DataObject):
    text = data.draw(st.from_regex(pattern, alphabet=st.sampled_from("abcdgit pushx.-\n")))
    found = literals_of(pattern)
    assert not found or any(literal in text for literal in found)
    assert re.search(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("git push.*(--force|-f)( |$)", ("git push",)),
        ("npm publish|twine upload", ("npm publish", "twine upload")),
        ("curl .*[|] *sh", ("curl ",)),
        (r"\bgit\b", ()),
        ("(?i)git", ()),
        ("a|git", ()),
        ("gits?", ("git",)),
        ("git{2}", ()),
        ("", ()),
    ],
)
def test_the_literals_of_a_pattern(pattern: str, literals: tuple[str, ...]):
    assert literals_of(pattern) == literals


def test_a_text_that_is_not_set_fails_as_before():
    rule = Rule('target.url.contains("evil")', on="before_tool", tried=False, deny="no")
    with pytest.raises(RuleFailed, match="url"):
        rule(BeforeTool(tool="bash", args={"command": "ls"}))
