"""Pinterest, simulated from its documentation: consent, tokens, boards, pins, videos."""
