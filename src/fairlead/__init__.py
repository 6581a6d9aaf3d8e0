"""fairlead: a hook means the same thing in every AI agent.

One typed lifecycle, hooks in any form, carried out the way you chose, and proof of what ran.
"""

from .approvals import Approval, ApprovalRequest, Approver, TerminalApprover
from .decision import Context, Decision, Failure, HookRun, Monitored
from .errors import (
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
    "Context",
    "Decision",
    "Failure",
    "FairleadError",
    "Hook",
    "HookAborted",
    "HookRun",
    "Hooks",
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
