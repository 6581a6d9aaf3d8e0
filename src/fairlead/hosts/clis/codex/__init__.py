"""Codex: its events, settings files, transcripts and trial runs."""
