"""X (Twitter), API v2. Start reading at `adapter.py`."""
