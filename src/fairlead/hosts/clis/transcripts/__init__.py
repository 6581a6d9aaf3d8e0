"""Transcripts: the records that agent CLIs keep of their own sessions."""
