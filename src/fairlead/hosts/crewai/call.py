"""A tool call of crewai's: judged before crewai runs the tool, and told of after it."""

from __future__ import annotations

from contextvars import ContextVar
from threading import Lock
from typing import Any

from crewai.tools.agent_tools.base_agent_tools import BaseAgentTool

from ...approvals import Approval
from ...frozen import thaw
from ..model import as_text
from ..tool_call import Called
from .run import Refused, Run

BLOCKED = "Tool execution blocked by hook. Tool: "
FAILED = ("Error executing tool: ", "I encountered an error while trying to use the tool.")
"""How crewai tells that a hook has refused a call, and that a tool has raised something."""

INSIDE: ContextVar[tuple[Call, ...]] = ContextVar("fairlead_crewai_inside", default=())
"""The tools that are at work: an agent that runs inside of one is a subagent."""
CONSOLE = Lock()


class Call:
    """A tool call. It is judged before crewai runs the tool, waits while that goes on, and is told of after it."""

    def __init__(self, run: Run, ctx: Any, *, proposed: Any = "allow") -> None:
        self.run, self.turn, self.input = run, run.the_turn, ctx.tool_input
        self.args: dict[str, Any] = {}
        self.called: Called | None = None
        self.failure: Refused | None = None
        self.is_ours = False  # to run, in place of crewai
        about = _about(ctx.tool)
        self._work = self.turn.tool(
            ctx.tool_name, ctx.tool_input, self._id(ctx), self._run, proposed=proposed, ask=_asker(ctx), **about
        ).work()

    def _id(self, ctx: Any) -> str | None:
        """crewai does not say which call it is, but the model did."""
        for asked in self.run.asked_for:
            if asked[1] == ctx.tool_name and asked[2] == ctx.tool_input:
                self.run.asked_for.remove(asked)
                return asked[0]
        return None

    def _run(self, args: dict[str, Any]) -> Call:
        self.args = args
        return self

    def go(self, value: Any = None, error: BaseException | None = None) -> bool:
        """Go on, until the tool is to run. True if it is over."""
        while True:
            try:
                wanted = self._work.send(value) if error is None else self._work.throw(error)
            except StopIteration as end:
                self.called = end.value
                return True
            value = error = None
            try:
                value = wanted[0].dispatch_sync(wanted[1]) if isinstance(wanted, tuple) else wanted()
            except BaseException as raised:
                error = raised
            if value is self:
                return False

    def come_back(self, ctx: Any) -> None:
        """The tool has run, if crewai ran it."""
        if self.called is not None:
            return
        over = False
        if not self.is_ours:
            said = self.run.fairlead.finish_inside(self, str(ctx.tool_result))
            if self.run.failure is not None:
                self._work.close()
                raise self.run.failure
            over = self._tell(ctx, said)
        while not over:
            self.is_ours = True
            try:
                output = ctx.tool.invoke(dict(self.args))
            except Exception as error:
                over = self.go(error=error)
            else:
                over = self.go(output)

    def _tell(self, ctx: Any, said: str | None) -> bool:
        text = str(ctx.tool_result)
        if said is not None:
            self.is_ours = True
            return self.go(said)
        if text.startswith(BLOCKED):
            return self.go(error=PermissionError(text))
        if text.lstrip().startswith(FAILED):
            return self.go(error=RuntimeError(text))
        return self.go(text if ctx.raw_tool_result is None else ctx.raw_tool_result)

    @property
    def runs(self) -> bool:
        """Whether crewai runs the tool."""
        return self.called is None and not self.is_ours

    def result(self, ctx: Any) -> str | None:
        """What the model is given. None if that is what crewai has for it."""
        called = self.called
        if called is None or not (called.replaced or self.is_ours):
            return None
        if called.error is not None and not called.replaced:
            return f"{FAILED[0]}{called.error}"
        return called.output if isinstance(called.output, str) else as_text(called.output)


def retell(ctx: Any, text: str) -> None:
    """What crewai remembers of a text model's call, too: it may take that for the agent's answer."""
    for told in reversed(getattr(ctx.agent, "tools_results", None) or ()):
        if told.get("tool_name") == ctx.tool_name and (told.get("tool_args") or {}) == (ctx.tool_input or {}):
            told["result"] = text
            return


def _about(tool: Any) -> dict[str, Any]:
    """What crewai knows about a tool."""
    original = getattr(tool, "_original_tool", None)
    if isinstance(original, BaseAgentTool):
        return {"kind": "agent"}
    return {"kind": "mcp"} if type(original).__module__.startswith("crewai.tools.mcp_") else {}


def _asker(ctx: Any) -> Any:
    """Asks whoever sits at the console: crewai's own way."""

    def ask(decision: Any) -> Approval:
        question = (decision is not None and decision.reason) or f"May {ctx.tool_name} run?"
        with CONSOLE:
            try:
                args = ctx.tool_input if decision is None else thaw(decision.step.args)  # with which it would run
                about = f"{ctx.tool_name} {args}: {question}"
                answer = ctx.request_human_input(about, "Type 'yes' to approve:")
            except (EOFError, OSError):
                return Approval("deny", None, "nobody is there to approve")
        yes = answer.strip().lower() in ("y", "yes", "approve")
        return Approval("allow" if yes else "deny", "console", None if yes else answer or "not approved")

    return ask
