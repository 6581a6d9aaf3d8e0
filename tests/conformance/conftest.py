"""The scene: an agent with fairlead's own loop, for what the seeds' hooks do in an agent."""

from hypothesis import settings

from loop_scene import scene

__all__ = ["scene"]

# A busy machine makes any example slow, and that says nothing about the behaviour.
settings.register_profile("conformance", deadline=None)
settings.load_profile("conformance")
