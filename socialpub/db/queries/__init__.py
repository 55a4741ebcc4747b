"""The SQL of views that join tables."""
