"""A pack at work: its rules look at a call, and the worst that they find becomes a verdict."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import msgspec

from ..hook import Hook, Layer
from ..lifecycle import BeforeTool, Step
from ..session import current_session
from ..shell import Command, Dialect, Line
from ..shell.words import emptied
from ..tools import KINDS
from ..verdict import Verdict, ask, deny, warn
from .exemptions import Exemption
from .lines import PackLine
from .rules import LEVELS, Finding, Level, Limits, Memory, Objection, Pack, PackRule

RuleControl = Literal["deny", "ask", "warn"]
"""What a pack says to a call that it objects to."""
ANSWERS: dict[Level, RuleControl] = {"disaster": "deny", "destructive": "ask", "strict": "ask"}
"""What each level leads to, unless you choose."""
_STRENGTH: dict[RuleControl, int] = {"warn": 0, "ask": 1, "deny": 2}
LONGEST = 256 << 10
"""Characters of a command line that is read. Of a longer one, any mention of a program that destroys counts."""


class PackOptions(msgspec.Struct, frozen=True):
    """How a pack is used."""

    level: Level = "destructive"
    """The least level that it speaks at."""
    verdict: RuleControl | None = None
    """What it says at every level. None: what the level leads to."""
    protect: tuple[str, ...] = ()
    """Paths that rules treat like a home: nothing in them may be deleted."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts that rules treat like this machine."""
    exemptions: tuple[Exemption, ...] = ()
    limits: Limits = Limits()
    """How much the agent may do in a session, for the pack budgets."""
    exceptions: bool = False
    """Whether a refusal names the command that requests an exception: one that a file can grant."""


class RuleHit(NamedTuple):
    """What a rule finds about a call, in which command of it, and what exempts that, if anything does."""

    finding: Finding
    command: Command | None = None
    exemption: Exemption | None = None


class PackGate:
    """A pack as a hook: denies, asks about, or warns of a call that a rule objects to."""

    def __init__(self, pack: Pack, options: PackOptions | None = None, layer: Layer = "user") -> None:
        self.pack = pack
        self._prefix = f"pack.{pack.name}.{layer}."  # two layers that use a pack count by themselves
        self.options = options or PackOptions()
        speaking = LEVELS[: LEVELS.index(self.options.level) + 1]
        self._by_program = {
            program: [rule for rule in rules if rule.level in speaking] for program, rules in pack.by_program.items()
        }
        self._of_any = [rule for rule in pack.of_any_command if rule.level in speaking]
        self._of_session = [rule for rule in pack.of_session if rule.level in speaking]
        self._of_line = [rule for rule in pack.of_line if rule.level in speaking]
        self._by_kind = {
            kind: [rule for rule in rules if rule.level in speaking] for kind, rules in pack.by_kind.items()
        }

    @property
    def remembers(self) -> bool:
        """Whether what it says depends on earlier steps of the session."""
        return bool(self._of_session or self.pack.watchers)

    def __call__(self, step: Step) -> Verdict | None:
        if not isinstance(step, BeforeTool):
            if (watcher := self.pack.watchers.get(step.event)) is not None and (memory := self._memory()) is not None:
                watcher(step, memory)
            return None
        found = self.worst(step)
        if found is None:
            return None
        metadata = {"rule": found.rule.id, "level": found.rule.level}
        text, answer = str(found), self.answer(found.rule)
        if self.options.exceptions and answer != "warn" and self._may_be_exempt(found.rule):
            metadata["exception"] = exception_id(step)
            text += f" For an exception: `fairlead exception request {metadata['exception']} --reason WHY`"
        return {"deny": deny, "ask": ask, "warn": warn}[answer](text, metadata=metadata)

    def _may_be_exempt(self, rule: PackRule) -> bool:
        return rule.level != "disaster" and rule.about != "session"

    def answer(self, rule: PackRule) -> RuleControl:
        """What the pack says when a rule objects."""
        return self.options.verdict or rule.answer or ANSWERS[rule.level]

    def _memory(self) -> Memory | None:
        """What the pack remembers of the session. None: there is no session, or it keeps nothing."""
        session = current_session(None)
        if session is None or not session.keeps_state:
            return None
        return Memory(session.store, self._prefix, self.options.limits, session.now)

    @property
    def needs_session(self) -> bool:
        """Whether some of its rules say nothing without a session that keeps its state."""
        return bool(self._of_session)

    def worst(self, step: BeforeTool) -> Finding | None:
        """The most severe finding about a call. Among equals, the first in the order of the line."""
        if not step.target.command and step.kind not in self._by_kind and not (self._of_session and self._memory()):
            return None  # most calls of tools that are no shell: nothing looks at them
        return max(self.findings(step), key=self._severity, default=None)

    def _severity(self, finding: Finding) -> tuple[int, int]:
        return finding.severity, _STRENGTH[self.answer(finding.rule)]

    def findings(self, step: BeforeTool) -> Iterator[Finding]:
        """All that the rules find about a call, without what is exempt."""
        return (one.finding for one in self.hits(step) if one.exemption is None)

    def hits(self, step: BeforeTool) -> Iterator[RuleHit]:
        """All that the rules find about a call, what is exempt included."""
        if self._of_session and (memory := self._memory()) is not None:
            for rule in self._of_session:
                if part := rule.check(step, memory):
                    yield RuleHit(Finding(rule, _part(step.tool, part)))
        rules = self._by_kind.get(step.kind, ())
        text = step.target.command
        if not rules and not text:
            return
        command = text if isinstance(text, str) else ""
        folder, home, options = step.cwd or "", os.environ.get("HOME") or os.path.expanduser("~"), self.options
        line = line_of(command, folder, home, options.protect, options.allow_hosts, step.target.dialect)
        for rule in rules:
            if part := rule.check(step, line):
                exempt = next((one for one in self._exemptions(rule) if one.covers_call(step)), None)
                yield RuleHit(Finding(rule, _part(step.tool, part)), None, exempt)
        if command:
            program = program_of_code_tool(step.tool)
            if not program or line.line.sound:  # code need not be a line of a shell
                yield from self._hits_in(line)
            if escaped := "\n".join(_ESCAPED.findall(command)) if program == "python3" else "":
                yield from self._hits_in(line_of(escaped, folder, home, options.protect, options.allow_hosts))
            if program:
                text = f"{program} - <<'END-OF-CODE'\n{command}\nEND-OF-CODE"
                yield from self._hits_in(line_of(text, folder, home, options.protect, options.allow_hosts))

    def findings_in(self, line: PackLine) -> Iterator[Finding]:
        """All that the rules find about a command line, without what is exempt."""
        return (one.finding for one in self._hits_in(line) if one.exemption is None)

    def _hits_in(self, line: PackLine) -> Iterator[RuleHit]:
        for command in line.commands:
            for rule in (*self._by_program.get(emptied(command.program), ()), *self._of_any):
                if part := rule.check(command, line):
                    yield RuleHit(_finding(rule, part, command), command, self._exempting(rule, command, line))
        for rule in self._of_line:
            if part := rule.check(line):
                only = line.line.tree[0] if len(line.commands) == 1 and line.line.tree else None
                exempt = self._exempting(rule, only, line) if only is not None else None
                yield RuleHit(Finding(rule, _part(_short(line.text), part)), only, exempt)

    def _exempting(self, rule: PackRule, command: Command, line: PackLine) -> Exemption | None:
        return next((one for one in self._exemptions(rule) if one.covers(command, line)), None)

    def _exemptions(self, rule: PackRule) -> Iterator[Exemption]:
        return (one for one in self.options.exemptions if one.rule == rule.id)


