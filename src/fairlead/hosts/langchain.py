"""The short import path of the adapter in `hosts/frameworks/langchain`."""

from ..extras import installed

with installed("langchain", "langchain"):
    from .frameworks.langchain import FRAMEWORK, Fairlead
    from .frameworks.langchain.tool_calls import check_mcp_call

__all__ = ["FRAMEWORK", "Fairlead", "check_mcp_call"]
