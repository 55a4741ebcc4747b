"""The networks' adapters: each with the same core files and a few of its own, and what they share."""
