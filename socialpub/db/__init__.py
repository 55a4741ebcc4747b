"""Rows: what is on the disk, and the only place that knows SQL's tables by name."""
