"""The reference loop: a small agent in which every event fires and every control is honoured."""

from .agent import POLICIES, Agent, Moment, PermissionPolicy, Result
from .model import ModelFailed

__all__ = ["POLICIES", "Agent", "ModelFailed", "Moment", "PermissionPolicy", "Result"]
