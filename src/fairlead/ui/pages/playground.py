"""The playground: a step on the left, a policy on the right, the decision below. Nothing is carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...config.document import ConfigError
from ...config.layers import find, user_file
from ...decision import Decision
from ...errors import FairleadError
from ...hosts.clis.mapping import NAMES, canonical_name
from ...lifecycle import Step, event_named
from ...rendering import changes
from ...samples import step as sample_step
from ..clock import plural
from ..findings import BY_CONTROL
from ..judging import Tried, compare, policy_in_force, try_step, typed_policy
from ..layout import page, ui_of
from ..marks import MARKS
from ..markup import Html, h, join
from ..record_details import difference, hooks_table
from ..reports import diff_of
from .policy import folder_of, mistake_card
from .replay import last_field, last_of

MENU = ("Playground", "/playground")
KINDS = {
    "command": ("a shell command", "bash", "command"),
    "write": ("writing a file", "Write", "file_path"),
    "read": ("reading a file", "Read", "file_path"),
    "fetch": ("fetching an address", "WebFetch", "url"),
    "json": ("any step, as JSON", "", ""),
}
"""What a person can type as a step: its words, a tool that does it, and the argument."""


# --- the step -------------------------------------------------------------------------------------


def step_of(query: QueryParams, folder: Path) -> Step | None:
    """The step that the user typed; None for none. Raises for one that is none."""
    text, kind = query.get("step", "").replace("\r\n", "\n").strip("\n"), query.get("kind", "command")
    if not text.strip():
        return None
    header: dict[str, Any] = {"host": canonical_name(query.get("host") or None), "cwd": str(folder)}
    if kind == "json":
        return _step_of_json(text, header)
    if kind not in KINDS:
        raise FairleadError(f"{kind!r} is no kind of step; choose one of {', '.join(KINDS)}")
    _, tool, argument = KINDS[kind]
    args = {argument: text} | ({"content": ""} if kind == "write" else {})
    made: Step = sample_step("before_tool", tool=tool, args=args, **header)
    return made


def _step_of_json(text: str, header: dict[str, Any]) -> Step:
    """A step as JSON: `{"event": "before_tool", "tool": ..., "args": {...}}`."""
    try:
        fields = msgspec.json.decode(text, type=dict[str, Any])
        event = str(fields.pop("event", "before_tool"))
        event_named(event)
        made: Step = sample_step(event, **{**header, **fields})
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError) as error:
        raise FairleadError(f"this is no step: {error}") from None
    return made


# --- the page -------------------------------------------------------------------------------------


def form(query: QueryParams, folder: Path, file: Path, text: str, last: int) -> Html:
    """What to try: the step, and the text of a file of the policy."""
    kind = query.get("kind", "command")
    return h.form(
        h.div(
            h.div(
                h.h2("A step"),
                h.p(
                    h.label("what ", select("kind", {name: words for name, (words, *_) in KINDS.items()}, kind)), " ",
                    h.label("agent ", select("host", {"": "any", **{name: name for name in sorted(NAMES)}},
                                             query.get("host", ""))),
                ),
                h.textarea(query.get("step", ""), name="step", rows=8, aria_label="The step", spellcheck="false",
                           placeholder="git push --force origin main"),
                h.label("in the folder ", h.input(type="text", name="folder", value=str(folder))),
                h.p(h.button("Judge this step", type="submit", class_="main")),
            ),
            h.div(
                h.h2("A policy"),
                h.p(h.label("in place of ", select("file", _listed(files_of(folder)), str(file)))),
                h.textarea(text, name="policy", rows=8, aria_label="The policy", spellcheck="false",
                           placeholder="Leave it empty to ask what is in force."),
                last_field(last),
                h.p(h.button(f"Run it over the newest {last:,} records", type="submit", name="over", value="1")),
            ),
            class_="sides",
        ),
        action="/playground", method="get", class_="card playground",
    )  # fmt: skip


def select(name: str, choices: dict[str, str], chosen: str) -> Html:
    """A list to choose one of."""
    return h.select(
        [h.option(words, value=value, selected=value == chosen) for value, words in choices.items()], name=name
    )


def _listed(files: list[Path]) -> dict[str, str]:
    return {str(file): str(file) for file in files}


def files_of(folder: Path) -> list[Path]:
    """The files that a user may try another text for: those that apply in a folder, and the user's."""
    found = [path for _, path in find(folder)]
    return list(dict.fromkeys([*reversed(found), folder / "fairlead.toml", user_file()]))


