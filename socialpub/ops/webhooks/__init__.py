"""Webhooks: the events of the log, sent to the addresses of the owner (contract 10.6)."""
