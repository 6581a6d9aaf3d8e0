"""The short import path of the adapter in `hosts/frameworks/google_adk`."""

from ..extras import installed

with installed("google.adk", "google-adk"):
    from .frameworks.google_adk import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
