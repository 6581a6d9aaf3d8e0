"""The lanes of a timeline, drawn as SVG: length says time, and nothing else; colour says what was decided.

So bars are in quiet colours, and each decision is a marker of the same size in a lane of its own, with a line to its
moment. Places are in percent, as attributes: the picture is as wide as the page, its texts keep their size, and no
style is needed, which the page's policy would block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from .clock import duration
from .markup import Html, h
from .moments import SessionMoment

ROW, TOP, RULER = 24, 6, 26
"""Pixels: the height of a lane, the space above the first, and the height of the ruler."""
BAR = 11
MARKER = 8
"""Pixels: the radius of a marker."""
APART = 2.1
"""Percent of the width between two markers, so that they do not touch on a page of 800 pixels."""
MANY = 42
"""Markers that fit beside each other. Of more, those at nearly the same time become one."""
BREAK = 3.0
"""Percent of the width of a gap that was cut out. Many gaps together take at most `BREAKS`."""
BREAKS = 40.0
NAMED = 1.9
"""Percent of the width of a break from which it says how long the gap was."""
SHORTEST_GAP, GAP_SHARE = 5.0, 0.12
"""Seconds, and the share of all time with something in it, from which a gap is cut out."""
TICKS = 6
LANES = ("turn", "model", "tool")
_WORDS = {"turn": "turn", "model": "model", "tool": "tools"}


class TimeSpan(NamedTuple):
    """A time without a long gap, and where it is drawn."""

    begins: float
    ends: float
    left: float
    width: float


class Axis:
    """Where on the picture a moment is. Long gaps, in which nothing happened, are cut out."""

    def __init__(self, moments: Iterable[SessionMoment]) -> None:
        spans = sorted((moment.began, moment.ended) for moment in moments)
        self.begins = spans[0][0]
        joined = _without_gaps(spans)
        busy = sum(end - begin for begin, end in joined)
        cuts = len(joined) - 1
        self.gap = min(BREAK, BREAKS / cuts) if cuts else BREAK
        usable = 100.0 - self.gap * cuts
        self.spans: list[TimeSpan] = []
        left = 0.0
        for begin, end in joined:
            width = usable * ((end - begin) / busy if busy else 1 / len(joined))
            self.spans.append(TimeSpan(begin, end, left, width))
            left += width + self.gap

    def at(self, time: float) -> float:
        """The place of a time, in percent."""
        for span in self.spans:
            if time <= span.ends:
                length = span.ends - span.begins
                part = max(time - span.begins, 0.0) / length if length else 0.0
                return span.left + span.width * part
        return 100.0

    def time_at(self, place: float) -> float | None:
        """The time at a place; None in a gap that was cut out."""
        for span in self.spans:
            if span.left <= place <= span.left + span.width + 1e-9:
                part = (place - span.left) / span.width if span.width else 0.0
                return span.begins + (span.ends - span.begins) * part
        return None

    @property
    def gaps(self) -> Iterator[tuple[float, float]]:
        """Where a gap was cut out, and how long it was."""
        for one, other in pairwise(self.spans):
            yield one.left + one.width, other.begins - one.ends


def _without_gaps(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The times in which something happened. Short gaps between them are kept."""
    merged: list[tuple[float, float]] = []
    for begin, end in spans:
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    longest = max(SHORTEST_GAP, GAP_SHARE * sum(end - begin for begin, end in merged))
    joined = merged[:1]
    for begin, end in merged[1:]:
        if begin - joined[-1][1] > longest:
            joined.append((begin, end))
        else:
            joined[-1] = (joined[-1][0], end)
    return joined


def lanes(moments: list[SessionMoment]) -> Html:
    """The lanes of some moments: decisions, turns, model, tools, hooks, and one for each subagent."""
    axis = Axis(moments)
    subagents = list(dict.fromkeys(moment.agent for moment in moments if moment.agent))
    names = ["decisions", *(_WORDS[lane] for lane in LANES), "hooks", *subagents]
    height = TOP + ROW * len(names)
    drawn = [
        _grid(len(names)),
        _breaks(axis, height),
        _turns(axis, moments),
        [_bars(axis, moments, lane, row) for row, lane in enumerate(LANES, 1) if lane != "turn"],
        _hook_bars(axis, moments),
        [_subagent_bars(axis, moments, name, row) for row, name in enumerate(subagents, 5)],
        _markers(axis, moments, [*LANES, "hooks", *subagents]),
        _ruler(axis, height),
    ]
    labels = h.div([h.span(name, title=name) for name in names], class_="labels", aria_hidden="true")
    picture = h.svg(
        drawn, width="100%", height=height + RULER, role="img",
        aria_label=f"When: {len(moments)} moments in lanes. The list below says the same.",
    )  # fmt: skip
    return h.figure(labels, picture, class_="lanes")


