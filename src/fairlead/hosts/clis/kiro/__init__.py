"""Kiro: its events and settings files."""
