"""Notifications: tell a person that a hook asks, by `notify` in `[approvals]`.

A notification neither decides nor delays anything: it is sent by a task of its own, has a time-out, and is dropped
when too many are under way. The daemon keeps what became of each target, for `fairlead doctor` and
`fairlead approvals`. What is sent is redacted like everything that is kept, and cut short: it says that there is a
question and how to answer it. All of the question is in `fairlead approvals`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from ..config.approvals import NotifyTarget
from ..engine.threads import threads
from ..errors import FairleadError, describe
from ..escaping import escape
from ..redaction.logs import logger
from ..redaction.redactor import redact_text
from ..runners.http import Url
from ..runners.process import Process
from ..signing import sign
from .approvals import Question
from .inspector import question_link

LIMIT = 16
"""Notifications under way at once. Any more are dropped and counted."""
TIMEOUT = 10.0
"""Seconds that sending one may take."""
LONGEST = 300
"""Characters of a text in a notification."""
READ = 16 << 10
"""Characters of a text that are redacted. A longer one is left out: half a secret would not be known as one."""


class NotificationFailed(FairleadError):
    """A target did not take a notification."""


class Notice(msgspec.Struct, frozen=True):
    """What a notification says of a question."""

    id: str
    hook: str
    question: str
    tool: str | None
    kind: str | None
    summary: str | None
    """What the call works on: the command, the paths or the address, cut short."""
    session: str | None
    root: str | None
    asked: float
    expires: float
    waits_until: float | None
    """When the call that waits is denied without an answer."""
    answer: str
    """The command that shows the question and takes the answer."""
    link: str | None
    """The address of the question in the inspector, if one runs."""


class Delivery(msgspec.Struct):
    """What became of the notifications to one target."""

    target: str
    sent: int = 0
    failed: int = 0
    dropped: int = 0
    error: str | None = None
    """Why the newest one failed. None if it was sent."""
    at: float = 0.0


class Notifier:
    """Sends notifications, each in a task of its own."""

    def __init__(self) -> None:
        self._sending: set[asyncio.Task[None]] = set()
        self._deliveries: dict[str, Delivery] = {}

    @property
    def deliveries(self) -> list[Delivery]:
        return list(self._deliveries.values())

    def notify(self, targets: Sequence[NotifyTarget], question: Question) -> None:
        """Start to tell all targets of a question. It returns at once and raises nothing."""
        for target in targets:
            delivery = self._deliveries.setdefault(target.name, Delivery(target.name))
            if len(self._sending) >= LIMIT:
                delivery.dropped += 1
                logger.error("%s: a notification was dropped, because %d are under way", target.name, LIMIT)
                continue
            task = asyncio.get_running_loop().create_task(self._send(target, question, delivery))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, target: NotifyTarget, question: Question, delivery: Delivery) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                notice = await threads.run(notice_of, question)
                await _SENDERS[target.form](target, notice)
        except TimeoutError:
            error: str | None = f"it took longer than {TIMEOUT:g} s"
        except Exception as problem:
            error = _without(target, describe(problem))
        else:
            error = None
        delivery.at, delivery.error = time.time(), error
        if error is None:
            delivery.sent += 1
        else:
            delivery.failed += 1
            logger.error("%s: a notification could not be sent: %s", target.name, error)

    async def aclose(self) -> None:
        """End what is under way."""
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)


def _without(target: NotifyTarget, problem: str) -> str:
    """An error without the secrets of its target: an address may be one, and may be said in part."""
    path = target.url.partition("//")[2].partition("/")[2]
    for secret in (target.url, path, target.secret):
        problem = problem.replace(secret, "[redacted]") if secret else problem
    return redact_text(problem)[:LONGEST]


# --- what it says ---------------------------------------------------------------------------------------


def notice_of(question: Question) -> Notice:
    """What a notification says of a question: redacted, in one line each, and cut short."""
    step = question.step
    return Notice(
        id=question.id,
        hook=_line(question.hook) or "a hook",
        question=_line(question.question) or "may it?",
        tool=_line(step.get("tool")),
        kind=step.get("kind"),
        summary=_line(_aim(step)),
        session=_line(question.session),
        root=_line(question.root),
        asked=question.asked,
        expires=question.expires,
        waits_until=question.waits_until,
        answer=f"fairlead approvals watch {question.id}",
        link=question_link(question.id),
    )


def _aim(step: dict[str, Any]) -> str | None:
    target = step.get("target")
    if not isinstance(target, dict):
        return None
    return str(target.get("command") or " ".join(map(str, target.get("paths") or ())) or target.get("url") or "")


def _line(text: Any) -> str | None:
    if not text:
        return None
    if len(str(text)) > READ:
        return f"({len(str(text))} characters)"
    line = escape(" ".join(redact_text(str(text)).split()))
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def _about(notice: Notice) -> str:
    return ": ".join(part for part in (notice.tool, notice.summary) if part)


def slack_body(notice: Notice) -> bytes:
    """The notice as an incoming webhook of Slack takes it. No text of a step can mention a person or be a link."""

    def plain(text: str) -> str:
        safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return "".join(f"{c}\u200b" if c in "*_~`@" else c for c in safe)  # no markup, and no mention

    title = f"*{plain(notice.hook)} asks:* {plain(notice.question)}"
    lines = (title, plain(_about(notice)), f"`{notice.answer}`", notice.link)
    return msgspec.json.encode({"text": "\n".join(line for line in lines if line)})


def desktop_command(program: str, notice: Notice) -> list[str]:
    """The words that show a notification. What it says is an argument, never a script or markup."""
    title = f"{notice.hook} asks: {notice.question}"
    text = "\n".join(filter(None, (_about(notice), notice.answer, notice.link)))
    name = os.path.basename(program)
    if name == "osascript":
        script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
        return [program, "-e", script, "--", title, text]
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if name == "kdialog":
        return [program, f"--title={title}", "--passivepopup", text, "30"]
    return [program, "--app-name=fairlead", "--", title, text]


# --- sending it -----------------------------------------------------------------------------------------


async def _run(argv: Sequence[str], cwd: str, env: dict[str, str], stdin: bytes) -> None:
    process = Process(argv, cwd, env)
    try:
        finished = await threads.run(process.run, stdin)
    except asyncio.CancelledError:
        process.kill()
        raise
    if finished.exit != 0:
        text = escape(finished.stderr.decode(errors="replace").strip()[:LONGEST])
        raise NotificationFailed(f"{os.path.basename(argv[0])} ended with {finished.exit}{f': {text}' if text else ''}")


async def _to_desktop(target: NotifyTarget, notice: Notice) -> None:
    await _run(desktop_command(target.argv[0], notice), target.cwd, target.env, b"")


async def _to_command(target: NotifyTarget, notice: Notice) -> None:
    await _run(target.argv, target.cwd, target.env, msgspec.json.encode(notice) + b"\n")


async def _to_url(target: NotifyTarget, notice: Notice) -> None:
    body = slack_body(notice) if target.body == "slack" else msgspec.json.encode(notice)
    service = Url(target.url, secret=target.secret)
    try:
        headers = {"Content-Type": "application/json"} | (sign(target.secret, body) if target.secret else {})
        status, _, answer = await service.post(body, headers)
    finally:
        await service.aclose()
    if not 200 <= status < 300:
        text = escape(answer[:LONGEST].decode(errors="replace").strip())
        raise NotificationFailed(f"the service answered {status}{f': {text}' if text else ''}")


_SENDERS = {"desktop": _to_desktop, "command": _to_command, "url": _to_url}
