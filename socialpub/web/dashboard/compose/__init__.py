"""The dashboard's composer."""
