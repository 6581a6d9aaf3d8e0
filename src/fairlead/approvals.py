"""Approvals: how an `ask` reaches a human, and what comes back.

An approver is an object with `async def approve(request)`, or such a function by itself. It answers
with `Approval("allow", who, why)`, a plain tuple of the same, or `allow()` / `deny()`. Anything else,
an error, a time-out and a missing approver are a deny.

Every question of a step is put. `approve` gets them one after another, until one is refused. An approver
that also has `async def approve_all(requests)` gets them all at once, and gives a list of answers.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TextIO

import msgspec

from .engine.deadlines import TooLateError, wait_at_most
from .errors import describe
from .lifecycle import Step, ToolStep
from .verdict import Verdict, clean

if TYPE_CHECKING:
    from .verdict import HookVerdict


class Approval(NamedTuple):
    """A human's answer: allow or deny, who gave it, and why. `ask` leaves the question to the host, which asks."""

    answer: Literal["allow", "deny", "ask"]
    who: str | None = None
    why: str | None = None

    @property
    def granted(self) -> bool:
        return self.answer == "allow"

    def explain(self, question: str | None) -> str | None:
        """The reason that goes with the decision."""
        if self.answer != "deny":
            return self.why or question
        by = f" by {self.who}" if self.who else ""
        return f"not approved{by}: {self.why or question or 'no reason given'}"


class ApprovalRequest(msgspec.Struct, frozen=True):
    """A question for a human: the final step, the hook that asks, and its question.

    Where the engine asks, `original` is the step as it came, `changed_by` names the hooks that changed it, and
    `verdicts` are those that ask this.
    """

    step: Step
    hook: str
    question: str | None = None
    original: Step | None = None
    changed_by: tuple[str, ...] = ()
    verdicts: tuple[HookVerdict, ...] = ()

    def __str__(self) -> str:
        """The question and all of the call. Secrets are hidden inside words, and where that would hide more, shown."""
        from .redaction.masking import lay_out, mask_step, mask_text, rows_of  # slow to import, and few steps need it

        question, _ = mask_text(self.question or f"{self.hook} wants a human to decide", self.step)
        step, _ = mask_step(self.step)
        rows = rows_of(step) if isinstance(self.step, ToolStep) else ()
        return lay_out([("question", question), *rows, ("asked by", self.hook)], indent="")


ApproverAnswer = Approval | Verdict | tuple[Any, ...]


class Approver(Protocol):
    """Answers an `ask`, as a human or for one."""

    async def approve(self, request: ApprovalRequest) -> ApproverAnswer: ...


ApproveFn = Callable[[ApprovalRequest], Awaitable[ApproverAnswer]]


async def seek_approval(
    approver: Approver | ApproveFn | None, request: ApprovalRequest, timeout: float | None
) -> Approval:
    """Put one question. Anything but a clear allow is a deny."""
    return (await seek_approvals(approver, [request], timeout))[0]


async def seek_approvals(
    approver: Approver | ApproveFn | None, requests: Sequence[ApprovalRequest], timeout: float | None
) -> list[Approval]:
    """Put all questions of a step. The answers are in their order, and end early only with a deny."""
    if approver is None:
        question = requests[0].question if requests else None  # which says what is wrong with the call
        why = "no approver is set; pass approver= to Hooks"
        return [Approval("deny", None, f"{why}: {question}" if question else why)]
    approve_all: Any = getattr(approver, "approve_all", None)
    if approve_all is not None:
        return await _seek(lambda: approve_all(requests), len(requests), timeout)
    approve: Any = getattr(approver, "approve", approver)
    answers: list[Approval] = []
    for request in requests:
        answers += await _seek(partial(_approve_one, approve, request), 1, timeout)
        if answers[-1].answer == "deny":
            break  # one deny decides
    return answers


async def _approve_one(approve: Any, request: ApprovalRequest) -> list[Any]:
    return [await approve(request)]


async def _seek(put: Callable[[], Awaitable[Any]], count: int, timeout: float | None) -> list[Approval]:
    """The answers to `count` questions. Any failure is a single deny."""
    caller = asyncio.current_task()
    before = 0 if caller is None else caller.cancelling()

    try:
        # An approver that swallows its cancellation is abandoned, and cannot hold up the agent.
        return _read_all(await wait_at_most(put(), timeout), count)
    except TooLateError:
        return [Approval("deny", None, f"no answer within {timeout:g} s")]
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling() > before:
            raise
        return [Approval("deny", None, "the approver was cancelled")]
    except Exception as error:
        from .redaction.redactor import redact_text  # an error may show anything

        return [Approval("deny", None, clean(redact_text(f"the approver failed: {describe(error)}")))]


def _read_all(answers: Any, count: int) -> list[Approval]:
    if not isinstance(answers, (list, tuple)) or len(answers) != count:
        raise TypeError(f"approve_all gives a list with one answer for each question, and there are {count}")
    return [_read(answer) for answer in answers]


def _read(answer: Any) -> Approval:
    if isinstance(answer, Verdict):
        answer = (answer.control, None, answer.reason)
    if isinstance(answer, Approval) and answer.answer == "ask":
        return answer  # only an `Approval` can leave the question to the host
    clear = isinstance(answer, tuple) and 1 <= len(answer) <= 3 and answer[0] in ("allow", "deny")
    if clear and all(text is None or isinstance(text, str) for text in answer[1:]):
        return Approval(*answer)
    raise TypeError(f'an approver answers Approval("allow" or "deny", who, why), not a {type(answer).__name__}')


class TerminalApprover:
    """Asks on a terminal: y allows, anything else denies. One question at a time."""

    def __init__(self, ask: TextIO | None = None, read: TextIO | None = None, who: str = "terminal") -> None:
        self._out = ask or sys.stderr
        self._in = read or sys.stdin
        self._who = who
        self._turn = threading.Lock()

    async def approve(self, request: ApprovalRequest) -> Approval:
        # A daemon thread of its own: an unanswered question must not keep the process alive.
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[str] = loop.create_future()

        def deliver(line: str) -> None:
            if not reply.done():
                reply.set_result(line)

        question = str(request)  # in this task, which knows the secrets of the request

        def put() -> None:
            line = self._question(question)
            loop.call_soon_threadsafe(deliver, line)

        threading.Thread(target=put, name="fairlead-approver", daemon=True).start()
        line = await reply
        if line.strip().lower() in ("y", "yes"):
            return Approval("allow", self._who)
        return Approval("deny", self._who, line.strip() or "refused at the terminal")

    def _question(self, question: str) -> str:
        with self._turn:
            print(f"{question}\nAllow? [y/N] ", end="", file=self._out, flush=True)
            return self._in.readline()
