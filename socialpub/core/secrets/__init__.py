"""Secrets: signatures, encryption, signed URLs, and redaction of texts."""
