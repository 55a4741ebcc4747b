"""Reads that join tables, as SQL text: peewee knows no INDEXED BY, and the lists of the API are hot."""
