"""How often a page that shows something in progress asks how things stand."""

SOON_SECONDS = 3
"""While something happens."""
LATER_SECONDS = 30
"""While something only waits for its time."""
