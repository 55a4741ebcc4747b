"""One post on its way to one profile: claimed, run step by step, read back, settled."""
