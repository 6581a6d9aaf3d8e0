"""Shows reports as the files that other programs read: JUnit, SARIF, annotations, Markdown and HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import escape as escape_html
from itertools import groupby
from typing import Any, Final
from xml.etree import ElementTree as ET

from .. import __version__
from .published import PublishedReport, ReportRow

ROWS: Final = (50, 20, 5)
"""Rows of each group in a comment: the first number with which it has at most `COMMENT` characters."""
COMMENT: Final = 60_000
"""Characters of a comment. GitHub takes 65,536."""
ANNOTATIONS: Final = 10
"""Annotations of each level that GitHub shows for one command."""
MARKER: Final = "<!-- fairlead -->"
"""The first line of a comment: by it, a workflow finds the comment again, to update it."""
MEANINGS: Final = {
    "loosened": "The new policy stops less.",
    "tightened": "The new policy stops more.",
    "other": "The same control, by another hook or with another change.",
    "unknown": "The record cannot tell whether the policies differ.",
}


def junit(found: PublishedReport) -> str:
    """A row is a test case. What is accepted has passed, and what is only worth a look is skipped."""
    suite = ET.Element("testsuite", name=_plain(f"{found.command} {found.title}"))
    rows = found.rows or [ReportRow(group="policy", title=found.summary, level="pass")]
    for row in rows:
        case = ET.SubElement(suite, "testcase", classname=row.group, name=_plain(row.title), time="0")
        place = found.place_of(row)
        if place is not None:
            case.set("file", place.file)
            case.set("line", str(place.line))
        if row.level == "error":
            ET.SubElement(case, "failure", type=row.group, message=_plain(row.title)).text = _plain(_body(row))
        elif row.level == "warning":
            ET.SubElement(case, "skipped", message=_plain(_body(row)))
    suite.set("tests", str(len(rows)))
    suite.set("failures", str(sum(row.level == "error" for row in rows)))
    suite.set("errors", "0")
    suite.set("skipped", str(sum(row.level == "warning" for row in rows)))
    ET.SubElement(suite, "system-out").text = _plain("\n".join([found.summary, *found.notes]))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}'


def _plain(text: str) -> str:
    """A text that XML can hold."""
    return re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)


def _body(row: ReportRow) -> str:
    example = [f"example: {row.example}"] if row.example else []
    accepted = [f"accepted by {row.accepted}"] if row.accepted else []
    return "\n".join([*row.details, *example, *accepted])


def sarif(found: PublishedReport) -> str:
    """SARIF 2.1.0: a group is a rule, a row is a result at the line of its hook."""
    groups = sorted({row.group for row in found.rows})
    results: list[dict[str, Any]] = []
    for row in found.rows:
        result: dict[str, Any] = {
            "ruleId": f"fairlead/{row.group.replace(' ', '-')}",
            "level": "none" if row.level == "pass" else row.level,
            "kind": "pass" if row.level == "pass" else "fail",
            "message": {"text": f"{row.title}\n{_body(row)}"},
            "partialFingerprints": {"fairlead/v1": row.key},
        }
        place = found.place_of(row)
        if place is not None:
            physical = {"artifactLocation": {"uri": place.file}, "region": {"startLine": place.line}}
            result["locations"] = [{"physicalLocation": physical}]
        if row.accepted is not None:
            result["suppressions"] = [{"kind": "external", "justification": row.accepted}]
        results.append(result)
    rules = [
        {
            "id": f"fairlead/{group.replace(' ', '-')}",
            "shortDescription": {"text": MEANINGS.get(group, f"{found.command}: {group}")},
        }
        for group in groups
    ]
    run = {
        "tool": {"driver": {"name": "fairlead", "version": __version__, "rules": rules}},
        "invocations": [{"executionSuccessful": True}],
        "results": results,
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2)


def github(found: PublishedReport) -> str:
    """Annotations: lines that GitHub Actions shows at the line of the hook."""
    lines = []
    for level in ("error", "warning", "notice"):
        rows = [row for row in found.rows if {"note": "notice"}.get(row.level, row.level) == level]
        for row in rows[: ANNOTATIONS - 1]:
            place = found.place_of(row)
            where = f"file={_property(place.file)},line={place.line}," if place is not None else ""
            message = _message(f"{row.title}\n{_body(row)}")
            lines.append(f"::{level} {where}title={_property(f'{found.command}: {row.group}')}::{message}")
        if len(rows) >= ANNOTATIONS:
            lines.append(f"::{level}::{len(rows) - ANNOTATIONS + 1} more like these")
    lines.append(f"::notice title={_property(found.command)}::{_message(f'{found.title}: {found.summary}')}")
    return "\n".join(lines)


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


# --- for people -----------------------------------------------------------------------------


def markdown(found: PublishedReport) -> str:
    """A comment for a pull request. It begins with `MARKER`, so that the next run can update it in place."""
    comments = (_comment(found, rows) for rows in ROWS)
    return next((comment for comment in comments if len(comment) <= COMMENT), "") or _comment(found, 1)


def _comment(found: PublishedReport, most: int) -> str:
    mark = ":x:" if found.failed else ":white_check_mark:"
    lines = [MARKER, f"### {mark} {found.command} {_code(found.title)}", "", found.summary]
    for group, rows in _groups(found):
        lines += ["", f"**{group}** ({len(rows)}). {MEANINGS.get(group, '')}".rstrip(), ""]
        for row in rows[:most]:
            accepted = f"; accepted by {_code(row.accepted)}" if row.accepted else ""
            lines.append(f"- {_code(row.title)}  ")
            lines.append(f"  {'; '.join(map(_words, row.details))}{accepted}")
            lines += [f"  example: {_code(row.example)}"] if row.example else []
        if len(rows) > most:
            lines.append(f"- and {len(rows) - most} more")
    lines += ["", *(f"- {_code(note)}" for note in found.notes)] if found.notes else []
    return "\n".join(lines)


_WORDS: Final = re.compile(r"[\w ,.:;()%-]*")


def _words(text: str) -> str:
    """A text as it is if it has words and numbers only, and else as code."""
    return text if _WORDS.fullmatch(text) else _code(text)


def _code(text: str) -> str:
    """A text as code, whatever it holds: it mentions no user, links nothing and is no markup."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if text[:1] in ("`", " ") or text[-1:] in ("`", " ") else ""
    return f"{fence}{space}{text}{space}{fence}" if text.strip() else ""


