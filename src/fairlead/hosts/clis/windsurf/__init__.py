"""Windsurf: its events and settings files."""
