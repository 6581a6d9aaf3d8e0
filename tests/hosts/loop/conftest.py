"""The scene that the tests of the loop play."""

from loop_scene import scene, scripted

__all__ = ["scene", "scripted"]
