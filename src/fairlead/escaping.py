"""Makes text from outside safe to print on a terminal, without leaving anything out."""

from __future__ import annotations


def escape(text: str, *, keep_lines: bool = False) -> str:
    """Make every unprintable character of a text visible."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or (keep_lines and c == "\n") else _visible(c) for c in text)


def _visible(character: str) -> str:
    return character.encode("unicode_escape", errors="surrogatepass").decode()
