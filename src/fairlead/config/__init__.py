"""fairlead.toml: reading it, layering, trust, reloading.

from fairlead.config import load
hooks = Hooks()
load(".").apply(hooks)
"""

from .document import ConfigError, Mistake
from .layers import Config, find, load, read

__all__ = ["Config", "ConfigError", "Mistake", "find", "load", "read"]
