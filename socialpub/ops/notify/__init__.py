"""Notifies the owner: which alerts are due, what a message says, and how Apprise sends it."""
