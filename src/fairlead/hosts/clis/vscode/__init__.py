"""VS Code, agent mode: its events."""
