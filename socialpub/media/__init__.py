"""Bytes: kept, examined, brought to a network's measure."""
