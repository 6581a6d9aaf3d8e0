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
from time import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import msgspec

from ..errors import FairleadError

if TYPE_CHECKING:
    from ..lifecycle import BeforeTool
    from ..session import Store
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
SessionCheck = Callable[["BeforeTool", "Memory"], Objection]
RuleExample = str | dict[str, Any]
"""A command line, or the fields of a step."""
Watcher = Callable[[Any, "Memory"], None]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_QUOTED = re.compile(r"`([^`]+)`")


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much an agent may do in a session. None: as much as it likes."""

    per_minute: int | None = 120
    """Calls in a minute."""
    calls: int | None = 1000
    """Calls in a session."""
    minutes: float | None = 480.0
    """How long a session may take."""
    in_a_row: int | None = 3
    """The same call, and no other in between."""
    identical: int | None = 8
    """The same call in a session."""
    tokens: int | None = 20_000_000
    """Tokens that models read and write, where the host tells."""
    cost: float | None = 50.0
    """What models cost, in the currency that the host tells it in."""


class Memory(NamedTuple):
    """What a pack remembers of a session: the session's store, under names of its own, the limits, and the time."""

    store: Store
    prefix: str
    limits: Limits
    now: Callable[[], float] = time
    """The session's clock: a replay sets it to the time of the recorded step."""

    def get(self, name: str, default: Any = None) -> Any:
        return self.store.get(self.prefix + name, default)

    def set(self, name: str, value: Any) -> None:
        self.store.set(self.prefix + name, value)

    def increment(self, name: str, by: int = 1) -> int:
        return self.store.increment(self.prefix + name, by)

    def hit(self, name: str, within: float) -> int:
        return self.store.hit(self.prefix + name, within)


class PackRule(NamedTuple):
    """One rule of a pack."""

    id: str
    """The pack and the rule: `git/reset-hard`."""
    level: Level
    check: Callable[..., Objection]
    about: Literal["command", "line", "step", "session"]
    """What `check` takes: a command and its line, a line, a step and its line, or a step, a store and limits.

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
    answer: Literal["deny", "ask", "warn"] | None = None
    """What it says, unless the configuration chooses. None: what its level leads to."""

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
        self.rules: dict[str, PackRule] = {}
        self.by_program: dict[str, list[PackRule]] = {}
        """Rules about commands, by the program that they look at."""
        self.of_any_command: list[PackRule] = []
        self.of_line: list[PackRule] = []
        self.by_kind: dict[str, list[PackRule]] = {}
        """Rules about tools that are no shell, by kind."""
        self.of_session: list[PackRule] = []
        """Rules about what happened before in the session."""
        self.watchers: dict[str, Watcher] = {}
        """What the pack remembers of other events, by event."""

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
        stops: Iterable[RuleExample] = (),
        passes: Iterable[RuleExample] = (),
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
        stops: Iterable[RuleExample] = (),
        passes: Iterable[RuleExample] = (),
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

    def session_rule(
        self,
        name: str,
        *,
        level: Level,
        why: str,
        instead: str,
        answer: Literal["deny", "ask", "warn"] | None = None,
        risk: str = "ASI02 Tool Misuse and Exploitation",
        incident: str = "",
        stops: Iterable[list[dict[str, Any]]] = (),
        passes: Iterable[list[dict[str, Any]]] = (),
    ) -> Callable[[SessionCheck], SessionCheck]:
        """Add a rule about what happened before in the session. It sees every call.

        It is silent without a session, and in one that keeps no state, as where an agent CLI has no daemon.

        An example is a list of steps, each with its fields and, unless it is `before_tool`, its `event`. With `times`
        it is many steps, with `{n}` in their command numbered; with `after` some seconds pass instead.
        """
        return self._adding(
            "session", name, level, (), (), why, instead, risk, incident, tuple(stops), tuple(passes), answer
        )

    def watch(self, event: str) -> Callable[[Watcher], Watcher]:
        """Add a function that remembers something of an event in the session's store, for the pack's rules."""

        def add(watcher: Watcher) -> Watcher:
            self.watchers[event] = watcher
            return watcher

        return add

    def _adding(
        self,
        about: Literal["command", "line", "step", "session"],
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
        answer: Literal["deny", "ask", "warn"] | None = None,
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
            rule = PackRule(
                f"{self.name}/{name}", level, check, about, programs, kinds, why, instead, risk, incident, stops,
                passes, answer,
            )  # fmt: skip
            self.rules[rule.id] = rule
            for program in programs:
                self.by_program.setdefault(program, []).append(rule)
            for kind in kinds:
                self.by_kind.setdefault(kind, []).append(rule)
            if about == "session":
                self.of_session.append(rule)
            elif about == "line":
                self.of_line.append(rule)
            elif about == "command" and not programs:
                self.of_any_command.append(rule)
            return check

        return add

    def __iter__(self) -> Iterator[PackRule]:
        return iter(self.rules.values())

    def __repr__(self) -> str:
        return f"<Pack {self.name}: {len(self.rules)} rules>"


class Finding(NamedTuple):
    """What a rule says of a call: the rule, and the part that it is about."""

    rule: PackRule
    part: str

    @property
    def severity(self) -> int:
        return len(LEVELS) - LEVELS.index(self.rule.level)

    def __str__(self) -> str:
        return f"{self.part}: {self.rule.why} ({self.rule.id}, {self.rule.level}) Instead: {self.rule.instead}"
