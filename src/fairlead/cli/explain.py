"""`fairlead explain`: how a command line is read, which rules of packs speak, and what the configured hooks say."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..display import escape, paint, print_json, short
from .loading import add_folder, add_json, host_name, say_never_trusted, sound_config

if TYPE_CHECKING:
    from ..config.hook_entry import ConfiguredHook
    from ..config.layers import Config
    from ..decision import Decision
    from ..lifecycle import BeforeTool
    from ..packs.judging import PackGate, RuleHit
    from ..shell import Command, Line


_TOOLS = {"posix": "bash", "powershell": "powershell", "cmd": "cmd.exe"}
"""The tool that runs a line of each dialect, if none is named."""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "explain",
        help="show how a command line is read, and what packs and hooks say of it",
        description="Show every command that a line would run, those inside others included: how each is run, in "
        "which folder, with which options. Then show which rules of packs speak, what would pass instead, and what the "
        "configured hooks say of the line. Nothing of it runs.",
        epilog="Ends with 0 if the line may run, with 2 for any other decision, with 1 if it could not be judged.",
    )
    parser.add_argument("line", metavar="LINE", help="the command line, in quotes; - reads it from stdin")
    parser.add_argument("--host", help="the agent whose step it is, such as claude_code or codex")
    parser.add_argument("--tool", help="the tool that would run it (default: bash, or the shell of the dialect)")
    parser.add_argument(
        "--dialect", choices=tuple(_TOOLS), help="whose syntax the line has (default: that of the tool, by its name)"
    )
    add_folder(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import asyncio

    import msgspec

    from ..samples import step
    from ..shell import read
    from ..tools import dialect_of
    from .test import conclusion, decide, describe

    text = sys.stdin.read() if options.line == "-" else options.line
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # steps hold text, not bytes
    folder = os.path.abspath(options.folder)
    tool = options.tool or _TOOLS[options.dialect or "posix"]
    dialect = options.dialect or dialect_of(tool)
    line = read(text, folder, {"HOME": os.path.expanduser("~")}, dialect)
    config = sound_config(options)
    made = step("before_tool", tool=tool, args={"command": text}, cwd=folder, host=host_name(options.host))
    made = msgspec.structs.replace(made, target=msgspec.structs.replace(made.target, dialect=dialect))
    decision = asyncio.run(decide(config, options.folder, made))
    rules = list(_hits(config, decision))
    if options.json:
        described = describe(decision)
        print_json({
            "line": text, "dialect": dialect, "sure": line.sure,
            "commands": [describe_command(command) for command in line.tree],
            "rules": [_describe_hit(*found) for found in rules],
            "hooks": described["hooks"], "decision": described["decision"], "untrusted": config.untrusted,
        })  # fmt: skip
    else:
        say_never_trusted(config)
        print("\n".join(_tree(line, folder)))
        print("\n".join(_rules(config, rules, made)))
        print("\n".join(["", *conclusion(decision)]))
    if decision.proceeds and config.never_trusted:
        return 1
    return 0 if decision.proceeds else 2


Hit = tuple["ConfiguredHook", "PackGate", "RuleHit"]
"""A rule that objects, the gate of its pack, and the hook of that gate."""

# --- packs --------------------------------------------------------------------------------------------


def _hits(config: Config, decision: Decision[BeforeTool]) -> Iterator[Hit]:
    """The rules that object to the step as it was judged, those that an exemption silences included."""
    from .exceptions import gates_of

    ran = {run.hook for run in decision.runs}  # a pack does not run for each kind of tool
    for configured, gate in gates_of(config):
        if configured.name in ran:
            yield from ((configured, gate, hit) for hit in gate.hits(decision.step))


def _describe_hit(configured: ConfiguredHook, gate: PackGate, hit: RuleHit) -> dict[str, Any]:
    """A rule that speaks, as data."""
    from .exceptions import describe_exemption
    from .packs import describe_rule

    rule = hit.finding.rule
    exemption = None if hit.exemption is None else describe_exemption(hit.exemption)
    about = {"part": hit.finding.part, "answer": gate.answer(rule), "hook": configured.name, "file": configured.where}
    more = {"enforced": configured.hook.enforce, "alternatives": rule.alternatives, "exemption": exemption}
    return describe_rule(rule) | about | more


def _rules(config: Config, rules: list[Hit], step: BeforeTool) -> Iterator[str]:
    """What the rules say, or would say if packs were used."""
    for configured, gate, hit in rules:
        verdict: str = gate.answer(hit.finding.rule)
        if hit.exemption is not None:
            verdict = f"{verdict}, but exempt"
        elif not configured.hook.enforce:
            verdict = f"{verdict}, but only watched"
        yield from _rule(hit, verdict, configured.name)
    if not any(configured.form == "pack" for configured in config.hooks):
        yield from _without_packs(step)


def _without_packs(step: BeforeTool) -> Iterator[str]:
    from ..packs import packs
    from ..packs.judging import PackGate

    yield '\nNo pack is used here. With packs = ["recommended"] in fairlead.toml:'
    nothing = True
    for gate in map(PackGate, packs("recommended")):
        for hit in gate.hits(step):
            nothing = False
            yield from _rule(hit, f"would {gate.answer(hit.finding.rule)}", "recommended")
    if nothing:
        yield "  no rule would speak"


def _rule(hit: RuleHit, verdict: str, by: str) -> Iterator[str]:
    from ..display import columns
    from .exceptions import describe_exemption

    rule = hit.finding.rule
    facts = {"about": hit.finding.part, "why": rule.why, "instead": rule.instead, "incident": rule.incident}
    rows = [[paint(name, "dim"), escape(fact)] for name, fact in facts.items() if fact]
    rows += [[paint("passes", "dim"), escape(command)] for command in rule.alternatives]
    if hit.exemption is not None:
        exemption = describe_exemption(hit.exemption).items()
        words = [f"{name} {value}" for name, value in exemption if value and name != "rule"]
        rows.append([paint("exempt", "dim"), escape(", ".join(words))])
    yield f"\n{paint(rule.id, 'bold')}  {rule.level}: {verdict}  ({escape(by)})"
    yield columns(rows, "  ")


# --- the line -----------------------------------------------------------------------------------------


def describe_command(command: Command) -> dict[str, Any]:
    """A command as data, with the commands inside it, and what is not known of its words."""
    from ..shell import Word

    unknown = {str(word): list(word.unknown) for word in command.args if isinstance(word, Word)}
    redirects = [
        {"operator": r.operator, "target": str(r.target), "descriptor": r.descriptor} for r in command.redirects
    ]
    inner = [describe_command(one) for one in command.inner]
    return command.to_builtins() | {"redirects": redirects, "unknown": unknown, "inner": inner}


def _tree(line: Line, folder: str) -> Iterator[str]:
    """The commands, each below the one that runs it."""
    if not line.commands:
        yield "no command"
    for command in line.tree:
        yield from _branch(command, folder, "")
    if not line.sure:
        yield paint("not sure: something of this line is decided only when it runs, or was not understood", "yellow")


def _branch(command: Command, folder: str, indent: str) -> Iterator[str]:
    from ..shell import Word
    from ..shell.commands import quote

    words = " ".join(
        [str(command.program), *(str(word) if isinstance(word, Word) else quote(word) for word in command.args)]
    )
    notes = [f"{name}" + (f"={short(value, 40)}" if value else "") for name, value in command.options.items()]
    text = f"{indent}{paint(escape(short(words, 200)), 'bold')}" if command.program else f"{indent}(no program)"
    yield text + ("" if command.sure else paint("  not sure", "yellow"))
    facts = {
        "via": ", ".join(command.via),
        "sets": " ".join(f"{name}={short(value, 40)}" for name, value in command.assignments.items()),
        "options": " ".join(notes),
        "operands": " ".join(quote(str(word)) for word in command.operands) if notes else "",
        "folder": command.folder or "not known" if command.folder != folder else "",
        "writes": " ".join(command.writes()),
        "reads": f"the output of {command.reads.program}" if command.reads is not None else "",
        "stdin": short(command.stdin, 80) if command.stdin is not None else "",
        "unknown": " ".join(
            dict.fromkeys(one for word in command.args if isinstance(word, Word) for one in word.unknown)
        ),
    }
    for name, fact in facts.items():
        if fact:
            yield paint(f"{indent}  {name:<9} ", "dim") + escape(fact)
    for inner in command.inner:
        yield from _branch(inner, folder, indent + "    ")
