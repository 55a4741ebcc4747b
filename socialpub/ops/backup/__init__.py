"""Backups: their format, how they are made, verified, scheduled and restored."""
