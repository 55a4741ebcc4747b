"""HTML pages: where a consent ends, what each problem means, TikTok's verification file."""
