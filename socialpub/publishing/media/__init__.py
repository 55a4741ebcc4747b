"""Uploads, and media fitted to each network."""
