"""A fake agent CLI: its payloads go through `answer()` to real hooks, with the session states of a daemon."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fairlead import Decision, Hooks, Step, Verdict
from fairlead.engine.run import EffectFn
from fairlead.hosts.clis.handler import CliSessionState, answer, parse_event, read_payload
from fairlead.hosts.clis.mapping import Host, host_named, host_tools
from fairlead.session import Session

CAPTURES = Path(__file__).parent / "captures"


class Capture(NamedTuple):
    """What a real CLI wrote to a hook's stdin."""

    host: str
    event: str
    payload: dict[str, Any]


@cache
def captures(host: str) -> list[Capture]:
    file = CAPTURES / f"{host}.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [Capture(host, told["event"], told["stdin"]) for told in map(json.loads, lines)]


def captured(host: str, event: str, **about: Any) -> dict[str, Any]:
    """A copy of the first payload of an event, with some of its fields changed."""
    found = next(one.payload for one in captures(host) if one.event == event)
    return dict(json.loads(json.dumps(found)) | about)


_CLINE = {
    "TaskStart": "agent_start", "UserPromptSubmit": "prompt_submit", "PreToolUse": "tool_call",
    "PostToolUse": "tool_result", "TaskComplete": "agent_end", "SessionShutdown": "session_shutdown",
}  # fmt: skip


def payload_of(host: str, event: str) -> dict[str, Any]:
    """A payload of an event: a captured one, or else one that has something of everything."""
    name = _CLINE.get(event, event) if host == "cline" else event
    found = any(one.event == name for one in captures(host))
    return captured(host, name) if found else made(event)


def made(event: str) -> dict[str, Any]:
    """What no CLI was seen to say, in the words of them all."""
    ids = dict.fromkeys(("session_id", "sessionId", "taskId", "conversation_id", "trajectory_id"), "a-session")
    info = {"command_line": "echo hi", "user_prompt": "run echo hi"}
    return {
        **ids, "cwd": "/home/dev/proj", "hook_event_name": event, "agent_action_name": event, "prompt": "run echo hi",
        "tool_name": "Bash", "tool_input": {"command": "echo hi"}, "tool_info": info,
        "file_path": "/home/dev/proj/a.py",
    }  # fmt: skip


class Said(NamedTuple):
    """What the thin client is told: the exit code, and what the CLI reads."""

    code: int
    text: str

    @property
    def reply(self) -> Any:
        """The JSON that the CLI reads, after what it looks for. Empty is no opinion."""
        assert self.code == 0, self
        _, _, told = self.text.rpartition("\t")
        return json.loads(told) if told else {}


class Played:
    """A CLI at work: each of its sessions has a state, and everything that is decided is kept."""

    def __init__(self, host: str | Host, hooks: Hooks | None = None, *, attended: bool = False) -> None:
        self.host = host if isinstance(host, Host) else host_named(host)
        self.hooks = Hooks(record=True) if hooks is None else hooks
        self.hooks.tools.extend(host_tools())
        self.attended = attended
        self.states: dict[str | None, CliSessionState] = {}
        self.decisions: list[Decision[Any]] = []

    def state(self, payload: dict[str, Any]) -> CliSessionState:
        return self.states.setdefault(self.host.identify(payload).session_id, CliSessionState())

    async def tell(self, event: str, payload: dict[str, Any] | None = None) -> Said:
        """One moment, as the launcher would have passed it on."""
        said = json.dumps(payload_of(self.host.name, event) if payload is None else payload)
        parsed = parse_event(self.host, event, read_payload(self.host, event, said))
        told = await answer(parsed, self.state(parsed.payload), self._dispatch, attended=self.attended)
        assert told[:2] in ("0:", "2:")
        assert told.endswith(":end")
        return Said(int(told[0]), told[2:-4])

    async def _dispatch(self, step: Step, capabilities: dict[str, tuple[str, ...]], carry: EffectFn) -> Decision[Any]:
        session = Session(self.hooks, step.session_id, capabilities=capabilities, host=step.host, lenient=True)
        self.decisions.append(await session.dispatch_with_effect(step, carry))
        return self.decisions[-1]

    def take(self) -> list[Decision[Any]]:
        """What was decided since the last time."""
        taken, self.decisions = self.decisions, []
        return taken

    def steps(self, event: str) -> list[Any]:
        return [decision.step for decision in self.decisions if decision.event == event]


def saying(verdict: Verdict | Callable[[Any], Verdict | None], on: str, *, times: int = 10_000) -> Hooks:
    """Hooks of which one, called judge, says this at an event: every time, or so many times."""
    hooks, left = Hooks(record=True), iter(range(times))

    def judge(step: Any) -> Verdict | None:
        if next(left, None) is None:
            return None
        return verdict if isinstance(verdict, Verdict) else verdict(step)

    hooks.add(judge, on=on, name="judge")
    return hooks
