"""The memory of Pinterest: accounts, apps, codes, tokens, boards, films, pins."""

import secrets
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from socialpub.sandbox.call import Answer, answer_json
from socialpub.sandbox.fetching import Fetch
from socialpub.sandbox.network import Network
from socialpub.sandbox.pinterest import codes
from socialpub.sandbox.pinterest.boards import PUBLIC, Board
from socialpub.sandbox.pinterest.consent import App, Code
from socialpub.sandbox.pinterest.media import Media
from socialpub.sandbox.pinterest.pictures import Picture
from socialpub.sandbox.pinterest.pins import Pin
from socialpub.sandbox.pinterest.shown import shown
from socialpub.sandbox.pinterest.switches import FATES, Switches
from socialpub.sandbox.shelf import Shelf
from socialpub.sandbox.windows import Windows

if TYPE_CHECKING:
    from socialpub.sandbox.tokens import Token
    from socialpub.sandbox.world import World

ALL_SCOPES = ("user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write")
SANDBOX_MARK = "sbx"
"""Tokens of Pinterest's own sandbox show it, so that production can tell after a restart too."""


@dataclass(slots=True)
class Account:
    id: str
    username: str
    business_name: str
    account_type: str = "BUSINESS"

    @property
    def is_business(self) -> bool:
        return self.account_type == "BUSINESS"


