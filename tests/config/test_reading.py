"""Hooks from fairlead.toml: every form, end to end; every mistake, in its place; and what a process gets to see."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead import Hooks, extras
from fairlead.lifecycle import BeforeTool
from fairlead.redaction.redactor import redact_text
from fairlead.runners import expression
from fairlead.testing import step

SHELL = '[[hook]]\nname = "a"\non = "before_tool"\nshell = "true"\n'
RULE = '[[hook]]\nname = "a"\non = "before_tool"\nrule = "true"\ndeny = "no"\n'


def hook(*lines: str, name: str = "a", on: str = "before_tool") -> str:
    return "\n".join(["[[hook]]", f'name = "{name}"', f'on = "{on}"', *lines, ""])


async def decide(hooks: Hooks, event: str = "before_tool", **fields: Any) -> Any:
    async with hooks:
        return await hooks.dispatch(step(event, **fields))


# --- mistakes ----------------------------------------------------------------------------------------
# « stands before the place where the mistake is to be shown.

MISTAKES: dict[str, tuple[str, str]] = {
    # keys
    "an unknown key": (hook('shell = "true"', "«prioritty = 5"), "unknown key 'prioritty'; did you mean 'priority'?"),
    "an unknown key at the top": ("«hooks = 1", "unknown key 'hooks'; did you mean 'hook'?"),
    "a key of another form": (hook('rule = "true"', 'deny = "no"', "«exit = {}"), "a rule hook takes no 'exit'"),
    "no name": ('«[[hook]]\non = "before_tool"\nshell = "true"', "a hook needs a name"),
    "an empty name": ('[[hook]]\nname = «""\non = "before_tool"\nshell = "true"', "must be a non-empty text"),
    "no event": ('«[[hook]]\nname = "a"\nshell = "true"', "when does it run? Add on = "),
    "no form": ('«[[hook]]\nname = "a"\non = "before_tool"', "how does it run? Add one of python, command, shell"),
    "a misspelt form": (hook('«comand = ["true"]'), "unknown key 'comand'; did you mean 'command'?"),
    "two forms": (hook('shell = "true"', 'command = «["true"]'), "here are two: shell and command"),
    "a form of a later version": (hook('wasm = «"a.wasm"'), "wasm is not available in this version"),
    "hook without brackets": ('«[hook]\nname = "a"', "hooks are written as [[hook]] tables"),
    "a hook that is a number": ("«hook = 5", "hooks are written as [[hook]] tables"),
    "a duplicate name": (SHELL + SHELL.replace("name = ", "name = «"), "'a' is already in this file"),
    # types
    "a text for a number": (SHELL + "priority = «'high'", "priority must be a whole number"),
    "true for a number": (SHELL + "priority = «true", "priority must be a whole number"),
    "a number for a truth": (SHELL + "enforce = «1", "enforce must be true or false"),
    "a text for a table": (SHELL + 'match = «"bash"', "match must be a table"),
    "a text for a command": (hook('command = «"ls -l"'), "command must be a list of texts"),
    "an empty command": (hook("command = «[]"), "command must be a list of texts"),
    "a number in a command": (hook('command = «["sleep", 5]'), "command must be a list of texts"),
    "a number for a shell line": (hook("shell = «5"), "shell must be a text"),
    "a variable where none is taken": (hook('shell = «{ env = "X" }'), "shell must be a text"),
    "a plain secret": (hook('url = "https://a.example"', 'secret = «"s3cret"'), "does not belong in a file"),
    # events, filters, options
    "an unknown event": (hook('shell = "true"', on="X").replace('"X"', '«"befor_tool"'), "did you mean 'before_tool'?"),
    "an unknown event in a list": (
        hook('shell = "true"', on="X").replace('"X"', '["after_tool", «"befor_tool"]'),
        "unknown event 'befor_tool'; did you mean 'before_tool'?",
    ),
    "an unknown filter": (SHELL + 'match = { toool = «"x" }', "unknown filter 'toool'; did you mean 'tool'?"),
    "a bad glob": (SHELL + 'match = { tool = «"{a,b" }', "'{' is never closed; did you mean '{a,b}'?"),
    "an unknown kind": (SHELL + 'match = { kind = «"shel" }', "did you mean 'shell'?"),
    "an unknown safety": (SHELL + 'match = { safety = «["read-only"] }', "did you mean 'read_only'?"),
    "a filter that the event does not have": (
        hook('shell = "true"', 'match = { tool = «"x" }', on="turn_end"),
        "needs an event about a tool, and turn_end is not",
    ),
    "an unknown phase": (SHELL + 'phase = «"gates"', "unknown phase 'gates'"),
    "an unknown failure policy": (SHELL + 'on_failure = «"opne"', "did you mean 'open'?"),
    "a failure policy for an observer": (SHELL + 'phase = "observe"\non_failure = «"abort"', "an observer's failures"),
    "a detached gate": (SHELL + 'phase = "gate"\ndetached = «true', "only observers can be detached"),
    "no time": (SHELL + "timeout = «0", "timeout must be a number of seconds above 0"),
    "a time-out of true": (SHELL + "timeout = «true", "a number of seconds, or false for no limit"),
    "a bad quarantine": (SHELL + "quarantine = «[0, 30]", "quarantine must be (failures, seconds)"),
    "an unknown power": (SHELL + 'may = ["deny", «"dney"]', "did you mean 'deny'?"),
    # commands
    "a missing program": (hook('command = «["no-such-program", "-x"]'), "'no-such-program' is not there"),
    "a missing program of a worker": (hook('worker = «["/no/such/worker"]'), "'/no/such/worker' is not there"),
    "a missing script": (hook('command = «["python3", "policy.py"]'), "script 'policy.py' is not in"),
    "a program that cannot be run": (hook('command = «["/etc/passwd"]'), "is not there or cannot be run"),
    "an exit code out of range": (hook('shell = "true"', 'exit = { 256 = «"veto" }'), "from 0 to 255, not '256'"),
    "an exit code that is none": (hook('shell = "true"', 'exit = { ok = «"veto" }'), "from 0 to 255, not 'ok'"),
    "an unknown control": (hook('shell = "true"', 'exit = { 1 = «"vetto" }'), "did you mean 'veto'?"),
    "an env that is neither": (hook('shell = "true"', "env = «5"), "a list of names, or a table"),
    "an env value that is no text": (hook('shell = "true"', "env = { A = «5 }"), "write a text, or { env ="),
    "an env value from an unset variable": (hook('shell = "true"', 'env = { A = «{ env = "UNSET" } }'), "UNSET is not"),
    # python
    "a python without function": (hook('python = «"policy"'), 'python names a function: "module:function"'),
    "a python that is no module": (hook('python = «"my-policy:check"'), "'my-policy' is not the name of a module"),
    "a missing python file": (hook('python = «"policy.py:check"'), "'policy.py' is not in"),
    # rules
    "a bad expression": (RULE.replace('rule = "true"', 'rule = «"tool =="'), "syntax error at character"),
    "an unknown name in an expression": (
        RULE.replace('rule = "true"', "rule = «'tol == \"a\"'"),
        "unknown name 'tol' at before_tool; did you mean 'tool'?",
    ),
    "a bad regular expression": (RULE.replace('rule = "true"', "rule = «'tool.matches(\"(\")'"), "bad regular expr"),
    "a rule without outcome": (hook('rule = «"true"'), "what is to happen when the rule holds?"),
    "a rule that both denies and asks": (RULE.replace('rule = "', 'rule = «"') + 'ask = "?"', "both deny and ask"),
    "an outcome that the event does not take": (hook('rule = "true"', 'extend = «"x"'), "extend"),
    "a template with an unknown name": (
        RULE.replace('deny = "no"', 'deny = «"no {tol}"'),
        "unknown field 'tol' of before_tool in 'no {tol}'; did you mean 'tool'?",
    ),
    "a change in a gate": (
        hook('rule = "true"', 'phase = "gate"', 'change = «{ command = { append = "x" } }'),
        "a gate only judges",
    ),
    "a change of what cannot be changed": (
        hook('rule = "true"', 'change = «{ tool = { append = "x" } }'),
        "unknown field 'tool' to change at before_tool",
    ),
    # urls and prompts
    "a url without https": (hook('url = «"http://a.example/"'), "is not https"),
    "a url that is none": (hook('url = «"a.example"'), "is no address; write https://host/path"),
    "a password in a url": (hook('url = «"https://me:pw@a.example/"'), "a password does not belong in an address"),
    "a header from an unset variable": (
        hook('url = "https://a.example"', 'headers = { Authorization = «{ env = "UNSET", prefix = "Bearer " } }'),
        "the environment variable UNSET is not set",
    ),
    "a header variable with an unknown word": (
        hook('url = "https://a.example"', 'headers = { Authorization = «{ env = "HOME", suffix = "x" } }'),
        "write a text, or { env =",
    ),
    "a secret from an unset variable": (
        hook('url = "https://a.example"', 'secret = «{ env = "UNSET" }'),
        "the environment variable UNSET is not set",
    ),
    "a field that the event does not have": (
        hook('url = "https://a.example"', 'fields = ["args", «"outptu"]', on="after_tool"),
        "unknown field 'outptu' of after_tool; did you mean 'output'?",
    ),
    "a field of another event": (
        hook('prompt = "Judge."', 'model = "test"', 'fields = [«"messages"]'),
        "unknown field 'messages' of before_tool",
    ),
    "a field that none of the events has": (
        hook('url = "https://a.example"', 'fields = [«"inputs"]', on="X").replace(
            '"X"', '["before_tool", "before_input"]'
        ),
        "unknown field 'inputs' of before_tool and before_input; did you mean 'input'?",
    ),
    "a text for fields": (hook('url = "https://a.example"', 'fields = «"args"'), "fields must be a list of texts"),
    "fields of a command": (hook('shell = "true"', '«fields = ["args"]'), "a shell hook takes no 'fields'"),
    "fields of an observer": (
        hook('url = "https://a.example"', 'phase = "observe"', 'fields = «["args"]'),
        "an observer judges nothing, so it takes no fields",
    ),
    "raw in may where no hook needs it": (
        hook('url = "https://a.example"', "raw = true", 'may = [«"raw"]'),
        'only a project\'s hook needs "raw" in may; here, raw = true is enough',
    ),
    "raw in may of what is not sent": (SHELL + 'may = [«"raw"]', "unknown power 'raw' in may"),
    "a prompt without model": (hook('prompt = «"Judge."'), 'which model? Add model = "provider:name"'),
    # the other tables
    "an unknown default": ("[defaults]\n«timeot = 5", "unknown key 'timeot'; did you mean 'timeout'?"),
    "a bad default": ('[defaults]\non_failure = «"opne"', "one of closed, open, abort; did you mean 'open'?"),
    "a default time-out of 0": ("[defaults]\ntimeout = «0", "a number of seconds above 0, or false"),
    "a bad unknown_tool": ('[defaults]\nunknown_tool = «"dney"', "did you mean 'deny'?"),
    "hosts that are no texts": ("[defaults]\nallow_hosts = «[1]", "allow_hosts must be a list of host names"),
    "defaults that are no table": ("defaults = «5", "defaults must be a table"),
    "a tool without kind": ('«[[tool]]\nname = "x"', "a tool needs a kind"),
    "a tool without name": ('«[[tool]]\nkind = "read"', "a tool needs a name"),
    "a tool of an unknown kind": ('[[tool]]\nname = "x"\nkind = «"shel"', "did you mean 'shell'?"),
    "a tool of an unknown safety": ('[[tool]]\nname = "x"\nkind = "read"\nsafety = «"safe"', "unknown safety 'safe'"),
    "a tool with a bad glob": ('[[tool]]\nname = «"x}"\nkind = "read"', "'}' without '{'"),
    "a tool with an unknown key": ('[[tool]]\nname = "x"\nkind = "read"\n«path = "p"', "did you mean 'paths'?"),
    "a tool with a bad type": ('[[tool]]\nname = "x"\nkind = "read"\npaths = «5', "paths must be a text"),
    "tools that are no tables": ("tool = [«5]", "tools are written as [[tool]] tables"),
    "a disable that is no list": ('disable = «"a"', "disable must be a list"),
    "a disable of numbers": ("disable = «[1]", "disable must be a list of hook names"),
    # the file
    "a syntax error": ("[[hook]]\nname «a", "not TOML: "),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_shown_in_its_place_with_a_suggestion(case: str, machine):
    marked, problem = MISTAKES[case]
    before, _, after = marked.partition("«")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    (mistake,) = machine.problems(user=before + after)
    assert problem in mistake.problem
    assert (mistake.line, mistake.column) == (line, column)
    assert (mistake.file, mistake.text) == (str(machine.user), redact_text((before + after).split("\n")[line - 1]))


def test_all_mistakes_are_reported_at_once_in_order(machine):
    mistakes = machine.mistakes(
        system='disable = ["x"]\n' + hook('shell = "true"', "prioritty = 5"),
        user="[defaults]\ntimeot = 5\n" + hook('command = ["nope"]', 'match = { kind = "shel" }', 'phase = "gates"'),
    )
    found = [(Path(m.file).parent.parent.name, m.line) for m in mistakes]
    assert found == [("etc", 1), ("etc", 6), (".config", 2), (".config", 6), (".config", 7), (".config", 8)]


def test_one_bad_entry_shows_every_mistake_in_it(machine):
    mistakes = machine.mistakes(
        user=hook(
            'rule = "tol == 1"',
            'deny = "{nme}"',
            "priority = 'x'",
            "timeout = -1",
            'match = { tool = "{", host = 5 }',
            'may = ["fly"]',
            "nonsense = 1",
            on="before_tool",
        )
    )
    assert [m.line for m in mistakes] == [4, 5, 6, 7, 8, 8, 9, 10]


MISSING = {
    "a program": 'command = ["no-such-program"]',
    "a worker": 'worker = ["/no/such/worker"]',
    "a script": 'command = ["python3", "policy.py"]',
    "a python file": 'python = "policy.py:check"',
    "an interpreter": 'python = "policy:check"\ninterpreter = "python9"',
}


@pytest.mark.parametrize("layer", ["system", "user"])
@pytest.mark.parametrize("what", MISSING)
async def test_a_hook_that_lacks_something_fails_by_its_policy_and_the_rest_of_the_file_holds(what, layer, machine):
    lacking = hook(MISSING[what], 'match = { tool = "lacking" }', name="lacking")
    others = RULE + 'match = { tool = "bash" }\n'
    async with machine.hooks(**{layer: others + lacking}) as hooks:
        assert (await hooks.dispatch(BeforeTool(tool="bash"))).hook == "a"
        refused = await hooks.dispatch(BeforeTool(tool="lacking"))
    assert (refused.control, refused.cause, refused.hook) == ("deny", "failure", "lacking")
    assert "cannot run on this machine" in (refused.reason or "")
    async with machine.hooks(**{layer: others + lacking + 'on_failure = "open"\n'}) as hooks:
        assert (await hooks.dispatch(BeforeTool(tool="lacking"))).control == "proceed"


PACKAGES = {
    "cel": ("rules", 'rule = "true"\ndeny = "no"'),
    "re2": ("rules", 'rule = \'tool.matches("x{1,77}")\'\ndeny = "no"'),
    "aiohttp": ("http", 'url = "https://a.example"'),
    "pydantic_ai": ("prompt", 'prompt = "x"\nmodel = "a:b"'),
}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_hook_whose_package_is_missing_names_the_command_that_installs_it(package, machine, monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == package else find_spec(name))
    monkeypatch.setattr(expression, "find_spec", lambda name: None if name == package else find_spec(name))
    if package == "cel":
        monkeypatch.delitem(sys.modules, "cel.cel", raising=False)
    if package == "re2":
        monkeypatch.setitem(sys.modules, "re2", None)
    extra, runner = PACKAGES[package]
    (problem,) = machine.problems(user=hook(runner))
    assert problem.problem.endswith(f"run: {extras.install_command(extra)}")


def test_a_mistake_in_one_hook_keeps_all_others_out_too(machine):
    hooks = Hooks()
    with pytest.raises(Exception, match="unknown key"):
        machine.load(user=RULE + hook('shell = "true"', "nonsense = 1", name="b")).apply(hooks)
    assert list(hooks) == []


def test_not_utf_8_too_large_and_unreadable_files_are_mistakes_of_their_layer(machine):
    machine.system.mkdir()
    mistakes = machine.mistakes(user=b"a = '\xff'", project="#" * (1 << 20) + "#")
    assert [(m.file, m.line) for m in mistakes] == [
        (str(machine.system), 1),
        (str(machine.user), 1),
        (str(machine.project), 1),
    ]
    assert ["cannot be read" in mistakes[0].problem, "not UTF-8" in mistakes[1].problem] == [True, True]
    assert "larger than 1 MiB" in mistakes[2].problem


def test_a_file_that_other_users_may_write_is_a_mistake(machine):
    machine.write(user=RULE)
    machine.user.chmod(0o646)
    (mistake,) = machine.mistakes()
    assert "every user of this machine may write this file" in mistake.problem


INJECTS = {
    "command": 'command = ["echo"]',
    "shell": 'shell = "echo"',
    "prompt": 'prompt = "Say something."\nmodel = "acme:judge-1"',
}


@pytest.mark.parametrize("form", INJECTS)
def test_a_projects_hook_whose_output_is_context_needs_the_power_to_inject(machine, form):
    (mistake,) = machine.mistakes(project=hook(INJECTS[form], 'output = "context"', 'may = ["extend"]'))
    assert "this hook may not inject: add it to may = [...]" in mistake.problem
    machine.write(project=hook(INJECTS[form], 'output = "context"', 'may = ["inject"]'))
    machine.trust()
    assert machine.load().hooks
    machine.write(project=hook(INJECTS[form], 'output = "context"', 'phase = "observe"'))
    machine.trust()
    assert machine.load().hooks


@pytest.mark.parametrize("form", ["command", "shell"])
def test_a_users_hook_whose_output_is_context_needs_it_where_may_limits_it(machine, form):
    (mistake,) = machine.mistakes(user=hook(INJECTS[form], 'output = "context"', 'may = ["deny"]'))
    assert "this hook may not inject" in mistake.problem


# --- options ---------------------------------------------------------------------------------------


def test_options_arrive_at_the_hook(machine):
    (found,) = machine.load(
        user=hook(
            'shell = "true"',
            'match = { tool = ["ba*", "sh"], kind = "shell", safety = ["destructive"], agent = "a", host = "h" }',
            'phase = "gate"',
            "priority = 7",
            "timeout = 1.5",
            'on_failure = "open"',
            "enforce = false",
            "quarantine = [3, 10]",
        )
    ).hooks
    made = found.hook
    assert (made.tool, made.kind, made.safety, made.agent, made.host) == (
        ("ba*", "sh"),
        ("shell",),
        ("destructive",),
        ("a",),
        ("h",),
    )
    assert (made.phase, made.priority, made.timeout, made.on_failure) == ("gate", 7, 1.5, "open")
    assert (made.enforce, made.layer, made.quarantine.limit) == (False, "user", 3)


def test_a_time_out_of_false_is_no_limit(machine):
    (found,) = machine.load(user=SHELL + "timeout = false").hooks
    assert found.hook.timeout is None


def test_an_observer_may_be_detached(machine):
    (found,) = machine.load(user=SHELL + 'phase = "observe"\ndetached = true').hooks
    assert (found.hook.phase, found.hook.detached) == ("observe", True)


def test_on_takes_an_event_a_list_or_all(machine):
    one, some, every = machine.load(
        user=hook('shell = "true"', name="1")
        + '[[hook]]\nname = "2"\non = ["turn_end", "error"]\nshell = "true"\n'
        + hook('shell = "true"', name="3", on="*")
    ).hooks
    assert (one.hook.events, some.hook.events) == ({"before_tool"}, {"turn_end", "error"})
    assert every.hook.everywhere


def test_a_hook_knows_where_it_was_written(machine):
    first, second = machine.load(user="\n" + RULE + hook('shell = "true"', name="b")).hooks
    assert (first.where, second.line) == (f"{machine.user}:2", 7)


async def test_may_holds_a_hook_to_what_it_names(machine):
    hooks = machine.hooks(user='[[hook]]\nname = "a"\non = "before_tool"\nshell = "exit 2"\nmay = ["warn"]\n')
    decision = await decide(hooks)
    assert (decision.cause, decision.failures[0].kind) == ("failure", "malformed")


# --- every form, end to end --------------------------------------------------------------------------

CHECK = """
import os
from fairlead import deny

