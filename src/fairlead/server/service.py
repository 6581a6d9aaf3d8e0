"""What the daemon does, whoever asks and however: dispatching, sessions, approvals, reloading."""

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
from ..build import source_digest
from ..config.trust import Trust
from ..decision import Decision
from ..errors import FairleadError
from ..frozen import freeze
from ..hosts.answering import Memory, answer, read_payload
from ..hosts.host import Hooked, Host, host_tools
from ..journal import Journal, JournalError
from ..journal.unanswered import take_in
from ..journal.writer import HeldBack, held_back
from ..lifecycle import GUARDING, Control, Step, event_named
from ..logs import logger
from ..peers import user_name
from ..places import hung_mark
from ..record import summary, tell
from ..redaction import within
from ..registry import Hooks
from ..run import Carry, carrying
from ..session import Session
from ..switches import Setting, read_setting
from ..threads import LoopShare, loop_share, threads
from ..wire import step_of
from .fallback import Fallback
from .large import Large
from .limits import LARGE, Overloaded, check_arguments, check_json, check_moment, check_step
from .pending import Asking, Gone, HungUp, Pending, Question, Receipt, asking
from .projects import Project, Projects
from .sessions import Sessions

PROTOCOL = 1
"""The version of what callers and daemon say to each other. It is in the socket's name."""
IN_FLIGHT = 512
"""Dispatches at once. Beyond that, callers are told to go by their failure policy."""
DEADLINE = 25.0
"""Seconds that a host waits for an answer to an `ask`, if it does not say."""
LONGEST = 3600.0
SMALL = 4096
"""Bytes of a request whose record is made by whoever answers. More would keep the next one waiting."""
RULES = 0.02
"""Seconds of the event loop that the rules of one request may take. The rest of them run in another process."""
ACKNOWLEDGE = 1.0
"""Seconds in which a caller must have said that it has its answer. Otherwise, the approvals in it return."""


class Draining(FairleadError):
    """The daemon finishes what it has, and takes nothing new."""


class CallerGone(FairleadError):
    """The caller has hung up before anything was decided, and has left a line for the journal."""


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a dispatch."""

    step: dict[str, Any]
    root: str | None = None
    env: dict[str, str | None] = {}
    deadline: float | None = None
    capabilities: dict[str, list[str]] | None = None


class _Place(msgspec.Struct, frozen=True):
    """Where a step comes from: which folder, with which variables, for whom, and how long its host waits."""

    root: str
    env: dict[str, str | None]
    whose: str
    deadline: float
    size: int
    by_host: bool
    receipt: Receipt
    gone: Gone | None


def _limited(deadline: float | None) -> float:
    return DEADLINE if deadline is None else min(max(deadline, 0.0), LONGEST)


def _with(receipt: Receipt, acknowledges: bool, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer, with what the caller has to acknowledge."""
    return answer | {"acknowledge": receipt.id} if acknowledges and receipt.id is not None else answer


def _name_of(whose: str) -> str | None:
    """The user or the token that asks, for people to read; None for the daemon's own user."""
    kind, _, about = whose.removesuffix(": ").partition(" ")
    return (user_name(int(about)) if kind == "user" else f"token {about[1:-1]}") if whose else None


def _large_step(envelope: dict[str, Any]) -> Step:
    """The step of a large envelope. Its arguments are looked at first: reading them all takes long."""
    check_arguments(envelope.get("args"))
    return step_of(envelope)


def _read_large_payload(host: Host, event: str, said: str) -> dict[str, Any]:
    """What a CLI says at length of a moment. It is frozen already, as steps are, which takes long."""
    check_json(said.encode(errors="replace"))
    payload: dict[str, Any] = freeze(read_payload(host, event, said))
    check_arguments((host.moments[event].read(payload) or {}).get("args"))
    return payload


