"""Copies of everything: made, kept, checked and restored."""
