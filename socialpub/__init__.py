"""socialpub: publishes to X, TikTok and Pinterest through one HTTP API."""
