"""The memory of Pinterest: accounts, boards, registered videos, pins."""

import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any, ClassVar

from socialpub.sandbox.faults import FateQueue
from socialpub.sandbox.memory import ByteCache, FixedWindows, SandboxContext, from_facts, json_facts
from socialpub.sandbox.messages import Reply
from socialpub.sandbox.network import SandboxNetwork
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

ALL_SCOPES = ("user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write")
JOURNALED = tuple(name for name in Pin.__slots__ if name not in ("kind", "received_at"))
BOARD_FACTS = ("id", "name", "owner_id", "privacy", "sections")
PIN_FACTS = tuple(name for name in Pin.__slots__ if name != "film_id")
MEDIA_FACTS = ("id", "owner_id", "status", "mime_type", "size", "sha256", "uploads", "pinned_in")
"""What the control API shows."""


class PinterestSandbox(SandboxNetwork[PinterestAccount], PinterestSwitches):
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
        "list_pins",
        "register_media",
        "upload_media",
        "media_status",
    )
    refusals = tuple(replies.ERRORS)
    """The names for `next(…).refuses(name)`."""
    default_scopes = ALL_SCOPES
    account_fields = ("business_name", "account_type")
    name_field = "business_name"
    account_choices: ClassVar = {"account_type": ACCOUNT_TYPES}

    def __init__(self, context: SandboxContext) -> None:
        SandboxNetwork.__init__(self, context)
        PinterestSwitches.__init__(self)
        self.boards: dict[str, PinterestBoard] = {}
        self.pins: list[Pin] = []
        """Oldest first."""
        self.media: dict[str, PinterestMedia] = {}
        """Registered videos."""
        self.pictures: dict[str, PinImage] = {}
        self.cache = ByteCache()
        """Images and videos, by id."""
        self.windows = FixedWindows()
        self.category_counts: Counter[str] = Counter()
        """Calls by rate category."""
        self.fates = FateQueue(FATES)
        """What happens to the next videos, before `processing` counts again."""
        self._pins: dict[str, Pin] = {}
        self._pins_on: dict[str, list[Pin]] = {}
        self._media_by_key: dict[str, PinterestMedia] = {}
        self._add_permanent(PinterestAccount("1000000000000000001", "demo", "Demo"), "2000000000000000")
        self._add_permanent(PinterestAccount("1000000000000000002", "studio", "Studio Nord"), "2000000000000001")

    # --- accounts, apps, tokens ----------------------------------------------------------------------------------

    def add_account(
        self, username: str, business_name: str | None = None, account_type: str = "BUSINESS"
    ) -> PinterestAccount:
        """Create an account with a board. Raise ValueError for a username that exists."""
        self.refuse_taken(username)
        account = self.store_account(PinterestAccount(self.new_id(), username, business_name or username, account_type))
        self.add_board(account, "First board")
        return account

    def _add_permanent(self, account: PinterestAccount, board_prefix: str) -> None:
        """Add an account that always exists, with the same boards after every restart."""
        self.accounts[account.id] = account
        at = datetime.fromisoformat("2026-01-05T09:00:00+00:00")
        for number, name in enumerate(("Summer prints", "Ideas"), 1):
            board = PinterestBoard(f"{board_prefix}{number:03}", name, account.id, PUBLIC, at)
            self.boards[board.id] = board
        first = self.boards[f"{board_prefix}001"]
        first.sections = {f"{int(first.id) + 100}": "Posters"}

    def new_token_pair(self, scopes: tuple[str, ...]) -> tuple[str, str]:  # noqa: ARG002
        return f"pina_.{secrets.token_urlsafe(48)}", f"pinr_.{secrets.token_urlsafe(48)}"

    # --- boards --------------------------------------------------------------------------------------------------

    def add_board(
        self,
        account: PinterestAccount | str,
        name: str,
        *,
        privacy: str = PUBLIC,
        description: str | None = None,
        is_ads_only: bool = False,
        collaborators: Iterable[str] = (),
    ) -> PinterestBoard:
        """Create a board of an account (or username). `collaborators` are ids of other accounts that may pin there."""
        owner = self.existing_account(account) if isinstance(account, str) else account
        board = PinterestBoard(
            self.new_id(), name, owner.id, privacy, self.now(), description, is_ads_only, tuple(collaborators),
        )  # fmt: skip
        self.boards[board.id] = board
        self.write("board", **asdict(board) | {"created_at": board.created_at.isoformat(), "modified_at": None})
        return board

    def add_section(self, board: PinterestBoard | str, name: str) -> str:
        """Create a section of a board (or board id). Return its id."""
        board = self.boards[board] if isinstance(board, str) else board
        section_id = self.new_id()
        board.sections[section_id] = name
        self.write("section", board_id=board.id, section_id=section_id, name=name)
        return section_id

    def boards_of(self, username: str) -> list[PinterestBoard]:
        account = self.account_named(username)
        return [one for one in self.boards.values() if account and one.owner_id == account.id]

    # --- videos --------------------------------------------------------------------------------------------------

    def next_fate(self, fate: str, times: int = 1) -> None:
        """Set the fate of the next uploaded video: `succeeds`, `fails`, `never_ends`."""
        self.fates.schedule(fate, times)

    def add_media(self, media: PinterestMedia) -> None:
        self._keep_media(media)
        self.write_media(media)

    def _keep_media(self, media: PinterestMedia) -> None:
        self.media[media.id] = self._media_by_key[media.form["key"]] = media

    def write_media(self, media: PinterestMedia) -> None:
        """Keep its status over a restart."""
        self.write("media", **asdict(media))

    def media_of_key(self, key: str) -> PinterestMedia | None:
        """Return the video by the field `key` of its upload form."""
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
        """Return the pins of a board and its sections, oldest first."""
        return list(self._pins_on.get(board.id, ()))

    def find_pin(self, pin_id: str) -> Pin | None:
        return self._pins.get(pin_id)

    def totals(self) -> dict[str, int]:
        return {"pin_count": len(self.pins), "media_count": len(self.media)}

    def view(self) -> dict[str, Any]:
        return {
            "accounts": [asdict(account) for account in self.accounts.values()],
            "boards": [json_facts(board, BOARD_FACTS) for board in self.boards.values()],
            "pins": [self._view_pin(pin) for pin in self.pins],
            "media": [json_facts(media, MEDIA_FACTS) for media in self.media.values()],
            "categories": dict(self.category_counts),
        }

    def _view_pin(self, pin: Pin) -> dict[str, Any]:
        video = self.media.get(pin.film_id or "")
        return json_facts(pin, PIN_FACTS) | {"film": json_facts(video, MEDIA_FACTS) if video else None}

    # --- from the journal ----------------------------------------------------------------------------------------

    def replay_account(self, **facts: Any) -> None:
        self.reserve_id(facts["id"])
        self.accounts[facts["id"]] = from_facts(PinterestAccount, facts)

    def replay_board(self, created_at: str, collaborators: list[str], **facts: Any) -> None:
        self.reserve_id(facts["id"])
        facts |= {"created_at": datetime.fromisoformat(created_at), "collaborators": tuple(collaborators)}
        self.boards[facts["id"]] = from_facts(PinterestBoard, facts)

    def replay_section(self, board_id: str, section_id: str, name: str) -> None:
        self.reserve_id(section_id)
        self.boards[board_id].sections[section_id] = name

    def replay_media(self, **facts: Any) -> None:
        self.reserve_id(facts["id"])
        self._keep_media(from_facts(PinterestMedia, facts))

    def replay_pin(self, media: Any, created_at: str, pictures: list[dict[str, Any]], **facts: Any) -> None:
        self.reserve_id(facts["id"])
        kept = tuple(PinImage(**one) for one in pictures)
        for one in kept:
            self.reserve_id(one.id)
            self.pictures[one.id] = one
        facts |= {"kind": media, "created_at": datetime.fromisoformat(created_at), "pictures": kept}
        self._keep_pin(from_facts(Pin, facts))

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
