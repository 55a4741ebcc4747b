"""The name that a misspelt one was probably meant to be."""

import difflib
from collections.abc import Iterable


def nearest(key: str, known: Iterable[str]) -> str | None:
    """The known name nearest to `key`, or None. Case and underscores do not count: `access_token` is `accessToken`."""
    names = {_folded(name): name for name in reversed(list(known))}  # of two spellings the first one counts
    matches = difflib.get_close_matches(_folded(key), names, n=1, cutoff=0.5)
    return names[matches[0]] if matches else None


def _folded(name: str) -> str:
    return name.replace("_", "").casefold()
