"""The name that a misspelt one was probably meant to be, and how to say so."""

import difflib
from collections.abc import Iterable

LONGEST = 100
"""No known name is so long that a longer one could be near it; comparing takes time that grows with the length."""


def nearest(key: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known name nearest to `key`, or None. Case and underscores do not count: `access_token` is `accessToken`."""
    if len(key) > LONGEST:
        return None
    names = {folded(name): name for name in reversed(list(known))}  # of two spellings the first one counts
    matches = difflib.get_close_matches(folded(key), names, n=1, cutoff=cutoff)
    return names[matches[0]] if matches else None


def folded(name: str) -> str:
    """What is the same in every way of writing a name; of a very long one only its beginning."""
    return name[: LONGEST + 1].replace("_", "").replace("-", "").casefold()


def unknown(suggestion: str | None, known: Iterable[str] = ()) -> str:
    """The message for a name that is not known; without a near one it lists those that are."""
    if suggestion is not None:
        return f"is not known; did you mean {suggestion}?"
    names = ", ".join(known)
    return f"is not known; known are {names}" if names else "is not known; leave it out"
