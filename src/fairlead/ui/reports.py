"""A diff or a replay as HTML: classes of steps, what is loosened first, each with its smallest example."""

from __future__ import annotations

from collections.abc import Iterator

from ..replay.published import gap_words
from ..replay.report import (
    ChangeClass,
    DiffReport,
    Example,
    ReplayClass,
    ReplayReport,
    ReportedAnswer,
    Spread,
    Totals,
    UnknownClass,
)
from .clock import duration, moment, plural
from .markup import Html, h, join
from .record_details import decision_address

SHOWN = 50
"""Classes of each kind on the page."""
_DIRECTIONS = (
    ("loosened", "loosened", "✕", "refused", "The new policy is less strict here."),
    ("tightened", "tightened", "!", "failed", "The new policy is stricter here."),
    ("other", "different", "✎", "changed", "Neither is stricter: another change, hook or text."),
)
CAUSES = {
    "failure": "a hook failed, when it was recorded or now",
    "redacted": "the answer depends on a secret that the record does not have",
    "external": "a hook runs elsewhere, and has no recorded verdict for this step",
    "untrusted code": "the code of a hook is not trusted, so it was not run",
    "cold state": "a hook needs what earlier steps left, and their records are missing",
    "would ask": "a hook asks a question that was not asked then",
    "policy": "the policy has changed since: a hook is new, gone, or another one",
    "inexact": "the record does not hold the step exactly",
    "outside": "a hook depends on what no record has: the time of day, the environment, files, its own memory",
}


def diff_of(report: DiffReport) -> list[Html | None]:
    """What two policies decide differently."""
    totals = report.totals
    is_same = totals.steps and not report.changes and not report.unknown
    return [
        _summary(totals, f"{totals.same:,} the same, {totals.changed:,} changed, {totals.unknown:,} unknown"),
        h.p(h.b("✓ No difference."), " Both policies decide the same on all of these steps.", class_="approved card")
        if is_same
        else None,
        *(
            _changes(report, direction, word, glyph, family, about)
            for direction, word, glyph, family, about in _DIRECTIONS
        ),
        _unknown(report.unknown),
        *_notes(report),
    ]


def replay_of(report: ReplayReport) -> list[Html | None]:
    """What one policy decides otherwise than the record."""
    totals = report.totals
    compared = totals.steps - sum(report.not_compared.values())
    by_cause: dict[str, list[ReplayClass]] = {}
    for one in report.differences:
        by_cause.setdefault(one.cause, []).append(one)
    return [
        _summary(totals, f"{totals.same:,} of {plural(compared, 'decision')} are as recorded"),
        h.p(h.b("✓ Reproduced."), " Every decision that can be compared is the recorded one.", class_="approved card")
        if compared and not report.differences
        else None,
        *(
            h.section(
                h.h2(f"{cause}: {plural(sum(one.spread.count for one in some), 'step')}"),
                h.p(CAUSES.get(cause, ""), class_="sentence"),
                _table("recorded", "now", [_replay_row(one) for one in some[:SHOWN]]),
                _rest(len(some)),
            )
            for cause, some in by_cause.items()
        ),
        *(h.p(f"{number:,} not compared: {why}", class_="dim") for why, number in sorted(report.not_compared.items())),
        *(h.p(words, class_="dim") for words in gap_words(report.gaps)),
    ]


def _summary(totals: Totals, result: str) -> Html:
    if not totals.steps:
        return h.p("No recorded step of that time is at an event that a hook is for.", class_="empty")
    when = join(", ", moment(totals.first), " to ", moment(totals.last))
    judged = f"{plural(totals.steps, 'step')} of {plural(totals.sessions, 'session')}"
    return h.p(judged, when, f": {result}. Judged in {duration(totals.took)}.", class_="sentence")


def _changes(report: DiffReport, direction: str, word: str, glyph: str, family: str, about: str) -> Html | None:
    some = [change for change in report.changes if change.direction == direction]
    if not some:
        return None
    steps = sum(change.spread.count for change in some)
    badge = h.span(h.span(glyph, class_="glyph", aria_hidden="true"), f" {word}", class_=f"badge {family}")
    return h.section(
        h.h2(badge, f" {plural(steps, 'step')} in {len(some):,} {'class' if len(some) == 1 else 'classes'}"),
        h.p(about, class_="sentence"),
        _table("before", "after", [_change_row(change) for change in some[:SHOWN]]),
        _rest(len(some)),
    )


