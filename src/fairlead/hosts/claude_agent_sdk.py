"""The short import path of the adapter in `hosts/frameworks/claude_agent_sdk.py`."""

from ..extras import installed

with installed("claude_agent_sdk", "claude-agent-sdk"):
    from .frameworks.claude_agent_sdk import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
