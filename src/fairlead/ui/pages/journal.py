"""The journal's own state: how large it is, how far it was checked, what anchors vouch for, and what it notes."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ...config.layers import Sources, find, read
from ...errors import FairleadError
from ...journal.anchor import Anchor, AnchoredHead
from ...journal.errors import JournalError
from ...journal.reading import Reader
from ...journal.store import Head, read_head
from ...journal.verify import VerifyResult, verify
from ..clock import duration, moment, plural
from ..layout import page, reader_of, ui_of
from ..markup import Html, h, join

MENU = ("Journal", "/journal")
NOTES = 20


class JournalState(NamedTuple):
    """What a journal says of itself."""

    path: Path
    size: int
    first: int
    last: int
    began: float | None
    ended: float | None
    sessions: int
    schema: int
    head: Head | None
    notes: list[dict[str, Any]]


class Check:
    """A check of the journal in the background: one at a time, and the result of the last one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done = self.total = 0
        self.began = self.took = 0.0
        self.result: VerifyResult | None = None
        self.error: str | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, anchors: list[AnchoredHead] | None) -> bool:
        """Start a check; False if one is running."""
        with self._lock:
            if self.is_running:
                return False
            self.done = self.total = 0
            self.began, self.result, self.error = time.time(), None, None
            self._thread = threading.Thread(target=self._run, args=(anchors,), daemon=True, name="fairlead-check")
            self._thread.start()
            return True

    def wait(self, seconds: float) -> None:
        """Wait for a check that is quick, so that its result is on the next page."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self, anchors: list[AnchoredHead] | None) -> None:
        try:
            self.result = verify(self.path, anchors, self._progress)
        except (FairleadError, OSError) as error:
            self.error = str(error)
        self.took = time.time() - self.began

    def _progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total


# --- the query ------------------------------------------------------------------------------------


def journal_state(reader: Reader) -> JournalState:
    """The state of a journal. Nothing is counted record by record: the chain has no gaps."""
    db, path = reader.db, reader.path
    first, last = db.execute("SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM records").fetchone()
    began, ended = (_time_of(reader, seq) for seq in (first, last))
    sessions = db.execute("SELECT count(*) FROM sessions").fetchone()[0] if reader.version > 1 else 0
    size = sum(file.stat().st_size for end in ("", "-wal") if (file := Path(f"{path}{end}")).exists())
    query = "SELECT body FROM records WHERE session IS NULL AND kind = 'note' ORDER BY seq DESC LIMIT ?"
    notes = [note for (body,) in db.execute(query, (NOTES,)) if (note := _decoded(body))]
    return JournalState(path, size, first, last, began, ended, sessions, reader.version, read_head(path), notes)


def _time_of(reader: Reader, seq: int) -> float | None:
    row = reader.db.execute("SELECT at FROM records WHERE seq = ?", (seq,)).fetchone()
    return None if row is None else float(row[0]) / 1e9


def _decoded(body: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return found if isinstance(found, dict) else None


def configured_anchor() -> Anchor | None:
    """The anchor of the system's and the user's file."""
    found = find("/")
    return read(Sources(found.system, found.user)).journal.get("anchor")


def _anchors(anchor: Anchor | None) -> list[AnchoredHead] | None:
    """The heads that were anchored; None where they cannot be read from here."""
    try:
        return anchor.known() if anchor is not None and anchor.file is not None else None
    except (OSError, ValueError):
        return None


# --- the page -------------------------------------------------------------------------------------


def facts(state: JournalState) -> Html:
    """Where the journal is, and how large."""
    records = state.last - state.first + 1 if state.last else 0
    rows: list[tuple[str, Any]] = [
        ("file", h.code(str(state.path))),
        ("size", f"{state.size / 1e6:,.1f} MB, schema {state.schema}"),
        ("records", f"{records:,}, number {state.first:,} to {state.last:,}" if records else "none"),
        ("sessions", f"{state.sessions:,}"),
    ]
    if state.began is not None and state.ended is not None:
        long = duration(state.ended - state.began)
        rows.append(("time", join(moment(state.began), " to ", moment(state.ended), f", {long}")))
    if state.head is not None:
        behind = state.last - state.head.seq
        words = f", {plural(behind, 'record')} newer than it" if behind > 0 else ""
        rows.append(("head", join(f"record {state.head.seq:,}, ", h.code(state.head.digest[:16]), "…", words)))
    else:
        rows.append(("head", "missing: nothing outside the file says which record is the newest"))
    return h.dl([(h.dt(name), h.dd(value)) for name, value in rows], class_="values card")


def anchors(anchor: Anchor | None, known: list[AnchoredHead] | None) -> Html:
    """What an attacker of the journal cannot change."""
    if anchor is None:
        return h.p(
            "No anchor is configured: an attacker who can write the file could rebuild all of it. See ",
            h.code("anchor"), " under ", h.code("[journal]"), ".",
        )  # fmt: skip
    sink = anchor.file or anchor.url or (anchor.command and " ".join(anchor.command)) or ""
    if not known:
        return h.p("Anchors go to ", h.code(sink), ". They cannot be read from here, or there are none yet.")
    newest = max(known, key=lambda one: one.seq)
    return h.p("Anchors go to ", h.code(sink), f": {len(known):,} of them, the newest of record {newest.seq:,}, ",
               moment(newest.at), ".")  # fmt: skip


def check_words(check: Check) -> Html:
    """How far the journal was checked, and with which result."""
    if check.is_running:
        part = f"{check.done:,} of {check.total:,} records" if check.total else "it has just begun"
        return h.p(f"A check is running: {part}. ", h.a("Look again", href="/journal"), role="status")
    if check.error is not None:
        return h.p(h.span("! ", aria_hidden="true"), "The check could not be made: ", check.error, class_="failed card")
    result = check.result
    if result is None:
        return h.p("Not checked since this page was started.", class_="dim")
    when = join(" Checked at ", moment(check.began), f" in {duration(check.took)}.")
    if result.problem is not None:
        return h.p(
            h.b("✕ Not what was written: "),
            result.problem,
            f". {result.records:,} records before that are sound.",
            when,
            class_="refused card",
        )
    until = f"verified until record {result.last:,}" if result.last else "there is nothing to verify"
    vouched = f" An anchor vouches for it up to record {result.anchored:,}." if result.anchored else ""
    word, family = ("! Unproven", "failed") if result.doubt else ("✓ Sound", "approved")
    doubt = f" {result.doubt}." if result.doubt else ""
    notes = [h.br(), [f"{note}. " for note in result.notes]] if result.notes else None
    return h.p(h.b(f"{word}: {until}."), vouched, doubt, when, notes, class_=f"{family} card")


def notes_table(notes: list[dict[str, Any]]) -> Html:
    """What was noted beside the decisions, such as a crash or a pruning."""
    rows = [
        h.tr(
            h.td(moment(float(note.get("at") or 0) / 1e9), class_="when"),
            h.td(h.b(str(note.get("note")))),
            h.td(", ".join(f"{key} {value}" for key, value in note.items() if key not in _OF_EVERY_NOTE)),
        )
        for note in notes
    ]
    head = h.thead(h.tr([h.th(word, scope="col") for word in ("at", "note", "about")]))
    return h.table(h.caption("Notes, newest first", class_="hidden"), head, h.tbody(rows), class_="notes")


_OF_EVERY_NOTE = ("v", "id", "at", "kind", "note", "redacted", "machine", "user")


def show(request: Request) -> Response:
    anchor = configured_anchor()
    with reader_of(request) as reader:
        state = journal_state(reader)
    button = h.form(
        h.button("Check it now", type="submit"),
        " ",
        h.span("", role="status", class_="dim"),
        data_post="/journal/check",
    )
    return page(
        request,
        "Journal",
        h.h1("Journal"),
        h.p("What the journal promises, and how to prove it: ", h.code("fairlead verify"), ".", class_="sentence"),
        facts(state),
        h.section(h.h2("Is it what was written?"), check_words(check_of(request)), button, class_="check"),
        h.section(h.h2("Anchors"), anchors(anchor, _anchors(anchor))),
        h.section(h.h2("Notes"), notes_table(state.notes) if state.notes else h.p("None.", class_="dim")),
    )


def check_of(request: Request) -> Check:
    """The check of this run's journal."""
    app_state = request.app.state
    if not hasattr(app_state, "journal_check"):
        app_state.journal_check = Check(ui_of(request).journal)
    found: Check = app_state.journal_check
    return found


def start_check(request: Request) -> Response:
    check = check_of(request)
    try:
        with reader_of(request):
            pass
    except JournalError as error:
        return PlainTextResponse(f"{error}\n", 409)
    if not check.start(_anchors(configured_anchor())):
        return PlainTextResponse("A check is running already.\n", 409)
    check.wait(1.0)
    return PlainTextResponse("Started.\n")


ROUTES = [Route("/journal", show), Route("/journal/check", start_check, methods=["POST"])]
