"""Encryption, signatures and the values that no log may show."""
