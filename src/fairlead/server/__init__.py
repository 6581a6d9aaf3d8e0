"""The daemon: one process per user that other programs ask."""
