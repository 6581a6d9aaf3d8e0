"""GitHub Copilot CLI: its events, settings files, transcripts and trial runs."""
