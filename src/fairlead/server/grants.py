"""Grants: an answer that also holds for later calls, within a scope and until an end.

A grant lets one exact call through one question of one hook:

- the hook as it now is, and the rule of its pack or the words of its question
- the command, word by word, or for other tools all arguments
- the folder, the project, the host, the agent and the caller; links are followed, so a link that leads elsewhere now
  makes another call

`terms_of` works out what a grant for a question would match, or why there can be none. The digests are keyed and made
of the step itself, never of what is shown of it, so two calls that differ in a hidden secret are two calls.
"""

from __future__ import annotations

import hmac
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import msgspec

from ..approvals import ApprovalRequest
from ..errors import FairleadError
from ..journal.policy import hook_to_builtins
from ..lifecycle import ToolStep
from ..packs.judging import PackGate
from ..shell import Line, read
from ..shell.words import is_exact
from ..targets import normal_name
from . import clocks

if TYPE_CHECKING:
    from ..hook import Hook
    from .approvals import ApprovalContext

GrantScope = Literal["session", "project"]
SCOPES: tuple[GrantScope, ...] = get_args(GrantScope)
LONGEST: dict[GrantScope, float] = {"session": 86400.0, "project": 30 * 86400.0}
"""Seconds that a grant can last, and lasts unless its giver says less."""
LIMIT = 1000
"""Grants in force at once."""
KEPT = 30 * 86400.0
"""Seconds for which a grant that has ended is listed."""
SET_BACK = 120.0
"""Seconds that the clock may go back before all grants that it has seen end."""
NOTED = 30.0
"""Seconds between two notes of what the clock says."""
WORDS = 64
"""Words of a command line that has grants. Each may be a path whose links are followed."""
CHARACTERS = 4096
"""Characters of a command line that has grants."""
_NOT_PLAIN = frozenset(";&|<>()`$\n\r{}!#")
_ABOUT_A_CALL = frozenset({"description", "explanation", "justification", "timeout", "timeoutms", "yieldtimems"})
"""Arguments of a shell tool that change nothing of what it runs. Models word them anew for every call."""
_FOLDERS = frozenset({"workdir", "cwd", "dirpath", "directory", "workingdirectory"})

TABLES = """
CREATE TABLE IF NOT EXISTS grants (
  id TEXT PRIMARY KEY, bound TEXT NOT NULL, version TEXT NOT NULL, scope TEXT NOT NULL, state TEXT NOT NULL,
  about BLOB NOT NULL, session TEXT, root TEXT NOT NULL, given REAL NOT NULL, wall REAL NOT NULL, uptime REAL NOT NULL,
  boot TEXT NOT NULL, seen REAL NOT NULL, uses INTEGER NOT NULL DEFAULT 0, used REAL, who TEXT, why TEXT
);
CREATE INDEX IF NOT EXISTS by_terms ON grants (bound, state);
"""


class GrantTerms(msgspec.Struct, frozen=True):
    """What a grant for a question would match, and under which version of the hook."""

    bound: str = ""
    version: str = ""
    refusal: str | None = None
    """Why there can be no grant."""


class GrantRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person grants: the scope, and for how many seconds at most."""

    scope: GrantScope
    lasts: float | None = None

    @property
    def seconds(self) -> float:
        lasts = LONGEST[self.scope] if self.lasts is None else self.lasts
        if not 0 < lasts <= LONGEST[self.scope]:
            raise FairleadError(f"a grant for a {self.scope} lasts {LONGEST[self.scope] / 86400:.0f} days at most")
        return lasts


class Grant(msgspec.Struct, frozen=True):
    """A grant as a user sees it. Secrets in it are hidden as they were in its question."""

    id: str
    state: Literal["active", "revoked", "ended"]
    scope: GrantScope
    hook: str | None
    rule: str | None
    question: str | None
    tool: str | None
    summary: str
    """The command, or the arguments of another tool."""
    folder: str | None
    root: str
    session: str | None
    agent: str | None
    host: str | None
    given: float
    expires: float
    who: str | None
    why: str | None
    uses: int
    used: float | None

    def __str__(self) -> str:
        where = "in this session" if self.scope == "session" else "for this project"
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.given))
        return f"grant {self.id} ({where}, given {day}{f' by {self.who}' if self.who else ''})"


class NoSuchGrant(FairleadError):
    """There is no such grant."""


# --- what a grant matches -------------------------------------------------------------------------------


def terms_of(request: ApprovalRequest, about: ApprovalContext, key: bytes) -> GrantTerms:
    """What a grant for this question would match, or why there can be none."""
    refusal = _refusal_of_hook(request, about)
    if refusal is not None:
        return GrantTerms(refusal=refusal)
    step, (question,) = request.step, request.verdicts
    assert isinstance(step, ToolStep)  # noqa: S101 (or it would have been refused)
    try:
        call = _call_of(step)
    except _NoGrant as problem:
        return GrantTerms(refusal=str(problem))
    rule = rule_of(question.hook, question.verdict.metadata)
    bound = {
        "hook": [question.hook.name, question.hook.layer], "event": step.event, "host": step.host, "user": step.user_id,
        "agent": step.agent and step.agent.name, "root": about.root, "folder": [step.cwd, _real(None, step.cwd or "")],
        "tool": [step.kind, step.tool], "call": call,
        **({"rule": rule.id} if rule is not None else {"question": request.question}),
    }  # fmt: skip
    return GrantTerms(_digest(key, bound), _digest(key, hook_to_builtins(question.hook)))


def rule_of(hook: Hook, metadata: dict[str, Any] | None) -> Any:
    """The rule of a pack that asks; None for any other hook, whatever its verdict says of itself."""
    gate = hook.fn
    if not isinstance(gate, PackGate):
        return None
    named = (metadata or {}).get("rule")
    return next((rule for rule in gate.pack if rule.id == named), None)


def _refusal_of_hook(request: ApprovalRequest, about: ApprovalContext) -> str | None:
    """Why no question like this has grants, whatever the call is."""
    if not about.settings.grants:
        return "`grants = false` in [approvals] forbids grants"
    if len(request.verdicts) != 1:
        return "it is not one hook that asks"
    (question,) = request.verdicts
    if question.cause == "failure":
        return "the hook failed, and asks for that reason"
    if question.hook.locked:
        return "the hook is locked"
    rule = rule_of(question.hook, question.verdict.metadata)
    if isinstance(question.hook.fn, PackGate) and rule is None:
        return "the pack does not say which of its rules asks"
    if rule is not None and rule.level == "disaster":
        return f"{rule.id} guards against disasters"
    if rule is not None and rule.about == "session":
        return f"{rule.id} is about the whole session"
    if not isinstance(request.step, ToolStep):
        return "it is not about a tool call"
    return None if request.step.cwd else "the call does not say in which folder it runs"


class _NoGrant(Exception):
    """Why there can be no grant for a call."""


def _call_of(step: ToolStep) -> Any:
    """All of a call that a grant matches. Raises `_NoGrant` for a call that is not fully known."""
    args = {name: msgspec.to_builtins(value, enc_hook=str) for name, value in step.args.items()}
    if step.kind != "shell":
        places = [_real(step.cwd, path) for path in step.target.paths[:WORDS]]
        return {"args": args, "places": places}
    text = step.target.command or ""
    home = os.path.expanduser("~")
    line = _sure_line(text, step.cwd or "", step.target.dialect)
    words = [(command.folder, word) for command in line.commands for word in (command.path, *command.args)]
    if len(words) > WORDS:
        raise _NoGrant(f"the command line has more than {WORDS} words")
    more = {name: value for name, value in args.items() if normal_name(name) not in _ABOUT_A_CALL}
    canonical = [_canonical(line) if value == text else value for value in more.values()]
    folders = [_real(step.cwd, str(more[name])) for name in more if normal_name(name) in _FOLDERS]
    places = [_real(folder, word.rpartition("=")[2].replace("~", home, 1)) for folder, word in words]
    return {"args": dict(zip(more, canonical, strict=True)), "line": _canonical(line), "places": [folders, places]}


def _sure_line(text: str, folder: str, dialect: Any) -> Line:
    """A command line of which everything is known."""
    if len(text) > CHARACTERS:
        raise _NoGrant(f"the command line is longer than {CHARACTERS} characters")
    line = read(text, folder, dialect=dialect)
    if not line.commands or not line.sure or not all(command.folder for command in line.commands):
        raise _NoGrant("the command line does not say everything that it runs")
    if not all(map(is_exact, _words_of(line))):
        raise _NoGrant("the command line has a pattern, which may stand for other files later")
    return line


def _words_of(line: Line) -> Iterator[str]:
    for command in line.commands:
        yield from (command.path, *command.args, *command.assignments.values())
        yield from (redirect.target for redirect in command.redirects)


def _canonical(line: Line) -> list[str]:
    """A command line in one form: one plain command is its words, however they are quoted; any other its text."""
    if len(line.commands) != 1 or not _NOT_PLAIN.isdisjoint(line.text):
        return ["line", line.text]
    (command,) = line.commands
    if command.assignments or command.redirects or command.via:
        return ["line", line.text]
    return ["words", command.path, *command.args]


def _real(folder: str | None, path: str) -> str:
    """Where a path leads. It need not be one."""
    try:
        return os.path.realpath(os.path.join(folder or "/", path))
    except (OSError, ValueError):
        return ""


def _digest(key: bytes, value: Any) -> str:
    return hmac.new(key, msgspec.json.encode(value, order="sorted", enc_hook=str), "sha256").hexdigest()


# --- keeping them ---------------------------------------------------------------------------------------


class GrantRow(NamedTuple):
    """A grant that matches a question."""

    id: str
    who: str | None
    why: str | None


class GrantTable:
    """The grants of a user, in the file of the approvals. The caller makes the transactions."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        db.executescript(TABLES)

    def add(self, terms: GrantTerms, request: GrantRequest, grant: Grant) -> None:
        """Keep a grant. Raises if there are too many."""
        (count,) = self._db.execute("SELECT count(*) FROM grants WHERE state = 'active'").fetchone()
        if count >= LIMIT:
            raise FairleadError(f"{count} grants are in force already; revoke some: `fairlead approvals grants`")
        end = clocks.Expiry.after(request.seconds)
        self._db.execute(
            "INSERT INTO grants VALUES (?, ?, ?, ?, 'active', ?, ?, ?, ?, ?, ?, ?, ?, 0, NULL, ?, ?)",
            (grant.id, terms.bound, terms.version, request.scope, msgspec.json.encode(grant), grant.session, grant.root,
             grant.given, *end, time.time(), grant.who, grant.why),
        )  # fmt: skip

    def find(self, terms: GrantTerms, session: str | None) -> GrantRow | None:
        """The grant that a call may use, if there is one."""
        if terms.refusal is not None:
            return None
        row = self._db.execute(
            "SELECT id, who, about, why FROM grants WHERE bound = ? AND version = ? AND state = 'active' "
            "AND (scope = 'project' OR session = ?) ORDER BY scope, given",
            (terms.bound, terms.version, session),
        ).fetchone()
        if row is None:
            return None
        grant = msgspec.json.decode(row[2], type=Grant)
        return GrantRow(row[0], row[1], f"{grant}{f': {row[3]}' if row[3] else ''}")

    def outdated(self, terms: GrantTerms, session: str | None) -> str | None:
        """A grant that would match if its hook were still the same."""
        if terms.refusal is not None:
            return None
        row = self._db.execute(
            "SELECT id FROM grants WHERE bound = ? AND version <> ? AND state = 'active' "
            "AND (scope = 'project' OR session = ?)",
            (terms.bound, terms.version, session),
        ).fetchone()
        return None if row is None else str(row[0])

    def use(self, name: str) -> None:
        self._db.execute("UPDATE grants SET uses = uses + 1, used = ? WHERE id = ?", (time.time(), name))

    def revoke(self, name: str) -> bool:
        """End a grant at once. False if it had ended before."""
        changed = self._db.execute("UPDATE grants SET state = 'revoked' WHERE id = ? AND state = 'active'", (name,))
        return changed.rowcount > 0

    def end_session(self, root: str, session: str) -> None:
        """End the grants of a session."""
        self._db.execute(
            "UPDATE grants SET state = 'ended' WHERE scope = 'session' AND root = ? AND session = ? "
            "AND state = 'active'",
            (root, session),
        )

    def expire(self) -> None:
        """End what is over by any clock.

        A grant ends by the wall clock, and by the machine's uptime while that lasts. One for a session ends with the
        machine's. The wall clock's latest time is kept: if it was set back by more than a little, the grant ends.
        """
        now = time.time()
        self._db.execute(
            "UPDATE grants SET state = 'ended' WHERE state = 'active' AND (wall <= ?1 OR seen > ?1 + ?2 "
            "OR (boot = ?3 AND uptime <= ?4) OR (boot <> ?3 AND scope = 'session'))",
            (now, SET_BACK, clocks.boot_id(), clocks.uptime()),
        )
        self._db.execute("UPDATE grants SET seen = ? WHERE state = 'active' AND seen < ?", (now, now - NOTED))
        self._db.execute("DELETE FROM grants WHERE state <> 'active' AND wall < ?", (now - KEPT,))

    def read(self, *, every: bool = False) -> list[Grant]:
        """The grants in force, the newest last; or all that are kept."""
        rows = self._db.execute(
            "SELECT about, state, uses, used, wall FROM grants WHERE ? OR state = 'active' ORDER BY given", (every,)
        ).fetchall()
        return [
            msgspec.structs.replace(
                msgspec.json.decode(about, type=Grant), state=state, uses=uses, used=used, expires=wall
            )
            for about, state, uses, used, wall in rows
        ]

    def named(self, beginning: str) -> Grant:
        """The one grant whose id begins so."""
        found = [grant for grant in self.read(every=True) if beginning and grant.id.startswith(beginning)]
        if len(found) != 1:
            many = "no grant begins" if not found else f"{len(found)} grants begin"
            raise NoSuchGrant(f"{many} with {beginning!r}; `fairlead approvals grants` lists them")
        return found[0]


def new_id() -> str:
    """An id that never begins with a dash, so that it can be typed at a command line."""
    return secrets.token_hex(8)
