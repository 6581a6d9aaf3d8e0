"""The tree of a line against that of shfmt: the same programs, and the same words as far as they are literal.

With FAIRLEAD_CORPORA set to a folder of `*_commands.jsonl` files, each line JSON with a `command`, those commands are
compared as well: all of them, or as many as FAIRLEAD_CORPORA_LINES says.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.shell import quoting, tree
from fairlead.shell.syntax import Parser
from fairlead.shell.tree import Budget, Compound, Function, Simple, Substitution, TextPart, TooComplex, Variable

SHFMT = Path(sys.executable).with_name("shfmt")
CORPORA = os.environ.get("FAIRLEAD_CORPORA")
SHARE = {"tldr": 0.995, "nah": 0.985}
"""Of the lines that shfmt takes, those that must be the same."""
Words = list[str | None]
"""The words of a command. None: not literal."""

LINES = r"""
echo "$(git "x y" z)" b
echo a`b`c`d`e
a <in --opt x >out
{ a; b; } >out 2>&1 | c
if a; then b; elif c; then d; else e; fi
while a; do b; done; until c; do d; done
for x in 1 2 3; do echo "$x"; done; for ((;;)); do a; done
case "$x" in a|b) c;; (d) e;; *) f; esac
f() { a; }; function g { b; }; function h() ( c )
coproc a b; coproc NAME { c; }
time a | b; ! c; time -p d
[ -f x ] && [[ -d y && ! z == w* ]] || a
(( x = 1 + 2 )) && a $((1 << 2)) "$((x))"
a=1 b=$(c) d e=f; g=(2 3 "$(h)")
export A=1 B; declare -a C=(1 2); local D=$(a)
a {fd}>x <&3 3<&- >|y <>z &>>w
a <<E b | c¶x $(d) `e` \$(f)¶E¶g
a <<'E'; b¶$(c)¶E¶d
a <<-E¶→x¶→E¶b
a <<A <<B¶1¶A¶2¶B¶c
cat <(a) >(b | c)
echo ${x:-$(a)} ${y//b/c} ${#z} ${w[@]} "${v:+"q r"}" ${!u*}
echo $'a\'b' $"c d" 'e'"f"\g
a \¶  b # c¶d
a;b&c&&d||e|f|&g
!a; a!b; echo {a,b}c {1..3} ~ *.x [ab]? @(a|b)
let x=1; a
$x $(a) "$y"b
echo "a\`b\`c" "\$(d)" '$(e)'
sh -c 'a; b' c "d e"
a && { b; } || ( c; d ) &
x=$(cat <<E¶a $(b)¶E¶) c
if(a);then(b);else(c);fi; while((1));do(d);done
for((;;))do a;done; time(b); f(){(c);}; {(d);}
""".strip().splitlines()
"""Each a line, or several where ¶ stands for a newline. → is a tab."""


# --- shfmt ----------------------------------------------------------------------------------------


def reference(line: str) -> list[Words] | None:
    """The commands that shfmt finds. None if it does not take the line."""
    ended = subprocess.run([SHFMT, "--to-json", "-ln", "bash"], input=line.encode(), capture_output=True)
    return None if ended.returncode else list(_calls(json.loads(ended.stdout)))


def _calls(node: Any) -> Iterator[Words]:
    if isinstance(node, list):
        for one in node:
            yield from _calls(one)
    elif isinstance(node, dict):
        if node.get("Type") == "CallExpr" and node.get("Args"):
            yield [_literal(arg["Parts"]) for arg in node["Args"]]
        elif node.get("Type") == "DeclClause":
            yield [node["Variant"]["Value"], *map(_declared, node.get("Args", ()))]
        elif node.get("Type") == "LetClause":
            yield ["let", *[None for _ in node.get("Exprs", ())]]
        for value in node.values():
            yield from _calls(value)


def _declared(arg: dict[str, Any]) -> str | None:
    """A word of `export` and its like, which shfmt takes apart."""
    if "Array" in arg:
        return None
    value = _literal(arg["Value"]["Parts"]) if arg.get("Value") else ""
    if value is None or not arg.get("Name"):
        return value
    return arg["Name"]["Value"] + ("" if arg.get("Naked") else "+=" if arg.get("Append") else "=") + value


def _literal(parts: Iterable[dict[str, Any]]) -> str | None:
    text = ""
    for part in parts:
        value = part.get("Value", "")
        match part["Type"]:
            case "Lit":
                text += re.sub(r"\\(\n|.)", lambda found: found[1].strip("\n"), value, flags=re.DOTALL)
            case "SglQuoted":
                text += quoting.ANSI.sub(quoting.character, value) if part.get("Dollar") else value
            case "DblQuoted":
                for inner in part.get("Parts", ()):
                    if inner["Type"] != "Lit":
                        return None
                    text += re.sub(r'\\([\\"$`\n])', lambda found: found[1].strip("\n"), inner.get("Value", ""))
            case "ExtGlob":
                text += part["Op"] + part["Pattern"]["Value"] + ")"
            case _:
                return None
    return text


# --- ours -----------------------------------------------------------------------------------------


def own(line: str) -> list[Words]:
    try:
        return list(_in_block(Parser(line, Budget(100_000)).parse()))
    except TooComplex:
        return []


def _in_block(block: tree.Block) -> Iterator[Words]:
    for pipeline in block:
        for node in pipeline:
            yield from _in_node(node)


def _in_node(node: tree.Node) -> Iterator[Words]:
    if isinstance(node, Function):
        yield from _in_node(node.body)
        return
    words: list[tree.WordParts] = list(node.words or ())
    if isinstance(node, Simple):
        if node.words:
            words_of_let = node.words[0] == "let"  # which are expressions to shfmt
            yield [None if words_of_let and n else _text_of(word) for n, word in enumerate(node.words)]
        for one in node.assignments:
            words += one.value if isinstance(one.value, list) else [one.value]
    elif isinstance(node, Compound):
        for block in node.blocks:
            yield from _in_block(block)
    for redirect in node.redirects:
        words.append(redirect.word)
        if redirect.document is not None and redirect.document.expands:
            words.append(Parser(redirect.document.text, Budget()).parse_text())
    for word in words:
        yield from _in_word(word)


def _in_word(word: tree.WordParts) -> Iterator[Words]:
    for part in word if isinstance(word, tuple) else ():
        if isinstance(part, Substitution):
            yield from _in_block(part.body)
        elif isinstance(part, Variable):
            yield from _in_word(part.argument)


def _text_of(word: tree.WordParts) -> str | None:
    if isinstance(word, str):
        return word
    texts = [part.text for part in word if isinstance(part, TextPart)]
    return "".join(texts) if len(texts) == len(word) else None


# --- both -----------------------------------------------------------------------------------------


def programs(commands: list[Words]) -> list[str]:
    return sorted(str(words[0]) for words in commands)


def literals(commands: list[Words]) -> list[str]:
    return sorted(word for words in commands for word in words if word is not None)


def differs(line: str, expected: list[Words]) -> bool:
    found = own(line)
    return programs(found) != programs(expected) or literals(found) != literals(expected)


@pytest.mark.parametrize("line", [line.replace("¶", "\n").replace("→", "\t") for line in LINES])
def test_programs_and_literal_words_are_those_that_shfmt_finds(line: str) -> None:
    expected = reference(line)
    assert expected is not None
    assert programs(own(line)) == programs(expected)
    assert literals(own(line)) == literals(expected)


WORDS = st.sampled_from(
    [
        "a",
        "b-c",
        "'d e'",
        '"f g"',
        '"$x"',
        "$y",
        "$(z)",
        '"$(h "i j")"',
        "${k:-l}",
        "\\m",
        "n=o",
        "`p`",
        "*.q",
        "$((1+2))",
    ]
)
SIMPLE = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
REDIRECTS = st.sampled_from(["", " >out", " 2>&1", " <in", " <<<word", " &>>log"])
COMMANDS = st.recursive(
    st.builds("{}{}".format, SIMPLE, REDIRECTS),
    lambda inner: st.one_of(
        st.builds("{} | {}".format, inner, inner),
        st.builds("{} && {}".format, inner, inner),
        st.builds("{}; {}".format, inner, inner),
        st.builds("( {} )".format, inner),
        st.builds("{{ {}; }}".format, inner),
        st.builds("if {}; then {}; else {}; fi".format, inner, inner, inner),
        st.builds("while {}; do {}; done".format, inner, inner),
        st.builds("for v in 1 2; do {}; done".format, inner),
        st.builds("case w in x) {};; *) {};; esac".format, inner, inner),
        st.builds("fn() {{ {}; }}".format, inner),
        st.builds("r $( {} )".format, inner),
        st.builds("r <( {} )".format, inner),
        st.builds("cat <<E{1}\ntext $( {0} )\nE{1}\n".format, inner, st.integers(0, 99)),
    ),
    max_leaves=6,
)


@given(COMMANDS)
@settings(max_examples=60, deadline=None)
def test_any_line_of_the_grammar_has_the_commands_that_shfmt_finds(line: str) -> None:
    expected = reference(line)
    ends = re.findall(r"<<(E\d+)", line)
    if expected is not None and len(ends) == len(set(ends)):  # bash ends a document at its first end, shfmt does not
        assert not differs(line, expected)


@pytest.mark.skipif(CORPORA is None, reason="FAIRLEAD_CORPORA is not set")
@pytest.mark.parametrize("name", SHARE)
def test_lines_of_an_open_corpus_are_read_as_shfmt_reads_them(name: str) -> None:
    text = Path(str(CORPORA), f"{name}_commands.jsonl").read_text()
    lines = [row["command"] for row in map(json.loads, text.splitlines()) if row.get("dialect", "sh") == "sh"]
    wanted = int(os.environ.get("FAIRLEAD_CORPORA_LINES") or len(lines))
    lines = random.Random(0).sample(lines, min(wanted, len(lines)))
    with ThreadPoolExecutor() as threads:
        taken = [(line, found) for line, found in zip(lines, threads.map(reference, lines), strict=True) if found]
    different = [line for line, expected in taken if differs(line, expected)]
    print(
        f"{name}: {len(taken) - len(different)} of {len(taken)} the same, {len(lines) - len(taken)} that shfmt refuses"
    )
    assert 1 - len(different) / len(taken) >= SHARE[name], different
