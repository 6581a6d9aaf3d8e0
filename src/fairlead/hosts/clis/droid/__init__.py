"""Factory Droid: its events, settings files, transcripts and trial runs."""
