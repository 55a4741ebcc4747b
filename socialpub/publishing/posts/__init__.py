"""Posts: accepted, changed, retried, listed."""
