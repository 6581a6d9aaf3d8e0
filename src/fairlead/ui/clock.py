"""Times and durations as people read them. A table has one unit in each column, so that numbers can be compared."""

from __future__ import annotations

from datetime import datetime

from .markup import Html, h


def moment(at: float, now: datetime | None = None) -> Html:
    """A time of day, with the date if it is not today: `17:48:02`, `Nov 18, 17:48`, `2025-11-18 17:48`."""
    when = datetime.fromtimestamp(at).astimezone()
    today = now or datetime.now().astimezone()
    words = f"{when:%H:%M:%S}"
    if when.date() != today.date():
        words = f"{when:%b} {when.day}, {when:%H:%M}" if when.year == today.year else f"{when:%Y-%m-%d %H:%M}"
    return h.time(words, datetime=when.isoformat(timespec="milliseconds"), title=f"{when:%Y-%m-%d %H:%M:%S %Z}")


def duration(seconds: float) -> str:
    """A duration in prose: `0.4 ms`, `12 ms`, `1.3 s`, `4 min`, `3 h 20 min`."""
    if seconds < 0.9995:
        millis = max(seconds, 0.0) * 1000
        return f"{millis:.1f} ms" if millis < 9.95 else f"{millis:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{round(hours / 24)} days"


def seconds(value: float) -> str:
    """A time in a column: seconds, three places."""
    return f"{value:.3f}"


def short_seconds(value: float) -> str:
    """The same where most are short: a time below a millisecond is not shown as none."""
    return seconds(value) if value >= 0.0005 else "<0.001"


def plural(number: int, noun: str) -> str:
    """`1 record`, `2,000 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
