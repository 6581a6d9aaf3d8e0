"""One session as one file of HTML to send to a colleague: nothing is fetched, nothing runs, and it opens from the disk.

Its texts are redacted again, with what counts as a secret today. The journal may be older than the name of a secret.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from ..journal.reading import Reader, Record
from ..redaction.redactor import redact
from .layout import asset
from .markup import Html, h, standalone
from .moments import SessionMoment
from .pages.session import moment_list, moment_row, session_view, summary
from .record_details import moment_details

MOST = 5000
"""Moments of one file. A browser takes long to open more."""


def export_session(reader: Reader, session: str) -> Html:
    """The page of a session with all its details. Raises `NoRecord` if the journal has no such session."""
    view = session_view(reader, session, limit=MOST, clean=redact)
    moments = view.timeline.moments
    first = moments[0].began
    rows = [moment_row(moment, first, details=_details(reader, moment)) for moment in moments]
    cut = h.p(f"These are the first {MOST:,} moments.", class_="dim") if view.timeline.more else None
    written = f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    note = h.p(f"Written by fairlead on {written}. Secrets were taken out.", class_="about")
    return standalone(
        view.listed.message or session,
        asset("ui.css").decode(),
        h.main(summary(view), moment_list(moments, rows), cut, note),
    )


def _details(reader: Reader, moment: SessionMoment) -> Html:
    records = [reader.record(str(row.seq)) for row in moment.rows]
    return moment_details([_redacted_record(record) for record in records], linked=False)


def _redacted_record(record: Record) -> Record:
    """Its step, what changed and what hooks said; its id, its policy and its digests stay."""
    body = {
        name: redact(value) if name in ("step", "left", "said", "runs", "unanswered") else value
        for name, value in record.body.items()
    }
    return msgspec.structs.replace(record, body=body)
