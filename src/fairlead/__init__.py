"""fairlead: a hook means the same thing in every AI agent.

One typed lifecycle, hooks in any form, carried out the way you chose, and proof of what ran.
"""

from typing import TYPE_CHECKING, Any

from . import moved

if TYPE_CHECKING:
    from .approvals import Approval, ApprovalRequest, Approver, TerminalApprover
    from .decision import Context, Decision, Failure, HookApproval, HookRun, Monitored
    from .errors import (
        ArgumentsChanged,
        FairleadError,
        HookAborted,
        MalformedVerdict,
        ReadOnlyError,
        RegistrationError,
        Unenforceable,
        UnknownName,
    )
    from .frozen import thaw
    from .hook import Hook
    from .journal import Journal, JournalError
    from .lifecycle import EVENTS, Agent, Step, ToolStep
    from .registry import Hooks
    from .session import Session, Store, current_session
    from .tools import Target, Tools
    from .verdict import (
        Verdict,
        abort,
        allow,
        answer,
        ask,
        change,
        deny,
        encode_verdict,
        extend,
        inject,
        read_verdict,
        retry,
        skip,
        skip_rest,
        stop,
        warn,
    )
    from .wire import decode_step, encode_step

__version__ = "0.1.0"

__all__ = [
    "EVENTS",
    "Agent",
    "Approval",
    "ApprovalRequest",
    "Approver",
    "ArgumentsChanged",
    "Context",
    "Decision",
    "Failure",
    "FairleadError",
    "Hook",
    "HookAborted",
    "HookApproval",
    "HookRun",
    "Hooks",
    "Journal",
    "JournalError",
    "MalformedVerdict",
    "Monitored",
    "ReadOnlyError",
    "RegistrationError",
    "Session",
    "Step",
    "Store",
    "Target",
    "TerminalApprover",
    "ToolStep",
    "Tools",
    "Unenforceable",
    "UnknownName",
    "Verdict",
    "abort",
    "allow",
    "answer",
    "ask",
    "change",
    "current_session",
    "decode_step",
    "deny",
    "encode_step",
    "encode_verdict",
    "extend",
    "inject",
    "read_verdict",
    "retry",
    "skip",
    "skip_rest",
    "stop",
    "thaw",
    "warn",
]

moved.install()

# Each name is imported when it is first asked for: a command line that starts quickly needs few of them.
_HOMES = {
    "approvals": "Approval ApprovalRequest Approver TerminalApprover",
    "decision": "Context Decision Failure HookApproval HookRun Monitored",
    "errors": (
        "ArgumentsChanged FairleadError HookAborted MalformedVerdict ReadOnlyError RegistrationError Unenforceable "
        "UnknownName"
    ),
    "frozen": "thaw",
    "hook": "Hook",
    "journal": "Journal JournalError",
    "lifecycle": "EVENTS Agent Step ToolStep",
    "registry": "Hooks",
    "session": "Session Store current_session",
    "tools": "Target Tools",
    "verdict": "Verdict abort allow answer ask change deny encode_verdict extend inject read_verdict retry skip "
    "skip_rest stop warn",
    "wire": "decode_step encode_step",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in _HOMES.items():
        if name in names.split():
            value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
