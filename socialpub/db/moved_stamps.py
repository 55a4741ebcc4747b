"""Stamps that a statement moves: by how much a wall clock was set."""

MOVED = "strftime('%Y-%m-%dT%H:%M:%fZ', {}, ?)"
"""The stamp in a column, moved by the parameter that `by` gives."""


def by(seconds: float) -> str:
    """How far `MOVED` moves."""
    return f"{seconds:+.3f} seconds"