def _unknown(some: list[UnknownClass]) -> Html | None:
    """Where a difference cannot be told: an answer of its own."""
    if not some:
        return None
    rows = [
        h.tr(
            h.td(h.b(one.why), h.div(CAUSES.get(one.why, ""), class_="about")),
            h.td(h.code(one.what)),
            h.td(_what(one.shape, one.example)),
            h.td(_reach(one.spread)),
        )
        for one in some[:SHOWN]
    ]
    badge = h.span(h.span("?", class_="glyph", aria_hidden="true"), " unknown", class_="badge watched")
    steps = plural(sum(one.spread.count for one in some), "step")
    return h.section(h.h2(badge, f" {steps}"), _rows(("why", "hook or place", "what", "how far it reaches"), rows),
                     _rest(len(some)))  # fmt: skip


def _change_row(change: ChangeClass) -> Html:
    return h.tr(
        h.td(_answer(change.before)),
        h.td(_answer(change.after)),
        h.td(change.hook or ""),
        h.td(_what(change.shape, change.example), change.accepted and h.div(f"accepted: {change.accepted}")),
        h.td(_reach(change.spread)),
    )


def _replay_row(one: ReplayClass) -> Html:
    return h.tr(
        h.td(_answer(one.recorded)), h.td(_answer(one.now)), h.td(one.what), h.td(_what(one.shape, one.example)),
        h.td(_reach(one.spread)),
    )  # fmt: skip


def _table(first: str, second: str, rows: list[Html]) -> Html:
    return _rows((first, second, "hook", "what", "how far it reaches"), rows)


def _rows(head: tuple[str, ...], rows: list[Html]) -> Html:
    return h.table(h.thead(h.tr([h.th(word, scope="col") for word in head])), h.tbody(rows), class_="classes")


def _rest(number: int) -> Html | None:
    return h.p(f"And {number - SHOWN:,} more classes; `fairlead diff --all` shows them.") if number > SHOWN else None


_WORDS = {"proceed": "goes on", "deny": "denied", "ask": "asks", "allow": "allowed", "abort": "request fails",
          "stop": "turn stops", "skip": "left out", "extend": "kept going", "retry": "run again"}  # fmt: skip


def _answer(answer: ReportedAnswer) -> Html:
    """What a policy does, in words."""
    more = [
        *([answer.answered] if answer.answered else []),
        *(f"changes {field}" for field in answer.changed),
        *answer.also,
        *(f"{hook} fails" for hook in answer.failed),
    ]
    words = _WORDS.get(answer.control, answer.control)
    return join(h.b(words), more and h.div(", ".join(more), class_="about"))


def _what(shape: str, example: Example) -> Html:
    text = example.shrunk or example.text
    return join(
        h.code(shape),
        h.div(
            h.a("example", href=decision_address(example.record)), ": " if text else "", text and h.code(text[:200]),
            class_="about",
        ),
    )  # fmt: skip


def _reach(spread: Spread) -> Html:
    """How far a class reaches."""
    words = [plural(spread.count, "step"), plural(spread.sessions, "session")]
    words += [count for count, _ in spread.name_counts()]
    return join(", ".join(words), h.div(moment(spread.first), " to ", moment(spread.last), class_="about"))


def _notes(report: DiffReport) -> Iterator[Html]:
    if report.untrusted:
        yield h.p(f"Not run, because their code is not trusted: {', '.join(report.untrusted)}.", class_="dim")
    if report.totals.would_ask:
        yield h.p(
            f"{plural(report.totals.would_ask, 'step')} would ask a question that was not put then.", class_="dim"
        )
    for words in (*report.expired, *gap_words(report.gaps)):
        yield h.p(words, class_="dim")
    if any(change.direction == "tightened" for change in report.changes):
        yield h.p(
            "Each step is judged by itself: what an agent does after a new refusal is not predicted.", class_="dim"
        )
