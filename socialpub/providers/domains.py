"""The top-level domains that make a bare word such as `example.com` a link."""

from pathlib import Path

_LINES = (Path(__file__).parent / "tlds.txt").read_text("utf-8").splitlines()
TLDS = frozenset(tld for line in _LINES if not line.startswith("#") for tld in line.split())
"""The top-level domains that X knows, in lower case and in their own script."""
