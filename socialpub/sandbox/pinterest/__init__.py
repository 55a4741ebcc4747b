"""Pinterest, played from its documentation: consent, tokens, boards, pins, videos."""
