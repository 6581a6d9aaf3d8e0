"""Every rule of every pack: what it stops, what passes, and that its own advice passes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import Hooks
from fairlead.errors import FairleadError, UnknownName
from fairlead.lifecycle import BeforeTool, Step
from fairlead.packs import NAMES, Pack, PackRule, pack, packs
from fairlead.packs.judging import ANSWERS, PackGate, PackOptions, pack_hook
from fairlead.packs.rules import LEVELS
from fairlead.packs.secret_files import is_secret_file
from fairlead.samples import step

HOME, FOLDER = "/home/me", "/home/me/project"
ALL = packs("recommended")
RULES = [rule for one in ALL for rule in one]
STRICT = {one.name: PackGate(one, PackOptions("strict")) for one in ALL}


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", HOME)


def call(example: str | dict[str, Any]) -> BeforeTool:
    fields = {"tool": "bash", "args": {"command": example}} if isinstance(example, str) else example
    return BeforeTool(cwd=FOLDER, **fields)


def steps_of(item: dict[str, Any]) -> Iterator[Step]:
    """The steps that an item of a session's example stands for."""
    fields = dict(item)
    times, event = fields.pop("times", 1), fields.pop("event", "before_tool")
    fields.pop("every", None)
    for number in range(times):
        text = json.dumps(fields).replace("{n}", str(number))
        yield step(event, cwd=FOLDER, **json.loads(text))


