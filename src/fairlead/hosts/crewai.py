"""The short import path of the adapter in `hosts/frameworks/crewai`."""

from .frameworks.crewai import FRAMEWORK, Fairlead

__all__ = ["FRAMEWORK", "Fairlead"]