def exception_id(step: BeforeTool) -> str:
    """A short name of a call, which its record in the journal has, too."""
    call = (step.session_id, step.call_id, step.sequence, step.tool, step.target.command, step.target.paths)
    return sha256(repr(call).encode(errors="replace")).hexdigest()[:10]


def _finding(rule: PackRule, part: Objection, command: Command) -> Finding:
    return Finding(rule, _part(_short(" ".join([command.program, *map(str, command.args)])), part))


def _part(whole: str, part: Objection) -> str:
    return f"{whole}: {part}" if isinstance(part, str) else whole


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 120 else text[:119] + "…"


@lru_cache(maxsize=64)
def line_of(
    text: str,
    folder: str,
    home: str,
    protect: tuple[str, ...] = (),
    allow_hosts: tuple[str, ...] = (),
    dialect: Dialect = "posix",
) -> PackLine:
    """A command line, read once for all packs."""
    if len(text) > LONGEST:
        return PackLine(text, folder, home, Line(text, [], False), protect=protect, allow_hosts=allow_hosts)
    return PackLine(text, folder, home, protect=protect, allow_hosts=allow_hosts, dialect=dialect)


_ESCAPED = re.compile(r"(?m)^(?:[\w, \t]+=)?[ \t]*(?:!!?|%(?!%)(?:sx\b|system\b)?)((?:[^\n]*\\\n){0,9}[^\n]*)")
"""A command in the code of a notebook: `!rm x`, `found = !ls`, `%cd x`."""
_CODE_TOOL = re.compile(
    r"(?:.*__)?(?:(?:run|execute|exec)_?)?(?:(javascript|js|node|typescript)|(?:i?python\d?|py|jupyter|code|cell))"
    r"(?:_?(?:repl|code|script|exec|run|interpreter|execution|cell))?",
    re.IGNORECASE | re.DOTALL,
)


@lru_cache(maxsize=256)
def program_of_code_tool(tool: str) -> str:
    """The interpreter of a tool that runs code, such as `python` or `execute_code`. Empty: it is no such tool."""
    found = _CODE_TOOL.fullmatch(tool)
    return "" if found is None else "node" if found[1] else "python3"


def kinds_of(pack: Pack) -> tuple[str, ...]:
    """The kinds of tools that a pack's rules speak of."""
    return KINDS if pack.of_session else tuple(dict.fromkeys(("shell", *pack.by_kind)))


def events_of(pack: Pack) -> tuple[str, ...]:
    """The events that a pack listens to: `before_tool`, and those that it remembers something of."""
    return ("before_tool", *pack.watchers)


def pack_hook(pack: Pack, options: PackOptions | None = None, layer: Layer = "user", **settings: Any) -> Hook:
    """A pack as a hook, asked with the other gates, about the kinds of tools that its rules speak of."""
    kinds = None if pack.of_session else kinds_of(pack)
    return Hook(
        PackGate(pack, options, layer), events_of(pack), name=f"fairlead.{pack.name}", kind=kinds, phase="gate",
        layer=layer, version=version_of(pack, options or PackOptions()), **settings,
    )  # fmt: skip


def version_of(pack: Pack, options: PackOptions) -> str:
    """A digest of what a pack does: of its rules, and of how it is used."""
    from .. import __version__

    rules = [(rule.id, rule.level, rule.answer, rule.check.__code__.co_code.hex()) for rule in pack]
    exemptions = [(one.rule, one.match, one.project, one.until) for one in options.exemptions]
    text = repr((__version__, rules, msgspec.structs.replace(options, exemptions=()), exemptions))
    return sha256(text.encode(errors="replace")).hexdigest()[:16]


__all__ = [
    "ANSWERS", "PackGate", "PackOptions", "RuleHit", "events_of", "exception_id", "kinds_of", "line_of", "pack_hook",
]  # fmt: skip