class Service:
    """The daemon's work. HTTP is somebody else's."""

    def __init__(self, folder: Path, journal: Journal | None) -> None:
        self.folder = folder
        self.journal = journal
        self.pending = Pending(folder / "approvals.db")
        self.sessions = Sessions(folder / "sessions.json")
        self.projects = Projects(self._hooks, Trust(accepts_signed=True))
        self.fallback = Fallback(folder / "fallback.json")
        self.large = Large()
        self.source = source_digest()  # as it is now: files may be replaced while the daemon runs
        self.started = time.time()
        self.used = time.monotonic()
        self.in_flight = 0
        self._unmade: list[Any] = []
        self._unacknowledged: dict[str, asyncio.TimerHandle] = {}
        self.draining = False
        self.drained = asyncio.Event()

    def _hooks(self) -> Hooks:
        hooks = Hooks(journal=self.journal, record=True, approver=self.pending, approval_timeout=None)
        hooks.tools.extend(host_tools())
        return hooks

    # --- dispatching ------------------------------------------------------------------------

    async def dispatch(
        self,
        asked: Asked,
        whose: str = "",
        size: int = 0,
        *,
        acknowledges: bool = False,
        gone: Gone | None = None,
        hung_up: HungUp | None = None,
    ) -> dict[str, Any]:
        """A step in, a decision out, with exactly the engine's semantics. `whose` keeps users' sessions apart.

        `size` is that of what was asked, in bytes. A caller that `acknowledges` is given a receipt for what its answer
        has used of approvals. `gone` waits until the caller has hung up.
        """
        with self, self._receipt(acknowledges) as receipt:
            step = step_of(asked.step) if size <= LARGE else await self.large.run(whose, _large_step, asked.step)
            for event in asked.capabilities or ():
                event_named(event)
            root, deadline = asked.root or step.cwd or "/", _limited(asked.deadline)
            place = _Place(root, asked.env, whose, deadline, size, False, receipt, gone)
            decision, project = await self._decide(step, place, asked.capabilities)
            return _with(receipt, acknowledges, tell(decision) | summary(decision) | {"policy": project.policy})

    async def hook(
        self,
        asked: Hooked,
        whose: str = "",
        size: int = 0,
        *,
        acknowledges: bool = False,
        gone: Gone | None = None,
        hung_up: HungUp | None = None,
    ) -> dict[str, Any]:
        """A moment of an agent CLI in, what the CLI is to be told out."""
        with self, self._receipt(acknowledges) as receipt:
            host = asked.by()
            if hung_up is not None and hung_up() and hung_mark().exists():
                raise CallerGone("this daemon hung, and the launcher has acted by itself")
            read = read_payload if size <= LARGE else _read_large_payload
            payload = await self.large.run(whose, read, host, asked.event, asked.payload)
            who = host.identify(payload)
            check_moment(who, host.moments[asked.event].read(payload) or {})
            root, memory = asked.root(host), Memory()
            if who.session_id is not None:
                root = self.sessions.began(whose, who.session_id) or root
            # Before anything is remembered: the same may be said again, with more variables.
            project = await self.projects.find(root, asked.env, whose)
            if who.session_id is not None:
                root, memory = self.sessions.of_cli(whose, who.session_id, root)
                if self.sessions.begun:
                    await threads.run(self._save, self.sessions.save_begun)
            by_host = asked.attended(host) and "ask" in host.moments[asked.event].can
            place = _Place(root, asked.env, whose, _limited(asked.deadline), size, by_host, receipt, gone)

            async def decide(step: Step, capabilities: dict[str, tuple[str, ...]], carry: Carry) -> Decision[Any]:
                return (await self._decide(step, place, capabilities, carry))[0]

            def acted() -> Control | None:
                return self._acted(asked, host, whose) if hung_up is not None and hung_up() else None

            halted, attended = memory.halt, asked.attended(host)
            with within(project.scope):
                said = await answer(host, asked.event, payload, memory, decide, attended=attended, acted=acted)
            if memory.halt != halted:
                await threads.run(self._save, self.sessions.save)  # it holds also if this daemon is killed
            return _with(receipt, acknowledges, {"answer": said})

    def _acted(self, asked: Hooked, host: Host, whose: str) -> Control:
        """What the launcher does at a moment without an answer. Other users' launchers read a file of their own."""
        event = host.moments[asked.event].event
        closed = event in GUARDING and (bool(whose) or not self.fallback.opens(asked.root(host), event))
        return "deny" if closed else "proceed"

    def __enter__(self) -> None:
        """While something is under way, the daemon does not end; and it takes no more than it can do."""
        if self.draining:
            raise Draining("this daemon is ending; start another and ask that")
        if self.in_flight >= IN_FLIGHT:
            raise Overloaded(f"{IN_FLIGHT} dispatches are under way already")
        self.in_flight += 1

    def __exit__(self, *_: object) -> None:
        self.in_flight -= 1
        self.used = time.monotonic()
        self._look_drained()

    def _look_drained(self) -> None:
        if self.draining and not self.in_flight and not self._unacknowledged:
            self.drained.set()

    async def _decide(
        self, step: Step, place: _Place, capabilities: Any, carry: Carry | None = None
    ) -> tuple[Decision[Any], Project]:
        """Decide on a step. An agent CLI says with `carry` what it makes of the decision, and never fails of it."""
        check_step(step)
        project = await self.projects.find(place.root, place.env, place.whose)
        home = project.home
        if not place.whose:  # only the daemon's own user has a launcher that reads it
            self.fallback.tell(home, project.hooks)
        session = self.sessions.of(place.whose, home, step, project.hooks, capabilities)
        session.lenient, session.caller = carry is not None, _name_of(place.whose)
        about = Asking(place.whose + home, project.policy, place.deadline, place.by_host, place.receipt, place.gone)
        before, carried = asking.set(about), carrying.set(carry)
        share = loop_share.set(LoopShare(RULES, partial(self.large.away, place.whose)))
        try:
            with project, within(project.scope):
                large = place.size > LARGE
                decision = await (self._dispatch_large(session, step, place) if large else session.dispatch(step))
            record = self.journal.newest() if self.journal is not None and place.size <= SMALL else None
            if record is not None and len(self._unmade) < IN_FLIGHT:
                self._unmade.append(record)
        finally:
            asking.reset(before)
            loop_share.reset(share)
            carrying.reset(carried)
        if step.event == "session_end" and step.session_id is not None:
            self.sessions.forget(place.whose, home, step.session_id)
        return decision, project

    async def _dispatch_large(self, session: Session, step: Step, place: _Place) -> Decision[Any]:
        """Dispatch a large step. Its records are made before it is answered, and before they are queued.

        Made by the journal, they would keep those of others waiting.
        """
        if self.journal is None:
            return await session.dispatch(step)
        held = HeldBack()
        known = held_back.set(held)
        try:
            return await session.dispatch(step)
        finally:
            held_back.reset(known)
            held.over = True
            try:
                for record in held.records:
                    await self.large.offload(place.whose, partial(self.journal.make_elsewhere, record), place.size)
            finally:  # one that was not made is made when it is written
                written = [self.journal.put(record) for record in held.records]
            for done in written:
                if done is not None:
                    await asyncio.wrap_future(done)

    def write_down(self, answer: int) -> None:
        """Make the journal's records of small requests, now that one has its answer, of so many bytes."""
        unmade, self._unmade = self._unmade, []
        if self.journal is not None and answer <= 8 * SMALL:
            for record in unmade:
                self.journal.make(record)

    # --- approvals --------------------------------------------------------------------------

    def answer(
        self, name: str, approved: bool, who: str | None, why: str | None, last: float, user: str | None
    ) -> Question:
        """Answer a question. `who` is whom the caller names, `user` whom the kernel does; the journal has both."""
        question = self.pending.answer(name, approved, who, why, last=last)
        if self.journal is not None:
            self.journal.note(
                "approved" if approved else "denied", approval=name, who=who, user=user, why=why, hook=question.hook,
                session=question.session,
            )  # fmt: skip
        return question

    @contextmanager
    def _receipt(self, acknowledges: bool) -> Iterator[Receipt]:
        """Keep what a request uses of approvals from being used up before its caller has the answer."""
        receipt = Receipt()
        try:
            yield receipt
        except BaseException:
            if receipt.id is not None:
                self._note_returned(self.pending.take_back(receipt.id), "there was no answer")
            raise
        if receipt.id is not None and acknowledges:
            loop = asyncio.get_running_loop()
            self._unacknowledged[receipt.id] = loop.call_later(ACKNOWLEDGE, self._time_out, receipt.id)
        elif receipt.id is not None:
            self.pending.acknowledge(receipt.id)

    def acknowledge(self, receipt: str) -> None:
        """Take note that a caller has its answer: the approvals in it are used up."""
        late = self.pending.acknowledge(receipt)
        if (waiting := self._unacknowledged.pop(receipt, None)) is not None:
            waiting.cancel()
        for question in late:
            self._note("acknowledged", question, why="the answer had arrived, though this was said late")
        self._look_drained()

    def recover(self) -> None:
        """Return the approvals that an earlier daemon has handed out, and that no caller has acknowledged."""
        for receipt in self.pending.left_open():
            self._note_returned(self.pending.time_out(receipt), "the daemon ended before its caller had the answer")

    async def take_in_unanswered(self) -> None:
        """Have the journal write down what launchers did without an answer."""
        if self.journal is not None:
            await threads.run(take_in, self.folder, self.journal)

    def _time_out(self, receipt: str) -> None:
        del self._unacknowledged[receipt]
        why = f"its caller did not say within {ACKNOWLEDGE:g} s that it has the answer"
        self._note_returned(self.pending.time_out(receipt), why)
        self._look_drained()

    def _note_returned(self, questions: list[Question], why: str) -> None:
        for question in questions:
            self._note("unacknowledged" if question.state == "used" else "returned", question, why=why)

    def _note(self, note: str, question: Question, **about: Any) -> None:
        if self.journal is None:
            return
        try:
            self.journal.note(note, approval=question.id, hook=question.hook, session=question.session, **about)
        except JournalError as error:
            logger.error("approval %s: %s, which could not be written down (%s)", question.id, note, error)

    @property
    def switch(self) -> Setting:
        return read_setting(self.folder)

    # --- living and ending ------------------------------------------------------------------

    @property
    def idle(self) -> float:
        """Seconds since anybody asked for anything."""
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
        }

    async def drain(self, timeout: float) -> None:
        """Take nothing new, and wait for what is under way."""
        self.draining = True
        self.pending.release()  # a human may take longer than anybody waits for the next daemon
        if self.in_flight or self._unacknowledged:
            try:
                async with asyncio.timeout(timeout):
                    await self.drained.wait()
            except TimeoutError:
                pass

    async def aclose(self) -> None:
        """Write down what must be remembered."""
        try:
            await self.projects.aclose()
        except Exception as error:
            logger.error("a project could not be closed (%s)", error)
        finally:
            self._save(self.sessions.save)
            for waiting in self._unacknowledged.values():
                waiting.cancel()  # what they wait for is the next daemon's
            self.large.close()
            self.pending.close()
            if self.journal is not None:
                self.journal.close()

    def _save(self, save: Callable[[], None]) -> None:
        try:
            save()
        except Exception as error:
            logger.error("the sessions could not be saved (%s): they begin anew", error)
