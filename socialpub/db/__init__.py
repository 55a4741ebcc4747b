"""Rows: connections, the writer, locks, migrations, and the statements about the main tables."""
