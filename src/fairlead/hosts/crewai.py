"""The short import path of the adapter in `hosts/frameworks/crewai`."""

from ..extras import installed

with installed("crewai", "crewai"):
    from .frameworks.crewai import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
