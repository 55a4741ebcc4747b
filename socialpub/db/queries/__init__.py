"""Reads that join tables, as SQL text: peewee has no INDEXED BY, and the API runs these reads often."""