def check(step):
    return deny(f"{os.getpid()} {step.target.command}")
"""


async def test_rule(machine):
    hooks = machine.hooks(
        user=hook("rule = 'target.command.contains(\"--force\")'", 'deny = "not {target.command}"', 'phase = "gate"')
    )
    refused = await hooks.dispatch(step("before_tool", args={"command": "git push --force"}))
    assert (refused.control, refused.reason, refused.hook) == ("deny", "not git push --force", "a")
    assert (await hooks.dispatch(step("before_tool", args={"command": "ls"}))).proceeds


async def test_rule_that_changes(machine):
    hooks = machine.hooks(
        user=hook('rule = "true"', 'change.response = { match = "sk-[a-z]+", replace = "[key]" }', on="before_response")
    )
    decision = await decide(hooks, "before_response", response="it is sk-abc")
    assert decision.step.response == "it is [key]"


async def test_command(machine):
    script = machine.script("check", '#!/bin/sh\necho "$1 $(cat)" >&2\nexit 2\n')
    decision = await decide(machine.hooks(user=hook(f'command = ["{script}", "said:"]')), call_id="call-9")
    assert (decision.control, decision.reason[:5], "call-9" in decision.reason) == ("deny", "said:", True)


async def test_command_words_are_not_read_by_a_shell(machine):
    decision = await decide(machine.hooks(user=hook('command = ["echo", "$HOME;", "`id`", "*"]', 'output = "context"')))
    assert list(decision.context) == ["$HOME; `id` *"]


async def test_command_with_exit_codes_and_output(machine):
    text = hook(
        """shell = "echo '2 tests failed'; exit 1" """,
        'exit = { 0 = "proceed", 1 = "veto" }',
        'output = "context"',
        on="before_turn_end",
    )
    decision = await decide(machine.hooks(user=text), "before_turn_end")
    assert (decision.control, list(decision.context)) == ("extend", ["2 tests failed"])


async def test_shell(machine):
    decision = await decide(machine.hooks(user=hook('shell = "test 1 = 1 && echo $0 >&2 && exit 2"')))
    assert (decision.control, decision.reason) == ("deny", "/bin/sh")


async def test_worker(machine):
    script = machine.script(
        "worker",
        "#!/bin/sh\nwhile IFS= read -r line; do id=${line#*:}; id=${id%%,*}\n"
        'printf \'{"id":%s,"verdict":{"control":"deny","reason":"%s"}}\\n\' "$id" $$; done\n',
    )
    async with machine.hooks(user=hook(f'worker = ["{script}"]')) as hooks:
        decisions = [await hooks.dispatch(step("before_tool")) for _ in range(2)]
    assert {d.control for d in decisions} == {"deny"}
    assert decisions[0].reason == decisions[1].reason  # one process answers all


@pytest.mark.parametrize("target", ["policy:check", "policy.py:check", "sub/policy.py:check", "sub.policy:check"])
async def test_python(target: str, machine):
    for folder in (machine.user.parent, machine.user.parent / "sub"):
        folder.mkdir(exist_ok=True)
        (folder / "policy.py").write_text(CHECK)
    decision = await decide(machine.hooks(user=hook(f'python = "{target}"')), args={"command": "ls"})
    pid, command = decision.reason.split()
    assert (decision.control, decision.cause, command) == ("deny", "policy", "ls")
    assert int(pid) != os.getpid()


async def test_python_by_an_absolute_path(machine):
    file = machine.outside / "policy.py"
    file.write_text(CHECK)
    decision = await decide(machine.hooks(user=hook(f'python = "{file}:check"')), args={"command": "ls"})
    assert decision.reason.endswith(" ls")


async def test_python_that_is_async(machine):
    (machine.user.parent / "policy.py").write_text(
        "import asyncio\nfrom fairlead import deny\n"
        "async def check(step):\n    await asyncio.sleep(0)\n    return deny('later')\n"
    )
    assert (await decide(machine.hooks(user=hook('python = "policy:check"')))).reason == "later"


async def test_python_that_is_a_worker_with_hooks_of_its_own(machine):
    (machine.user.parent / "policy.py").write_text(
        "from fairlead import deny\nfrom fairlead.worker import Worker\nworker = Worker()\n"
        "@worker.on.before_tool(tool='rm')\ndef check(step):\n    return deny('no rm')\n"
    )
    async with machine.hooks(user=hook('python = "policy:worker"')) as hooks:
        refused, fine = await hooks.dispatch(step("before_tool", tool="rm")), await hooks.dispatch(step("before_tool"))
    assert (refused.reason, fine.control) == ("no rm", "proceed")


async def test_python_that_raises_is_a_failure_that_says_so(machine):
    (machine.user.parent / "policy.py").write_text("def check(step):\n    raise ValueError('boom')\n")
    decision = await decide(machine.hooks(user=hook('python = "policy:check"')))
    assert (decision.control, decision.cause, "boom" in decision.reason) == ("deny", "failure", True)


async def test_python_prints_nothing(machine):
    (machine.user.parent / "policy.py").write_text("print('loading')\ndef check(step):\n    print('noise')\n")
    assert (await decide(machine.hooks(user=hook('python = "policy:check"')))).failures == ()


def test_python_without_its_interpreter_cannot_run(machine):
    (mistake,) = machine.problems(user=hook('python = "policy:check"', 'interpreter = "python9"'))
    assert "program 'python9' is not there" in mistake.problem


async def test_python_with_an_interpreter(machine):
    interpreter = machine.script("my-python", f'#!/bin/sh\nMINE=yes exec {sys.executable} "$@"\n')
    (machine.user.parent / "policy.py").write_text(
        "import os\nfrom fairlead import deny\ndef check(step):\n    return deny(os.environ['MINE'])\n"
    )
    text = hook('python = "policy:check"', f'interpreter = "{interpreter}"')
    assert (await decide(machine.hooks(user=text))).reason == "yes"


@pytest.fixture
async def service():
    """A service on this machine that denies everything, and what it was sent."""
    from aiohttp import web

    requests: list[Any] = []

    async def answer(request: Any) -> Any:
        requests.append((dict(request.headers), await request.json()))
        return web.json_response({"control": "deny", "reason": "not today"})

    app = web.Application()
    app.router.add_post("/steps", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/steps", requests
    await runner.cleanup()


async def test_url(service, machine):
    url, requests = service
    decision = await decide(machine.hooks(user=hook(f'url = "{url}"')))
    assert (decision.control, decision.reason) == ("deny", "not today")
    assert requests[0][1]["event"] == "before_tool"


async def test_url_with_headers_from_the_environment(service, machine, monkeypatch):
    url, requests = service
    monkeypatch.setenv("TOKEN", "t0ken")
    text = hook(
        f'url = "{url}"', 'headers = { Authorization = { env = "TOKEN", prefix = "Bearer " }, X-Team = "core" }'
    )
    await decide(machine.hooks(user=text))
    sent, _ = requests[0]
    assert (sent["Authorization"], sent["X-Team"]) == ("Bearer t0ken", "core")


async def test_url_with_a_secret_signs_and_refuses_an_unsigned_verdict(service, machine, monkeypatch):
    url, requests = service
    monkeypatch.setenv("SECRET", "s3cret")
    decision = await decide(machine.hooks(user=hook(f'url = "{url}"', 'secret = { env = "SECRET" }')))
    assert "Fairlead-Signature" in requests[0][0]
    assert (decision.cause, "not to be trusted" in decision.reason) == ("failure", True)


@pytest.fixture
def model(monkeypatch):
    """A model, what it says, and what it was asked."""
    import pydantic_ai.direct
    from pydantic_ai.messages import ModelResponse, TextPart

    scripted = SimpleNamespace(says='{"control": "deny", "reason": "too risky"}', asked=[])

    async def request(model: str, messages: list[Any], **options: Any) -> ModelResponse:
        scripted.asked.append((model, messages[0]))
        return ModelResponse(parts=[TextPart(scripted.says)])

    monkeypatch.setattr(pydantic_ai.direct, "model_request", request)
    return scripted


async def test_prompt(model, machine):
    text = hook('prompt = "Refuse what is risky."', 'model = "acme:judge-1"', 'template = "runs {target.command}"')
    decision = await decide(machine.hooks(user=text), args={"command": "rm -rf /"})
    assert (decision.control, decision.reason) == ("deny", "too risky")
    name, request = model.asked[0]
    assert (name, request.instructions) == ("acme:judge-1", "Refuse what is risky.")
    assert "runs rm -rf /" in request.parts[0].content


async def test_prompt_for_context(model, machine):
    model.says = "The build is red."
    text = hook('prompt = "Say something."', 'model = "acme:judge-1"', 'output = "context"')
    decision = await decide(machine.hooks(user=text))
    assert (decision.control, list(decision.context)) == ("proceed", ["The build is red."])


@pytest.mark.parametrize(("may", "control"), [("", "deny"), ('may = ["allow"]', "allow")])
async def test_prompt_may_allow_only_where_it_was_given_that(may: str, control: str, model, machine):
    model.says = '{"control": "allow"}'
    decision = await decide(machine.hooks(user=hook('prompt = "Judge."', 'model = "acme:judge-1"', may)))
    assert decision.control == control


async def test_prompt_with_may_still_does_what_any_prompt_may(model, machine):
    text = hook('prompt = "Judge."', 'model = "acme:judge-1"', 'may = ["allow"]')
    assert (await decide(machine.hooks(user=text))).reason == "too risky"


@pytest.mark.parametrize("layer", ["system", "user"])
async def test_a_hook_runs_the_same_from_either_layer(layer: str, machine):
    decision = await decide(machine.hooks(**{layer: RULE}))
    assert (decision.control, decision.hook) == ("deny", "a")


# --- values from the environment -----------------------------------------------------------------------


LITERALLY = ["$X", "${X}", "%X%", "{X}", "{env.X}", "~"]


async def test_headers_are_sent_as_they_are_written(service, machine, monkeypatch):
    url, requests = service
    monkeypatch.setenv("X", "interpolated")
    headers = ", ".join(f'X-{number} = "{text}"' for number, text in enumerate(LITERALLY))
    await decide(machine.hooks(user=hook(f'url = "{url}"', f"headers = {{ {headers} }}")))
    assert [requests[0][0][f"X-{number}"] for number in range(len(LITERALLY))] == LITERALLY


async def test_the_words_of_a_command_are_passed_as_they_are_written(machine, monkeypatch):
    monkeypatch.setenv("X", "interpolated")
    text = hook(f"command = {json.dumps(['echo', *LITERALLY])}", 'output = "context"')
    assert list((await decide(machine.hooks(user=text))).context) == [" ".join(LITERALLY)]


async def test_variables_are_set_as_they_are_written(machine, monkeypatch):
    monkeypatch.setenv("X", "interpolated")
    values = ", ".join(f'A{number} = "{text}"' for number, text in enumerate(LITERALLY))
    found = await see(machine, f"env = {{ {values} }}")
    assert [found[f"A{number}"] for number in range(len(LITERALLY))] == LITERALLY


async def test_the_text_of_a_rule_takes_nothing_from_the_environment(machine, monkeypatch):
    monkeypatch.setenv("X", "interpolated")
    decision = await decide(machine.hooks(user=hook('rule = "true"', 'deny = "$X %X% $(X)"')))
    assert decision.reason == "$X %X% $(X)"


def test_braces_in_the_text_of_a_rule_are_fields_of_the_step_and_never_variables(machine, monkeypatch):
    monkeypatch.setenv("X", "interpolated")
    (mistake,) = machine.mistakes(user=hook('rule = "true"', 'deny = "${X}"'))
    assert "unknown field 'X'" in mistake.problem


# --- what a process gets to see ------------------------------------------------------------------------

STEERING = ("LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "GIT_DIR")


def seen(machine) -> dict[str, str]:
    """What `env -0 > seen` saw, in the folder of the user's file."""
    entries = (machine.user.parent / "seen").read_text().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


