"""A worker in Python: hooks in a process of their own, with the same decorators as elsewhere.

    from fairlead import deny
    from fairlead.worker import Worker

    worker = Worker()

    @worker.on.before_tool(kind="shell")
    def no_sudo(step):
        if step.target.command.startswith("sudo"):
            return deny("sudo is not available here")

    worker.run()

It reads steps from stdin and writes verdicts to stdout, one JSON line each, many at a time.
`python -m fairlead.worker module:function` runs one function of a module or a file as a worker.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from time import perf_counter
from typing import Any

import msgspec

from .approvals import Approval, ApprovalRequest
from .decision import Decision
from .errors import FairleadError
from .registry import Hooks
from .result import encode_result
from .verdict import HookVerdict, clean, fold
from .wire.steps import decode_step

_CHUNK = 1 << 16
SPIN_TIME = 200e-6
"""Seconds to poll for the next step before the worker sleeps."""


class _StepLine(msgspec.Struct):
    id: int
    step: msgspec.Raw


_read_question = msgspec.json.Decoder(_StepLine).decode


async def _pass_on(request: ApprovalRequest) -> Approval:
    """Approve, because no human is asked here: `verdict_of` passes the question on to the engine."""
    return Approval("allow")


class Worker:
    """Hooks that live in a process of their own."""

    def __init__(self) -> None:
        self.hooks = Hooks(approver=_pass_on)
        self.on = self.hooks.on
        self.add = self.hooks.add

    def run(self) -> None:
        """Answer until stdin ends. What hooks print goes to stderr: stdout belongs to the protocol."""
        out = _own_stdout()
        if any(hook.is_async for hook in self.hooks):
            asyncio.run(self._serve(0, out))
        else:
            self._serve_in_turn(0, out)

    def _serve_in_turn(self, source: int, out: int) -> None:
        """Answer step after step. Without async hooks, an event loop would only cost time."""
        pending = b""
        while data := _read(source):
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                question = _question(line)
                if question is not None:
                    try:
                        answer = _answer(question.id, self.hooks.dispatch_sync(decode_step(bytes(question.step))))
                    except Exception as error:
                        answer = _error_line(question.id, error)
                    _write(out, answer)
        asyncio.run(self.hooks.aclose())

    async def _serve(self, source: int, out: int) -> None:
        loop = asyncio.get_running_loop()
        end = loop.create_future()
        tasks: set[asyncio.Task[None]] = set()
        pending = b""

        def read() -> None:
            nonlocal pending
            data = os.read(source, _CHUNK)
            if not data:
                loop.remove_reader(source)
                end.set_result(None)
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                question = _question(line)
                if question is not None:
                    task = loop.create_task(self._work(question, out))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)

        loop.add_reader(source, read)
        await end
        if tasks:
            await asyncio.wait(tasks)
        await self.hooks.aclose()

    async def _work(self, question: _StepLine, out: int) -> None:
        try:
            answer = _answer(question.id, await self.hooks.dispatch(decode_step(bytes(question.step))))
        except Exception as error:
            answer = _error_line(question.id, error)
        _write(out, answer)


def _read(source: int) -> bytes:
    """What comes next. It is looked for a moment before we go to sleep: to be woken takes longer than most steps."""
    until = perf_counter() + SPIN_TIME
    os.set_blocking(source, False)
    while perf_counter() < until:
        with suppress(BlockingIOError):
            return os.read(source, _CHUNK)
    os.set_blocking(source, True)
    return os.read(source, _CHUNK)


def _own_stdout() -> int:
    """Keep stdout for the answers. What the hooks print goes to stderr."""
    global _stdout
    if _stdout is None:
        _stdout = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
    return _stdout


_stdout: int | None = None


def _question(line: bytes) -> _StepLine | None:
    """What a line asks, if it asks anything."""
    try:
        return _read_question(line) if line.strip() else None
    except (msgspec.DecodeError, UnicodeError) as error:
        print(f"this worker was sent something that is not a step: {error}", file=sys.stderr)
        return None


def _answer(number: int, decision: Decision[Any]) -> bytes:
    """The line that answers a question."""
    if not decision.contributions:
        return b'{"id":%d,"verdict":null}\n' % number
    failed = next((failure for failure in decision.failures if failure.policy in ("closed", "abort")), None)
    answer: dict[str, Any] = (
        {"verdict": verdict_of(decision)} if failed is None else {"error": f"hook {failed.hook!r}: {failed.error}"}
    )
    if failed is not None and failed.traceback is not None:
        answer["traceback"] = failed.traceback
    return msgspec.json.encode({"id": number, **answer}) + b"\n"


def _error_line(number: int, error: Exception) -> bytes:
    """The line that reports an error. The engine applies the failure policy of the hook."""
    return msgspec.json.encode({"id": number, "error": f"{type(error).__name__}: {error}"}) + b"\n"


def verdict_of(decision: Decision[Any]) -> dict[str, Any] | None:
    """A decision as one verdict, which the engine folds with others. None is no verdict."""
    verdict: dict[str, Any] = {}
    winner = fold(decision.verdicts)
    if winner is not None:
        won = winner.verdict
        reason = _questions(decision) if won.control == "ask" else won.reason
        verdict = {"control": won.control, "reason": reason} | ({"name": won.name} if won.name else {})
    elif any(one.verdict.control == "skip_rest" for one in decision.verdicts):
        verdict["control"] = "skip_rest"
    if decision.stop_reason is not None:
        verdict["stop_reason"] = decision.stop_reason
    context = [text for one in decision.verdicts for text in _context_of(one, winner)]  # the engine cuts long texts
    if context:
        verdict["additional_context"] = context
    warnings = [text for one in decision.verdicts for text in one.verdict.warnings]
    if warnings:
        verdict["warnings"] = warnings
    if decision.metadata:
        verdict["metadata"] = decision.metadata
    derived = ("kind", "target", "safety")
    verdict |= {name: getattr(decision.step, name) for name in decision.changed if name not in derived}
    if "result" in verdict or "is_error" in verdict:
        verdict["result"] = encode_result(decision.step.result)
    return verdict or None


def _context_of(one: HookVerdict, winner: HookVerdict | None) -> tuple[str, ...]:
    """The context that a verdict adds. The feedback of an `extend` is context, too, unless it is the reason."""
    verdict = one.verdict
    feedback = verdict.reason if verdict.control == "extend" and one is not winner else None
    return verdict.context if feedback is None else (feedback, *verdict.context)


def _questions(decision: Decision[Any]) -> str | None:
    """All questions as one text: to the engine, a worker is one hook."""
    if len(decision.approvals) == 1:
        return decision.approvals[0].question
    text = "\n".join(one.signed for one in decision.approvals)
    if clean(text) != text:
        raise FairleadError("the questions of its hooks are too long to be shown as one")
    return text


def _write(out: int, data: bytes) -> None:
    """Write all of it at once, so that the answers to concurrent steps do not mix."""
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]


def load(target: str, folder: str | None = None) -> Worker:
    """The worker for `module:function` or `file.py:function`, where `folder` may hold the module."""
    import importlib
    from importlib.util import module_from_spec, spec_from_file_location

    name, _, attribute = target.rpartition(":")
    if name.endswith(".py"):
        spec = spec_from_file_location(os.path.basename(name)[:-3], name)
        if spec is None or spec.loader is None:
            raise ImportError(f"{name} cannot be imported")
        module = sys.modules[spec.name] = module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        if folder is not None:
            sys.path.insert(0, folder)
        module = importlib.import_module(name)
    found = getattr(module, attribute)
    if isinstance(found, Worker):
        return found
    worker = Worker()
    worker.add(found, on="*", name=attribute, timeout=None)
    return worker


if __name__ == "__main__":
    # The name that the hook's own module will import, rather than a second copy under __main__.
    from fairlead import worker

    worker._own_stdout()  # before anything is imported that might print
    worker.load(*sys.argv[1:3]).run()
