"""`fairlead exception`: request an exception from a rule of a pack, apply a request, and list what is exempt."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import columns, escape, paint, print_json
from .consent import need_a_person
from .journals import add_journals, open_journals, settings
from .loading import add_json

if TYPE_CHECKING:
    from datetime import date

    from ..config.hook_entry import ConfiguredHook
    from ..config.layers import Config
    from ..journal.reading import Record
    from ..lifecycle import BeforeTool
    from ..packs.exemptions import Exemption
    from ..packs.judging import PackGate, RuleHit

DAYS = 30
"""How long an exception lasts, if the request does not say."""
LATEST = 5000
"""Records of the journal in which a refused call is looked for by the id in its reason."""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "exception",
        help="request an exception from a rule of a pack, and list what is exempt",
        description="Request an exception from a rule that stopped a call. The request is a text that an administrator "
        "reviews and applies; it changes nothing by itself.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    request = actions.add_parser(
        "request",
        help="write a request that an administrator can apply",
        description="Write an [[exemption]] for the call that a rule stopped: the rule, the exact command, who asks, "
        "why, and until when.",
    )
    request.add_argument("id", nargs="?", help="the id that the reason names, or the id of the decision's record")
    request.add_argument("--command", dest="line", metavar="LINE", help="a command line, in place of an id")
    request.add_argument("--reason", required=True, help="why it is needed")
    request.add_argument("--until", metavar="DATE", help=f"the last day, or how long: 2030-01-31, 90d ({DAYS}d)")
    request.add_argument("--owner", help="who answers for it (default: you)")
    request.add_argument("--project", metavar="DIR", help="where it holds (default: the project of the call)")
    request.add_argument("--output", metavar="FILE", type=Path, help="a new file for it (default: stdout)")
    request.add_argument(
        "--system", action="store_true", help="for the system's file, which may exempt from disaster and locked rules"
    )
    add_journals(request)
    request.set_defaults(run=run_request)
    apply = actions.add_parser(
        "apply",
        help="put a request into your file, or the system's",
        description="Show a request, ask, and add it to your fairlead.toml. This needs a person at a terminal.",
    )
    apply.add_argument("file", type=Path, help="the request")
    apply.add_argument("--system", action="store_true", help="add it to the system's file")
    apply.set_defaults(run=run_apply)
    listed = actions.add_parser("list", help="list what is exempt, and until when")
    add_json(listed)
    listed.set_defaults(run=run_list)


# --- request ------------------------------------------------------------------------------------------


def run_request(options: argparse.Namespace) -> int:
    from ..config.exemption_text import toml_of
    from ..errors import FairleadError

    if (options.id is None) == (options.line is None):
        raise FairleadError("name the refused call: `fairlead exception request ID`, or --command LINE")
    record, step = (None, _step_of(options.line)) if options.id is None else _recorded(options)
    config = _config_of(step)
    hits = list(_stopping(config, step))
    if not hits:
        raise FairleadError("no rule of a pack in force stops this call")
    exemptions: dict[str, Exemption] = {}
    for found in hits:
        exemption = _exemption_for(found, step, config, options)
        exemptions.setdefault(toml_of(exemption), exemption)
    text = "\n".join([*_heading(options, record, step, hits), *exemptions])
    if options.json:
        print_json({"exemptions": [describe_exemption(one) for one in exemptions.values()], "text": text})
    elif options.output is None:
        print(text, end="")
    if options.output is not None:
        _write_new(options.output, text)
        where = escape(str(options.output))
        who = "an administrator applies" if options.system else "you apply"
        print(f"Wrote {where}. It changes nothing until {who} it:", file=sys.stderr)
        print(f"  fairlead exception apply {where}{' --system' if options.system else ''}", file=sys.stderr)
    return 0


def _step_of(line: str) -> BeforeTool:
    from ..samples import step

    made: BeforeTool = step("before_tool", tool="bash", args={"command": line}, cwd=os.getcwd())
    return made


def _recorded(options: argparse.Namespace) -> tuple[Record, BeforeTool]:
    """The call that an id names, as the journal has it."""
    from ..errors import FairleadError
    from ..lifecycle import BeforeTool

    with ExitStack() as held:
        found = next((one for reader in open_journals(options, held) for one in _named(reader, options.id)), None)
    if found is None:
        raise FairleadError(
            f"the journal has no refused call {options.id!r}; `fairlead log` lists the decisions, and --command LINE "
            "describes a call that it does not have"
        )
    if not found.is_whole or not isinstance(step := found.decision.step, BeforeTool):
        raise FairleadError(f"the record {found.id} is no whole decision about a tool call")
    if any(str(path).startswith(("step.args", "step.target", "left.")) for path, *_ in found.body.get("redacted", ())):
        raise FairleadError(
            "the journal does not hold the whole call, because there are secrets in it; describe it with --command"
        )
    return found, step


def _named(reader: Any, name: str) -> Iterator[Record]:
    from ..journal.errors import NoRecord
    from ..journal.reading import Filter

    with suppress(NoRecord):
        yield reader.record(name)
    newest = list(reader.records(Filter(event="before_tool"), limit=LATEST))
    yield from (record for record in reversed(newest) if name in _exception_ids(record))


def _exception_ids(record: Record) -> Iterator[str]:
    """The ids by which the reasons of a decision name its call."""
    for contribution in record.body.get("said") or ():
        verdict = contribution.get("verdict") or (contribution.get("monitored") or {}).get("verdict") or {}
        if isinstance(metadata := verdict.get("metadata"), dict) and "exception" in metadata:
            yield str(metadata["exception"])


def _config_of(step: BeforeTool) -> Config:
    """The configuration of the folder of a call or, if that is gone, of the user."""
    from ..config.layers import find, read

    if step.cwd and os.path.isdir(step.cwd):
        return read(find(step.cwd))
    return settings()


Stopping = tuple["ConfiguredHook", "PackGate", "RuleHit"]
"""A rule that stops a call, its pack at work, and the hook of that."""


def _stopping(config: Config, step: BeforeTool) -> Iterator[Stopping]:
    for configured, gate in gates_of(config):
        for hit in gate.hits(step):
            if hit.exemption is None and gate.answer(hit.finding.rule) != "warn":
                yield configured, gate, hit


def gates_of(config: Config) -> Iterator[tuple[ConfiguredHook, PackGate]]:
    """The packs in force."""
    from ..packs.judging import PackGate

    for configured in config.hooks:
        if isinstance(gate := configured.hook.fn, PackGate):
            yield configured, gate


def _exemption_for(found: Stopping, step: BeforeTool, config: Config, options: argparse.Namespace) -> Exemption:
    """The exemption that lets a rule pass just this. Raises if there is none."""
    import getpass

    from ..errors import FairleadError
    from ..packs.exemptions import Exemption

    configured, gate, hit = found
    rule = hit.finding.rule
    if not options.system and (rule.level == "disaster" or configured.locked):
        because = (
            "is about disasters" if rule.level == "disaster" else f"is of a pack that is locked ({configured.where})"
        )
        raise FairleadError(
            f"{rule.id} {because}: only an administrator exempts from it, in the system's file. "
            "--system writes a request for that"
        )
    project = options.project if options.project is not None else config.sources.root or step.cwd or ""
    more: dict[str, Any] = {
        "project": os.path.abspath(os.path.expanduser(project)) if project else "", "reason": options.reason,
        "owner": options.owner or getpass.getuser(), "until": _last_day(options.until),
    }  # fmt: skip
    try:
        exemption = Exemption.read(rule.id, **_match_of(hit, step), **more)
    except FairleadError as error:
        raise FairleadError(f"{rule.id} cannot be exempted here: {error}. It is about: {hit.finding.part}") from None
    if not _covers(exemption, gate, hit, step):
        raise FairleadError(
            f"{rule.id} cannot be exempted here: an exemption is for one plain command, one file or one address. "
            f"It is about: {hit.finding.part}"
        )
    return exemption


def _match_of(hit: RuleHit, step: BeforeTool) -> dict[str, str]:
    """What the exemption matches: the command that the rule is about or, without a shell, the file or the address."""
    from ..shell.commands import join, quote

    if hit.command is not None:
        return {"command": " ".join([str(hit.command.program), *(quote(str(word)) for word in hit.command.args)])}
    if len(step.target.paths) == 1:
        return {"path": join(step.cwd or "", str(step.target.paths[0]), os.path.expanduser("~"))}
    return {"url": str(step.target.url)} if step.target.url else {}


def _covers(exemption: Exemption, gate: PackGate, hit: RuleHit, step: BeforeTool) -> bool:
    """Would the exemption silence the rule?"""
    from msgspec.structs import replace

    from ..packs.judging import PackGate

    tried = PackGate(gate.pack, replace(gate.options, exemptions=(exemption,)))
    return any(one.finding == hit.finding and one.exemption is not None for one in tried.hits(step))


def _last_day(text: str | None) -> date:
    from datetime import date, timedelta

    from ..amounts import seconds
    from ..errors import FairleadError

    today = date.today()
    try:
        if text is not None and text[:4].isdigit() and "-" in text:
            last = date.fromisoformat(text)
        else:
            last = today + timedelta(days=DAYS) if text is None else today + timedelta(seconds=seconds(text))
    except (ValueError, OverflowError):
        raise FairleadError(f"--until takes a date or a time: 2030-01-31, 90d; not {text!r}") from None
    if last < today:
        raise FairleadError(f"--until {text} is over")
    return last


def _heading(
    options: argparse.Namespace, record: Record | None, step: BeforeTool, hits: list[Stopping]
) -> Iterator[str]:
    """What a reviewer wants to know, as comments."""
    import getpass
    from datetime import date

    from ..config.layers import SYSTEM_FILE, user_file

    facts = [f"A request for an exception, by {getpass.getuser()} on {date.today().isoformat()}."]
    if record is not None:
        who = " ".join(filter(None, (step.host, step.session_id)))
        facts.append(f"The call is the record {record.id} of the journal ({who}); see `fairlead show {record.id}`.")
    for rule in {hit.finding.rule.id: hit.finding.rule for *_, hit in hits}.values():
        facts += [f"{rule.id} ({rule.level}): {rule.why}", f"Instead: {rule.instead}"]
    file = SYSTEM_FILE if options.system else user_file()
    facts.append(f"To apply it: `fairlead exception apply FILE`, or copy it into {file}.")
    return (f"# {' '.join(escape(fact).split())}" for fact in facts)


def _write_new(path: Path, text: str) -> None:
    """Write a request to a new file. It is never a configuration, which would put it in force."""
    from ..config.project import FILE_NAME
    from ..errors import FairleadError

    if os.path.realpath(path).rpartition("/")[2].lower() == FILE_NAME:
        raise FairleadError(f"{path} would be a configuration; write the request to another file, and apply it")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FairleadError(f"{path} cannot be written: {error.strerror}") from None


# --- apply --------------------------------------------------------------------------------------------


def run_apply(options: argparse.Namespace) -> int:
    from ..config.document import ConfigError
    from ..config.exemption_text import read_request, toml_of, with_exemptions
    from ..config.layers import SYSTEM_FILE, user_file
    from ..errors import FairleadError
    from ..packs.installed import installed
    from ..paths import atomic_write

    need_a_person("apply an exception")
    exemptions = read_request(options.file)
    path = SYSTEM_FILE if options.system else Path(os.path.realpath(user_file()))
    for one in exemptions:
        rule = installed(one.rule.partition("/")[0]).rules[one.rule]
        if rule.level == "disaster" and not options.system:
            raise FairleadError(f"{rule.id} is about disasters: apply this as an administrator, with --system")
        print(f"{paint(escape(rule.id), 'bold')}  {rule.level}: {escape(rule.why)}\n")
        print(escape(toml_of(one), keep_lines=True))
    try:
        try:
            content = with_exemptions(path, "system" if options.system else "user", exemptions)
        except ConfigError as error:
            raise FairleadError(f"nothing was written: with this, there would be a mistake\n{error}") from None
        print(f"Add this to {escape(str(path))}? [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("Nothing was changed.")
            return 1
        _note(exemptions, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, content, path.stat().st_mode & 0o777 if path.exists() else 0o644)
    except OSError as error:
        raise FairleadError(f"{path} cannot be written: {error.strerror}") from None
    print(f"Added to {escape(str(path))}.")
    return 0


def _note(exemptions: list[Exemption], path: Path) -> None:
    """Note the exemptions in the journal, before they take effect."""
    import getpass

    journal = settings().open_journal()
    if journal is not None:
        with journal:
            for one in exemptions:
                journal.note("exempted", **describe_exemption(one), file=str(path), who=getpass.getuser())
            journal.flush()


# --- list ---------------------------------------------------------------------------------------------


def run_list(options: argparse.Namespace) -> int:
    listed = [(one, where) for one, where in exemptions_of(settings())]
    if options.json:
        print_json([describe_exemption(one) | {"file": where} for one, where in listed])
        return 0
    if not listed:
        print("Nothing is exempt.")
        return 0
    rows = [
        [escape(one.rule), escape(" ".join(one.match.values())), _end(one), escape(one.owner or "-"),
         escape(one.project or "everywhere"), escape(one.reason), escape(where)]
        for one, where in listed
    ]  # fmt: skip
    print(columns([["RULE", "EXEMPT", "UNTIL", "OWNER", "WHERE", "REASON", "FILE"], *rows]))
    return 0


def exemptions_of(config: Config) -> Iterator[tuple[Exemption, str]]:
    """The exemptions of the system's and the user's file, and where each stands."""
    for layer in config.layers:
        for exemption, keys in layer.packs.exemptions:
            yield exemption, f"{layer.document.path}:{layer.document.line_of(keys)}"


def expiry_notes(config: Config) -> Iterator[str]:
    """One line per exemption that has ended."""
    for one, where in exemptions_of(config):
        if one.has_ended():
            yield f"{where}: the exemption from {one.rule} ended with {one.until}; remove it, or give it another end"


def describe_exemption(exemption: Exemption) -> dict[str, Any]:
    """An exemption as data."""
    return {
        "rule": exemption.rule, **exemption.match, "project": exemption.project or None, "reason": exemption.reason,
        "owner": exemption.owner or None, "until": None if exemption.until is None else exemption.until.isoformat(),
        "ended": exemption.has_ended(),
    }  # fmt: skip


def _end(exemption: Exemption) -> str:
    if exemption.until is None:
        return "no end"
    return f"{exemption.until.isoformat()}{' (over)' if exemption.has_ended() else ''}"
