"""Notifications: which alerts are due, the text of a message, and how it is sent."""
