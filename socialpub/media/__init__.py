"""Media files: stored, inspected, resized for a network."""
