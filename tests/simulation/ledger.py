"""What the owner of one installation did: the accounts they connected, the posts they gave it, and what they changed.

A backup takes the ledger of its instant along. What another installation has in its ledger and this one has not is
what a restored appliance cannot know.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class DrawnProfile:
    id: str
    network: str
    username: str
    account_id: str


@dataclass(frozen=True, slots=True)
class DrawnPost:
    """A post that was accepted."""

    id: str
    network: str
    account_id: str
    marker: str
    """The number in its text. Posts of equal content share it. Empty: the post has no text."""
    chance: str = ""
    """The first of the posts that share one chance to become public: a retry of a certain failure takes it over."""
    first: str = ""
    """The post that the owner wrote: this one, or what this one tries again."""


class Kind(StrEnum):
    EDITED = "edited"
    """Its words are others."""

    MOVED = "moved"
    """Its time is another one."""

    RETRIED = "retried"


@dataclass(frozen=True, eq=False, slots=True)
class Act:
    """What the owner did to a post. Each is itself only: an installation has it in its past or has not."""

    kind: Kind
    post_id: str
    version: str = ""
    """What an edit has put into the words."""


@dataclass
class Ledger:
    profiles: list[DrawnProfile] = field(default_factory=list)
    accepted: list[DrawnPost] = field(default_factory=list)
    acts: set[Act] = field(default_factory=set)
    versions: dict[str, str] = field(default_factory=dict)
    """By post, what its last edit has put into its words."""
    subject: str = ""
    """The post that its owner thinks of most: around a restore, what two installations do to one is of interest."""
    inherited: frozenset[str] = frozenset()
    """The posts that came with a backup: they may be another installation's as well."""

    def as_backed_up(self) -> "Ledger":
        """What an appliance that is restored from a backup of this instant begins with."""
        ids = frozenset(post.id for post in self.accepted)
        return replace(
            self,
            profiles=list(self.profiles),
            accepted=list(self.accepted),
            acts=set(self.acts),
            versions=dict(self.versions),
            inherited=ids,
        )

    def note(self, kind: Kind, post_id: str, version: str = "") -> None:
        self.acts.add(Act(kind, post_id, version))
        if kind is Kind.EDITED:
            self.versions[post_id] = version

    def is_ordinary(self, post: DrawnPost) -> bool:
        """Return whether only this installation has accepted the post and its former tries."""
        return post.first not in self.inherited
