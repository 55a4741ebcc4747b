"""Bluesky, simulated from the behavior of its own server: sessions, records, blobs, and the directory of accounts."""
