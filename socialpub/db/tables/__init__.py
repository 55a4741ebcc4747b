"""The statements about one table in one file: peewee queries, and SQL text for the frequent ones."""
