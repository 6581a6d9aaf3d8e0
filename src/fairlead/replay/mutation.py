"""Is a rule easy to get around? A command that it stops is written in other ways, and the rule judges each.

- A spelling is the same call, written in another way. The reader of command lines proves that: it finds the same
  program with the same options and operands. What it cannot prove is listed as not proven. Nothing is run.
- A neighbour looks like the command and runs something else: it prints, searches or names it. A rule should let it
  pass.

The base of all is the smallest command that the rule still stops.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from ..display import counted
from ..errors import FairleadError
from ..lifecycle import BeforeTool
from ..registry import Hooks
from ..shell import read
from ..shell.commands import Command, quote
from ..shell.options import takes_subcommand
from ..shell.words import is_known
from .judge import Answer, Judge
from .published import PublishedReport, Publisher, ReportRow
from .records import Body, Recorded
from .report import HookPlace, folders_of, rank, user_of
from .shapes import shape_of
from .shrinking import smallest_command
from .sources import MissingSteps, Traffic

BASES: Final = 5
"""Commands of one hook that are written in other ways: the smallest of each shape."""
LONGEST: Final = 1_000
"""Characters of a command that is written in other ways."""
MARK: Final = "[redacted: "
"""In a recorded command with a secret: what really ran is not known."""


class Rewritten(msgspec.Struct):
    """A command, written in another way."""

    kind: str  # quotes, variable, order, ...
    command: str
    proven: bool = True  # that it is the same call; of a neighbour, that it is not
    control: str = ""
    passes: bool = False  # it gets past the hook


class Mutation(msgspec.Struct):
    """One command that a hook stops, and how well the hook stops its other spellings."""

    hook: str
    command: str
    control: str
    spellings: list[Rewritten] = []
    neighbours: list[Rewritten] = []
    suggestion: Suggestion | None = None

    @property
    def proven(self) -> list[Rewritten]:
        return [one for one in self.spellings if one.proven]

    @property
    def past(self) -> list[Rewritten]:
        """The proven spellings that get past the hook, the shortest first."""
        return sorted((one for one in self.proven if one.passes), key=lambda one: (len(one.command), one.command))

    @property
    def stopped(self) -> list[Rewritten]:
        """The neighbours that the hook stops."""
        return [one for one in self.neighbours if not one.passes]


class Suggestion(msgspec.Struct, frozen=True):
    """A rule on parsed words, and what it does about the same spellings and neighbours."""

    rule: str
    past: int
    stopped: int


# --- other spellings --------------------------------------------------------------------------


def spellings(command: str) -> list[Rewritten]:
    """The command in other ways, each with whether the reader proves it to be the same call."""
    wanted = _calls(command)
    found: dict[str, Rewritten] = {}
    for kind, text in _written_otherwise(command):
        if text != command and text not in found:
            found[text] = Rewritten(kind, text, bool(wanted) and wanted <= _calls(text))
    return list(found.values())


def _calls(text: str) -> set[Any]:
    """What a line runs, in one spelling: program, options and operands of each command that runs no other.

    A command with a word that the reader does not know is no call that could be compared.
    """
    return {
        (
            one.program,
            one.sure,
            tuple((name, one.options[name] or "") for name in _option_names(one)),
            tuple(one.operands),
        )
        for one in read(text).commands
        if one.program and not one.carries and all(map(is_known, (one.path, *one.args)))
    }


def _option_names(one: Command) -> list[str]:
    """The options of a command, without groups of letters that are listed one by one as well: `-rf`."""
    long = one._read().table[0]
    names = set(one.options)
    groups = {name for name in names if re.fullmatch("-[A-Za-z]{2,}", name)
              and all(long.get(f"-{letter}", f"-{letter}") in names for letter in name[1:])}  # fmt: skip
    return sorted(names - groups)


def _written_otherwise(command: str) -> Iterator[tuple[str, str]]:
    line = read(command)
    if len(line.commands) == 1 and line.sure and not line.commands[0].redirects and not line.commands[0].assignments:
        one = line.commands[0]
        yield from _of_words([one.path, *map(str, one.args)], one)
    yield from _of_line(command)


def _of_words(words: list[str], one: Command) -> Iterator[tuple[str, str]]:
    """Other spellings of one program with its words."""
    shown = [quote(word) for word in words]
    program, rest = shown[0], shown[1:]
    at = next((n for n, word in enumerate(words) if n and word.startswith("-")), len(words) - 1)
    option = words[at]

    def put(place: int, text: str) -> str:
        return " ".join([*shown[:place], text, *shown[place + 1 :]])

    yield "path", put(0, f"/usr/bin/{program}")
    yield "quotes", put(0, f"'{words[0]}'")
    yield "quotes", put(0, f'"{words[0]}"')
    yield "quotes", put(0, f"{words[0][:1]}''{words[0][1:]}")
    yield "backslash", put(0, f"\\{words[0]}")
    yield "variable", f"x={program}; {put(0, '$x')}"
    yield "variable", f"x={quote(' '.join(words[:2]))}; {' '.join(['$x', *shown[2:]])}"
    yield "substitution", put(0, f"$(echo {program})")
    yield "substitution", put(0, f"`echo {program}`")
    if at and option:
        yield "quotes", put(at, f'"{option}"')
        yield "quotes", put(at, f"{option[:3]}''{option[3:]}")
        yield "backslash", put(at, f"{option[:-1]}\\{option[-1:]}")
        yield "escape", put(at, f"$'\\x{ord(option[0]):02x}{option[1:]}'")
        yield "variable", f"x={quote(option)}; {put(at, '$x')}"
        yield "variable", f"x={quote(option)}; {put(at, chr(34) + '${x}' + chr(34))}"
        yield "substitution", put(at, f"$(echo {quote(option)})")
        yield "default", put(at, f"${{nothing:-{option}}}")
        yield "xargs", f"echo {quote(option)} | xargs {' '.join([*shown[:at], *shown[at + 1 :]])}"
    yield "IFS", "${IFS}".join(shown)
    yield "spaces", "  ".join(shown)
    yield "spaces", "\t".join(shown)
    yield "newline", " \\\n  ".join(shown)
    if all("{" not in word and "," not in word for word in shown) and rest:
        yield "braces", "{" + ",".join(shown) + "}"
    yield "function", f'f() {{ {program} "$@"; }}; {" ".join(["f", *rest])}'
    yield "array", f'a=({" ".join(shown)}); "${{a[@]}}"'
    yield "redirection", " ".join([*shown[:2], "2>/dev/null", *shown[2:]])
    yield from _of_options(words, one)


def _of_options(words: list[str], one: Command) -> Iterator[tuple[str, str]]:
    """The options in other places, and by their other names."""
    args = words[1:]
    options = [n for n, word in enumerate(args) if word.startswith("-") and word != "--"]
    own = dict(one._read().spellings())
    for n in options:
        name, equals, value = args[n].partition("=")
        for other in (spelling for spelling in own if spelling != name and not equals):
            renamed = [*args[:n], other, *args[n + 1 :]]
            yield "other name", " ".join(map(quote, [words[0], *renamed]))
        without = [*args[:n], *args[n + 1 :]]
        after_subcommand = 1 if without and not without[0].startswith("-") else 0
        for place in (len(without), after_subcommand):
            moved = [*without[:place], args[n], *without[place:]]
            yield "order", " ".join(map(quote, [words[0], *moved]))
        if name.startswith("--") and len(name) > 5:
            yield (
                "shortened",
                " ".join(map(quote, [words[0], *args[:n], f"{name[:-1]}{equals}{value}", *args[n + 1 :]])),
            )


def _of_line(command: str) -> Iterator[tuple[str, str]]:
    """The whole line inside another one, or run by another program."""
    quoted = quote(command)
    encoded = b64encode(f"{command}\n".encode()).decode()
    for kind, form in (
        ("shell", "sh -c {q}"), ("shell", "bash -c {q}"), ("shell", "bash -lc {q}"), ("shell", "eval {q}"),
        ("shell", "sh <<< {q}"), ("shell", "sh <<'E'\n{c}\nE"), ("pipe", "echo {q} | sh"),
        ("pipe", "printf '%s' {q} | bash"), ("base64", "echo {b} | base64 -d | sh"),
        ("base64", 'sh -c "$(echo {b} | base64 -d)"'), ("sudo", "sudo {c}"), ("sudo", "sudo -u nobody {c}"),
        ("env", "env {c}"), ("env", "env A=1 {c}"), ("env", "A=1 {c}"), ("wrapper", "command {c}"),
        ("wrapper", "nohup {c}"), ("wrapper", "nice -n 5 {c}"), ("wrapper", "timeout 60 {c}"),
        ("wrapper", "time {c}"), ("wrapper", "exec {c}"), ("list", "true && {c}"), ("list", "cd . ; {c}"),
        ("list", "false || {c}"), ("list", "{c} &"), ("list", "ls\n{c}"), ("list", "! {c}"), ("group", "( {c} )"),
        ("group", "{{ {c}; }}"), ("branch", "if true; then {c}; fi"), ("loop", "for i in 1; do {c}; done"),
        ("trap", "trap {q} EXIT"), ("alias", "shopt -s expand_aliases\nalias p={q}\np"),
    ):  # fmt: skip
        yield kind, form.format(c=command, q=quoted, b=encoded)


# --- neighbours -------------------------------------------------------------------------------


def neighbours(command: str) -> list[Rewritten]:
    """Lines that look like the command and run something else. `proven`: by the reader."""
    calls = _calls(command)
    found: dict[str, Rewritten] = {}
    for kind, text in _lookalikes(command):
        if text != command and text not in found:
            found[text] = Rewritten(kind, text, not calls & _calls(text))
    return list(found.values())


def _lookalikes(command: str) -> Iterator[tuple[str, str]]:
    quoted = quote(command)
    yield "printed", f"echo {quoted}"
    yield "searched", f"grep -rn {quoted} docs"
    yield "message", f"git commit -m {quote(f'Explain {command}')}"
    yield "comment", f"ls # {command}"
    yield "document", f"cat > notes.md <<'E'\n{command}\nE"
    line = read(command)
    if len(line.commands) == 1:
        one = line.commands[0]
        words = [one.path, *map(str, one.args)]
        for n, word in enumerate(words):
            if n and word.startswith("-"):
                others = [*words[:n], *words[n + 1 :]]
                yield "name", " ".join(map(quote, [*others, f"my{word}"]))
                yield "name", " ".join(map(quote, [*others, f"fix{word}-option"]))
        yield "file", f"cat {quote('-'.join(words[:2]))}.md"


# --- judging ----------------------------------------------------------------------------------


class Commands:
    """Judges command lines with a policy, each in a session of its own."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    async def answer(self, command: str) -> Answer | None:
        """What the policy does about a command. None if that is not known."""
        step = BeforeTool(tool="bash", args={"command": command}, session_id="mutation")
        self.judge.begin(is_cold=False)
        judged = await self.judge.judge(Recorded(Body(id="mutation", at=0, step=step)))
        return judged.answers[0] if not judged.unknown else None

    async def control(self, command: str) -> str:
        answer = await self.answer(command)
        return "unknown" if answer is None else answer.control


