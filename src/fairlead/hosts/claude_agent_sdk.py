"""The short import path of the adapter in `hosts/frameworks/claude_agent_sdk.py`."""

from .frameworks.claude_agent_sdk import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