async def see(machine, *lines: str, **fields: Any) -> dict[str, str]:
    decision = await decide(machine.hooks(user=hook('shell = "env -0 > seen"', *lines)), **fields)
    assert decision.failures == ()
    return seen(machine)


async def test_a_process_starts_in_the_folder_of_its_file(machine):
    decision = await decide(machine.hooks(user=hook('shell = "pwd -P"', 'output = "context"')))
    assert list(decision.context) == [str(machine.user.parent)]


async def test_nothing_that_steers_a_loader_passes(machine, monkeypatch):
    for name in STEERING:
        monkeypatch.setenv(name, "/planted")
    assert not set(STEERING) & (await see(machine)).keys()


async def test_a_variable_that_is_named_passes(machine, monkeypatch):
    for name in (*STEERING[1:], "ACME"):
        monkeypatch.setenv(name, "/named")
    found = await see(machine, f"env = {json.dumps([*STEERING[1:], 'ACME', 'UNSET'])}")
    assert [found.get(name) for name in (*STEERING[1:], "ACME", "UNSET")] == ["/named"] * 5 + [None]


async def test_variables_can_be_set_or_taken_under_another_name(machine, monkeypatch):
    monkeypatch.setenv("TOKEN", "t0ken")
    found = await see(machine, 'env = { MODE = "strict", AUTH = { env = "TOKEN", prefix = "Bearer " } }')
    assert (found["MODE"], found["AUTH"], "TOKEN" in found) == ("strict", "Bearer t0ken", False)