class RecordedNames(NamedTuple):
    """Users and folders of recorded steps, which are not published."""

    users: set[str]
    folders: set[str]


async def stopped_commands(judge: Judge, traffic: Traffic) -> tuple[list[str], RecordedNames]:
    """The recorded commands that the policy stops: the smallest of each shape, a few for each hook.

    And the names of users and folders that these commands may have.
    """
    found: dict[tuple[str | None, str], str] = {}
    names = RecordedNames(set(), set())
    for group in traffic.groups():
        judge.begin(group.is_cold)
        for recorded in traffic.steps(group, ("before_tool",)):
            if isinstance(recorded, MissingSteps) or not isinstance(recorded.step, BeforeTool):
                continue
            command = recorded.step.target.command
            if not command or len(command) > LONGEST or MARK in command:
                continue
            answer = (await judge.judge(recorded)).answers[0]
            if rank(answer.control) > 0:
                key = answer.hook, shape_of(recorded.step)
                if key not in found or len(command) < len(found[key]):
                    found[key] = command
                    names.users.update(filter(None, [user_of(recorded)]))
                    names.folders.update(folders_of(recorded))
    chosen: dict[str | None, list[str]] = {}
    for (hook, _), command in sorted(found.items(), key=lambda item: len(item[1])):
        chosen.setdefault(hook, []).append(command)
    return [command for some in chosen.values() for command in some[:BASES]], names


