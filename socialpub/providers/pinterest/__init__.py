"""Pinterest, API v5. Start reading at `adapter.py`."""
