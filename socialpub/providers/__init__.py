"""The adapters of the networks, and their shared code."""
