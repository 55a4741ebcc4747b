"""What survives a restart: rows, files, locks. Knows no network and no request."""
