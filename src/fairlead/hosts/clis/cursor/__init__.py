"""Cursor: its events and settings files."""