def replayed(rule: PackRule, example: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The rules that object to each call of a session."""
    clock = [1000.0]
    monkeypatch.setattr("fairlead.session.time", lambda: clock[0])
    monkeypatch.setattr("fairlead.session.monotonic", lambda: clock[0])
    hooks = Hooks()
    gate = STRICT[rule.id.partition("/")[0]]
    objections: list[list[str]] = []

    def judge(step: Step) -> None:
        if isinstance(step, BeforeTool):
            objections.append([one.rule.id for one in gate.findings(step)])
        else:
            gate(step)

    hooks.add(judge, "*", phase="observe")
    session = hooks.session(cwd=FOLDER)
    for item in example:
        if "after" in item:
            clock[0] += item["after"]
            continue
        for one in steps_of(item):
            clock[0] += item.get("every", 0)
            session.dispatch_sync(one)
    return objections


def found(rule: PackRule, example: str | dict[str, Any]) -> list[str]:
    """The rules of a rule's pack that object to an example, except strict ones of others."""
    findings = STRICT[rule.id.partition("/")[0]].findings(call(example))
    return [one.rule.id for one in findings if one.rule.id == rule.id or one.rule.level != "strict"]


def examples(of: str, in_session: bool = False) -> list[Any]:
    return [
        pytest.param(rule, example, id=f"{rule.id}: {str(example)[:60]}")
        for rule in RULES
        for example in getattr(rule, of)
        if (rule.about == "session") == in_session or of == "alternatives"
    ]


@pytest.mark.parametrize(("rule", "example"), examples("stops"))
def test_a_rule_stops_its_examples(rule: PackRule, example: Any) -> None:
    assert rule.id in found(rule, example)


@pytest.mark.parametrize(("rule", "example"), examples("passes"))
def test_a_rule_lets_its_neighbours_pass(rule: PackRule, example: Any) -> None:
    assert rule.id not in found(rule, example)


@pytest.mark.parametrize(("rule", "example"), examples("stops", in_session=True))
def test_a_rule_about_a_session_stops_the_last_call_of_its_examples(
    rule: PackRule, example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    *before, last = replayed(rule, example, monkeypatch)
    assert rule.id in last
    assert not any(rule.id in one for one in before)


@pytest.mark.parametrize(("rule", "example"), examples("passes", in_session=True))
def test_a_rule_about_a_session_lets_its_neighbours_pass(
    rule: PackRule, example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any(rule.id in one for one in replayed(rule, example, monkeypatch))


@pytest.mark.parametrize(("rule", "example"), examples("alternatives"))
def test_what_a_rule_proposes_passes_all_packs(rule: PackRule, example: str) -> None:
    objections = [one.rule for gate in STRICT.values() for one in gate.findings(call(example))]
    assert [one.id for one in objections if one.level != "strict" or one.id == rule.id] == []


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_a_rule_says_why_and_what_to_do_instead(rule: PackRule) -> None:
    assert rule.stops
    assert rule.passes
    assert rule.why.endswith(".")
    assert rule.instead
    assert rule.risk.startswith("ASI")


WRAPPED = [
    "sudo {}", "env A=1 {}", "sh -c {q}", "bash -c {q}", "cd . && {}", "true; {}", "({})", "if true; then {}; fi",
    "eval {q}", "nice -n 5 {}", "timeout 5 {}", "command {}", "nohup {} &", "{{ {}; }}", "bash <<< {q}", "! {}",
    "bash <<'END'\n{}\nEND", "sudo -u root env B=2 {}", "false || {}", "f() {{ {}; }}; f", "su -c {q}", "time {}",
    "while true; do {}; break; done", "echo {q} | sh", "bash -lc {q}", "printf '%s' {q} | bash",
    "LINE={q}; eval \"$LINE\"",
]  # fmt: skip
BUILTINS = ("unset", "export", "history", "alias", "source", ".", "set", "exec", "hash", ":")
SPECIAL = set("|&;<>()$`\"'\\\n*?[]{}~#!% \t")
CLUSTERS = {"rm": "rf", "chmod": "R", "chown": "R", "git clean": "fdx", "git push": "fd", "cp": "rf"}
"""Options of one letter, which may stand apart or together."""
ABBREVIATED = {"--recursive": "--recurs", "--hard": "--har", "--delete": "--delet"}


def is_text(example: Any) -> bool:
    return isinstance(example, str)


def is_plain(text: str) -> bool:
    """Is it one command of plain words, that is no builtin of the shell?"""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return not set("|&;<>()$`\n*?[]{}~#!%\"'\\") & set(text) and "=" not in first and first not in BUILTINS


def quoted(draw: st.DrawFn, word: str) -> str:
    """The same word in another spelling."""
    if not word or SPECIAL & set(word):
        return word
    at = draw(st.integers(1, len(word)))
    split, escaped = f"{word[:at]}''{word[at:]}", f"\\{word}"
    return draw(st.sampled_from([f"'{word}'", f'"{word}"', split, escaped, f"$'{word}'"]))


def apart(words: list[str]) -> list[str]:
    """`-rf` as `-r -f`."""
    letters = CLUSTERS.get(words[0]) or CLUSTERS.get(" ".join(words[:2]), "")
    return [
        one
        for word in words
        for one in (
            [f"-{letter}" for letter in word[1:]]
            if re.fullmatch(r"-\w{2,}", word) and set(word[1:]) <= set(letters)
            else [word]
        )
    ]


@st.composite
def spellings(draw: st.DrawFn) -> tuple[PackRule, str]:
    """An example of a rule, in another spelling: quoting, options, order, variables, xargs, and what runs it."""
    rule = draw(st.sampled_from([one for one in RULES if any(map(is_text, one.stops))]))
    text = draw(st.sampled_from(list(filter(is_text, rule.stops))))
    if is_plain(text):
        words = text.split()
        if draw(st.booleans()):
            words = apart(words)
        if draw(st.booleans()) and words[0] in ("rm", "shred", "rmdir") and "--" not in words:
            words[1:] = sorted(words[1:], key=lambda word: word[0] == "-")  # the options come last
        if draw(st.booleans()) and words[0] in ("rm", "git", "chmod", "chown"):
            words = [ABBREVIATED.get(word, word) for word in words]
        how = draw(st.sampled_from(["plain", "quoted", "variable", "program", "xargs", "path"]))
        if how == "quoted":
            at = draw(st.integers(0, len(words) - 1))
            words[at] = quoted(draw, words[at])
        if how == "path" and re.fullmatch(r"[a-z][\w.-]*", words[0]):
            words[0] = f"/usr/bin/{words[0]}"
        text = " ".join(words)
        if how == "variable" and len(words) > 1:
            text = f"X={words[-1]}; {' '.join(words[:-1])} $X"
        elif how == "program":
            text = f'P={words[0]}; "$P" {" ".join(words[1:])}'
        elif how == "xargs" and len(words) > 2 and words[-1][0] != "-":
            text = f"echo {words[-1]} | xargs {' '.join(words[:-1])}"
    elif draw(st.booleans()) or "\n" in text or "<<" in text or text[:1] in ">:" or text.startswith(BUILTINS):
        return rule, text
    form = draw(st.sampled_from([form for form in WRAPPED if "\\" not in text or "{q} |" not in form]))
    if re.match(r"[A-Za-z_]\w*=|.*[|&;]", text) or text.startswith("env "):
        form = draw(st.sampled_from(["{}", "true; {}", "bash -c {q}", "({})", "eval {q}", "if true; then {}; fi"]))
    return rule, form.format(text, q="'" + text.replace("'", "'\\''") + "'")


@settings(max_examples=1500, deadline=None, derandomize=True)
@given(spellings())
def test_another_spelling_of_an_example_is_stopped_too(case: tuple[PackRule, str]) -> None:
    rule, text = case
    assert found(rule, text), text


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(max_size=400) | st.binary(max_size=300).map(lambda data: data.decode("utf-8", "replace")))
def test_no_text_breaks_a_rule(text: str) -> None:
    for gate in STRICT.values():
        list(gate.findings(call(text)))


@pytest.mark.parametrize(
    "text",
    [
        "true; " * 3000 + "rm -rf ~",
        "echo rm; " * 1500 + "rm -rf ~",
        "x" * 300_000 + "; rm -rf ~",
        "(" * 500 + "git push -f",
    ],
    ids=["long", "mentions as data", "longer than is read", "deep"],
)
def test_what_exceeds_a_bound_and_names_a_program_that_destroys_is_asked_about(text: str) -> None:
    verdict = PackGate(pack("files"))(call(text))
    assert verdict is not None
    assert verdict.control in ("ask", "deny")


@pytest.mark.parametrize("text", ["true; " * 3000, "x" * 300_000, "(" * 500 + "ls"], ids=["long", "longer", "deep"])
def test_what_exceeds_a_bound_and_names_no_such_program_passes(text: str) -> None:
    assert PackGate(pack("files"))(call(text)) is None


@pytest.mark.parametrize(
    "text", ["rm -rf ../other", "cd .. && rm -rf build", "rm -rf ~/projects", "rm -rf /tmp/agent/x"]
)
def test_neighbours_of_a_work_tree_in_a_temporary_folder_are_not_temporary(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/tmp/agent")
    given = BeforeTool(tool="bash", args={"command": text}, cwd="/tmp/agent/work")
    assert PackGate(pack("files"))(given) is not None


@pytest.mark.parametrize("text", ["rm -rf build", "rm -rf /tmp/x", "rm -rf /tmp/agent/work/build", "rm -rf /tmp/x-$$"])
def test_a_work_tree_in_a_temporary_folder_can_be_worked_in(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/tmp/agent")
    given = BeforeTool(tool="bash", args={"command": text}, cwd="/tmp/agent/work")
    assert PackGate(pack("files"))(given) is None


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf /tmp/$DIR",
        "rm -rf /tmp/../etc-$$",
        "rm -rf /etc/x-$$",
        "X=/etc; rm -rf $X-$$",
        "T=$(mktemp -d); T=/srv; trap 'rm -rf $T' EXIT",
    ],
)
def test_a_number_in_a_name_does_not_make_a_path_temporary(text: str) -> None:
    assert PackGate(pack("files"))(call(text)) is not None


@pytest.mark.parametrize(
    ("tool", "code", "rule"),
    [
        ("python", "import shutil\nshutil.rmtree('/srv/x')", "files/delete-in-code"),
        ("code_interpreter", "print(open('/home/me/.ssh/id_rsa').read())", "secrets/read-in-code"),
        ("execute_python", "import os; os.system('rm -rf ~')", "files/delete-system"),
        ("mcp__sandbox__run_code", "requests.delete('https://x.example/y')", "apis/delete-in-code"),
        ("run_javascript", "fs.rmSync('/srv/x', {recursive: true})", "files/delete-in-code"),
        ("execute_code", "rm -rf ~", "files/delete-system"),
        ("execute_code", "print('a')\n!rm -rf ~", "files/delete-system"),
        ("execute_code", "print('a')\nx = !rm -rf \\\n  ~", "files/delete-system"),
        ("execute_code", "print('a')\n  %rm -rf ~", "files/delete-system"),
    ],
)
def test_code_of_a_tool_that_runs_code_is_judged_as_code(tool: str, code: str, rule: str) -> None:
    step = BeforeTool(tool=tool, args={"code": code}, cwd=FOLDER)
    assert rule in [one.rule.id for gate in STRICT.values() for one in gate.findings(step)]


@pytest.mark.parametrize(
    "text",
    ["A::" * 20_000, ".delete_many(" + " " * 60_000, "cat " + "firebase-adminsdk" * 3_500,
     "cat " + "a" * 60_000 + ".key.x",
     "cat /." + "mozilla/." * 6_000 + "x"],
    ids=range(5),
)  # fmt: skip
def test_no_pattern_of_a_rule_takes_long(text: str) -> None:
    for one in (call(text), BeforeTool(tool="execute_code", args={"code": text}, cwd=FOLDER)):
        began = time.process_time()
        for gate in STRICT.values():
            gate(one)
        assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "path", ["a" * 100_000 + "/.env/x", ".env" + "*a" * 100_000, "/.mozilla/" * 10_000 + "!"], ids=range(3)
)
def test_no_path_takes_long(path: str) -> None:
    began = time.process_time()
    assert not is_secret_file(path)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    "path", ["x/" * 10_000 + ".env", ".env" + "*" * 10_000, "x-firebase-adminsdk-1.json", "a.key"], ids=range(4)
)
def test_secret_files_are_known_however_long_their_path(path: str) -> None:
    assert is_secret_file(path)


