"""Replay and diff: what a change of the policy would have changed in recorded traffic."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..judging import compare_named, compare_with_record
from ..layout import number, page, ui_of
from ..markup import Html, h
from ..reports import diff_of, replay_of

MENU = ("Replay", "/replay")
LAST = 1_000
MOST = 50_000
"""Records that are judged while a browser waits. `fairlead diff` judges any number."""


def diff_form(old: str, new: str, last: int) -> Html:
    """Which policies, and how much traffic."""
    return h.form(
        h.label("before ", h.input(type="text", name="old", value=old, placeholder="main, old.toml", size=24)),
        h.label("after ", h.input(type="text", name="new", value=new, placeholder="HEAD, new.toml, .", size=24)),
        last_field(last),
        h.button("Compare the two", type="submit", class_="main"),
        action="/replay", method="get", class_="fields",
    )  # fmt: skip


def record_form(last: int) -> Html:
    """The policy in force against what was recorded."""
    return h.form(
        h.input(type="hidden", name="record", value="1"),
        last_field(last),
        h.button("Compare with the record", type="submit"),
        action="/replay", method="get", class_="fields",
    )  # fmt: skip


def last_field(last: int) -> Html:
    """How many of the newest records are judged."""
    return h.label(
        "newest ", h.input(type="number", name="last", value=last, min=1, max=MOST, size=7), " records",
    )  # fmt: skip


def last_of(request: Request) -> int:
    """The number of records that the address asks for, within bounds."""
    return min(number(request, "last") or LAST, MOST)


def show(request: Request) -> Response:
    query, last, folder, journal = request.query_params, last_of(request), Path.cwd(), ui_of(request).journal
    old, new = query.get("old", "").strip(), query.get("new", "").strip()
    if old or new:
        report = compare_named(journal, old or "HEAD", new or ".", last)
        words = [f"From {report.old} to {report.new}, on the newest {last:,} records."]
        content = [h.p(words, class_="sentence"), *diff_of(report)]
    elif query.get("record"):
        words = [f"What is in force in {folder}, against the newest {last:,} records."]
        content = [h.p(words, class_="sentence"), *replay_of(compare_with_record(journal, folder, last))]
    else:
        content = []
    return page(
        request,
        "Replay",
        h.h1("Replay"),
        h.p(
            "Judge what your agents really did with another policy, before you switch it on. A policy is a file, a "
            f"folder with a fairlead.toml, or a revision of git, as seen from {folder}. Nothing is written, and no "
            "program of a policy runs.",
            class_="sentence",
        ),
        h.div(diff_form(old, new, last), record_form(last), class_="card forms"),
        content,
    )


ROUTES = [Route("/replay", show)]
