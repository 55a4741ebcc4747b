"""Damaged media files, by the thousands, through an upload's examination."""
