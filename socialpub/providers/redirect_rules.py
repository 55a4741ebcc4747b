"""Redirect addresses: which ones a network accepts. Each network has a table of rows, with source and date.

A row describes one kind of address. An address that fits no row is one that the network does not document or refuses.
Nothing here asks the network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit


@dataclass(frozen=True, slots=True)
class RedirectRow:
    """One kind of redirect address that a network accepts."""

    takes: str
    """As the end of the sentence "X takes …"."""
    schemes: tuple[str, ...]
    source: str
    read_on: str
    """The month or day in which the source said so."""
    hosts: tuple[str, ...] = ()
    """The only hosts; empty: any host. The first one is what a remedy suggests."""
    other_hosts: tuple[str, ...] = ()
    """Hosts that do not fit, although `hosts` is empty."""
    needs_port: bool = False
    app: str = ""
    """The kind of app to register for such an address, where the network has several."""

    def fits(self, parts: SplitResult) -> bool:
        host = parts.hostname or ""
        return (
            parts.scheme in self.schemes
            and (not self.hosts or host in self.hosts)
            and host not in self.other_hosts
            and (parts.port is not None or not self.needs_port)
        )


@dataclass(frozen=True, slots=True)
class RedirectRules:
    """What one network accepts: the first row that fits counts."""

    rows: Sequence[RedirectRow]
    query_allowed: bool = True
    max_characters: int | None = None

    def find(self, address: str) -> RedirectRow | None:
        """Return the row that this address fits; None when the network does not accept it."""
        parts = urlsplit(address)
        if self.max_characters is not None and len(address) > self.max_characters:
            return None
        if "?" in address and not self.query_allowed:
            return None
        return next((row for row in self.rows if row.fits(parts)), None)

    def local(self, port: int, path: str) -> str | None:
        """Return an accepted address of the machine on which the browser runs; None when no row names such a host."""
        row = next((row for row in self.rows if row.hosts), None)
        return None if row is None else f"http://{row.hosts[0]}:{port}{path}"

    @property
    def sentence(self) -> str:
        """Everything that the network takes, as the end of a sentence."""
        found = " or ".join(row.takes for row in self.rows)
        extra = [] if self.query_allowed else ["no query"]
        if self.max_characters is not None:
            extra.append(f"at most {self.max_characters} characters")
        return f"{found}; {', '.join(extra)}" if extra else found
