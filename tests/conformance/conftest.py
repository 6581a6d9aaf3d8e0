"""The scene: an agent with fairlead's own loop, for what the seeds' hooks do in an agent."""

from loop_scene import scene

__all__ = ["scene"]
