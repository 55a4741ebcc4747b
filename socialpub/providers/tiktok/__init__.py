"""TikTok, Content Posting API. Start reading at `adapter.py`."""
