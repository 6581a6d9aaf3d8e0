"""Copilot in JetBrains: its events."""
