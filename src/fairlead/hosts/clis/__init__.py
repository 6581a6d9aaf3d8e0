"""Agent CLIs as hosts: one package per CLI, and what all of them share."""
