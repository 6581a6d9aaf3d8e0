"""Devin: its events and settings files."""