def _place(value: float) -> str:
    return f"{value:.2f}%"


def _top(row: int) -> float:
    return TOP + ROW * row


def _grid(rows: int) -> list[Html]:
    ys = [_top(row) + ROW - 0.5 for row in range(rows)]
    return [h.line(x1="0", x2="100%", y1=y, y2=y, class_="grid") for y in ys]


def _bar(axis: Axis, begins: float, ends: float, row: int, kind: str, title: str, link: str | None = None) -> Html:
    left, right = axis.at(begins), axis.at(ends)
    y = _top(row) + (ROW - BAR) / 2
    width = max(right - left, 0.15)
    bar = h.rect(
        h.title(title), x=_place(min(left, 99.85)), width=_place(width), y=y, height=BAR, rx="2", class_=kind
    )  # fmt: skip
    return h.a(bar, href=link, tabindex="-1") if link else bar


def _bars(axis: Axis, moments: list[SessionMoment], lane: str, row: int) -> list[Html]:
    shown = [moment for moment in moments if moment.lane == lane and moment.agent is None]
    return [_bar_of(axis, moment, row, lane) for moment in shown]


def _bar_of(axis: Axis, moment: SessionMoment, row: int, kind: str) -> Html:
    title = f"{moment.name} {moment.what[:80]} ({duration(moment.ended - moment.began)})"
    return _bar(axis, moment.began, moment.ended, row, kind, title, f"#m{moment.seq}")


def _turns(axis: Axis, moments: list[SessionMoment]) -> list[Html]:
    """A turn is from a message of the user to the next one, or to its end."""
    row = 1 + LANES.index("turn")
    return [
        _bar(axis, begins, ends, row, "turn", f"turn ({duration(ends - begins)})") for begins, ends in turns(moments)
    ]


def turns(moments: list[SessionMoment]) -> Iterator[tuple[float, float]]:
    """When each turn began and ended."""
    own = [moment for moment in moments if moment.agent is None]
    begins: float | None = None
    last = 0.0
    for moment in own:
        if moment.is_user:
            if begins is not None:
                yield begins, last
            begins = moment.began
        last = max(last, moment.ended)
        if moment.rows[-1].event == "turn_end" and begins is not None:
            yield begins, last
            begins = None
    if begins is not None:
        yield begins, last


def _hook_bars(axis: Axis, moments: list[SessionMoment]) -> list[Html]:
    """The time that the agent waited for hooks, in every lane."""
    return [
        _bar(axis, row.began, row.ended, 4, "hook", f"hooks at {row.event}: {duration(row.ended - row.began)}")
        for moment in moments
        if moment.agent is None
        for row in moment.rows
        if row.body.get("runs")
    ]


def _subagent_bars(axis: Axis, moments: list[SessionMoment], name: str, row: int) -> list[Html]:
    shown = [moment for moment in moments if moment.agent == name]
    return [_bar_of(axis, moment, row, moment.lane) for moment in shown]


def _breaks(axis: Axis, height: float) -> list[Html]:
    """The gaps that were cut out, each with how long it was. The text goes upwards: a gap is narrow."""
    middle = TOP + (height - TOP + ROW) / 2  # of the lanes below the decisions
    return [
        h.g(
            h.title(f"nothing for {duration(length)}"),
            h.rect(x=_place(left), width=_place(axis.gap), y="0", height=height, class_="break"),
            h.text(duration(length), x=_place(left + axis.gap / 2), y=middle, class_="tick length",
                   text_anchor="middle") if axis.gap >= NAMED else None,
            h.text("⋯", x=_place(left + axis.gap / 2), y=height + 18, class_="tick", text_anchor="middle"),
        )
        for left, length in axis.gaps
    ]  # fmt: skip


# --- markers --------------------------------------------------------------------------------------


class Marker(NamedTuple):
    """A decision on the picture: where it happened, where its marker is, and the moments that it stands for."""

    at: float
    place: float
    moments: list[SessionMoment]


