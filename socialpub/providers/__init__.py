"""How each network wants it: one adapter a network, each with the same files, and what they share."""
