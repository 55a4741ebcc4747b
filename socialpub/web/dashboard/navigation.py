"""The pages that stand in the navigation, in their order."""

from typing import NamedTuple


class Place(NamedTuple):
    path: str
    label: str

    def holds(self, path: str) -> bool:
        """Whether the page at this path is the place or lies within it."""
        return path == self.path or (self.path != "/" and path.startswith(f"{self.path}/"))


NAVIGATION = (
    Place("/", "Overview"),
    Place("/compose", "Compose"),
    Place("/posts", "Posts"),
    Place("/calendar", "Calendar"),
    Place("/profiles", "Profiles"),
    Place("/keys", "Keys"),
    Place("/log", "Log"),
    Place("/system", "System"),
)
