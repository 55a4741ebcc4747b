"""HTML pages outside the dashboard: the end of a consent, problems, the reference, TikTok's verification file."""
