"""The policy in force in a folder: its files, packs, trust, mistakes, and which hooks run at which event."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...config.document import Mistake
from ...config.hook_entry import ConfiguredHook
from ...config.layers import Config, ConfigFile, find, read
from ...enforcement import read_setting
from ...hosts.clis.chains import EventChain, chains_of
from ...packs import packs
from ...packs.judging import PackOptions
from ..clock import plural
from ..layout import page
from ..markup import Html, h, join

MENU = ("Policy", "/policy")


class PolicyView(NamedTuple):
    """What is in force in a folder."""

    folder: Path
    config: Config
    chains: list[EventChain]
    is_enforced: bool


# --- the query ------------------------------------------------------------------------------------


def policy_view(folder: Path) -> PolicyView:
    """Read the files that apply in a folder. Nothing of them runs."""
    config = read(find(folder))
    return PolicyView(folder, config, list(chains_of(config, str(folder))), read_setting().enforced)


def folder_of(request: Request) -> Path:
    """The folder that the address names, or else the one in which `fairlead ui` runs."""
    named = request.query_params.get("folder", "").strip()
    return Path(named).expanduser() if named else Path.cwd()


# --- the page -------------------------------------------------------------------------------------


def policy_page(view: PolicyView) -> Iterator[Html]:
    """What is in force, the trouble first."""
    config = view.config
    if not view.is_enforced:
        yield h.p(h.b("! Hooks are only watched now."), " `fairlead enforce` ends that.", class_="failed card")
    yield from (mistake_card(mistake) for mistake in (*config.mistakes, *config.unavailable))
    yield from (h.p(h.b("! Not in force: "), line, class_="failed card") for line in config.untrusted)
    yield h.section(h.h2("Files"), files_table(config))
    used = [one for one in config.hooks if one.form == "pack"]
    if used:
        yield h.section(h.h2("Packs"), packs_table(used))
    if view.chains:
        sections = [event_section(event, chain) for event, chain in view.chains]
        yield h.section(h.h2("What runs when"), sections)


def mistake_card(mistake: Mistake) -> Html:
    """A mistake in a file, with the line that has it."""
    where = f"{mistake.file}:{mistake.line}:{mistake.column}"
    return h.div(h.p(h.b("! "), h.code(where), f": {mistake.problem}"), mistake.text.strip() and h.pre(mistake.text),
                 class_="failed card")  # fmt: skip


def files_table(config: Config) -> Html:
    """The files of all layers, and whether they are in force."""
    read_layers = {layer.document.path: layer for layer in config.layers}
    rows = [
        h.tr(h.td(h.b(layer)), h.td(h.code(str(path))), h.td(_state(read_layers.get(str(path)))))
        for layer, path in config.sources
    ]
    if not rows:
        return h.div(h.p("There is no fairlead.toml for this folder. Write one with ", h.code("fairlead init"), "."),
                     class_="empty")  # fmt: skip
    return h.table(h.thead(h.tr([h.th(word, scope="col") for word in ("layer", "file", "state")])), h.tbody(rows))


def _state(layer: ConfigFile | None) -> Html:
    if layer is None:
        return h.span("not in force as it is; see above", class_="dim")
    if layer.document.mistakes:
        return h.b(f"! {plural(len(layer.document.mistakes), 'mistake')}", class_="state")
    if not layer.trusted:
        return h.b(f"! not trusted: {layer.untrusted_because}")
    return h.span("in force, as it was trusted" if layer.is_snapshot else "in force")


def packs_table(used: list[ConfiguredHook]) -> Html:
    """The packs in force, what each is about, and how it is used."""
    about = {f"fairlead.{pack.name}": pack.about for pack in packs("recommended")}
    rows = [
        h.tr(
            h.td(h.b(one.name)),
            h.td(about.get(one.hook.name, "")),
            h.td(_use(one)),
            h.td(one.hook.layer, h.div(h.code(f"{Path(one.file).name}:{one.line}"), class_="about", title=one.where)),
        )
        for one in used
    ]
    head = h.thead(h.tr([h.th(word, scope="col") for word in ("pack", "about", "use", "from")]))
    return h.table(head, h.tbody(rows), class_="packs")


def _use(one: ConfiguredHook) -> str:
    """How strict a pack is."""
    options = getattr(one.hook.fn, "options", None)
    words = [f"level {options.level}"] if isinstance(options, PackOptions) else []
    words += [f"always {options.verdict}"] if isinstance(options, PackOptions) and options.verdict else []
    return ", ".join([*words, *(["locked"] if one.locked else []), *([] if one.hook.enforce else ["only monitored"])])


def event_section(event: str, chain: list[tuple[ConfiguredHook, list[str]]]) -> Html:
    """The hooks of one event, in running order."""
    return h.details(h.summary(h.b(event), h.span(f" {plural(len(chain), 'hook')}", class_="dim")), hooks_list(chain),
                     class_="chain", open=event == "before_tool")  # fmt: skip


def hooks_list(chain: list[tuple[ConfiguredHook, list[str]]]) -> Html:
    """Hooks in running order: how each runs, for what, and where it stands."""
    rows = [
        h.tr(
            h.td(
                h.b(one.name),
                one.locked and h.span(" locked", class_="dim"),
                [h.div(note, class_="about") for note in notes],
            ),
            h.td(one.hook.phase),
            h.td(one.form),
            h.td(_match(one)),
            h.td(one.hook.layer, h.div(h.code(f"{Path(one.file).name}:{one.line}"), class_="about", title=one.where)),
        )
        for one, notes in chain
    ]  # fmt: skip
    head = ("hook", "phase", "form", "for", "from")
    return h.table(h.thead(h.tr([h.th(word, scope="col") for word in head])), h.tbody(rows), class_="hook-list")


def _match(one: ConfiguredHook) -> Html:
    match = one.entry.get("match") or {}
    words = ", ".join(f"{key} {value if isinstance(value, str) else ' or '.join(map(str, value))}"
                      for key, value in match.items() if isinstance(value, (str, list)))  # fmt: skip
    return h.span(words or "every step")


def folder_form(folder: Path, action: str) -> Html:
    """Which folder the page is about."""
    return h.form(
        h.label("in the folder ", h.input(type="text", name="folder", value=str(folder), size=44)),
        h.button("Show", type="submit"),
        action=action, method="get", class_="fields",
    )  # fmt: skip


def show(request: Request) -> Response:
    view = policy_view(folder_of(request))
    hooks = plural(len(view.config.hooks), "configured hook")
    return page(
        request,
        "Policy",
        h.h1("Policy"),
        h.p(join(f"{hooks} in {view.folder}. "), h.a("Try a step", href="/playground"), ".", class_="sentence"),
        folder_form(view.folder, "/policy"),
        list(policy_page(view)),
    )


ROUTES = [Route("/policy", show)]
