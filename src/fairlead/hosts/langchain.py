"""The short import path of the adapter in `hosts/frameworks/langchain`."""

from ..extras import installed

with installed("langchain", "langchain"):
    from .frameworks.langchain import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
