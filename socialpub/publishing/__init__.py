"""Posts and their deliveries: accepted, scheduled, claimed, run step by step, settled."""
