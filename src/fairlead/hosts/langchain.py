"""The short import path of the adapter in `hosts/frameworks/langchain`."""

from .frameworks.langchain import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
