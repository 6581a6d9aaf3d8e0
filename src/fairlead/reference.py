"""The pages of the docs that are derived from the code: the events with their JSON Schemas, and the packs.

`python -m fairlead.reference DIR` writes them to a folder.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .lifecycle import CONTROLS, EVENTS, HEADER, Event
from .wire import schemas

if TYPE_CHECKING:
    from .hosts.clis.mapping import Host
    from .packs import Pack


def events_page() -> str:
    """The lifecycle as a Markdown page."""
    return "\n".join(_events_page()) + "\n"


def _events_page() -> Iterator[str]:
    yield "# The events"
    yield ""
    yield f"{len(EVENTS)} events, in the order of a run. Every step also carries the header: {_code(HEADER)}."
    yield ""
    yield "| event | carries | a hook may change | controls | veto | context |"
    yield "|---|---|---|---|---|---|"
    for name, event in EVENTS.items():
        cells = [f"[`{name}`](#{name})", _code(event.fields), _code(event.changes), _code(_controls(event))]
        cells += [_code([event.veto] if event.veto else []), "yes" if event.context else "no"]
        yield f"| {' | '.join(cells)} |"
    for name, event in EVENTS.items():
        yield ""
        yield f"## {name}"
        yield ""
        yield f"{(event.step.__doc__ or '').strip()} The step is `fairlead.lifecycle.{event.step.__name__}`."
        yield ""
        for field in event.fields:
            change = " (may be changed)" if field in event.changes else ""
            yield f"- `{field}`: `{_type_name(event, field)}`{change}"


RUN = """
session_start {
  before_request before_input after_input turn_start before_prompt {
    before_compact after_compact before_model after_model
    tool_requested { before_tool before_permission after_permission after_tool }
    after_tool_batch
  }
  before_turn_end before_response turn_end before_output after_request
}
session_end
"""
"""The order of a run. What stands in braces may happen more than once."""


def run_diagram() -> str:
    """A run, as a drawing of the table: when each event fires, and what a hook may do there."""
    lines, depth = [], 0
    for word in RUN.split():
        if word == "{":
            depth += 1
        elif word == "}":
            depth -= 1
        else:
            event = EVENTS[word]
            actions = [control for control in _controls(event) if control not in ("abort", "skip_rest")]
            actions += [f"change {field}" for field in event.changes]
            lines.append(f"{'|  ' * depth}{word}".ljust(30) + ", ".join(actions)[:88])
    return "\n".join(line.rstrip() for line in lines)


def hosts_matrix() -> str:
    """What each agent CLI can carry out, per event: the events are rows, the CLIs columns."""
    from .hosts.clis.mapping import hosts

    clis = hosts(experimental=False)
    lines = ["| event | " + " | ".join(host.title for host in clis) + " |", "|---|" + "---|" * len(clis)]
    for event in EVENTS:
        cells = [_carried_out(host, event) for host in clis]
        if any(cells):
            lines.append(f"| `{event}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _carried_out(host: Host, event: str) -> str:
    """What a CLI can do at an event; "seen" where it only reports it."""
    if not any(moment.event == event and moment.installed for moment in host.events.values()):
        return ""
    wanted = [*(name for name in CONTROLS if name not in ("proceed", "abort")), *EVENTS[event].changes, "context"]
    can = host.can(event)
    carried_out = " ".join(name for name in wanted if name in can) or "seen"
    return f"{carried_out} (headless: {host.headless[event]})" if event in host.headless else carried_out


def rules_table() -> str:
    """What is done instead of what a host cannot carry out."""
    from .hosts.clis.effect import RULES

    return "\n".join(["| what | where the host cannot |", "|---|---|", *(f"| `{k}` | {v} |" for k, v in RULES.items())])


def pack_page(pack: Pack) -> str:
    """The rules of a pack as a Markdown page."""
    return "\n".join(_pack_page(pack)) + "\n"


def _pack_page(pack: Pack) -> Iterator[str]:
    from .packs.judging import ANSWERS

    yield f"# The pack {pack.name}"
    yield ""
    yield pack.about
    yield ""
    yield f'Use it: `packs = ["{pack.name}"]` in fairlead.toml, or `hooks.use("{pack.name}")`.'
    yield "See [guard packs](../guard-packs.md)."
    yield ""
    yield "| rule | level | verdict |"
    yield "|---|---|---|"
    for rule in pack:
        verdict = "none, unless the level is strict" if rule.level == "strict" else rule.answer or ANSWERS[rule.level]
        yield f"| [`{rule.id}`](#{rule.id.replace('/', '')}) | {rule.level} | {verdict} |"
    for rule in pack:
        yield from ("", f"## {rule.id}", "", _prose(rule.why), "", f"- level: {rule.level}")
        yield f"- instead: {_prose(rule.instead)}"
        yield f"- risk: {rule.risk}"
        if rule.incident:
            yield f"- incident: {_prose(rule.incident)}"
        for title, examples in (("It stops:", rule.stops), ("It lets pass:", rule.passes)):
            yield from ("", title, "", *_fenced(examples))


def _prose(text: str) -> str:
    """A text in Markdown, in which what is no code is no markup."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part[:1] == "`" else re.sub(r"([\\*_<>\[\]|])", r"\\\1", part) for part in parts)


def _fenced(examples: Iterable[Any]) -> Iterator[str]:
    """Examples as a block of code, with a fence that none of them holds."""
    shown = [example if isinstance(example, str) else json.dumps(example) for example in examples]
    longest = max((len(run) for text in shown for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}text", *shown, fence)


def packs_page() -> str:
    """The list of packs as a Markdown page."""
    from .packs import packs

    lines = ["# The packs", "", "How to use them: [guard packs](../guard-packs.md).", ""]
    lines += ["| pack | rules | about |", "|---|---|---|"]
    for one in packs("recommended"):
        lines.append(f"| [{one.name}]({one.name}.md) | {len(one.rules)} | {_prose(one.about)} |")
    return "\n".join(lines) + "\n"


def _controls(event: Event[Any]) -> list[str]:
    return [control for control in CONTROLS if control in event.controls and control != "proceed"]


def _type_name(event: Event[Any], field: str) -> str:
    hint = event.types[field]
    text = hint.__name__ if isinstance(hint, type) and not hasattr(hint, "__args__") else str(hint)
    for noise in ("typing.", "fairlead.tools.", "fairlead.lifecycle.", "NoneType"):
        text = text.replace(noise, "None" if noise == "NoneType" else "")
    return text


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def write(folder: Path) -> list[Path]:
    """Write every derived page and schema below `folder` and say what was written."""
    (folder / "schemas").mkdir(parents=True, exist_ok=True)
    pages = {"events.md": events_page(), "run.txt": run_diagram() + "\n"}
    pages["hosts.md"] = f"# What each agent CLI can carry out\n\n{hosts_matrix()}\n\n{rules_table()}\n"
    written = [folder / name for name in pages]
    for path, text in zip(written, pages.values(), strict=True):
        path.write_text(text)
    written += _write_packs(folder / "packs")
    for name, pair in schemas().items():
        for kind, schema in pair.items():
            path = folder / "schemas" / f"{name}.{kind}.json"
            path.write_text(json.dumps(schema, indent=2) + "\n")
            written.append(path)
    return written


def _write_packs(folder: Path) -> list[Path]:
    from .packs import packs

    folder.mkdir(exist_ok=True)
    pages = {"index.md": packs_page()} | {f"{one.name}.md": pack_page(one) for one in packs("recommended")}
    for name, text in pages.items():
        (folder / name).write_text(text)
    return [folder / name for name in pages]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m fairlead.reference DIR")
    print(f"{len(write(Path(sys.argv[1])))} files in {sys.argv[1]}")
