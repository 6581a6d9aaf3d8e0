"""Packs: hooks that ship with fairlead."""
