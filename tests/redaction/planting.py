"""Secrets to plant, where to plant them, and how to find what is left of one.

Run as a program, this is an agent's process into which hundreds of secrets come by every way there is:
`python planting.py FOLDER`. What it leaves by each way out is for `test_redaction_everywhere.py` to look through.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from test_redaction_corpus import GIVEN, PLACES, SHAPES, Dice

EACH = 6
PIECE = 12


class Planted(NamedTuple):
    """A secret in a text, and where that is to go."""

    place: str
    shape: str
    text: str
    secret: str
    number: int

    def __repr__(self) -> str:  # what a failing test shows must show no secret
        return f"<{self.shape!r}, planted in {self.place}>"

    __str__ = __repr__


def marker(place: str) -> str:
    """What stands beside a secret and is none: it shows that a text has come through."""
    return f"planted in {place}"


# --- which secrets, and where -----------------------------------------------------------------------------

ANYWHERE = (
    "tool-args", "tool-args-keys", "target-command", "tool-output-text", "tool-output-object", "tool-output-blocks",
    "tool-error", "model-messages", "long-messages", "model-output", "user-input", "user-blocks", "system-prompt",
    "session-state", "state-object", "bytes", "step-metadata", "error-step", "hook-reason", "hook-warning",
    "hook-context", "hook-metadata", "hook-change", "hook-error", "hook-error-open", "hook-error-chain",
    "hook-error-watched", "hook-group", "observer-error", "detached-error", "background-error", "cancelled-hook",
    "malformed-verdict", "command-stderr", "command-veto", "command-stdout", "command-slow", "worker-error",
    "worker-death", "http-error", "http-verdict", "approver-answer", "approver-error", "question", "log-message",
    "log-args", "log-misfit", "log-exception", "log-stack", "bare-log", "note", "spooled", "other-process",
    "daemon-args", "daemon-answer", "daemon-question", "daemon-command", "daemon-error", "daemon-config",
)  # fmt: skip
"""Any text may come here."""
ONE_LINE = ("worker-line", "daemon-words", "client-words")
"""What comes here has one line."""
CUT = ("cut-stderr", "cut-reason", "cut-http", "cut-line", "cut-last-words")
"""Here a text is cut short, in the middle of its secret."""
BY_VALUE = ("environment", "listed-values", "daemon-environment")
"""Here a secret has neither a shape nor a name: its value is known."""
LISTED = ("listed-names", "listed-patterns")
PLANTED_IN = (*ANYWHERE, *ONE_LINE, *CUT, *BY_VALUE, *LISTED)

_SHAPED = [*SHAPES]
_LONG = [
    name for name in SHAPES if name.endswith(("p_", "o_", "pat_", "za", "ant-api03-", "m_", "sec_", "dapi", "lx-"))
]


def planted(place: str) -> list[Planted]:
    """The secrets of a place: the same ones in every process."""
    dice = Dice(f"fairlead {place}")
    start = PLANTED_IN.index(place) * 7
    if place in BY_VALUE:
        return [Planted(place, "a value", s := dice.password(), s, n) for n in range(EACH)]
    if place in CUT:
        return [_cut(place, dice, _LONG[n % len(_LONG)], n) for n in range(EACH)]
    if place == "listed-names":
        secrets = [dice.password() for _ in range(EACH)]
        return [Planted(place, "a listed name", f"door_badge = '{s}'", s, n) for n, s in enumerate(secrets)]
    if place == "listed-patterns":
        secrets = [f"EMP-{dice.word(24)}" for _ in range(EACH)]
        return [Planted(place, "a listed pattern", f"who: {s}, where", s, n) for n, s in enumerate(secrets)]
    shaped = [_shaped(place, dice, _SHAPED[(start + n) % len(_SHAPED)], n) for n in range(EACH * 2 // 3)]
    given = [_given(place, dice, GIVEN[(start + n) % len(GIVEN)], n) for n in range(len(shaped), EACH)]
    return shaped + given


def _shaped(place: str, dice: Dice, shape: str, number: int) -> Planted:
    secret = SHAPES[shape](dice)
    if place in ONE_LINE and "\n" in secret:
        return _shaped(place, dice, dice.choice(_LONG), number)
    where = dice.choice([where for where in PLACES if "\n" not in where or place not in ONE_LINE])
    if "\n" in secret and "://" in where:
        where = "{}"
    return Planted(place, shape, _beside(place, where.format(*[secret] * where.count("{}"))), secret, number)


def _given(place: str, dice: Dice, where: str, number: int) -> Planted:
    secret = dice.password()
    if "://" in where:
        secret = secret.replace("@", "^")
    if place in ONE_LINE and "\n" in where:
        where = "DB_PASSWORD={}"
    return Planted(place, f"a password in {where!r}", _beside(place, where.format(secret)), secret, number)


def _beside(place: str, text: str) -> str:
    return f"{marker(place)}{' ' if place in ONE_LINE else chr(10)}{text}"


SEEN = 17
"""Characters of a secret before a cut, too few to know it by."""
LIMITS = {"cut-stderr": 4096 - len(" [cut]"), "cut-reason": 4096 - len(" [cut]"), "cut-http": 200, "cut-line": 200}


def _cut(place: str, dice: Dice, shape: str, number: int) -> Planted:
    secret = SHAPES[shape](dice)
    if place == "cut-last-words":  # of which the last 1000 bytes are shown
        if number % 2:
            shape, secret = "RSA PRIVATE KEY", SHAPES["RSA PRIVATE" + " KEY"](dice)
        tail = " and so on" * 110
        return Planted(
            place, shape, f"{secret}{tail[: 1000 - len(marker(place)) - 60]} {marker(place)}", secret, number
        )
    room = LIMITS[place] - SEEN - len(marker(place)) - 2
    return Planted(place, shape, f"{marker(place)} {('and so on ' * 500)[:room]} {secret} end", secret, number)


ALL = {place: planted(place) for place in PLANTED_IN}
VARIABLES = {f"SERVICE_{n.number}_PASSWORD": n.secret for n in ALL["environment"]} | {
    f"PLAIN_{n.number}": n.secret for n in ALL["listed-values"]
}
"""What the agent's process has in its environment."""
DAEMON_VARIABLES = {f"DAEMON_{n.number}_TOKEN": n.secret for n in ALL["daemon-environment"]}


