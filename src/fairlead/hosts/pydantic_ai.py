"""The short import path of the adapter in `hosts/frameworks/pydantic_ai`."""

from ..extras import installed

with installed("pydantic_ai", "pydantic-ai"):
    from .frameworks.pydantic_ai import FRAMEWORK, Fairlead, NoOutput

__all__ = ["FRAMEWORK", "Fairlead", "NoOutput"]