async def mutate(judge: Judge, commands: Iterable[str]) -> tuple[list[Mutation], list[str]]:
    """Write each command in other ways and judge them. The second list has the commands that the policy lets pass."""
    judged, passing = Commands(judge), []
    found: dict[tuple[str | None, str], Mutation] = {}
    for command in commands:
        if len(command) > LONGEST:
            raise FairleadError(f"a command of more than {LONGEST:,} characters is not written in other ways")
        answer = await judged.answer(command)
        if answer is None or rank(answer.control) <= 0:
            passing.append(command)
            continue
        base = await _smallest(command, answer, judged)
        if (answer.hook, base) not in found:
            found[answer.hook, base] = await _mutate(base, answer, judged)
    return list(found.values()), passing


async def _smallest(command: str, answer: Answer, judged: Commands) -> str:
    """The smallest command of the same program that the same hook stops in the same way."""
    about = _subjects(command)

    async def is_stopped(text: str) -> bool:
        found = await judged.answer(text)
        same = found is not None and (found.control, found.hook) == (answer.control, answer.hook)
        return same and _subjects(text) == about

    return await smallest_command(command, is_stopped)


def _subjects(text: str) -> list[tuple[str, ...]]:
    """The program and the first operand of each command."""
    return [(one.program, *map(str, one.operands[:1])) for one in read(text).commands]