class Pinterest(Network, Switches):
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
    refusals = tuple(codes.WORDS)
    """What `next(…).refuses(name)` knows."""

    def __init__(self, world: "World") -> None:
        Network.__init__(self, world)
        Switches.__init__(self)
        self.accounts: dict[str, Account] = {}
        self.apps: dict[str, App] = {}
        self.codes: dict[str, Code] = {}
        self.boards: dict[str, Board] = {}
        self.pins: list[Pin] = []
        """Everything ever pinned, oldest first; a deleted pin stays, with `deleted_at`."""
        self.media: dict[str, Media] = {}
        """Registered films."""
        self.pictures: dict[str, Picture] = {}
        self.shelf = Shelf()
        """Pictures and films, by id."""
        self.fetch: Fetch | None = None
        """Gives the bytes behind a picture's URL, or raises; None: over HTTP."""
        self.windows = Windows()
        self.category_counts: Counter[str] = Counter()
        """Calls by rate category."""
        self.fates: deque[str] = deque()
        """What becomes of the next films, before `processing` counts again."""
        self._pins: dict[str, Pin] = {}
        self._pins_on: dict[str, list[Pin]] = {}
        self._media_by_key: dict[str, Media] = {}
        self._settle(Account("1000000000000000001", "demo", "Demo"), "2000000000000000")
        self._settle(Account("1000000000000000002", "studio", "Studio Nord"), "2000000000000001")

    # --- set up --------------------------------------------------------------------------------------------------

    def add_account(self, username: str, business_name: str | None = None, account_type: str = "BUSINESS") -> Account:
        """A new account with a board of its own; a username that exists is ValueError."""
        if self.account_named(username) is not None:
            raise ValueError(f"there is an account {username!r} already")
        account = Account(self.world.new_id(), username, business_name or username, account_type)
        self.accounts[account.id] = account
        self.world.write("pinterest", "account", **asdict(account))
        for sandbox in (False, True):
            self.add_board(account, "First board", sandbox=sandbox)
        return account

    def _settle(self, account: Account, board_prefix: str) -> None:
        """One of those who are always here, with the same boards in every life."""
        self.accounts[account.id] = account
        at = datetime.fromisoformat("2026-01-05T09:00:00+00:00")
        for number, (name, sandbox) in enumerate((("Summer prints", False), ("Ideas", False), ("Trials", True)), 1):
            board = Board(f"{board_prefix}{number:03}", name, account.id, PUBLIC, at, sandbox=sandbox)
            self.boards[board.id] = board
        first = self.boards[f"{board_prefix}001"]
        first.sections = {f"{int(first.id) + 100}": "Posters"}

    def change_user(self, username: str, **facts: Any) -> Account:
        """Change an account's `business_name` or `account_type` (`PINNER`, `BUSINESS`)."""
        account = self.account_named(username)
        unknown = [name for name in facts if name not in ("business_name", "account_type")]
        if account is None or unknown:
            raise ValueError(f"no such account or field: {username} {' '.join(unknown)}".rstrip())
        for name, value in facts.items():
            setattr(account, name, value)
        self.world.write("pinterest", "account", **asdict(account))
        return account

    def account_named(self, username: str) -> Account | None:
        return next((one for one in list(self.accounts.values()) if one.username == username), None)

    def add_app(
        self, client_id: str, client_secret: str = "", redirect_uris: Iterable[str] = (), name: str = ""
    ) -> App:
        """Register an app; from then on its secret and addresses are checked."""
        app = self.apps[client_id] = App(client_id, client_secret, tuple(redirect_uris), name)
        return app

    def add_board(
        self,
        account: Account | str,
        name: str,
        *,
        privacy: str = PUBLIC,
        description: str | None = None,
        sandbox: bool = False,
        is_ads_only: bool = False,
        collaborators: Iterable[str] = (),
    ) -> Board:
        """A board of an account (or username). `collaborators`: ids of others who may pin there."""
        owner = self.account_named(account) if isinstance(account, str) else account
        if owner is None:
            raise ValueError(f"no such account: {account}")
        board = Board(
            self.world.new_id(), name, owner.id, privacy, self.world.now(), description, sandbox, is_ads_only,
            tuple(collaborators),
        )  # fmt: skip
        self.boards[board.id] = board
        facts = asdict(board) | {"created_at": board.created_at.isoformat(), "modified_at": None}
        self.world.write("pinterest", "board", **facts)
        return board

    def add_section(self, board: Board | str, name: str) -> str:
        """A section of a board (or board id); its id."""
        board = self.boards[board] if isinstance(board, str) else board
        section_id = self.world.new_id()
        board.sections[section_id] = name
        self.world.write("pinterest", "section", board_id=board.id, section_id=section_id, name=name)
        return section_id

    def boards_of(self, username: str, *, sandbox: bool = False) -> list[Board]:
        account = self.account_named(username)
        return [one for one in self.boards.values() if account and (one.owner_id, one.sandbox) == (account.id, sandbox)]

    def next_fate(self, fate: str, times: int = 1) -> None:
        """What becomes of the next film uploaded: `succeeds`, `fails`, `never_ends`."""
        if fate not in FATES:
            raise ValueError(f"no such fate: {fate!r} (known: {', '.join(FATES)})")
        self.fates.extend([fate] * times)

    def next_fate_of_media(self) -> str:
        return self.fates.popleft() if self.fates else self.processing

    def remove_access(self, username: str) -> None:
        """The account takes the app's permission back: all its tokens die."""
        account = self.account_named(username)
        if account is None:
            raise ValueError(f"no such account: {username}")
        for token in self.tokens.of(account.id):
            if not token.dead:
                self.tokens.end_family(token.family)

    def grant(
        self,
        account: Account | str,
        scopes: Iterable[str] = ALL_SCOPES,
        expires_in: float | None = None,
        client_id: str | None = None,
        sandbox: bool = False,
    ) -> dict[str, str]:
        """Tokens without a consent, in the shape that `import-profile` takes. A new username makes a new account."""
        if isinstance(account, str):
            account = self.account_named(account) or self.add_account(account)
        seconds = self.access_seconds if expires_in is None else expires_in
        token = self.issue(account.id, tuple(scopes), client_id, seconds=seconds, sandbox=sandbox)
        now = self.world.now()
        return {
            "accessToken": token.access,
            "refreshToken": token.refresh or "",
            "expiresAt": (now + timedelta(seconds=seconds)).isoformat(timespec="milliseconds"),
            "refreshExpiresAt": (now + timedelta(seconds=self.refresh_seconds)).isoformat(timespec="milliseconds"),
            "scope": " ".join(token.scopes),
        }

    def issue(
        self,
        account_id: str,
        scopes: tuple[str, ...],
        client_id: str | None,
        *,
        seconds: float | None = None,
        family: str | None = None,
        sandbox: bool = False,
        refresh: str | None = None,
    ) -> "Token":
        mark = SANDBOX_MARK if sandbox else ""
        return self.tokens.issue(
            account_id,
            scopes,
            access=f"pina_{mark}.{secrets.token_urlsafe(48)}",
            refresh=refresh or f"pinr_{mark}.{secrets.token_urlsafe(48)}",
            seconds=self.access_seconds if seconds is None else seconds,
            refresh_seconds=self.refresh_seconds,
            client_id=client_id,
            family=family,
        )

    def is_sandbox_token(self, token: "Token") -> bool:
        return token.access.startswith(f"pina_{SANDBOX_MARK}.")

    # --- pins and films ------------------------------------------------------------------------------------------

    def add_pin(self, pin: Pin) -> None:
        self._keep_pin(pin)
        facts = {
            name: getattr(pin, name) for name in Pin.__slots__ if name not in ("kind", "received_at", "deleted_at")
        }
        facts |= {
            "created_at": pin.created_at.isoformat(),
            "pictures": [asdict(one) for one in pin.pictures],
            "media": pin.kind,
        }
        self.world.write("pinterest", "pin", **facts)

    def _keep_pin(self, pin: Pin) -> None:
        self.pins.append(pin)
        self._pins[pin.id] = pin
        self._pins_on.setdefault(pin.board_id, []).append(pin)
        self.boards[pin.board_id].modified_at = pin.created_at
        if pin.film_id in self.media:
            self.media[pin.film_id].pinned_in.append(pin.id)

    def keep_picture(self, picture: Picture, data: bytes) -> None:
        self.pictures[picture.id] = picture
        self.shelf.put(picture.id, data)

    def keep_media(self, media: Media) -> None:
        self.media[media.id] = media
        self._media_by_key[media.form["key"]] = media
        self.journal_media(media)

    def journal_media(self, media: Media) -> None:
        self.world.write("pinterest", "media", **asdict(media))

    def media_of_key(self, key: str) -> Media | None:
        return self._media_by_key.get(key)

    def pins_on(self, board: Board) -> list[Pin]:
        """Those that are up, oldest first."""
        return [pin for pin in self._pins_on.get(board.id, ()) if pin.deleted_at is None]

    def pins_of(self, account: Account | str) -> list[Pin]:
        """By an account or its username; those that are up, oldest first."""
        found = self.account_named(account) if isinstance(account, str) else account
        return [pin for pin in self.pins if found and pin.account_id == found.id and pin.deleted_at is None]

    def find_pin(self, pin_id: str) -> Pin | None:
        """One that is still up."""
        pin = self._pins.get(pin_id)
        return None if pin is None or pin.deleted_at is not None else pin

    def delete_pin(self, pin: Pin) -> None:
        pin.deleted_at = self.world.now()
        self.world.write("pinterest", "pin_deleted", pin_id=pin.id, at=pin.deleted_at.isoformat())

    # --- from the journal ----------------------------------------------------------------------------------------

    def recall_account(self, **facts: Any) -> None:
        self.world.saw_id(facts["id"])
        self.accounts[facts["id"]] = Account(**facts)

    def recall_board(self, created_at: str, collaborators: list[str], **facts: Any) -> None:
        self.world.saw_id(facts["id"])
        made = datetime.fromisoformat(created_at)
        self.boards[facts["id"]] = Board(created_at=made, collaborators=tuple(collaborators), **facts)

    def recall_section(self, board_id: str, section_id: str, name: str) -> None:
        self.world.saw_id(section_id)
        self.boards[board_id].sections[section_id] = name

    def recall_media(self, **facts: Any) -> None:
        self.world.saw_id(facts["id"])
        media = Media(**facts)
        self.media[media.id] = self._media_by_key[media.form["key"]] = media

    def recall_pin(self, media: Any, created_at: str, pictures: list[dict[str, Any]], **facts: Any) -> None:
        self.world.saw_id(facts["id"])
        kept = tuple(Picture(**one) for one in pictures)
        for one in kept:
            self.world.saw_id(one.id)
            self.pictures[one.id] = one
        self._keep_pin(Pin(kind=media, created_at=datetime.fromisoformat(created_at), pictures=kept, **facts))

    def recall_pin_deleted(self, pin_id: str, at: str) -> None:
        if pin := self._pins.get(pin_id):
            pin.deleted_at = datetime.fromisoformat(at)

    # --- answers -------------------------------------------------------------------------------------------------

    def shown(self) -> dict[str, Any]:
        return shown(self)

    def effects(self) -> dict[str, int]:
        return {"pin_count": len(self.pins), "media_count": len(self.media)}

    def answer(self, status: int, data: Any) -> Answer:
        limit = self.limits["org_read"]
        return answer_json(
            status,
            data,
            [
                ("x-pinterest-rid", secrets.token_hex(8)),
                ("x-ratelimit-limit", f"{limit}, {limit};w=60"),
                ("x-ratelimit-remaining", str(limit - 1)),
                ("x-ratelimit-reset", "60"),
            ],
        )

    def empty(self, status: int) -> Answer:
        return Answer(status, headers=self.answer(status, None).headers)

    def error(self, status: int, code: int, message: str) -> Answer:
        return self.answer(status, {"code": code, "message": message})

    def refusal_answer(self, endpoint: str, code: str) -> Answer:  # noqa: ARG002
        status, number, message = codes.words(code)
        if code == "spam":
            return self.answer(status, {"code": number, "message": message, "message_detail": "spam"})
        return self.error(status, number, message)

    def http_error(self, status: int) -> Answer:
        messages = {404: "Not found.", 405: "Method not allowed."}
        return self.error(status, 5 if status == 405 else status, messages.get(status, "Sorry, something went wrong."))

    def unauthorized_answer(self) -> Answer:
        return self.refusal_answer("", "authentication_failed")

    def rate_limited_answer(self, seconds: float, told_in: str) -> Answer:
        answer = self.refusal_answer("", "rate_limited")
        answer.headers = [header for header in answer.headers if not header[0].startswith("x-ratelimit")]
        if told_in in ("window", "day"):
            answer.headers += [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", str(int(seconds)))]
        elif told_in == "retry-after":
            answer.headers.append(("retry-after", str(int(seconds))))
        return answer
