"""Goose: its events and settings files."""
