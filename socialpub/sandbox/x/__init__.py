"""X, simulated from its documentation: OAuth 2.0, posts, media uploads."""
