"""The engine: finds the hooks of a step, runs them in order, and folds their verdicts into one decision."""
