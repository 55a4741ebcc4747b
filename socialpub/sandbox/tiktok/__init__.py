"""TikTok, played from its documentation: consent, tokens, uploads, pulls, processing, posts."""
