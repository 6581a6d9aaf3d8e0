"""Qwen Code: its events, settings files, transcripts and trial runs."""
