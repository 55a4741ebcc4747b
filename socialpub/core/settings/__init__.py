"""The configuration: read once, checked completely, frozen before anything starts."""
