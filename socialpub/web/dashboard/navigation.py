"""The pages that stand in the navigation, in their order."""

from typing import NamedTuple


class Place(NamedTuple):
    path: str
    label: str
    also: str = ""
    """The path of another page that belongs there."""

    def holds(self, path: str) -> bool:
        """Whether the page at this path is the place or lies within it."""
        return path in (self.path, self.also) or (self.path != "/" and path.startswith(f"{self.path}/"))


NAVIGATION = (
    Place("/", "Overview"),
    Place("/compose", "Compose"),
    Place("/posts", "Posts"),
    Place("/calendar", "Calendar"),
    Place("/profiles", "Profiles"),
    Place("/keys", "Keys"),
    Place("/log", "Log", also="/trail"),
    Place("/system", "System"),
)
