"""The daemon's work, without HTTP: dispatching, sessions, approvals, reloading."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from .. import __version__
from ..approvals import ApprovalRequest
from ..build import source_digest
from ..config.approvals import ApprovalSettings
from ..config.trust import Trust
from ..decision import Decision
from ..enforcement import EnforcementSetting, read_setting
from ..engine.run import EffectFn, active_effect
from ..engine.threads import LoopShare, loop_share, threads
from ..errors import FairleadError
from ..frozen import freeze
from ..hosts.clis.detection import find_source
from ..hosts.clis.handler import (
    CliSessionState,
    EventHandler,
    answer_text,
    parse_event,
    read_payload,
    repeat_answer,
)
from ..hosts.clis.mapping import HookRequest, Host
from ..hosts.clis.opening import open_hooks
from ..journal import Journal, JournalError
from ..journal.unanswered import import_unanswered
from ..journal.writer import DeferredRecords, deferred_records
from ..lifecycle import GUARDING, Control, Step, event_named
from ..paths import hung_mark
from ..peers import user_name
from ..redaction.logs import logger
from ..redaction.redactor import within
from ..session import Session
from ..wire.decisions import encode_decision, summary
from ..wire.steps import step_from_envelope
from .approvals import ApprovalContext, ApprovalStore, HasHungUp, Question, Receipt, WaitForHangUp, approval_context
from .fallback import Fallback
from .grants import Grant, GrantRequest
from .judged_steps import JudgedSteps
from .large import LargeRequests
from .limits import LARGE, Overloaded, check_arguments, check_event, check_json, check_step
from .notifications import Notifier
from .projects import Project, Projects
from .sessions import SessionTable

PROTOCOL = 1
"""The version of the protocol between callers and the daemon. It is part of the socket's name."""
IN_FLIGHT = 512
"""Dispatches at once. Further callers get `Overloaded` and apply their failure policy."""
DEADLINE = 25.0
"""Seconds that a host waits for an answer to an `ask`, if its request names no deadline."""
MAX_DEADLINE = 3600.0
SMALL = 4096
"""Bytes up to which the event loop makes the record of a request. A larger one would delay the next request."""
RULES_BUDGET = 0.02
"""Seconds of the event loop that the rules of one request may use. The remaining rules run in another process."""
ACKNOWLEDGE_TIMEOUT = 1.0
"""Seconds in which a caller must acknowledge its answer. After that, the approvals in it return."""


class Draining(FairleadError):
    """The daemon is about to end: it finishes the requests that it has and takes no new ones."""


class CallerGone(FairleadError):
    """The caller hung up before there was a decision, and left a line for the journal."""


class DispatchRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a dispatch."""

    step: dict[str, Any]
    root: str | None = None
    env: dict[str, str | None] = {}
    deadline: float | None = None
    capabilities: dict[str, list[str]] | None = None


class Connection(msgspec.Struct, frozen=True):
    """What the daemon knows of the connection that a request came by."""

    acknowledges: bool = False
    """Whether the caller acknowledges answers. Then it gets a receipt for the approvals that its answer has used."""
    wait_for_hang_up: WaitForHangUp | None = None
    has_hung_up: HasHungUp | None = None


_NO_CONNECTION = Connection()


class _Origin(msgspec.Struct, frozen=True):
    """Where a step comes from: its caller, and how long its host waits."""

    caller: str
    deadline: float
    size: int
    by_host: bool
    receipt: Receipt
    wait_for_hang_up: WaitForHangUp | None


def _limited(deadline: float | None) -> float:
    return DEADLINE if deadline is None else min(max(deadline, 0.0), MAX_DEADLINE)


def _with_receipt(receipt: Receipt, acknowledges: bool, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, with the id of the receipt if the caller has to acknowledge one."""
    return answer | {"acknowledge": receipt.id} if acknowledges and receipt.id is not None else answer


