"""Whose account, whose key: profiles, OAuth consents, tokens and their renewal, API keys."""
