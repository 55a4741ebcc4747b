"""The SQL of one table in one file."""
