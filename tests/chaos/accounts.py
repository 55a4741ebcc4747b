"""The accounts of a run: more of each network than an installation has, and their owner, who reconnects them."""

import contextlib
import json
from dataclasses import dataclass

from tests.e2e.installation import PEOPLE, Installation

USERNAMES = {
    "x": ("ada", "ben", "cleo", "dan", "eve", "finn"),
    "tiktok": ("ada", "ben", "cleo", "dan"),
    "pinterest": ("ada", "ben", "cleo", "dan"),
    "bluesky": ("ada", "ben", "cleo", "dan"),
}
"""Bluesky only on an installation that has it."""


@dataclass(frozen=True)
class ChaosAccount:
    profile_id: str
    network: str
    username: str
    board_id: str | None = None

    @property
    def options(self) -> dict[str, dict[str, object]]:
        """What a post to it needs."""
        match self.network:
            case "tiktok":
                return {"tiktok": {"mode": "direct", "privacyLevel": "PUBLIC_TO_EVERYONE"}}
            case "pinterest":
                return {"pinterest": {"boardId": self.board_id}}
        return {}


class ChaosAccounts:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._all: list[ChaosAccount] = []
        self.reconnected = 0

    def connect(self, *, more: bool) -> None:
        """Those that the installation has; with `more`, all of `USERNAMES`. The sandbox runs, the appliance not yet."""
        known = {("x", name): profile for name, profile in zip(PEOPLE, self._installation.profiles, strict=True)}
        known |= {(network, PEOPLE[0]): profile for network, profile in self._installation.profile_on.items()}
        for network in self._installation.networks:
            for username in USERNAMES[network]:
                if more or (network, username) in known:
                    profile_id = known.get((network, username)) or self._import(network, username)
                    self._all.append(ChaosAccount(profile_id, network, username, self._board(network, username)))

    def _import(self, network: str, username: str) -> str:
        if network == "bluesky":
            return self._installation.sign_in_at_bluesky(username)
        granted = self._installation.control(network).grant(username)
        return self._installation.admin("import-profile", network, stdin=granted)

    def _board(self, network: str, username: str) -> str | None:
        if network != "pinterest":
            return None
        shown = self._installation.pinterest.show()
        (owner,) = (account["id"] for account in shown["accounts"] if account["username"] == username)
        return next(str(b["id"]) for b in shown["boards"] if b["owner_id"] == owner)

    def on(self, network: str) -> list[ChaosAccount]:
        return [account for account in self._all if account.network == network]

    def by_profile(self) -> dict[str, ChaosAccount]:
        return {account.profile_id: account for account in self._all}

    def reconnect_refused(self) -> None:
        """A pair of tokens whose answer was lost is spent; the owner connects such an account again."""
        listed = json.loads(self._installation.run("admin", "list-profiles", "--json").stdout)
        refused = {one["id"] for one in listed if one["status"] == "reauthRequired"}
        for account in self._all:
            if account.profile_id in refused:
                # While the network fails at random the import may be refused: then the next look tries again.
                with contextlib.suppress(AssertionError):
                    self._import(account.network, account.username)
                    self.reconnected += 1