def _groups(found: PublishedReport) -> list[tuple[str, list[ReportRow]]]:
    shown = [row for row in found.rows if row.level != "pass"]
    return [(group, list(rows)) for group, rows in groupby(shown, key=lambda row: row.group)]


_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
h2 { margin-top: 2rem; } li { margin: .6rem 0; } .details { opacity: .75; }
.loosened { border-left: 4px solid #c62828; } .tightened { border-left: 4px solid #f9a825; }
.other { border-left: 4px solid #1565c0; } .unknown { border-left: 4px solid #757575; }
section { padding-left: 1rem; }
"""


def html(found: PublishedReport) -> str:
    """One static page: no script, nothing from elsewhere."""
    e = escape_html
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{e(f'{found.command} {found.title}')}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{e(found.command)} <code>{e(found.title)}</code></h1><p>{e(found.summary)}</p>",
    ]
    for group, rows in _groups(found):
        parts.append(f'<section class="{e(group)}"><h2>{e(group)} ({len(rows)})</h2>')
        parts.append(f"<p>{e(MEANINGS.get(group, ''))}</p><ul>")
        for row in rows:
            accepted = f"; accepted by {row.accepted}" if row.accepted else ""
            example = f"<br>example: <code>{e(row.example)}</code>" if row.example else ""
            details = e("; ".join(row.details) + accepted)
            parts.append(f'<li><code>{e(row.title)}</code><br><span class="details">{details}</span>{example}</li>')
        parts.append("</ul></section>")
    if found.notes:
        parts.append("<ul>" + "".join(f"<li>{e(note)}</li>" for note in found.notes) + "</ul>")
    return "\n".join([*parts, "</body></html>"])


FORMATS: Final[dict[str, Callable[[PublishedReport], str]]] = {
    "junit": junit, "sarif": sarif, "github": github, "markdown": markdown, "html": html,
}  # fmt: skip
"""Every format by the name of its option."""