async def _mutate(base: str, answer: Answer, judged: Commands) -> Mutation:
    made = Mutation(answer.hook or "", base, answer.control, spellings(base), neighbours(base))
    for one in (*made.spellings, *made.neighbours):
        one.control = await judged.control(one.command)
        one.passes = one.control != "unknown" and rank(one.control) < rank(answer.control)
    made.neighbours = [one for one in made.neighbours if one.proven and one.control != "unknown"]
    if made.past or made.stopped:
        made.suggestion = await _suggest(made)
    return made


async def _suggest(made: Mutation) -> Suggestion | None:
    """The rule on parsed words that lets the fewest spellings past, and stops the fewest neighbours."""
    tried = [one for rule in _rules_on_words(made.command) if (one := await _try(rule, made)) is not None]
    best = min(tried, key=lambda one: one.past + one.stopped, default=None)
    is_better = best is not None and best.past + best.stopped < len(made.past) + len(made.stopped)
    return best if is_better else None


def _rules_on_words(command: str) -> Iterator[str]:
    """Rules about the one program that a line runs: with one of its options, or without."""
    calls = [one for one in read(command).commands if one.program and not one.carries]
    if len(calls) != 1:
        return
    (one,) = calls
    runs = f"{one.program} {one.operands[0]}" if one.operands and takes_subcommand(one.program) else str(one.program)
    for conditions in ([f"c.has({_literal(name)})" for name in _option_names(one)], []):
        yield f"commands.exists(c, {' && '.join([f'c.runs({_literal(runs)})', *conditions])})"


def _literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


async def _try(rule: str, made: Mutation) -> Suggestion | None:
    from ..runners.rule import Rule  # needs an extra

    hooks = Hooks()
    try:
        hooks.add(Rule(rule, on="before_tool", deny="no"), on="before_tool", kind="shell", phase="gate", name="tried")
    except FairleadError:
        return None
    judged = Commands(Judge(hooks))
    past = [one for one in made.proven if await judged.control(one.command) == "proceed"]
    stopped = [one for one in made.neighbours if await judged.control(one.command) != "proceed"]
    return Suggestion(rule, len(past), len(stopped))


# --- as rows ----------------------------------------------------------------------------------


def of_mutations(
    found: list[Mutation],
    policy: str,
    places: dict[str, HookPlace],
    *,
    names: RecordedNames | None = None,
    who: bool = False,
) -> PublishedReport:
    """The rows of a mutation run: one per command. A spelling that gets past is an error."""
    users, folders = names or ((), ())
    text: Callable[[str], str] = Publisher(users, folders, who=who).text
    rows = []
    for one in found:
        details = list(details_of(one))
        level: Any = "error" if one.past else "warning" if one.stopped else "pass"
        rows.append(ReportRow(
            group="easy to get around" if one.past else "stops too much" if one.stopped else "sound",
            title=text(title_of(one)), level=level, details=[text(detail) for detail in details],
            example=text(one.past[0].command) if one.past else "", hook=one.hook,
        ))  # fmt: skip
    past, proven = (
        sum(len(words) for words in some) for some in zip(*((m.past, m.proven) for m in found), strict=True)
    )
    return PublishedReport(
        command="fairlead test --mutate",
        title=text(policy),
        summary=f"{past:,} of {counted(proven, 'spelling')} of {counted(len(found), 'command')} get past",
        rows=rows,
        places=places,
    )


def title_of(one: Mutation) -> str:
    past, proven, near = len(one.past), len(one.proven), len(one.neighbours)
    share = f" ({100 * past / proven:.0f} %)" if past else ""
    return (
        f"{one.hook}: {past} of {counted(proven, 'spelling')} of {one.command!r} get past{share}, "
        f"{len(one.stopped)} of {counted(near, 'neighbour')} stopped"
    )


def details_of(one: Mutation) -> Iterator[str]:
    """What is to be said about one command."""
    if one.past:
        kinds = dict.fromkeys(spelling.kind for spelling in one.past)
        yield f"shortest: {one.past[0].command}"
        yield f"by {', '.join(kinds)}"
    if one.stopped:
        yield f"stops a neighbour: {min((near.command for near in one.stopped), key=len)}"
    unproven = [spelling for spelling in one.spellings if not spelling.proven]
    if unproven:
        passing = sum(spelling.passes for spelling in unproven)
        yield f"not proven to be the same: {counted(len(unproven), 'spelling')}, {passing} of them get past"
    if one.suggestion is not None:
        better = one.suggestion
        yield f"try: rule = '{better.rule}' ({better.past} get past, {better.stopped} neighbours stopped)"
