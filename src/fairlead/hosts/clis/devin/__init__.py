"""Devin: its events."""