@pytest.mark.parametrize("code", ["print(1)", "import shutil\nshutil.rmtree('build')", "x = 'rm -rf ~'"])
def test_harmless_code_of_a_tool_passes(code: str) -> None:
    step = BeforeTool(tool="python", args={"code": code}, cwd=FOLDER)
    assert [one.rule.id for one_pack in ALL for one in PackGate(one_pack).findings(step)] == []


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_has_an_answer(level: Any) -> None:
    rule = next(one for one in RULES if one.level == level and one.about == "command")
    gate = PackGate(pack(rule.id.partition("/")[0]), PackOptions("strict"))
    verdict = gate(call(rule.stops[0]))
    assert verdict is not None
    assert verdict.control in ("deny", ANSWERS[level])


def test_only_disasters_are_stopped_at_that_level() -> None:
    gate = PackGate(pack("git"), PackOptions("disaster"))
    assert gate(call("git reset --hard")) is None
    assert gate(call("gh repo delete a/b --yes")) is not None


def test_a_pack_may_deny_or_warn_instead() -> None:
    for answer, control in (("deny", "deny"), ("ask", "ask"), ("warn", "proceed")):
        verdict = PackGate(pack("git"), PackOptions(verdict=answer))(call("git reset --hard"))  # type: ignore[arg-type]
        assert verdict is not None
        assert verdict.control == control


