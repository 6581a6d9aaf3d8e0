"""Sizes, durations and moments as people write them: "1 GiB", "10m", "2h", "2026-05-01 14:00"."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_BYTES = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30,
}  # fmt: skip
_AMOUNT = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([a-z]{0,3})", re.IGNORECASE)


def seconds(text: str | float) -> float:
    """A duration: "90", "10m", "1h30m", "30d". Raises `ValueError` for anything else."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    parts = re.findall(r"(\d{1,12}(?:\.\d{1,6})?)\s*([a-z]{0,3})", str(text).strip(), re.IGNORECASE)
    whole = "".join(number + unit for number, unit in parts)
    sound = all(unit.lower() in _SECONDS or (not unit and len(parts) == 1) for _, unit in parts)
    if not parts or not sound or whole != re.sub(r"\s+", "", str(text)):
        raise ValueError(f"{text!r} is not a duration; write one like 90s, 10m, 2h or 30d")
    return sum(float(number) * _SECONDS[unit.lower() or "s"] for number, unit in parts)


def size(text: str | int) -> int:
    """A number of bytes: "500 MB", "1 GiB", 1048576. Raises `ValueError` for anything else."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    found = _AMOUNT.fullmatch(str(text).strip())
    if found is None or (found[2] or "b").lower() not in _BYTES:
        raise ValueError(f"{text!r} is not a size; write one like 500 MB or 1 GiB")
    return int(float(found[1]) * _BYTES[(found[2] or "b").lower()])


def moment(text: str, now: float | None = None) -> float:
    """A moment, in seconds since 1970: a date, a date and a time, a day ("today"), or how long ago ("2h").

    Raises `ValueError` for anything else.
    """
    current = time.time() if now is None else now
    days = {"today": 0, "yesterday": 1}.get(text.strip().lower())
    if days is not None:
        midnight = datetime.fromtimestamp(current).replace(hour=0, minute=0, second=0, microsecond=0)
        return (midnight - timedelta(days=days)).timestamp()
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        pass
    try:
        return current - seconds(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time; write one like 2h, 30d, today, 2026-05-01 or 2026-05-01T14:00"
        ) from None