# --- finding what is left ---------------------------------------------------------------------------------


def forms(secret: str) -> Iterator[str]:
    """A secret as it is, and as JSON, an address and base64 write it, wherever in a longer text it stands."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield quote(secret, safe="")
    for shift in range(3):
        encoded = base64.b64encode(b"-" * shift + secret.encode()).decode().rstrip("=")
        yield encoded[(0, 2, 3)[shift] : -1]


def pieces(secret: str) -> set[str]:
    return {form[at : at + PIECE] for form in forms(secret) for at in range(max(1, len(form) - PIECE + 1))}


@cache
def secret_pieces() -> dict[str, Planted]:
    """Every piece of every secret. What another secret of the same shape has, too, is no secret."""
    found: dict[str, Planted] = {}
    dice = Dice("another")
    public: dict[str, set[str]] = {
        shape: pieces(make(dice)) & pieces(make(dice)) | pieces(make(dice)) & pieces(make(dice))
        for shape, make in SHAPES.items()
    }
    for one in (one for place in ALL.values() for one in place):
        own = pieces(one.secret) - public.get(one.shape, set())
        found |= dict.fromkeys((piece for piece in own if len(piece) == PIECE), one)
    return found


_harmless: set[str] = set()  # most lines are in several outputs


def survivors(text: str) -> list[Planted]:
    """The secrets of which a piece is in a text."""
    known = secret_pieces()
    found: set[Planted] = set()
    for line in set(text.split("\n")) - _harmless:
        windows = {line[at : at + PIECE] for at in range(len(line) - PIECE + 1)}
        here = {known[piece] for piece in windows & known.keys()}
        found |= here
        if not here:
            _harmless.add(line)
    return sorted(found)


# --- the agent's process ------------------------------------------------------------------------------------


class Shown:
    """What this process has of failures to show to a user."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, decision: Any) -> None:
        for failure in decision.failures:
            self.texts += [str(failure), repr(failure)]
        if decision.cause == "failure":
            self.texts += [str(decision.reason), str(decision), repr(decision)]
            try:
                decision.raise_for_abort()
            except Exception as error:
                self.texts += [str(error), repr(error)]
        self.texts += [warning for warning in decision.warnings if "failed at" in warning]
        self.texts += [seen.reason or "" for seen in decision.monitored if seen.cause == "failure"]
        if decision.approval is not None and "the approver failed" in (decision.approval.why or ""):
            self.texts += [str(decision.approval), str(decision.reason)]