def _markers(axis: Axis, moments: list[SessionMoment], rows: list[str]) -> list[Html]:
    marked = [(axis.at(_decided_at(moment)), moment) for moment in moments if moment.findings]
    placed = pushed_apart([Marker(at, at, [moment]) for at, moment in sorted(marked, key=lambda pair: pair[0])])
    return [_stem(marker, rows) for marker in placed] + [_dot(marker) for marker in placed]


def _decided_at(moment: SessionMoment) -> float:
    """When the most important decision of a moment was made."""
    first = moment.findings[0]
    return next((row.ended for row in moment.rows if row.seq == first.seq), moment.ended)


def pushed_apart(markers: list[Marker]) -> list[Marker]:
    """Markers in order, none over another. Where there are too many, those that are close become one."""
    if len(markers) > MANY:
        markers = _clustered(markers)
    placed: list[Marker] = []
    for marker in markers:
        least = placed[-1].place + APART if placed else APART / 2
        placed.append(marker._replace(place=max(marker.at, least)))
    most = 100.0 - APART / 2
    for index in range(len(placed) - 1, -1, -1):  # back from the right edge
        if placed[index].place <= most:
            break
        placed[index] = placed[index]._replace(place=most)
        most -= APART
    return placed


def _clustered(markers: list[Marker]) -> list[Marker]:
    width = 100.0 / MANY
    groups: dict[int, list[Marker]] = {}
    for marker in markers:
        groups.setdefault(min(int(marker.at / width), MANY - 1), []).append(marker)
    return [
        Marker(group[0].at, group[0].at, [moment for marker in group for moment in marker.moments])
        for group in groups.values()
    ]


def _stem(marker: Marker, rows: list[str]) -> Html:
    """A line from a marker down to the lane of its moment."""
    moment = _foremost(marker)
    row = 1 + rows.index(moment.agent or moment.lane)
    foot = f"{_place(marker.at)}"
    family = moment.findings[0].mark.family
    return h.line(
        x1=_place(marker.place), x2=foot, y1=_top(0) + ROW / 2, y2=_top(row) + (ROW - BAR) / 2, class_=f"stem {family}"
    )


def _dot(marker: Marker) -> Html:
    moment = _foremost(marker)
    first = moment.findings[0]
    words = ", ".join(f"{one.findings[0].mark.word}: {one.name} {one.what[:60]}" for one in marker.moments[:6])
    more = f", and {len(marker.moments) - 6} more" if len(marker.moments) > 6 else ""
    several = len(marker.moments) > 1
    return h.a(
        h.title(words + more),
        h.circle(cx=_place(marker.place), cy=_top(0) + ROW / 2, r=MARKER + (1.5 if several else 0)),
        h.text(
            str(min(len(marker.moments), 99)) if several else first.mark.glyph,
            x=_place(marker.place), y=_top(0) + ROW / 2 + 4, text_anchor="middle",
        ),
        href=f"#m{moment.seq}",
        class_=f"marker {first.mark.family}",
        aria_label=words + more,
    )  # fmt: skip


def _foremost(marker: Marker) -> SessionMoment:
    return min(marker.moments, key=lambda moment: moment.findings[0].rank)


# --- ruler ----------------------------------------------------------------------------------------


def _ruler(axis: Axis, height: float) -> list[Html]:
    """Times below the lanes, counted from the first moment. None is beside a gap, where it would touch the next."""
    ticks: list[Html] = []
    span = axis.spans[-1].ends - axis.begins
    breaks = [left + axis.gap / 2 for left, _ in axis.gaps]
    for index in range(TICKS):
        place = 100.0 * index / (TICKS - 1)
        time = axis.time_at(place)
        if time is None or any(abs(place - one) < 5 for one in breaks):
            continue
        anchor = "start" if index == 0 else "end" if index == TICKS - 1 else "middle"
        words = tick(time - axis.begins, span)
        ticks.append(h.text(words, x=_place(place), y=height + 18, class_="tick", text_anchor=anchor))
    return ticks


def tick(offset: float, span: float) -> str:
    """A time on the ruler, as exact as the whole is short: `0.255 s`, `12.5 s`, `4:05`, `2:04:05`."""
    if span < 10:
        return f"{offset:.3f} s"
    if span < 120:
        return f"{offset:.1f} s"
    minutes, seconds = divmod(round(offset), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if span >= 3600 else f"{minutes}:{seconds:02}"
