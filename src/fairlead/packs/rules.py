"""What a pack is made of: rules, each a small function of a command and its line.

```python
from fairlead.packs import Pack

acme = Pack("acme", "What Acme never wants an agent to do.")


@acme.rule(
    "deploy-to-production",
    level="disaster",
    programs=["deploy"],
    why="A deployment to production needs two people.",
    instead="Deploy to staging: `deploy staging`",
    stops=["deploy production", "deploy --to=production"],
    passes=["deploy staging"],
)
def deploy_to_production(command, line):
    return "production" in (*command.operands, command.options.get("--to"))
```

A rule returns what it is about: True for the command itself, or a text. None and False are no objection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from ..errors import FairleadError

if TYPE_CHECKING:
    from ..lifecycle import BeforeTool
    from ..shell import Command
    from .lines import PackLine

Level = Literal["disaster", "destructive", "strict"]
"""How bad it is. disaster: cannot be undone, beyond the work tree. destructive: loses work or data, or reads a secret.
strict: often fine."""
LEVELS: tuple[Level, ...] = get_args(Level)
Objection = object
"""What a rule finds: a text that says which part, or anything else that is true. What is false is no objection."""
CommandCheck = Callable[["Command", "PackLine"], Objection]
LineCheck = Callable[["PackLine"], Objection]
StepCheck = Callable[["BeforeTool", "PackLine"], Objection]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_QUOTED = re.compile(r"`([^`]+)`")


class Rule(NamedTuple):
    """One rule of a pack."""

    id: str
    """The pack and the rule: `git/reset-hard`."""
    level: Level
    check: Callable[..., Objection]
    about: Literal["command", "line", "step"]
    """What `check` takes: a command and its line, a line, or a step.

    With the step of a tool that is no shell comes an empty line, which knows the folder.
    """
    programs: tuple[str, ...]
    """The programs whose commands are checked. Empty: all."""
    kinds: tuple[str, ...]
    """The kinds of tools whose steps are checked."""
    why: str
    instead: str
    risk: str
    """The OWASP agentic risk that it belongs to."""
    incident: str
    """A public incident, if there is one."""
    stops: tuple[Any, ...]
    """Examples that it stops: command lines, or calls of tools."""
    passes: tuple[Any, ...]
    """Neighbours that it lets pass."""

    @property
    def alternatives(self) -> list[str]:
        """The commands that `instead` proposes."""
        return _QUOTED.findall(self.instead)


class Pack:
    """A named set of rules."""

    def __init__(self, name: str, about: str) -> None:
        if not _NAME.fullmatch(name):
            raise FairleadError(f"a pack's name has lower-case words joined by dashes, not {name!r}")
        self.name = name
        self.about = about
        self.rules: dict[str, Rule] = {}
        self.by_program: dict[str, list[Rule]] = {}
        """Rules about commands, by the program that they look at."""
        self.of_any_command: list[Rule] = []
        self.of_line: list[Rule] = []
        self.by_kind: dict[str, list[Rule]] = {}
        """Rules about tools that are no shell, by kind."""

    def rule(
        self,
        name: str,
        *,
        level: Level,
        why: str,
        instead: str,
        programs: Iterable[str] = (),
        risk: str = "ASI02 Tool Misuse and Exploitation",
        incident: str = "",
        stops: Iterable[str] = (),
        passes: Iterable[str] = (),
    ) -> Callable[[CommandCheck], CommandCheck]:
        """Add a rule about commands. `programs` are those that it looks at; without them, it looks at every one."""
        return self._adding(
            "command", name, level, tuple(programs), (), why, instead, risk, incident, tuple(stops), tuple(passes)
        )

    def line_rule(
        self,
        name: str,
        *,
        level: Level,
        why: str,
        instead: str,
        risk: str = "ASI02 Tool Misuse and Exploitation",
        incident: str = "",
        stops: Iterable[str] = (),
        passes: Iterable[str] = (),
    ) -> Callable[[LineCheck], LineCheck]:
        """Add a rule about a whole line: what one command of it makes, and another uses."""
        return self._adding("line", name, level, (), (), why, instead, risk, incident, tuple(stops), tuple(passes))

    def tool_rule(
        self,
        name: str,
        *,
        kinds: Iterable[str],
        level: Level,
        why: str,
        instead: str,
        risk: str = "ASI02 Tool Misuse and Exploitation",
        incident: str = "",
        stops: Iterable[dict[str, Any]] = (),
        passes: Iterable[dict[str, Any]] = (),
    ) -> Callable[[StepCheck], StepCheck]:
        """Add a rule about tools that are no shell, by kind: write, read, fetch, ... Examples are fields of steps."""
        return self._adding(
            "step", name, level, (), tuple(kinds), why, instead, risk, incident, tuple(stops), tuple(passes)
        )

    def _adding(
        self,
        about: Literal["command", "line", "step"],
        name: str,
        level: Level,
        programs: tuple[str, ...],
        kinds: tuple[str, ...],
        why: str,
        instead: str,
        risk: str,
        incident: str,
        stops: tuple[Any, ...],
        passes: tuple[Any, ...],
    ) -> Callable[[Any], Any]:
        if not _NAME.fullmatch(name) or f"{self.name}/{name}" in self.rules:
            raise FairleadError(
                f"pack {self.name!r}: a rule needs a name of its own, of words joined by dashes: {name!r}"
            )
        if level not in LEVELS:
            raise FairleadError(
                f"pack {self.name!r}, rule {name!r}: level is one of {', '.join(LEVELS)}, not {level!r}"
            )

        def add(check: Any) -> Any:
            rule = Rule(
                f"{self.name}/{name}", level, check, about, programs, kinds, why, instead, risk, incident, stops, passes
            )
            self.rules[rule.id] = rule
            for program in programs:
                self.by_program.setdefault(program, []).append(rule)
            for kind in kinds:
                self.by_kind.setdefault(kind, []).append(rule)
            if about == "line":
                self.of_line.append(rule)
            elif about == "command" and not programs:
                self.of_any_command.append(rule)
            return check

        return add

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules.values())

    def __repr__(self) -> str:
        return f"<Pack {self.name}: {len(self.rules)} rules>"


class Finding(NamedTuple):
    """What a rule says of a call: the rule, and the part that it is about."""

    rule: Rule
    part: str

    @property
    def severity(self) -> int:
        return len(LEVELS) - LEVELS.index(self.rule.level)

    def __str__(self) -> str:
        return f"{self.part}: {self.rule.why} ({self.rule.id}, {self.rule.level}) Instead: {self.rule.instead}"
