"""TikTok, simulated from its documentation: consent, tokens, uploads, pulls, processing, posts."""