def decided(tried: Tried, title: str) -> Html:
    """What was decided about a step, and by which hooks."""
    decision, known = tried.decision, BY_CONTROL.get(tried.decision.control)
    mark = MARKS[known].badge() if known else h.b("✓ goes on")
    by = f" by {decision.hook}" if decision.hook else ""
    return h.section(
        h.h2(title, ": ", mark, by),
        h.p(decision.reason, class_="reason") if decision.reason else None,
        [difference(change, {}) for change in changes(decision)],
        [h.p("told the model: ", str(text), class_="dim") for text in decision.context],
        [h.p("warning: ", warning, class_="dim") for warning in decision.warnings],
        _hooks(decision),
        h.p(
            f"Not asked, because they run elsewhere: {', '.join(tried.not_run)}. Try the whole with ",
            h.code("fairlead test"), ".", class_="dim",
        ) if tried.not_run else None,
        class_="card decided",
    )  # fmt: skip


def _hooks(decision: Decision[Any]) -> Html:
    """The hooks that had something to say, and behind a click those that had not."""
    if not decision.runs:
        return h.p("No hook applies.", class_="dim")
    silent = sum(run.outcome == "none" for run in decision.runs)
    words = f"{plural(silent, 'hook')} without an opinion"
    behind = h.details(h.summary(words), hooks_table([decision], silent=True), class_="silent") if silent else None
    return join(hooks_table([decision], silent=False), behind)


def chosen_file(query: QueryParams, folder: Path) -> Path:
    """The file whose place the typed policy takes."""
    files = files_of(folder)
    named = Path(query.get("file", ""))
    return named if named in files else next((file for file in files if file.is_file()), files[0])


def results(query: QueryParams, folder: Path, file: Path, step: Step | None, journal: Path, last: int) -> list[Any]:
    """What comes of the step and of the policy."""
    text, shown = query.get("policy", "").replace("\r\n", "\n"), []
    try:
        if step is not None:
            shown.append(decided(try_step(policy_in_force(folder), step), "What is in force"))
            if text.strip():
                shown.append(decided(try_step(typed_policy(text, file), step), "What you typed, by itself"))
        if query.get("over") and text.strip():
            now = file.read_text() if file.is_file() else ""
            report = compare(
                journal, typed_policy(now, file), typed_policy(text, file), last, (str(file), "what you typed")
            )
            words = f"From {file.name} as it is to what you typed, on the newest {last:,} records."
            shown.append(h.section(h.h2("On recorded traffic"), h.p(words, class_="sentence"), diff_of(report)))
    except ConfigError as error:
        shown += [h.p(f"{plural(len(error.mistakes), 'mistake')}."), *map(mistake_card, error.mistakes)]
    return shown


def show(request: Request) -> Response:
    query, folder, last = request.query_params, folder_of(request), last_of(request)
    file, journal = chosen_file(query, folder), ui_of(request).journal
    shown = results(query, folder, file, step_of(query, folder), journal, last)
    return page(
        request,
        "Playground",
        h.h1("Playground"),
        h.p("Type a step, and see what hooks say of it. Change a policy, and see what it would have changed. Nothing "
            "is carried out or written, and no program of a policy runs.", class_="sentence"),
        form(query, folder, file, query.get("policy", ""), last),
        shown,
    )  # fmt: skip


ROUTES = [Route("/playground", show)]
