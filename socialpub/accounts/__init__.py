"""Whose account, whose key: profiles, consents, tokens, API keys."""