async def test_other_variables_do_not_pass(machine, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    assert "AWS_SECRET_ACCESS_KEY" not in await see(machine)


async def test_a_process_is_told_about_the_step(machine):
    found = await see(machine, session_id="s-1", tool="bash", cwd="/work")
    told = [found[f"FAIRLEAD_{name}"] for name in ("EVENT", "SESSION_ID", "TOOL", "CWD")]
    assert told == ["before_tool", "s-1", "bash", "/work"]


async def test_python_is_kept_from_importing_from_its_working_directory(machine):
    assert (await see(machine))["PYTHONSAFEPATH"] == "1"


async def test_python_hooks_see_neither_the_workspace_nor_their_working_directory_in_their_path(machine, monkeypatch):
    monkeypatch.chdir(machine.workspace)
    monkeypatch.setenv("PYTHONPATH", str(machine.workspace))
    (machine.user.parent / "policy.py").write_text(
        "import json, sys\nfrom fairlead import deny\ndef check(step):\n    return deny(json.dumps(sys.path))\n"
    )
    found = json.loads((await decide(machine.hooks(user=hook('python = "policy.py:check"')))).reason)
    assert not {"", ".", str(machine.workspace), str(machine.user.parent)} & set(found)


# --- programs ------------------------------------------------------------------------------------------


def plant(path: Path, word: str) -> None:
    """A program that says who it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {word}\n")
    path.chmod(0o755)


def searched(monkeypatch, *places: str | Path) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, places), os.environ["PATH"]]))


JQ = hook('command = ["jq", "."]', 'output = "context"')


async def test_a_program_is_never_found_inside_the_workspace(machine, monkeypatch):
    plant(machine.workspace / "bin" / "jq", "planted")
    plant(machine.outside / "jq", "real")
    searched(monkeypatch, machine.workspace, machine.workspace / "bin", machine.outside)
    assert list((await decide(machine.hooks(user=JQ))).context) == ["real"]


async def test_a_program_is_never_found_through_a_relative_entry_of_the_path(machine, monkeypatch):
    plant(machine.workspace / "jq", "planted")
    plant(machine.workspace / "bin" / "jq", "planted")
    plant(machine.outside / "jq", "real")
    searched(monkeypatch, "", ".", "bin", machine.outside)
    monkeypatch.chdir(machine.workspace)
    assert list((await decide(machine.hooks(user=JQ))).context) == ["real"]


async def test_a_link_into_the_workspace_is_not_followed_to_a_program(machine, monkeypatch):
    plant(machine.workspace / "bin" / "jq", "planted")
    plant(machine.outside / "jq", "real")
    (machine.outside / "link").symlink_to(machine.workspace / "bin")
    searched(monkeypatch, machine.outside / "link", machine.outside)
    assert list((await decide(machine.hooks(user=JQ))).context) == ["real"]


def test_a_program_that_is_only_in_the_workspace_is_not_found(machine, monkeypatch):
    plant(machine.workspace / "bin" / "acme-check", "planted")
    searched(monkeypatch, machine.workspace / "bin")
    (mistake,) = machine.problems(user=hook('command = ["acme-check"]'))
    assert "program 'acme-check' is not there" in mistake.problem


@pytest.mark.parametrize("form", ["command", "worker"])
def test_a_program_in_the_workspace_is_a_mistake_even_by_its_full_path(form: str, machine):
    plant(machine.workspace / "check", "planted")
    (mistake,) = machine.mistakes(user=hook(f'{form} = ["{machine.workspace}/check"]'))
    assert "lies in the agent's workspace" in mistake.problem


def test_a_program_that_links_into_the_workspace_is_a_mistake(machine):
    plant(machine.workspace / "check", "planted")
    (machine.outside / "check").symlink_to(machine.workspace / "check")
    (mistake,) = machine.mistakes(user=hook(f'command = ["{machine.outside}/check"]'))
    assert "lies in the agent's workspace" in mistake.problem


def test_a_python_file_in_the_workspace_is_a_mistake(machine):
    (machine.workspace / "policy.py").write_text(CHECK)
    (mistake,) = machine.mistakes(user=hook(f'python = "{machine.workspace}/policy.py:check"'))
    assert "lies in the agent's workspace" in mistake.problem


def test_an_interpreter_in_the_workspace_is_a_mistake(machine):
    plant(machine.workspace / "python", "planted")
    text = hook('python = "policy:check"', f'interpreter = "{machine.workspace}/python"')
    (mistake,) = machine.mistakes(user=text)
    assert "lies in the agent's workspace" in mistake.problem


async def test_a_program_stays_the_one_that_was_found_when_the_file_was_read(machine, monkeypatch):
    plant(machine.outside / "later" / "jq", "real")
    searched(monkeypatch, machine.outside / "sooner", machine.outside / "later")
    hooks = machine.hooks(user=JQ)
    plant(machine.outside / "sooner" / "jq", "planted")
    assert list((await decide(hooks)).context) == ["real"]


async def test_a_relative_program_is_one_beside_the_file(machine, monkeypatch):
    plant(machine.workspace / "check", "planted")
    plant(machine.user.parent / "check", "real")
    monkeypatch.chdir(machine.workspace)
    decision = await decide(machine.hooks(user=hook('command = ["./check"]', 'output = "context"')))
    assert list(decision.context) == ["real"]


async def test_the_path_of_a_process_has_nothing_relative_and_nothing_of_the_workspace(machine, monkeypatch):
    (machine.workspace / "bin").mkdir()
    (machine.outside / "link").symlink_to(machine.workspace / "bin")
    inside = [machine.workspace, machine.workspace / "bin", machine.outside / "link"]
    searched(monkeypatch, "", ".", "bin", *inside, machine.outside)
    places = (await see(machine))["PATH"].split(os.pathsep)
    assert all(map(os.path.isabs, places))
    assert str(machine.outside) in places
    assert not {str(place) for place in inside} & set(places)


async def test_what_a_shell_line_looks_up_is_not_found_in_the_workspace(machine, monkeypatch):
    plant(machine.workspace / "bin" / "jq", "planted")
    plant(machine.outside / "jq", "real")
    searched(monkeypatch, machine.workspace / "bin", machine.outside)
    decision = await decide(machine.hooks(user=hook('shell = "jq"', 'output = "context"')))
    assert list(decision.context) == ["real"]


# --- attacks -------------------------------------------------------------------------------------------

PLANTED = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\ndef check(step): pass\n"


async def test_a_module_planted_in_the_workspace_does_not_stand_in_for_the_users(machine, monkeypatch):
    (machine.workspace / "policy.py").write_text(PLANTED)
    (machine.user.parent / "policy.py").write_text(CHECK)
    monkeypatch.chdir(machine.workspace)
    decision = await decide(machine.hooks(user=hook('python = "policy:check"')))
    assert (decision.control, decision.cause) == ("deny", "policy")
    assert not (machine.workspace / "ran").exists()


async def test_a_module_planted_in_the_workspace_does_not_fill_a_gap(machine, monkeypatch):
    (machine.workspace / "policy.py").write_text(PLANTED)
    monkeypatch.chdir(machine.workspace)
    decision = await decide(machine.hooks(user=hook('python = "policy:check"')))
    assert (decision.control, decision.cause) == ("deny", "failure")
    assert not (machine.workspace / "ran").exists()


async def test_a_planted_module_of_the_standard_library_is_not_imported(machine, monkeypatch):
    (machine.user.parent / "policy.py").write_text(CHECK)
    for name in ("json", "asyncio", "msgspec", "fairlead", "sitecustomize", "usercustomize"):
        (machine.workspace / f"{name}.py").write_text(PLANTED)
    monkeypatch.chdir(machine.workspace)
    monkeypatch.setenv("PYTHONPATH", str(machine.workspace))
    decision = await decide(machine.hooks(user=hook('python = "policy.py:check"')))
    assert (decision.cause, (machine.workspace / "ran").exists()) == ("policy", False)


async def test_a_script_planted_in_the_workspace_does_not_stand_in_for_the_users(machine, monkeypatch):
    (machine.workspace / "policy.py").write_text(PLANTED)
    (machine.user.parent / "policy.py").write_text("print('real')")
    monkeypatch.chdir(machine.workspace)
    text = hook(f'command = ["{sys.executable}", "policy.py"]', 'output = "context"')
    assert list((await decide(machine.hooks(user=text))).context) == ["real"]


def test_a_script_planted_in_the_workspace_does_not_fill_a_gap(machine, monkeypatch):
    (machine.workspace / "policy.py").write_text(PLANTED)
    monkeypatch.chdir(machine.workspace)
    (mistake,) = machine.problems(user=hook('command = ["python3", "policy.py"]'))
    assert "script 'policy.py' is not in" in mistake.problem


async def test_a_script_that_goes_away_later_is_a_failure_not_a_veto(machine):
    script = machine.user.parent / "policy.py"
    script.write_text("")
    hooks = machine.hooks(user=hook('command = ["python3", "policy.py"]'))
    script.unlink()
    assert (await decide(hooks)).cause == "failure"


def test_a_link_in_the_workspace_is_not_a_program_outside_of_it(machine):
    (machine.workspace / "tool").symlink_to("/bin/true")
    (mistake,) = machine.mistakes(
        user=f'[[hook]]\nname = "a"\non = "before_tool"\ncommand = ["{machine.workspace}/tool"]\n'
    )
    assert "lies in the agent's workspace" in mistake.problem


def test_an_empty_secret_is_a_mistake(machine, monkeypatch):
    monkeypatch.setenv("EMPTY", "")
    (mistake,) = machine.mistakes(
        user='[[hook]]\nname = "a"\non = "before_tool"\nurl = "https://a.example"\nsecret = { env = "EMPTY" }\n'
    )
    assert "empty" in mistake.problem
