"""The short import path of the adapter in `hosts/frameworks/openai_agents`."""

from ..extras import installed

with installed("agents", "openai-agents"):
    from .frameworks.openai_agents import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
