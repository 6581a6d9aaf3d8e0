"""The short import path of the adapter in `hosts/frameworks/pydantic_ai`."""

from .frameworks.pydantic_ai import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
