"""Adapters for the Python agent frameworks, and the turn and tool-call code that all of them share."""
