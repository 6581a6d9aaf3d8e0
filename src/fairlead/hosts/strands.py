"""The short import path of the adapter in `hosts/frameworks/strands`."""

from .frameworks.strands import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
