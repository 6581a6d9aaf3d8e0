"""A tool call in crewai: hooks judge it before crewai runs the tool, and see its result."""

from __future__ import annotations

from contextvars import ContextVar
from threading import Lock
from typing import Any

from crewai.tools.agent_tools.base_agent_tools import BaseAgentTool

from ....approvals import Approval
from ....errors import FairleadError
from ....frozen import thaw
from ..adapter import MCP_SERVER
from ..flow import Pause, run_flow_sync
from ..messages import as_text
from ..tool_call import ToolResult
from .run import CrewaiRefusal, CrewaiRun

BLOCKED = "Tool execution blocked by hook. Tool: "
FAILED = ("Error executing tool: ", "I encountered an error while trying to use the tool.")
"""How crewai's texts begin for a call that a hook has refused, and for a tool that has failed."""

INSIDE: ContextVar[tuple[CrewaiToolCall, ...]] = ContextVar("fairlead_crewai_inside", default=())
"""The tool calls that run here: an agent that starts inside of one is a subagent."""
CONSOLE = Lock()


class CrewaiToolCall:
    """A tool call. Its flow pauses while crewai runs the tool."""

    def __init__(self, run: CrewaiRun, ctx: Any, *, proposed: Any = "allow") -> None:
        if not run.has_turn:
            raise FairleadError("an agent calls a tool before it has called its model")
        self.run, self.turn, self.input = run, run.turn, ctx.tool_input
        self.args: dict[str, Any] = {}
        self.outcome: ToolResult | None = None
        self.failure: CrewaiRefusal | None = None
        self.is_ours = False  # to run, in place of crewai
        about = _about(ctx.tool)
        self._flow = self.turn.tool(
            ctx.tool_name, ctx.tool_input, self._id(ctx), self._run, proposed=proposed, ask=_asker(ctx), **about
        ).perform()

    def _id(self, ctx: Any) -> str | None:
        """The call id that the model gave. crewai does not pass it on."""
        for call in self.run.calls:
            if call[1] == ctx.tool_name and call[2] == ctx.tool_input:
                self.run.calls.remove(call)
                return call[0]
        return None

    def _run(self, args: dict[str, Any]) -> Pause:
        self.args = args
        return Pause()

    def advance(self, value: Any = None, error: BaseException | None = None) -> bool:
        """Continue the call, until the tool is to run. True if the call is over."""
        result: ToolResult | Pause = run_flow_sync(self._flow, value, error)
        if isinstance(result, Pause):
            return False
        self.outcome = result
        return True

    def finish(self, ctx: Any) -> None:
        """Finish the call after crewai has run the tool, or run it here."""
        if self.outcome is not None:
            return
        over = False
        if not self.is_ours:
            text = self.run.fairlead.finish_inside(self, str(ctx.tool_result))
            if self.run.failure is not None:
                self._flow.close()
                raise self.run.failure
            over = self._take_result(ctx, text)
        while not over:
            self.is_ours = True
            try:
                output = ctx.tool.invoke(dict(self.args))
            except Exception as error:
                over = self.advance(error=error)
            else:
                over = self.advance(output)

    def _take_result(self, ctx: Any, replacement: str | None) -> bool:
        text = str(ctx.tool_result)
        if replacement is not None:
            self.is_ours = True
            return self.advance(replacement)
        if text.startswith(BLOCKED):
            return self.advance(error=PermissionError(text))
        if text.lstrip().startswith(FAILED):
            return self.advance(error=RuntimeError(text))
        raw = ctx.raw_tool_result
        return self.advance(text if raw is None or str(raw) != text else raw)  # another hook may have changed the text

    @property
    def runs(self) -> bool:
        """Whether crewai runs the tool."""
        return self.outcome is None and not self.is_ours

    def result(self, ctx: Any) -> str | None:
        """The text for the model. None if crewai has it already."""
        outcome = self.outcome
        if outcome is None or not (outcome.replaced or self.is_ours):
            return None
        if outcome.error is not None and not outcome.replaced:
            return f"{FAILED[0]}{outcome.error}"
        return outcome.output if isinstance(outcome.output, str) else as_text(outcome.output)


def replace_stored_result(ctx: Any, text: str) -> None:
    """Replace the result that crewai stores with a text model's call: it may take that for the agent's answer."""
    for stored in reversed(getattr(ctx.agent, "tools_results", None) or ()):
        if stored.get("tool_name") == ctx.tool_name and (stored.get("tool_args") or {}) == (ctx.tool_input or {}):
            stored["result"] = text
            return


def _about(tool: Any) -> dict[str, Any]:
    """What crewai knows of a tool."""
    original: Any = getattr(tool, "_original_tool", None)
    if isinstance(original, BaseAgentTool):
        return {"kind": "agent"}
    module = type(original).__module__
    if module.startswith("mcpadapt."):  # of crewai_tools.MCPServerAdapter, which does not name the server
        return {"server": MCP_SERVER}
    if module.startswith("crewai.tools.mcp_"):
        return {"server": original.server_name, "remote": original.original_tool_name}
    return {}


def _asker(ctx: Any) -> Any:
    """A function that asks the user at the console, as crewai itself does."""

    def ask(decision: Any) -> Approval:
        question = (decision is not None and decision.reason) or f"May {ctx.tool_name} run?"
        with CONSOLE:
            try:
                args = ctx.tool_input if decision is None else thaw(decision.step.args)  # with which it would run
                about = f"{ctx.tool_name} {args}: {question}"
                answer = ctx.request_human_input(about, "Type 'yes' to approve:")
            except (EOFError, OSError):
                return Approval("deny", None, "no user is at the console to approve it")
        yes = answer.strip().lower() in ("y", "yes", "approve")
        return Approval("allow" if yes else "deny", "console", None if yes else answer or "not approved")

    return ask
