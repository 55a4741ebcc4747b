"""The memory of Pinterest: accounts, boards, registered videos, pins."""

import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any, ClassVar

from socialpub.sandbox.faults import FateQueue
from socialpub.sandbox.memory import ByteCache, FixedWindows, SandboxContext, json_facts
from socialpub.sandbox.messages import Reply
from socialpub.sandbox.network import OAuthNetwork
from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.models import (
    ACCOUNT_TYPES,
    FATES,
    PUBLIC,
    Pin,
    PinImage,
    PinterestAccount,
    PinterestBoard,
    PinterestMedia,
    PinterestSwitches,
)
from socialpub.sandbox.tokens import SandboxApp, Token

ALL_SCOPES = ("user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write")
SANDBOX_MARK = "sbx"
"""Tokens of Pinterest's own sandbox show it, so that production can tell after a restart too."""
JOURNALED = tuple(name for name in Pin.__slots__ if name not in ("kind", "received_at", "deleted_at"))


class PinterestSandbox(OAuthNetwork[PinterestAccount, SandboxApp], PinterestSwitches):
    name = "pinterest"
    endpoints = (
        "authorize",
        "token",
        "revoke",
        "user_account",
        "list_boards",
        "read_board",
        "create_board",
        "list_sections",
        "create_section",
        "create_pin",
        "read_pin",
        "list_pins",
        "list_own_pins",
        "delete_pin",
        "register_media",
        "upload_media",
        "media_status",
        "list_media",
    )
    refusals = tuple(replies.ERRORS)
    """What `next(…).refuses(name)` knows."""
    default_scopes = ALL_SCOPES
    account_fields = ("business_name", "account_type")
    name_field = "business_name"
    account_choices: ClassVar = {"account_type": ACCOUNT_TYPES}

    def __init__(self, context: SandboxContext) -> None:
        OAuthNetwork.__init__(self, context)
        PinterestSwitches.__init__(self)
        self.boards: dict[str, PinterestBoard] = {}
        self.pins: list[Pin] = []
        """Everything ever pinned, oldest first; a deleted pin stays, with `deleted_at`."""
        self.media: dict[str, PinterestMedia] = {}
        """Registered videos."""
        self.pictures: dict[str, PinImage] = {}
        self.cache = ByteCache()
        """Images and videos, by id."""
        self.windows = FixedWindows()
        self.category_counts: Counter[str] = Counter()
        """Calls by rate category."""
        self.fates = FateQueue(FATES)
        """What becomes of the next videos, before `processing` counts again."""
        self._pins: dict[str, Pin] = {}
        self._pins_on: dict[str, list[Pin]] = {}
        self._media_by_key: dict[str, PinterestMedia] = {}
        self._add_permanent(PinterestAccount("1000000000000000001", "demo", "Demo"), "2000000000000000")
        self._add_permanent(PinterestAccount("1000000000000000002", "studio", "Studio Nord"), "2000000000000001")

    # --- accounts, apps, tokens ----------------------------------------------------------------------------------

    def add_account(
        self, username: str, business_name: str | None = None, account_type: str = "BUSINESS"
    ) -> PinterestAccount:
        """A new account with a board of its own; a username that exists is ValueError."""
        self.refuse_taken(username)
        account = self.store_account(PinterestAccount(self.new_id(), username, business_name or username, account_type))
        for sandbox in (False, True):
            self.add_board(account, "First board", sandbox=sandbox)
        return account

    def _add_permanent(self, account: PinterestAccount, board_prefix: str) -> None:
        """An account that is always here, with the same boards after every restart."""
        self.accounts[account.id] = account
        at = datetime.fromisoformat("2026-01-05T09:00:00+00:00")
        for number, (name, sandbox) in enumerate((("Summer prints", False), ("Ideas", False), ("Trials", True)), 1):
            board = PinterestBoard(f"{board_prefix}{number:03}", name, account.id, PUBLIC, at, sandbox=sandbox)
            self.boards[board.id] = board
        first = self.boards[f"{board_prefix}001"]
        first.sections = {f"{int(first.id) + 100}": "Posters"}

    def add_app(
        self, client_id: str, client_secret: str = "", redirect_uris: Iterable[str] = (), name: str = ""
    ) -> SandboxApp:
        """Register an app; from then on its secret and addresses are checked."""
        app = self.apps[client_id] = SandboxApp(client_id, client_secret, tuple(redirect_uris), name)
        return app

    def unregistered_app(self, client_id: str) -> SandboxApp:
        return SandboxApp(client_id)

    def new_token_pair(self, scopes: tuple[str, ...], *, sandbox: bool) -> tuple[str, str]:  # noqa: ARG002
        mark = SANDBOX_MARK if sandbox else ""
        return f"pina_{mark}.{secrets.token_urlsafe(48)}", f"pinr_{mark}.{secrets.token_urlsafe(48)}"

    def is_sandbox_token(self, token: Token) -> bool:
        return token.access.startswith(f"pina_{SANDBOX_MARK}.")

    # --- boards --------------------------------------------------------------------------------------------------

    def add_board(
        self,
        account: PinterestAccount | str,
        name: str,
        *,
        privacy: str = PUBLIC,
        description: str | None = None,
        sandbox: bool = False,
        is_ads_only: bool = False,
        collaborators: Iterable[str] = (),
    ) -> PinterestBoard:
        """A board of an account (or username). `collaborators`: ids of others who may pin there."""
        owner = self.existing_account(account) if isinstance(account, str) else account
        board = PinterestBoard(
            self.new_id(), name, owner.id, privacy, self.now(), description, sandbox, is_ads_only,
            tuple(collaborators),
        )  # fmt: skip
        self.boards[board.id] = board
        self.write("board", **asdict(board) | {"created_at": board.created_at.isoformat(), "modified_at": None})
        return board

    def add_section(self, board: PinterestBoard | str, name: str) -> str:
        """A section of a board (or board id); its id."""
        board = self.boards[board] if isinstance(board, str) else board
        section_id = self.new_id()
        board.sections[section_id] = name
        self.write("section", board_id=board.id, section_id=section_id, name=name)
        return section_id

    def boards_of(self, username: str, *, sandbox: bool = False) -> list[PinterestBoard]:
        account = self.account_named(username)
        return [one for one in self.boards.values() if account and (one.owner_id, one.sandbox) == (account.id, sandbox)]

    # --- videos --------------------------------------------------------------------------------------------------

    def next_fate(self, fate: str, times: int = 1) -> None:
        """What becomes of the next video uploaded: `succeeds`, `fails`, `never_ends`."""
        self.fates.schedule(fate, times)

    def add_media(self, media: PinterestMedia) -> None:
        self._keep_media(media)
        self.write_media(media)

    def _keep_media(self, media: PinterestMedia) -> None:
        self.media[media.id] = self._media_by_key[media.form["key"]] = media

    def write_media(self, media: PinterestMedia) -> None:
        """Keep what became of it over a restart."""
        self.write("media", **asdict(media))

    def media_of_key(self, key: str) -> PinterestMedia | None:
        """By the field `key` of its upload form."""
        return self._media_by_key.get(key)

    # --- pins ----------------------------------------------------------------------------------------------------

    def add_pin(self, pin: Pin, images: list[tuple[PinImage, bytes]]) -> None:
        for image, data in images:
            self.pictures[image.id] = image
            self.cache.put(image.id, data)
        self._keep_pin(pin)
        self.write("pin", media=pin.kind, **json_facts(pin, JOURNALED))

    def _keep_pin(self, pin: Pin) -> None:
        self.pins.append(pin)
        self._pins[pin.id] = pin
        self._pins_on.setdefault(pin.board_id, []).append(pin)
        self.boards[pin.board_id].modified_at = pin.created_at
        if pin.film_id in self.media:
            self.media[pin.film_id].pinned_in.append(pin.id)

    def pins_on(self, board: PinterestBoard) -> list[Pin]:
        """Those that are up, oldest first."""
        return [pin for pin in self._pins_on.get(board.id, ()) if pin.deleted_at is None]

    def pins_of(self, account: PinterestAccount | str) -> list[Pin]:
        """By an account or its username; those that are up, oldest first."""
        found = self.account_named(account) if isinstance(account, str) else account
        return [pin for pin in self.pins if found and pin.account_id == found.id and pin.deleted_at is None]

    def find_pin(self, pin_id: str) -> Pin | None:
        """One that is still up."""
        pin = self._pins.get(pin_id)
        return None if pin is None or pin.deleted_at is not None else pin

    def delete_pin(self, pin: Pin) -> None:
        pin.deleted_at = self.now()
        self.write("pin_deleted", pin_id=pin.id, at=pin.deleted_at.isoformat())

    def totals(self) -> dict[str, int]:
        return {"pin_count": len(self.pins), "media_count": len(self.media)}

    # --- from the journal ----------------------------------------------------------------------------------------

    def replay_account(self, **facts: Any) -> None:
        self.reserve_id(facts["id"])
        self.accounts[facts["id"]] = PinterestAccount(**facts)

    def replay_board(self, created_at: str, collaborators: list[str], **facts: Any) -> None:
        self.reserve_id(facts["id"])
        made = datetime.fromisoformat(created_at)
        self.boards[facts["id"]] = PinterestBoard(created_at=made, collaborators=tuple(collaborators), **facts)

    def replay_section(self, board_id: str, section_id: str, name: str) -> None:
        self.reserve_id(section_id)
        self.boards[board_id].sections[section_id] = name

    def replay_media(self, **facts: Any) -> None:
        self.reserve_id(facts["id"])
        self._keep_media(PinterestMedia(**facts))

    def replay_pin(self, media: Any, created_at: str, pictures: list[dict[str, Any]], **facts: Any) -> None:
        self.reserve_id(facts["id"])
        kept = tuple(PinImage(**one) for one in pictures)
        for one in kept:
            self.reserve_id(one.id)
            self.pictures[one.id] = one
        self._keep_pin(Pin(kind=media, created_at=datetime.fromisoformat(created_at), pictures=kept, **facts))

    def replay_pin_deleted(self, pin_id: str, at: str) -> None:
        if pin := self._pins.get(pin_id):
            pin.deleted_at = datetime.fromisoformat(at)

    # --- scripted errors -----------------------------------------------------------------------------------------

    def refusal_reply(self, endpoint: str, code: str) -> Reply:  # noqa: ARG002
        return replies.named_error(self, code)

    def http_error(self, status: int) -> Reply:
        messages = {404: "Not found.", 405: "Method not allowed."}
        message = messages.get(status, "Sorry, something went wrong.")
        return replies.error(self, status, 5 if status == 405 else status, message)

    def unauthorized_reply(self) -> Reply:
        return replies.named_error(self, "authentication_failed")

    def rate_limited_reply(self, seconds: float, told_in: str) -> Reply:
        return replies.rate_limited(self, seconds, told_in)
