"""The short import path of the adapter in `hosts/frameworks/agent_framework`."""

from ..extras import installed

with installed("agent_framework", "agent-framework"):
    from .frameworks.agent_framework import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
