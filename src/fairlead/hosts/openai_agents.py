"""The short import path of the adapter in `hosts/frameworks/openai_agents`."""

from .frameworks.openai_agents import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
