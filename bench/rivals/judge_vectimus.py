"""Judges one command per line of JSON, and says what came out and how long it took."""

import json
import os
import sys
import time

import structlog
from vectimus.engine.evaluator import PolicyEngine
from vectimus.engine.normaliser import normalise

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))

engine = PolicyEngine()
for line in sys.stdin:
    call = {"tool_name": "Bash", "tool_input": {"command": json.loads(line)}, "hook_event_name": "PreToolUse"}
    began = time.perf_counter()
    try:
        decision = engine.evaluate(normalise({**call, "cwd": os.getcwd()}, "claude-code")).decision
        verdict = {"allow": "pass", "escalate": "ask"}.get(str(getattr(decision, "value", decision)).lower(), "deny")
    except Exception:
        verdict = "broken"
    print(json.dumps([verdict, (time.perf_counter() - began) * 1e6]), flush=True)
