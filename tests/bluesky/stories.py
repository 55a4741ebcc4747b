"""What a story about Bluesky works with: an appliance, a server behind a front, and one clock for both."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from socialpub.accounts import connect
from socialpub.core.settings.networks import BlueskySection
from socialpub.core.settings.schema import ProvidersSection
from socialpub.db.states import State
from socialpub.providers.http import Http
from socialpub.publishing.posts.drafts import DraftMedia
from tests.bluesky.servers import Account, BlueskyServer, Record
from tests.support.appliance import accept, attempts_of, message_of, open_appliance, state_of
from tests.support.drain import DAY, drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact
from tests.support.select import select_one, select_value

CREATE_SESSION = "com.atproto.server.createSession"
PUT, UPLOAD = "com.atproto.repo.putRecord", "com.atproto.repo.uploadBlob"
HOUR = 3600.0


class FollowedClock(HandClock):
    """A clock that other servers follow."""

    def __init__(self) -> None:
        super().__init__()
        self.followers: list[Callable[[datetime], None]] = []

    def forward(self, seconds: float) -> None:
        super().forward(seconds)
        for follow in self.followers:
            follow(self.now())


class Story:
    """An appliance with a profile on the server. `account` is the owner's account there."""

    def __init__(
        self, folder: Path, clock: FollowedClock, server: BlueskyServer, private_servers: Sequence[str] = ()
    ) -> None:
        section = BlueskySection(
            enabled=True,
            service=server.url,
            plc_url=server.plc_url,
            private_servers=list(private_servers),
        )
        self.clock = clock
        self.server = server
        self.front = server.front
        self.rt = open_appliance(folder, clock, networks=ProvidersSection(bluesky=section), http=Http())
        self.account = server.add_account("alice")
        self._folder = folder

    @property
    def profile(self) -> str:
        """The profile of the account, which is connected on first use."""
        found = select_value(self.rt.db, "SELECT id FROM profile WHERE account_id = ?", (self.account.did,))
        return str(found or self.connect(self.account))

    def connect(self, account: Account, **values: str) -> str:
        """Connect an account, or connect it again. Return the profile's id."""
        given = {"handle": account.handle, "password": account.app_password, **values}
        return connect.sign_in(self.rt, "bluesky", given).profile_id

    def accept(
        self,
        body: str | None,
        *,
        media: Sequence[DraftMedia] = (),
        options: Mapping[str, Any] | None = None,
        profile: str | None = None,
    ) -> str:
        given = {"bluesky": options} if options else None
        return accept(self.rt, profile or self.profile, body=body, media=tuple(media), options=given)

    def publish(self, body: str | None, **how: Any) -> str:
        """Accept a post and do everything that becomes due within an hour."""
        post = self.accept(body, **how)
        self.drain(HOUR)
        return post

    def drain(self, within: float = DAY) -> None:
        drain(self.rt, self.clock, within=within)

    def media(self, path: Path, mime_type: str, alt: str | None = None) -> DraftMedia:
        return DraftMedia(artifact(self.rt, path, mime_type), alt)

    def records(self) -> list[Record]:
        return self.server.records(self.account)

    def record(self, post: str) -> Record:
        """The record of a post."""
        (found,) = (one for one in self.records() if one.uri == self.outcome(post)[1])
        return found

    def texts(self) -> list[str]:
        """The texts of the account's posts on the server."""
        return [one.value["text"] for one in self.records()]

    def outcome(self, post: str) -> tuple[State, str | None]:
        """The state of the post's delivery, and the id of the post on the network."""
        return state_of(self.rt, post), self._column(post, "provider_post_id")

    def url(self, post: str) -> str | None:
        return self._column(post, "url")

    def attempts(self, post: str) -> list[tuple[str, str]]:
        return attempts_of(self.rt, post)

    def message(self, post: str) -> str:
        return message_of(self.rt, post)

    def profile_row(self) -> Any:
        return select_one(self.rt.db, "SELECT * FROM profile WHERE account_id = ?", (self.account.did,))

    def assert_published_once(self, *posts: str) -> None:
        """Each post is exactly one record, with the link and the id of this record."""
        told = [(self.attempts(post), self.message(post)) for post in posts]
        wanted = [(State.PUBLISHED, one.uri) for one in self.records()]
        assert sorted(map(self.outcome, posts)) == sorted(wanted), told
        for post in posts:
            rkey = str(self.outcome(post)[1]).rpartition("/")[2]
            assert (
                self.url(post) == f"{self.server.plc_url.removesuffix('/plc')}/profile/{self.account.did}/post/{rkey}"
            )

    def close(self) -> None:
        self.rt.close()

    def _column(self, post: str, name: str) -> Any:
        return select_value(self.rt.db, f"SELECT {name} FROM delivery WHERE post_id = ?", (post,))
