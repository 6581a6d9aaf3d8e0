"""The short import path of the adapter in `hosts/frameworks/agent_framework`."""

from .frameworks.agent_framework import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
