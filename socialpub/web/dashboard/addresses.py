"""Addresses within the dashboard that a browser brings along, to be led back to."""

LONGEST = 2000


def is_local(path: str) -> bool:
    """Whether this is an address of ours (`/posts?status=scheduled`)."""
    misleading = "//" in path or "\\" in path or not path.isprintable() or len(path) > LONGEST
    return path.startswith("/") and not misleading