def test_a_denial_names_the_rule_the_part_and_the_way_out() -> None:
    hooks = Hooks()
    hooks.replace_all([pack_hook(one) for one in ALL], source="test")
    decision = hooks.dispatch_sync(call("ls && rm -rf ~"))
    assert decision.control == "deny"
    assert decision.hook == "fairlead.files"
    for part in ("rm -rf /home/me", "files/delete-system", "Instead", "home folder"):
        assert part in str(decision.reason)


def test_packs_are_used_by_name() -> None:
    hooks = Hooks()
    hooks.use("recommended", verdict="deny")
    assert hooks.dispatch_sync(call("git reset --hard")).hook == "fairlead.git"
    assert hooks.dispatch_sync(call("git status")).control == "proceed"
    assert len(hooks) == len(NAMES)


def test_an_unknown_pack_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="'files'"):
        pack("file")


def test_every_pack_has_its_name() -> None:
    assert [pack(name).name for name in NAMES] == list(NAMES)


def test_a_pack_of_ones_own() -> None:
    acme = Pack("acme", "What Acme never wants.")

    @acme.rule(
        "deploy-to-production",
        level="disaster",
        programs=["deploy"],
        why="A deployment to production needs two people.",
        instead="Deploy to staging: `deploy staging`",
    )
    def deploy_to_production(command: Any, line: Any) -> bool:
        return "production" in command.operands

    hooks = Hooks()
    hooks.replace_all([pack_hook(acme)], source="test")
    assert hooks.dispatch_sync(call("sudo deploy production")).control == "deny"
    assert hooks.dispatch_sync(call("deploy staging")).control == "proceed"


def test_a_rule_needs_a_name_and_a_level() -> None:
    acme = Pack("acme", "")
    with pytest.raises(FairleadError, match="a name of its own"):
        acme.rule("No Name", level="strict", why="", instead="")
    with pytest.raises(FairleadError, match="level is one of"):
        acme.rule("x", level="bad", why="", instead="")  # type: ignore[arg-type]
