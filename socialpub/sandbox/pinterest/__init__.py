"""Pinterest, played from its documentation: tokens and who an account is."""
