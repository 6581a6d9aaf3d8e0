"""The short import path of the adapter in `hosts/frameworks/strands`."""

from ..extras import installed

with installed("strands", "strands"):
    from .frameworks.strands import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
