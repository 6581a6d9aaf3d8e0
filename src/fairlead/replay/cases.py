"""Test cases of a policy: steps, and what the policy has to do about each.

In TOML, for people:

    [[case]]
    name = "no force-push"
    command = "git push --force"
    control = "deny"
    hook = "no-force-push"

In JSONL, one case per line, as `fairlead replay --save` writes them. A case has a `step` (its event and its fields;
`command` is short for one), and what is expected: `control`, `hook` and `change`. What is left out is not checked. A
case that expects nothing is a step that comes before others. Cases of one session run one after another, and share
what hooks remember. Every other case has a session of its own.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ..display import counted
from ..errors import FairleadError, UnknownName, nearest
from ..lifecycle import CONTROLS, EVENTS, Step, event_named
from ..samples import step as sample_step
from ..verdict import Verdict, apply, check
from ..wire.steps import encode_step, step_from_envelope
from .judge import Answer, Judge, Judged, encoded_changes
from .published import HOME, PublishedReport, Publisher, ReportRow
from .records import Body, Recorded
from .report import HookPlace, ReportedAnswer, Totals
from .reproduce import recorded_answer, why_not_compared
from .shapes import shape_of, target_text

KEYS: Final = ("name", "step", "event", "command", "control", "hook", "change", "at", "redacted", "parent", "cold")
LARGEST: Final = 256 << 20
"""Bytes of a file of cases."""
FIRST: Final = 1_700_000_000.0
"""When the first case without an `at` begins. Each next one begins a second later."""


class Expected(msgspec.Struct, kw_only=True):
    """What is expected of the policy, and how the step is to be judged. None: not checked."""

    name: str | None = None
    control: str | None = None
    hook: str | None = None
    change: dict[str, Any] | None = None
    at: float | None = None
    redacted: list[tuple[str, str, str]] = []
    parent: str | None = None
    cold: bool = False  # earlier steps of its session are missing


class Case(NamedTuple):
    """A step, and what is expected of the policy."""

    step: Step
    expected: Expected
    name: str
    where: str  # file and line, or number

    @property
    def is_checked(self) -> bool:
        expected = self.expected
        return expected.control is not None or expected.hook is not None or expected.change is not None


class CaseResult(NamedTuple):
    """What the policy did about a case. `problem` says what is not as expected."""

    case: Case
    got: ReportedAnswer
    problem: str | None = None


# --- reading --------------------------------------------------------------------------------


def read_cases(path: Path) -> list[Case]:
    """Read a file of cases, TOML or JSONL. Raises `FairleadError` for the first mistake."""
    try:
        if path.stat().st_size > LARGEST:
            raise FairleadError(f"{path} is larger than {LARGEST >> 20} MiB")
        text = path.read_bytes().decode()
    except OSError as error:
        raise FairleadError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FairleadError(f"{path} is not UTF-8: {error}") from None
    entries = list(_in_toml(text, path) if path.suffix == ".toml" else _in_lines(text, path))
    if not entries:
        raise FairleadError(f"there is no case in {path}")
    return [_case(entry, where) for where, entry in entries]


def _in_toml(text: str, path: Path) -> Iterator[tuple[str, Any]]:
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FairleadError(f"{path} is not TOML: {error}") from None
    cases = data.pop("case", [])
    if data or not isinstance(cases, list):
        wrong = f"unknown key {next(iter(data))!r}; " if data else ""
        raise FairleadError(f"{path}: {wrong}cases are written as [[case]] tables")
    for number, entry in enumerate(cases, 1):
        yield f"{path}: case {number}", entry


def _in_lines(text: str, path: Path) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield f"{path}:{number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise FairleadError(f"{path}:{number} is not JSON: {error}") from None


def _case(entry: Any, where: str) -> Case:
    if not isinstance(entry, dict):
        raise FairleadError(f"{where} is not a table")
    for key in entry:
        if key not in KEYS:
            raise FairleadError(f"{where}: unknown key {key!r}{nearest(key, KEYS)}")
    try:
        at = entry.get("at")
        entry = {**entry, "at": at.timestamp() if isinstance(at, datetime) else at}
        expected = msgspec.convert({key: entry[key] for key in entry if key in Expected.__struct_fields__}, Expected)
        if expected.control is not None and expected.control not in CONTROLS:
            raise UnknownName("control", expected.control, CONTROLS)
        step = _step(entry, where)
        if expected.change is not None:
            check(Verdict(changes=expected.change), step, EVENTS[step.event])
    except (ValueError, TypeError, FairleadError) as error:
        raise FairleadError(f"{where}: {error}") from None
    return Case(step, expected, expected.name or f"{shape_of(step)} ({Path(where).name})", where)


def _step(entry: dict[str, Any], where: str) -> Step:
    """The step of a case. It has a session of its own, if it names none."""
    written = entry.get("step", {})
    if not isinstance(written, dict):
        raise ValueError("step is not a table")
    fields = dict(written)
    event = fields.pop("event", entry.get("event", "before_tool"))
    if not isinstance(entry.get("command", ""), str):
        raise TypeError("command is not a text")
    if "command" in entry:
        fields = {"tool": "bash", "args": {"command": entry["command"]}, **fields}
    elif not written and "event" not in entry:
        raise ValueError('a case has a step, or a command: command = "git push --force"')
    fields.setdefault("session_id", f"case {where}")
    if "fairlead" in fields:
        return step_from_envelope({"event": event, **fields})
    name = event_named(event).name
    return step_from_envelope(json.loads(encode_step(sample_step(name, **fields))))


# --- running --------------------------------------------------------------------------------


async def run_cases(judge: Judge, cases: Iterable[Case]) -> list[CaseResult]:
    """Judge the cases. The results come in the order of the cases, without those that expect nothing."""
    groups: dict[str, list[tuple[int, Case]]] = {}
    roots: dict[str, str] = {}
    for number, case in enumerate(cases):
        session, parent = case.step.session_id or f"case {number}", case.expected.parent
        root = roots.setdefault(session, roots.get(parent or "") or case.step.root_session_id or parent or session)
        groups.setdefault(root, []).append((number, case))
    results: dict[int, CaseResult] = {}
    for group in groups.values():
        judge.begin(is_cold=group[0][1].expected.cold)
        for number, case in group:
            judged = await judge.judge(_recorded(case, number))
            if case.is_checked:
                problem = next(_problems(case, judged, judge), None)
                results[number] = CaseResult(case, ReportedAnswer.of(judged.answers[0]), problem)
    return [results[number] for number in sorted(results)]


def _recorded(case: Case, number: int) -> Recorded:
    """A case as a record, so that it is judged like one."""
    expected = case.expected
    at = FIRST + number if expected.at is None else expected.at
    body = Body(id=case.name, at=int(at * 1e9), step=case.step, redacted=expected.redacted, parent=expected.parent)
    return Recorded(body)


def _problems(case: Case, judged: Judged, judge: Judge) -> Iterator[str]:
    expected = case.expected
    for unknown in judged.unknown:
        way_out = {"external": "; --external run runs it", "untrusted code": "; see `fairlead trust`"}
        yield f"not known: {unknown.why} {unknown.what}".rstrip() + way_out.get(unknown.why, "")
    for answer in judged.answers:
        if expected.control is not None and answer.control != expected.control:
            by = f" by {answer.hook}" if answer.hook else ""
            yield f"expected {expected.control}, got {ReportedAnswer.of(answer)}{by}"
        if expected.hook is not None and expected.hook not in _hooks_of(answer):
            yield f"expected {expected.hook} to decide, and {answer.hook or 'no hook'} did"
    if expected.change is not None:
        yield from _changed_otherwise(case.step, expected.change, judged.answers[0], judge)


def _hooks_of(answer: Answer) -> set[str | None]:
    """The hook that decided; where none did, those that warned or added context."""
    spoke = {word.rpartition(" by ")[2] for word in answer.also} if answer.hook is None else set()
    return {answer.hook, *spoke}


def _changed_otherwise(step: Step, change: dict[str, Any], answer: Answer, judge: Judge) -> Iterator[str]:
    wanted = apply(step, change, judge.hooks.tools) if change else step
    names = [name for name in step.__struct_fields__ if name not in ("kind", "target", "safety")]
    values = {name: getattr(wanted, name) for name in names if getattr(wanted, name) != getattr(step, name)}
    if encoded_changes(values) != answer.changes:
        got = answer.changes.decode() or "no change"
        yield f"expected {encoded_changes(values).decode() or 'no change'}, got {got}"


def totals_of(results: list[CaseResult]) -> Totals:
    """How many cases there are, and how many are as expected."""
    failed = sum(result.problem is not None for result in results)
    return Totals(steps=len(results), same=len(results) - failed, changed=failed)


def of_cases(
    results: list[CaseResult], policy: str, places: dict[str, HookPlace], *, who: bool = False
) -> PublishedReport:
    """The rows of a run of cases: one per case."""
    publisher = Publisher((), (), who=who)
    totals = totals_of(results)
    rows = [
        ReportRow(
            group="case", title=publisher.text(one.case.name), level="pass" if one.problem is None else "error",
            details=[] if one.problem is None else [publisher.text(one.problem)],
            example=publisher.text(target_text(one.case.step)), hook=one.case.expected.hook or one.got.hook,
        )
        for one in results
    ]  # fmt: skip
    return PublishedReport(
        command="fairlead test",
        title=publisher.text(policy),
        summary=f"{counted(totals.steps, 'case')}: {totals.same:,} passed, {totals.changed:,} failed",
        rows=sorted(rows, key=lambda row: row.level == "pass"),
        places=places,
    )


# --- saving ---------------------------------------------------------------------------------


class CaseWriter:
    """Turns records into lines of a file of cases. Users, projects and home folders get other names, unless `who`."""

    def __init__(self, *, who: bool = False) -> None:
        self._who = who
        self._users: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._pattern = HOME

    def line(self, recorded: Recorded, *, reproduced: bool, cold: bool) -> bytes:
        """A record as a line. One that is not reproduced expects nothing: it comes before others."""
        entry: dict[str, Any] = {"name": f"{recorded.id} {shape_of(recorded.step)}"}
        if reproduced and why_not_compared(recorded) is None and not (recorded.missing or recorded.body.lossy):
            entry |= _expected(recorded)
        step = json.loads(encode_step(recorded.step))
        if recorded.redacted_places:
            entry["redacted"] = [one for one in recorded.body.redacted if one[0].startswith("step.")]
        if recorded.body.parent is not None:
            entry["parent"] = recorded.body.parent
        entry |= {"cold": True} if cold else {}
        entry |= {"at": recorded.began, "step": step}
        return json.dumps(entry if self._who else self._without_names(entry, recorded)).encode() + b"\n"

    def _without_names(self, entry: dict[str, Any], recorded: Recorded) -> dict[str, Any]:
        step = entry["step"]
        if "user_id" in step:
            step["user_id"] = self._users.setdefault(step["user_id"], f"user-{len(self._users) + 1}")
        for folder in (recorded.body.root, recorded.step.cwd):
            if folder is not None and len(folder) > 1 and folder not in self._folders:
                self._folders[folder] = f"/project-{len(self._folders) + 1}"
                longest = sorted(self._folders, key=len, reverse=True)  # first the folder in another one
                words = "|".join(map(re.escape, longest))
                self._pattern = re.compile(rf"(?P<folder>(?:{words})(?![\w.-]))|{HOME.pattern}")
        renamed: dict[str, Any] = map_texts(entry, lambda text: self._pattern.sub(self._other_name, text))
        return renamed

    def _other_name(self, found: re.Match[str]) -> str:
        parts = found.groupdict()
        if parts.get("folder") is not None:
            return self._folders[parts["folder"]]
        return f"{parts['homes']}user" if parts["homes"] is not None else found[0]  # root's home is root's


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of plain data in which every text was changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_texts(item, change) for item in value]
    if isinstance(value, dict):
        return {change(key): map_texts(item, change) for key, item in value.items()}
    return value


def _expected(recorded: Recorded) -> dict[str, Any]:
    """What the policy decided then. A question is expected, and not what a human answered."""
    hook = next((one["hook"] for one in recorded.contributions if "approval" in one), None)
    answer = recorded_answer(recorded)
    if hook is not None:
        return {"control": "ask", "hook": hook}
    found: dict[str, Any] = {"control": answer.control}
    if answer.hook is not None:
        found["hook"] = answer.hook
    if answer.changes and not recorded.body.redacted:
        found["change"] = json.loads(answer.changes)
    return found
