"""Runners: how a hook that is not a Python function is executed.

A runner is a callable like any hook: a step in, a verdict or nothing out. Time-outs, failure policy
and folding are the engine's business; a runner only speaks with the outside and raises when that fails.
"""