def _caller_name(caller: str) -> str | None:
    """The caller's user or token, for people to read; None for the daemon's own user."""
    if not caller:
        return None
    kind, _, about = caller.removesuffix(": ").partition(" ")
    return user_name(int(about)) if kind == "user" else f"token {about[1:-1]}"


def _large_step(envelope: dict[str, Any]) -> Step:
    """The step of a large envelope.

    The size of its arguments is checked first, because reading them takes long.
    """
    check_arguments(envelope.get("args"))
    return step_from_envelope(envelope)


def _read_large_payload(entry: Host, event: str, text: str) -> dict[str, Any]:
    """The payload of a large CLI event.

    It is frozen here, as steps are, because freezing takes long.
    """
    check_json(text.encode(errors="replace"))
    payload: dict[str, Any] = freeze(read_payload(entry, event, text))
    check_arguments((entry.events[event].parse(payload) or {}).get("args"))
    return payload


class Service:
    """All state of the daemon, and what its routes do. `app` translates HTTP to these methods."""

    def __init__(self, folder: Path, journal: Journal | None) -> None:
        self.folder = folder
        self.journal = journal
        self.approvals = ApprovalStore(folder / "approvals.db")
        self.approvals.on_question, self.approvals.on_grant = self._on_question, self._on_grant
        self.notifier = Notifier()
        self.sessions = SessionTable(folder / "sessions.json")
        opens = partial(open_hooks, journal=journal, approver=self.approvals, approval_timeout=None)
        self.projects = Projects(opens, Trust(accepts_signed=True))
        self.fallback = Fallback(folder / "fallback.json")
        self.large = LargeRequests()
        self.judged = JudgedSteps()
        self.source = source_digest()  # now: an upgrade may replace the files while the daemon runs
        self.started = time.time()
        self.used = time.monotonic()
        self.in_flight = 0
        self._unprepared: list[Any] = []
        self._unacknowledged: dict[str, asyncio.TimerHandle] = {}
        self.draining = False
        self.drained = asyncio.Event()

    # --- dispatching ------------------------------------------------------------------------

    async def dispatch(
        self,
        request: DispatchRequest,
        caller: str = "",
        size: int = 0,
        connection: Connection = _NO_CONNECTION,
    ) -> dict[str, Any]:
        """Decide on a step, with exactly the engine's semantics.

        Callers share no sessions: `caller` is empty for the daemon's own user. `size` is the request's, in bytes.
        """
        with self, self._receipt(connection) as receipt:
            step = (
                step_from_envelope(request.step)
                if size <= LARGE
                else await self.large.run(caller, _large_step, request.step)
            )
            for event in request.capabilities or ():
                event_named(event)
            root, deadline = request.root or step.cwd or "/", _limited(request.deadline)
            origin = _Origin(caller, deadline, size, False, receipt, connection.wait_for_hang_up)
            check_step(step)
            project = await self.projects.find(root, request.env, caller)
            decision = await self._decide(step, project, origin, request.capabilities)
            answer = encode_decision(decision) | summary(decision) | {"policy": project.policy}
            return _with_receipt(receipt, connection.acknowledges, answer)

    async def hook(
        self,
        request: HookRequest,
        caller: str = "",
        size: int = 0,
        connection: Connection = _NO_CONNECTION,
    ) -> dict[str, Any]:
        """Answer an agent CLI's hook: the CLI's event goes in, and the output for the CLI comes out."""
        with self, self._receipt(connection) as receipt:
            hung_up = connection.has_hung_up
            if hung_up is not None and hung_up() and hung_mark().exists():
                raise CallerGone("this daemon hung, and the launcher has acted without an answer")
            read = read_payload if size <= LARGE else _read_large_payload
            payload = await self.large.run(caller, read, request.entry, request.event, request.payload)
            source = find_source(request.entry.name, request.event, payload, request.cli_env)
            event = parse_event(source.host, source.event, payload, request.metadata(source.host, source.is_known))
            session_id, attended = event.identity.session_id, request.is_attended(event.host)
            check_event(event.identity, event.fields or {})
            named = request.root(event.host, event.identity.cwd)
            root, memory = named, CliSessionState()
            if session_id is not None:
                root = self.sessions.began(caller, session_id) or root
            # Before anything is remembered: the caller may repeat the request with more variables.
            project = await self.projects.find(root, request.env, caller)
            if session_id is not None:
                began, memory = self.sessions.of_cli(caller, session_id, root)
                if began != root:  # another event of the session was faster
                    project = await self.projects.find(began, request.env, caller)
            by_host = attended and "ask" in event.mapping.can
            deadline = _limited(request.deadline)
            origin = _Origin(caller, deadline, size, by_host, receipt, connection.wait_for_hang_up)

            async def decide(step: Step, capabilities: dict[str, tuple[str, ...]], carry: EffectFn) -> Decision[Any]:
                check_step(step)
                return await self._decide(step, project, origin, capabilities, carry)

            def launcher_control() -> Control | None:
                gone = hung_up is not None and hung_up()
                return self._launcher_control(event.mapping.event, named, caller) if gone else None

            entry = f"{request.host} {request.event}"  # one file may have two forms of an event
            effect = await self.judged.effect_of(caller, entry, event)
            if effect is not None:
                return {"answer": repeat_answer(event, effect)}
            halted = memory.halt
            with project, within(project.scope), self.judged.judging(caller, entry, event) as judged:
                if self.sessions.unsaved:
                    await threads.run(self._save, self.sessions.save_new)
                handler = EventHandler(event, memory, decide, attended, launcher_control)
                output = answer_text(event.host, await handler.reply())
                judged.end(handler.effect)
            if memory.halt != halted:
                await threads.run(self._save, self.sessions.save)  # so that the halt survives a killed daemon
            return _with_receipt(receipt, connection.acknowledges, {"answer": output})

    def _launcher_control(self, event: str, root: str, caller: str) -> Control:
        """What the launcher does at this event without an answer.

        Other users' launchers read a fallback file of their own.
        """
        closed = event in GUARDING and (bool(caller) or not self.fallback.fails_open(root, event))
        return "deny" if closed else "proceed"

    def __enter__(self) -> None:
        """Count a request: the daemon takes `IN_FLIGHT` at once, and does not end during one."""
        if self.draining:
            raise Draining("this daemon is ending; start another and ask that one")
        if self.in_flight >= IN_FLIGHT:
            raise Overloaded(f"{IN_FLIGHT} dispatches are under way already")
        self.in_flight += 1

    def __exit__(self, *_: object) -> None:
        self.in_flight -= 1
        self.used = time.monotonic()
        self._check_drained()

    def _check_drained(self) -> None:
        if self.draining and not self.in_flight and not self._unacknowledged:
            self.drained.set()

    async def _decide(
        self, step: Step, project: Project, origin: _Origin, capabilities: Any, carry: EffectFn | None = None
    ) -> Decision[Any]:
        """Decide on a step.

        An agent CLI reports with `carry` what it does with the decision. Its session is lenient.
        """
        home = project.home
        if not origin.caller:  # only the daemon's own user has a launcher that reads it
            self.fallback.write(home, project.hooks)
        session = self.sessions.of(origin.caller, home, step, project.hooks, capabilities, lenient=carry is not None)
        session.caller = _caller_name(origin.caller)
        about = ApprovalContext(
            origin.caller + home,
            project.policy,
            origin.deadline,
            origin.by_host,
            origin.receipt,
            origin.wait_for_hang_up,
            project.reloader.config.approvals,
        )
        before, carried = approval_context.set(about), active_effect.set(carry)
        share = loop_share.set(LoopShare(RULES_BUDGET, partial(self.large.run_in_process, origin.caller)))
        try:
            with project, within(project.scope):
                large = origin.size > LARGE
                decision = await (self._dispatch_large(session, step, origin) if large else session.dispatch(step))
            record = self.journal.newest_queued() if self.journal is not None and origin.size <= SMALL else None
            if record is not None and len(self._unprepared) < IN_FLIGHT:
                self._unprepared.append(record)
        finally:
            approval_context.reset(before)
            loop_share.reset(share)
            active_effect.reset(carried)
        if step.event == "session_end" and step.session_id is not None:
            self.sessions.forget(origin.caller, home, step.session_id)
            self.approvals.end_session(origin.caller + home, step.session_id)
        return decision

    async def _dispatch_large(self, session: Session, step: Step, origin: _Origin) -> Decision[Any]:
        """Dispatch a large step.

        Its records are prepared before it is answered, and before they are queued.

        If the journal's thread prepared them, the records of other requests would wait.
        """
        if self.journal is None:
            return await session.dispatch(step)
        deferred = DeferredRecords()
        token = deferred_records.set(deferred)
        try:
            return await session.dispatch(step)
        finally:
            deferred_records.reset(token)
            deferred.closed = True
            try:
                for record in deferred.records:
                    await self.large.offload(origin.caller, partial(self.journal.prepare_with, record), origin.size)
            finally:  # the journal prepares the others when it writes them
                written = [self.journal.enqueue(record) for record in deferred.records]
            for done in written:
                if done is not None:
                    await asyncio.wrap_future(done)

    def prepare_records(self, answer_size: int) -> None:
        """Prepare the journal's records of small requests, now that one has its answer."""
        unprepared, self._unprepared = self._unprepared, []
        if self.journal is not None and answer_size <= 8 * SMALL:
            for record in unprepared:
                self.journal.prepare(record)

    # --- approvals --------------------------------------------------------------------------

    def answer(
        self,
        name: str,
        approved: bool,
        who: str | None,
        why: str | None,
        last: float,
        user: str | None,
        shown: str | None = None,
        grant: GrantRequest | None = None,
    ) -> Question:
        """Answer a question.

        The caller names `who`, the kernel names `user`; the journal records both.
        """
        question = self.approvals.answer(name, approved, who, why, last=last, shown=shown, grant=grant)
        if self.journal is not None:
            about = {} if grant is None else {"scope": grant.scope, "lasts": grant.seconds}
            self.journal.note(
                question.state, approval=name, who=who, user=user, why=why, hook=question.hook,
                session=question.session, **about,
            )  # fmt: skip
        return question

    def revoke(self, name: str, user: str | None) -> Grant:
        """End a grant at once."""
        grant = self.approvals.revoke(name)
        if self.journal is not None:
            self.journal.note("grant revoked", grant=grant.id, user=user, hook=grant.hook, session=grant.session)
        return grant

    def _on_question(self, question: Question, settings: ApprovalSettings) -> None:
        """Record that a hook asks, and tell a person."""
        self._note("asked", question, asks=question.question, tool=question.step.get("tool"))
        self.notifier.notify(settings.notify, question)

    def _on_grant(self, grant: Grant, request: ApprovalRequest) -> None:
        """Record each use of a grant."""
        if self.journal is not None:
            step = request.step
            self.journal.note(
                "grant used", grant=grant.id, scope=grant.scope, who=grant.who, given=grant.given, hook=request.hook,
                session=step.session_id, tool=getattr(step, "tool", None), uses=grant.uses,
            )  # fmt: skip

    @contextmanager
    def _receipt(self, connection: Connection) -> Iterator[Receipt]:
        """Use up the approvals of a request only once its caller has the answer."""
        receipt = Receipt()
        try:
            yield receipt
        except BaseException:
            if receipt.id is not None:
                self._note_returned(self.approvals.take_back(receipt.id), "there was no answer")
            raise
        if receipt.id is not None and connection.acknowledges:
            loop = asyncio.get_running_loop()
            self._unacknowledged[receipt.id] = loop.call_later(ACKNOWLEDGE_TIMEOUT, self._time_out, receipt.id)
        elif receipt.id is not None:
            self.approvals.acknowledge(receipt.id)

    def acknowledge(self, receipt: str) -> None:
        """Note that a caller has its answer: the approvals in it are used up."""
        late = self.approvals.acknowledge(receipt)
        if (timer := self._unacknowledged.pop(receipt, None)) is not None:
            timer.cancel()
        for question in late:
            self._note("acknowledged", question, why="the caller had its answer, and acknowledged it late")
        self._check_drained()

    def recover(self) -> None:
        """Return the approvals that an earlier daemon handed out and no caller acknowledged."""
        for receipt in self.approvals.left_open():
            self._note_returned(self.approvals.time_out(receipt), "the daemon ended before its caller had the answer")

    async def import_unanswered_lines(self) -> None:
        """Record what launchers did without an answer."""
        if self.journal is not None:
            await threads.run(import_unanswered, self.folder, self.journal)

    def _time_out(self, receipt: str) -> None:
        del self._unacknowledged[receipt]
        why = f"its caller did not acknowledge the answer within {ACKNOWLEDGE_TIMEOUT:g} s"
        self._note_returned(self.approvals.time_out(receipt), why)
        self._check_drained()

    def _note_returned(self, questions: list[Question], why: str) -> None:
        for question in questions:
            self._note("unacknowledged" if question.state == "used" else "returned", question, why=why)

    def _note(self, note: str, question: Question, **about: Any) -> None:
        if self.journal is None:
            return
        try:
            self.journal.note(note, approval=question.id, hook=question.hook, session=question.session, **about)
        except JournalError as error:
            logger.error("approval %s: %s, which could not be recorded (%s)", question.id, note, error)

    @property
    def switch(self) -> EnforcementSetting:
        return read_setting(self.folder)

    # --- state and shutdown -----------------------------------------------------------------

    @property
    def idle(self) -> float:
        """Seconds since the last request."""
        return 0.0 if self.in_flight else time.monotonic() - self.used

    def health(self) -> Mapping[str, Any]:
        error, anchor_error = (None, None) if self.journal is None else (self.journal.error, self.journal.anchor_error)
        return {
            "status": "draining" if self.draining else "degraded" if error else "ok",
            "version": __version__,
            "source": self.source,
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "uptime": round(time.time() - self.started, 3),
            "in_flight": self.in_flight,
            "projects": len(self.projects),
            "sessions": len(self.sessions),
            "enforced": self.switch.enforced,
            "journal": None if self.journal is None else str(self.journal.path),
            "journal_error": None if error is None else str(error),
            "anchor_error": anchor_error,
            "notifications": msgspec.to_builtins(self.notifier.deliveries),
        }

    async def drain(self, timeout: float) -> None:
        """Take no new requests, and wait for those that are under way."""
        self.draining = True
        self.approvals.release()  # an answer may take longer than the next daemon waits
        if self.in_flight or self._unacknowledged:
            try:
                async with asyncio.timeout(timeout):
                    await self.drained.wait()
            except TimeoutError:
                pass

    async def aclose(self) -> None:
        """Save the sessions, and close everything."""
        try:
            await self.notifier.aclose()
            await self.projects.aclose()
        except Exception as error:
            logger.error("a project could not be closed (%s)", error)
        finally:
            self._save(self.sessions.save)
            for timer in self._unacknowledged.values():
                timer.cancel()  # the next daemon returns these approvals
            self.large.close()
            self.approvals.close()
            if self.journal is not None:
                self.journal.close()

    def _save(self, save: Callable[[], None]) -> None:
        try:
            save()
        except Exception as error:
            logger.error("the sessions could not be saved (%s): they begin anew", error)
