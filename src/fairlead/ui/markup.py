"""HTML that cannot be made without escaping: `h.p("5 < 6", class_="note")`.

A text from outside is a `str`, and is escaped, with every character that would not be seen spelled out: a terminal's
escape sequences, and marks that turn the direction of a text. Only this module makes an `Html`. So what a record holds
can never become an element, an attribute or a script.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from html import escape as escape_html
from typing import Any

from ..escaping import escape as spell_out

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
"""The elements that have no end tag."""
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_SPECIAL = re.compile("[&<>\"']")
_ADDRESSES = frozenset(
    {
        "href",
        "src",
        "action",
        "formaction",
        "xlink-href",
        "data-src",
        "data-post",
        "data-live",
        "data-summary",
        "data-more",
        "data-questions",
    }
)


class Html(str):
    """HTML whose every text is escaped. Only this module makes one."""

    __slots__ = ()


class UnsafeMarkup(ValueError):
    """An element or attribute that could run a script."""


def element(name: str, /, *children: Any, **attributes: Any) -> Html:
    """An element. A child is `Html`, a text, a number, None (nothing) or an iterable of those.

    An attribute that is None or False is left out; `class_` is `class`, and `data_id` is `data-id`.
    """
    _check_element(name)
    return _element(name, children, attributes)


@cache
def _check_element(name: str) -> None:
    if not _NAME.fullmatch(name) or name.lower() in ("script", "style", "iframe", "object", "embed", "base"):
        raise UnsafeMarkup(f"<{name}> is for `document` only")


def _element(name: str, children: Iterable[Any], attributes: dict[str, Any]) -> Html:
    words = "".join([_attribute(key, value) for key, value in attributes.items()]) if attributes else ""
    if name in VOID:
        return Html(f"<{name}{words}>")
    return Html(f"<{name}{words}>{''.join([text(child) for child in children])}</{name}>")


def text(value: Any) -> str:
    """A child as HTML."""
    if value.__class__ is Html:
        return value
    if isinstance(value, str):
        return _escaped(value)
    if value is None or value is False:
        return ""
    if isinstance(value, (int, float)):
        return str(value)
    return "".join([text(child) for child in value])


def join(*children: Any) -> Html:
    """Several children without an element around them."""
    return Html(text(children))


def _escaped(value: str) -> str:
    """A text, escaped. Unseen characters are spelled out, and marked as such."""
    if value.isprintable():
        return escape_html(value) if _SPECIAL.search(value) else value
    return "".join([
        escape_html(part) if part.isprintable() or part in "\n\t" else f'<span class="unseen">{spell_out(part)}</span>'
        for part in _runs(value)
    ])  # fmt: skip


def _runs(value: str) -> Iterable[str]:
    """A text in parts: each unprintable character alone, and what is printable between them."""
    begin = 0
    for at, character in enumerate(value):
        if not character.isprintable():
            yield value[begin:at]
            yield character
            begin = at + 1
    yield value[begin:]


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = _attribute_name(key)
    if value is True:
        return f" {name}"
    words = value if isinstance(value, str) else str(value)
    if name in _ADDRESSES and not (words.startswith(("/", "#", "?")) and not words.startswith("//")):
        raise UnsafeMarkup(f"{name} leads out of the inspector: {words!r}")
    if not words.isprintable() or _SPECIAL.search(words):
        words = escape_html(spell_out(words, keep_lines=True))
    return f' {name}="{words}"'


@cache
def _attribute_name(key: str) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not _NAME.fullmatch(name) or name.lower().startswith("on") or name == "style":
        raise UnsafeMarkup(f"{name!r} is no attribute of ours: a script or style inside a page is blocked")
    return name


class _Elements:
    """`h.div(...)` is `element("div", ...)`."""

    def __getattr__(self, name: str) -> Callable[..., Html]:
        def make(*children: Any, **attributes: Any) -> Html:
            return element(name, *children, **attributes)

        self.__dict__[name] = make
        return make


h = _Elements()


def standalone(title: str, css: str, *body: Any) -> Html:
    """A page in one file, with its style in it. Its policy allows that style and nothing else."""
    digest = b64encode(sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    head = [
        h.meta(charset="utf-8"),
        h.meta(http_equiv="content-security-policy", content=policy),
        h.meta(name="viewport", content="width=device-width, initial-scale=1"),
        h.title(title),
        Html(f"<style>{css}</style>"),
    ]
    return Html(f"<!doctype html>\n{h.html(h.head(head), h.body(body), lang='en')}\n")


def document(title: str, head: Iterable[tuple[str, dict[str, Any]]], *body: Any, **attributes: Any) -> Html:
    """A whole page. `head` are the elements of its head that load something: (name, attributes) pairs."""
    loaded = [_element(name, (), content) for name, content in head]
    start = (h.meta(charset="utf-8"), h.meta(name="viewport", content="width=device-width, initial-scale=1"))
    page = h.html(h.head(*start, h.title(title), *loaded), h.body(*body, **attributes), lang="en")
    return Html(f"<!doctype html>\n{page}")