class Vault:
    """Something of the agent's own, in its state."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Vault({self.text})"


class Agent:
    """Dispatches one step for each planted text."""

    def __init__(self, folder: Path) -> None:
        from fairlead.journal import Journal

        self.folder = folder
        self.journal = Journal()
        self.shown = Shown()
        self.answers: dict[str, Iterator[str]] = {place: (one.text for one in ALL[place]) for place in PLANTED_IN}
        self.sent: list[bytes] = []

    def file_of(self, one: Planted, text: str | None = None) -> Path:
        """A file with the text, for programs to read."""
        path = self.folder / "given" / f"{one.place}-{one.number}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(one.text if text is None else text)
        return path

    async def say(self, hooks: Any, steps: Iterable[Any]) -> None:
        """Dispatch all steps at once."""
        for decision in await asyncio.gather(*map(hooks.dispatch, steps)):
            self.shown(decision)
        await hooks.aclose()

    async def approve(self, request: Any) -> Any:
        from fairlead.approvals import Approval

        text = next(self.answers[request.step.tool])
        if request.step.tool == "approver-error":
            raise ConnectionError(text)
        return Approval("allow" if "question" in request.step.tool else "deny", "a human", text)

    # --- in steps

    async def steps(self, hooks: Any) -> None:
        from fairlead import lifecycle as life
        from fairlead.runners.http import Url

        def tool(text: str, **about: Any) -> Any:
            return life.AfterTool(tool="bash", args={"command": "ls"}, **about)

        made: dict[str, Callable[[str], Any]] = {
            "tool-args": lambda t: life.BeforeTool(tool="x", args={"a": {"b": [1, {"c": t}]}, "d": [[t]]}),
            "tool-args-keys": lambda t: life.BeforeTool(tool="x", args={"env": {t: 1, f"{t}\n2": {t: None}}}),
            "target-command": lambda t: life.BeforeTool(tool="bash", args={"command": t}),
            "tool-output-text": lambda t: tool(t, output=t),
            "tool-output-object": lambda t: tool(t, output={"stdout": t, "lines": t.split("\n"), "raw": json.dumps(t)}),
            "tool-output-blocks": lambda t: tool(t, output=[{"type": "text", "text": t}]),
            "tool-error": lambda t: tool(t, outcome="error", is_error=True, error=t),
            "model-messages": lambda t: life.BeforeModel(model="m", messages=[{"role": "user", "content": t}]),
            "long-messages": lambda t: life.BeforeModel(messages=[{"role": "tool", "content": f"{'so ' * 300}\n{t}"}]),
            "model-output": lambda t: life.AfterModel(model="m", output=t),
            "user-input": lambda t: life.BeforeInput(input=t),
            "user-blocks": lambda t: life.BeforeInput(input=[t, {"type": "text", "text": t}]),
            "system-prompt": lambda t: life.BeforePrompt(system_prompt=t, user_message=t),
            "session-state": lambda t: life.BeforeRequest(state={"memory": [t]}),
            "state-object": lambda t: life.AfterRequest(state={"vault": Vault(t)}, error=t),
            "bytes": lambda t: life.BeforeTool(tool="x", args={"body": t.encode()}),
            "step-metadata": lambda t: life.BeforeTool(tool="x", args={}, metadata={"trace": {"baggage": t}}),
            "error-step": lambda t: life.Error(error=t, where="loop"),
            "listed-names": lambda t: life.BeforeInput(input=t),
            "listed-patterns": lambda t: life.BeforeInput(input=t),
            "listed-values": lambda t: life.BeforeInput(input=f"the badge is {t}"),
            "environment": lambda t: life.BeforeInput(input=f"it is {t}, or {quote(t, safe='')} or {json.dumps(t)}"),
        }
        service = self.service()
        hooks.add(Url(f"http://127.0.0.1:{service.server_port}/all"), on="*", name="sees-all", phase="observe")
        await self.say(hooks, [make(one.text) for place, make in made.items() for one in ALL[place]])
        service.shutdown()

    # --- in what hooks say, and in how they fail

    async def hooks_in_python(self, hooks: Any) -> None:
        from fairlead import ask, change, deny, inject, warn
        from fairlead.lifecycle import BeforeTool

        def take(step: Any) -> str:
            return next(self.answers[step.tool])

        def chained(step: Any) -> None:
            text = take(step)
            try:
                raise KeyError(text)
            except KeyError as error:
                raise RuntimeError(f"while doing {text}") from error

        def group(step: Any) -> None:
            raise ExceptionGroup(take(step), [ValueError("one")])

        def broken(step: Any) -> None:
            raise ValueError(take(step))

        async def stubborn(step: Any) -> None:
            text = take(step)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError(text) from None

        def malformed(step: Any) -> Any:
            text = take(step)
            return [{text: 1}, {"control": text}, {"reason": [text]}, {"args": text}, {"stop_reason": text}, text][
                len(text) % 6
            ]

        ways: dict[str, tuple[Any, dict[str, Any]]] = {
            "hook-reason": (lambda step: deny(take(step)), {}),
            "cut-reason": (lambda step: deny(take(step)), {}),
            "hook-warning": (lambda step: warn(take(step)), {}),
            "hook-context": (lambda step: inject(take(step)), {}),
            "hook-metadata": (lambda step: warn("so", metadata={"seen": take(step)}), {}),
            "hook-change": (lambda step: change(args={"command": take(step)}), {}),
            "hook-error": (broken, {}),
            "hook-error-open": (broken, {"on_failure": "open"}),
            "hook-error-chain": (chained, {"on_failure": "abort"}),
            "hook-error-watched": (broken, {"enforce": False}),
            "hook-group": (group, {}),
            "observer-error": (broken, {"phase": "observe"}),
            "detached-error": (broken, {"phase": "observe", "detached": True}),
            "cancelled-hook": (stubborn, {"timeout": 0.001}),
            "malformed-verdict": (malformed, {}),
            "approver-answer": (lambda step: ask("may it?"), {}),
            "approver-error": (lambda step: ask("may it?"), {}),
            "question": (lambda step: ask(f"may it? {ALL['question'][int(step.call_id)].text}"), {}),
        }
        for place, (fn, options) in ways.items():
            hooks.add(fn, on="before_tool", tool=place, name=place, **options)
        await self.say(hooks, [BeforeTool(tool=p, call_id=str(one.number)) for p in ways for one in ALL[p]])

    # --- in what programs and services say

    async def programs(self, hooks: Any) -> None:
        from fairlead.lifecycle import BeforeTool
        from fairlead.runners.command import Command

        given = f"{self.folder}/given/$FAIRLEAD_TOOL-$FAIRLEAD_SESSION_ID"
        lines = {
            "command-stderr": f'cat "{given}" >&2; exit 1',
            "cut-stderr": f'cat "{given}" >&2; exit 1',
            "command-veto": f'cat "{given}" >&2; exit 2',
            "command-stdout": f'cat "{given}"',
            "command-slow": f'cat "{given}" >&2; cat "{given}"; exec sleep 60',
        }
        for place, line in lines.items():
            timeout = 0.05 if place == "command-slow" else 10
            hooks.add(Command.shell(line), on="before_tool", tool=place, name=place, timeout=timeout)
        said = [BeforeTool(tool=o.place, session_id=str(o.number)) for p in lines for o in ALL[p] if self.file_of(o)]
        await self.say(hooks, said)

    async def workers(self, hooks: Any) -> None:
        from fairlead.lifecycle import BeforeTool
        from fairlead.runners.worker import Worker

        ways = {
            "worker-error": """printf '{"id":1,"error":'; cat "$0"; echo '}'; read line""",
            "worker-death": """cat "$0" >&2""",
            "cut-last-words": """cat "$0" >&2""",
            "worker-line": """cat "$0"; echo; read line""",
            "cut-line": """cat "$0"; echo; read line""",
        }
        workers: dict[str, Worker] = {}
        for place, way in ways.items():
            for one in ALL[place]:
                file = self.file_of(one, json.dumps(one.text) if place == "worker-error" else None)
                workers[file.name] = Worker(["/bin/sh", "-c", f"read line; {way}", str(file)])

        async def ask(step: Any) -> Any:
            return await workers[f"{step.tool}-{step.call_id}"](step)

        hooks.add(ask, on="before_tool", name="worker")
        await self.say(hooks, [BeforeTool(tool=o.place, call_id=str(o.number)) for p in ways for o in ALL[p]])
        for worker in workers.values():
            await worker.aclose()

    def service(self) -> ThreadingHTTPServer:
        """A service that answers with planted texts, and keeps what it was sent."""
        sent = self.sent

        class Service(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sent.append(body)
                step, place = json.loads(body), self.path[1:]
                text = ALL[place][int(step["call_id"])].text if place in ALL else ""
                answer = (json.dumps({"control": text}) if place == "http-verdict" else text).encode()
                self.send_response(500 if place in ("http-error", "cut-http") else 200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server

    async def services(self, hooks: Any) -> None:
        from fairlead.lifecycle import BeforeTool
        from fairlead.runners.http import Url

        service, places = self.service(), ("http-error", "http-verdict", "cut-http")
        for place in places:
            url = Url(f"http://127.0.0.1:{service.server_port}/{place}")
            hooks.add(url, on="before_tool", tool=place, name=place)
        await self.say(hooks, [BeforeTool(tool=p, call_id=str(one.number)) for p in places for one in ALL[p]])
        service.shutdown()

    # --- in the log

    def log(self) -> None:
        from fairlead.redaction.logs import logger

        for one in ALL["bare-log"]:  # the program has not set up logging: this goes to stderr
            logger.error("it is %s", one.text)
        handler = logging.FileHandler(self.folder / "out" / "handler.log")
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
        logging.getLogger().addHandler(handler)
        for one in ALL["log-message"]:
            logger.warning(one.text.replace("%", "%%"), exc_info=False)
        for one in ALL["log-args"]:
            logger.warning("%s and %r", {"text": one.text}, one.text)
        for one in ALL["log-misfit"]:
            logger.warning(f"{one.text.replace('%', '')} %d %d", one.text)
        for one in ALL["log-stack"]:
            logger.warning("here", stack_info=True, exc_info=(OSError, OSError(2, one.text), None))
        for one in ALL["log-exception"]:
            try:
                try:
                    raise ValueError(one.text)
                except ValueError as error:
                    raise ExceptionGroup("some", [KeyError(one.text)]) from error
            except ExceptionGroup:
                logger.exception("it failed")

    async def background(self, hooks: Any) -> None:
        from fairlead.session import Session

        async def work(text: str) -> None:
            raise RuntimeError(text)

        session = Session(hooks, "background")
        for one in ALL["background-error"]:
            session.spawn(work(one.text))
        await session.close()

    def notes(self) -> None:
        for one in ALL["note"]:
            self.journal.note("remark", text=one.text, who={"a": [one.text]})

    async def run(self) -> None:
        from fairlead import Hooks
        from fairlead.config.layers import load

        config = load(self.folder / "home")
        config.extend_redaction()
        self.log()
        for group in (
            self.steps, self.hooks_in_python, self.programs, self.workers, self.services, self.background,
        ):  # fmt: skip
            async with Hooks(journal=self.journal, approver=self.approve) as hooks:
                await group(hooks)
        self.notes()
        self.journal.close()
        out = self.folder / "out"
        (out / "failures").write_text("\n".join(self.shown.texts))
        (out / "sent").write_bytes(b"\n".join(self.sent))


def watch_with_opentelemetry() -> Callable[[Path], None]:
    """Real providers, whose exporters keep what they are given."""
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, reader, provider = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))

    def write(out: Path) -> None:
        (out / "spans").write_text("\n".join(span.to_json(indent=None) for span in spans.get_finished_spans()))
        found = reader.get_metrics_data()
        (out / "metrics").write_text(found.to_json(indent=None) if found is not None else "")

    return write


async def another_process(text: str) -> None:
    """One decision on the same journal."""
    from fairlead import Hooks
    from fairlead.journal import Journal
    from fairlead.lifecycle import BeforeInput

    with Journal() as journal:
        await Hooks(journal=journal).dispatch(BeforeInput(input=text, session_id="twice"))


def beside_a_newer_one() -> None:
    """A journal of a newer fairlead: records wait in a spool."""
    import sqlite3

    from fairlead import Hooks
    from fairlead.journal import Journal
    from fairlead.lifecycle import BeforeInput

    path = Path(os.environ["FAIRLEAD_STATE_DIR"]) / "newer.db"
    Journal(path).note("first")
    with Journal(path) as journal:
        journal.note("first")
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with Journal(path) as journal:
        for one in ALL["spooled"]:
            Hooks(journal=journal).dispatch_sync(BeforeInput(input=one.text))


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "again":
        asyncio.run(another_process(ALL["other-process"][0].text))
        return
    (folder / "out").mkdir(exist_ok=True)
    write = watch_with_opentelemetry()
    asyncio.run(Agent(folder).run())
    write(folder / "out")
    beside_a_newer_one()


if __name__ == "__main__":
    main()
