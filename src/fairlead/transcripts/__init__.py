"""Transcripts: what the agent CLIs write down of their sessions by themselves. One module per CLI."""
