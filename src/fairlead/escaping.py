"""Text from elsewhere, made safe to print: nothing in it can take a terminal over, and nothing is left out."""

from __future__ import annotations


def escape(text: str, *, keep_lines: bool = False) -> str:
    """Text from elsewhere, every unprintable character made visible."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or (keep_lines and c == "\n") else _visible(c) for c in text)


def _visible(character: str) -> str:
    return character.encode("unicode_escape", errors="surrogatepass").decode()
