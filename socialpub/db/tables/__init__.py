"""The statements about one table in one file: peewee queries, and prepared SQL for the hot ones."""
