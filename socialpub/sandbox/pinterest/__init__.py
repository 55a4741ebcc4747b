"""Pinterest, played from its documentation: consent, tokens, boards, pins, films."""
