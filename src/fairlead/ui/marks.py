"""What stands out of a decision, in words for people: "denied", "kept going", "told the model".

Each has a word, a glyph and a colour, so that none of them carries the meaning alone.
"""

from __future__ import annotations

from typing import NamedTuple

from .markup import Html, h


class Mark(NamedTuple):
    """What stands out: its word, its glyph, and the family whose colour it has. The most important first in `MARKS`."""

    name: str
    word: str
    glyph: str
    family: str

    def badge(self) -> Html:
        """The mark beside what it is about."""
        return h.span(
            h.span(self.glyph, class_="glyph", aria_hidden="true"), " ", self.word, class_=f"badge {self.family}"
        )

    def counted(self, number: int) -> Html | None:
        """How often it happened; nothing for never."""
        if not number:
            return None
        return h.span(
            h.span(self.glyph, class_="glyph", aria_hidden="true"), f" {number:,} ", h.span(self.word, class_="word"),
            class_=f"badge {self.family}",
        )  # fmt: skip


MARKS = {
    mark.name: mark
    for mark in (
        Mark("aborted", "request failed", "✕", "refused"),
        Mark("stopped", "turn stopped", "✕", "refused"),
        Mark("denied", "denied", "✕", "refused"),
        Mark("failed", "hook failed", "!", "failed"),
        Mark("not done", "not carried out", "!", "failed"),
        Mark("damaged", "damaged record", "!", "failed"),
        Mark("waiting", "asks you", "?", "held"),
        Mark("kept going", "kept going", "↻", "held"),
        Mark("retried", "run again", "↻", "held"),
        Mark("skipped", "left out", "↷", "held"),
        Mark("told", "told the model", "↳", "held"),
        Mark("changed", "changed", "✎", "changed"),
        Mark("answered", "answered instead", "✎", "changed"),
        Mark("asked", "asked", "?", "held"),
        Mark("approved", "approved", "✓", "approved"),
        Mark("allowed", "allowed", "✓", "approved"),
        Mark("would", "would have", "◌", "watched"),
        Mark("warned", "warned", "!", "watched"),
    )
}
"""By name, the most important first."""
