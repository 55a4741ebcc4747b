"""The memory of Pinterest: accounts, boards, registered videos, pins. And the words of its refusals."""

import math
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from socialpub.sandbox.memory import FixedWindow, SandboxContext
from socialpub.sandbox.messages import Headers, Refusal, Reply, json_reply
from socialpub.sandbox.network import COMMON_FIELDS, SandboxCall
from socialpub.sandbox.oauth import OAuthNetwork

PUBLIC, SECRET = "PUBLIC", "SECRET"
REGISTERED, PROCESSING, SUCCEEDED, FAILED = "registered", "processing", "succeeded", "failed"


@dataclass(slots=True)
class PinterestAccount:
    id: str
    username: str
    business_name: str
    account_type: str = "BUSINESS"
    picture: str = ""

    @property
    def is_business(self) -> bool:
        return self.account_type == "BUSINESS"


@dataclass(slots=True)
class PinterestBoard:
    id: str
    name: str
    owner_id: str
    privacy: str
    created_at: datetime
    description: str | None = None
    is_ads_only: bool = False
    collaborators: tuple[str, ...] = ()
    """Ids of other accounts that may pin here."""
    sections: dict[str, str] = field(default_factory=dict)
    """Names by id."""
    modified_at: datetime | None = None

    def takes_pins_of(self, account: PinterestAccount) -> bool:
        return account.id == self.owner_id or account.id in self.collaborators


@dataclass(slots=True)
class PinterestMedia:
    id: str
    owner_id: str
    form: dict[str, str] = field(repr=False)
    """The fields of its upload form."""
    form_expires_at: float
    """Unix seconds."""
    status: str = REGISTERED
    mime_type: str = ""
    size: int = 0
    sha256: str = ""
    uploads: int = 0
    fate: str = ""
    """What happens to it. Empty until the upload."""
    polls: int = 0
    """Calls for the status since the upload."""
    pinned_in: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PinImage:
    """One image of a pin, or the cover of its video."""

    id: str
    mime_type: str
    size: int
    sha256: str
    width: int
    height: int
    title: str | None = None
    description: str | None = None
    link: str | None = None


@dataclass(slots=True)
class Pin:
    id: str
    account_id: str
    username: str
    board_id: str
    section_id: str | None
    kind: Literal["image", "carousel", "video"]
    title: str | None
    description: str | None
    alt_text: str | None
    link: str | None
    dominant_color: str | None
    pictures: tuple[PinImage, ...]
    """The image, the images of a carousel, or a video's cover (none for a key frame)."""
    video_id: str | None
    key_frame_seconds: int | None
    created_at: datetime
    """By the world's clock."""
    client_id: str | None = None
    ai_disclosures: list[str] = field(default_factory=list)


ERRORS: dict[str, tuple[int, int, str]] = {
    "invalid_request": (400, 1, "Invalid request."),
    "invalid_url": (400, 1, "Entered URL is invalid."),
    "unreachable_url": (400, 1, "Sorry! We are unable to reach the URL. Please check it and try again."),
    "2787": (400, 2787, "Sorry, something went wrong on our end."),
    "authentication_failed": (401, 2, "Authentication failed."),
    "unapproved": (401, 3, "Your application consumer type is not supported, please contact support."),
    "missing_scope": (403, 3, "Your token is missing the required scopes: pins:write"),
    "trial": (
        403,
        29,
        "Apps with Trial access may not create Pins in production. Use the API Sandbox (api-sandbox.pinterest.com).",
    ),
    "not_permitted": (403, 29, "You are not permitted to access that resource."),
    "pinner_data": (
        403,
        403,
        "PINNER_DATA_ACCESS_DENIED: this app may not read data of accounts that are no business.",
    ),
    "image_too_small": (403, 233, "The image is too small."),
    "image_broken": (403, 235, "The image is broken."),
    "account_disapproved": (403, 2625, "Your account was disapproved."),
    "account_under_review": (403, 2626, "Your account is under review."),
    "board_not_found": (404, 40, "Board not found."),
    "section_not_found": (404, 2031, "Board section not found."),
    "pin_not_found": (404, 50, "Pin not found."),
    "media_not_found": (404, 404, "Media upload not found."),
    "conflict": (409, 409, "Could not get exclusive access to the board. Please try again."),
    "rate_limited": (429, 8, "You have exceeded your rate limit. Try again later."),
    "spam": (429, 8, "This was blocked because it looks like spam."),
    "server_error": (500, 500, "Sorry, something went wrong."),
    "ramped_down": (503, 4197, "This endpoint is ramped down for now. Please try again later."),
}


class PinterestNetwork(OAuthNetwork):
    name = "pinterest"
    label = "Pinterest"
    errors = ERRORS
    unauthorized_code, limited_code = "authentication_failed", "rate_limited"
    default_scopes = ("user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write")
    default_limits: ClassVar = {"org_read": 1000, "org_write": 100}
    """Calls of one user and app in a minute."""
    account_kind = PinterestAccount
    account_fields: ClassVar = {
        **COMMON_FIELDS,
        "business_name": COMMON_FIELDS["name"],
        "account_type": ("BUSINESS", "PINNER"),
    }
    name_field = "business_name"
    access_seconds = 2592000
    refresh_seconds = 5184000
    list_lag_seconds: float = 0
    """How old a pin must be to appear in lists."""
    processing_ticks = 2
    """Calls for the status of a video that return `processing`. 0: ready at once."""
    policy_seconds = 3600
    """How long an upload form is valid."""

    def __init__(self, context: SandboxContext) -> None:
        super().__init__(context)
        self.boards = self.table("boards", PinterestBoard)
        self.media_by_key: dict[str, PinterestMedia] = {}
        """By the field `key` of their upload form."""
        self.media = self.table("media", PinterestMedia, on_keep=self._index_media)
        """Registered videos."""
        self.pin_table = self.table("pins", Pin, on_keep=self._keep_pin)
        self._pins_on: dict[str, list[Pin]] = {}
        self._add_permanent(PinterestAccount("1000000000000000001", "demo", "Demo"), "2000000000000000")
        self._add_permanent(PinterestAccount("1000000000000000002", "studio", "Studio Nord"), "2000000000000001")

    # --- accounts and boards -------------------------------------------------------------------------------------

    def new_account(self, username: str, name: str, **facts: Any) -> PinterestAccount:
        account = PinterestAccount(self.new_id(), username, name, **facts)
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

    def add_board(self, owner: PinterestAccount, name: str, privacy: str = PUBLIC, **facts: Any) -> PinterestBoard:
        """Create a board. `facts` are fields of `PinterestBoard`, such as `description`."""
        return self.boards.save(PinterestBoard(self.new_id(), name, owner.id, privacy, self.now(), **facts))

    def add_section(self, board: PinterestBoard, name: str) -> str:
        """Create a section of a board. Return its id."""
        section_id = self.new_id()
        board.sections[section_id] = name
        self.boards.save(board)
        return section_id

    def boards_of(self, username: str) -> list[PinterestBoard]:
        account = self.account_named(username)
        return [board for board in self.boards.values() if account and board.owner_id == account.id]

    # --- videos and pins -----------------------------------------------------------------------------------------

    def _index_media(self, media: PinterestMedia) -> None:
        self.media_by_key[media.form["key"]] = media

    def process(self, media: PinterestMedia) -> None:
        """Advance the processing, as every call for the status does."""
        if not media.fate or media.status in (SUCCEEDED, FAILED):
            return
        if media.polls >= self.processing_ticks and media.fate != "never_ends":
            media.status = SUCCEEDED if media.fate == "succeeds" else FAILED
        else:
            media.polls += 1
            media.status = PROCESSING

    @property
    def pins(self) -> list[Pin]:
        """All pins, oldest first."""
        return list(self.pin_table.values())

    def _keep_pin(self, pin: Pin) -> None:
        self._pins_on.setdefault(pin.board_id, []).append(pin)
        self.boards[pin.board_id].modified_at = pin.created_at
        if pin.video_id in self.media:
            self.media[pin.video_id].pinned_in.append(pin.id)

    def pins_on(self, board: PinterestBoard) -> list[Pin]:
        return list(self._pins_on.get(board.id, ()))

    def totals(self) -> dict[str, int]:
        return {"pin_count": len(self.pin_table), "media_count": len(self.media)}

    def view(self) -> dict[str, Any]:
        facts = super().view()
        for media in facts["media"]:
            del media["form"]
        videos = {media["id"]: media for media in facts["media"]}
        return facts | {"pins": [pin | {"video": videos.get(pin["video_id"])} for pin in facts["pins"]]}

    # --- tokens, limits and errors -------------------------------------------------------------------------------

    def new_token_pair(self, *_: Any) -> tuple[str, str]:
        return f"pina_.{secrets.token_urlsafe(48)}", f"pinr_.{secrets.token_urlsafe(48)}"

    def limit_of(self, call: SandboxCall) -> str:
        return "org_read" if call.method == "GET" else "org_write"

    def window_headers(self, window: FixedWindow) -> Headers:
        return [
            ("x-ratelimit-limit", f"{window.limit}, {window.limit};w={self.window_seconds}"),
            ("x-ratelimit-remaining", str(window.remaining)),
            ("x-ratelimit-reset", str(math.ceil(window.reset - self.timestamp()))),
        ]

    def error_reply(self, code: str, endpoint: str) -> Reply:  # noqa: ARG002  # the same at every endpoint
        status, number, message = ERRORS[code]
        detail = {"message_detail": "spam"} if code == "spam" else {}
        return ok(status, {"code": number, "message": message, **detail})

    def http_error(self, status: int, endpoint: str = "") -> Reply:  # noqa: ARG002  # the same at every endpoint
        messages = {404: "Not found.", 405: "Method not allowed."}
        message = messages.get(status, "Sorry, something went wrong.")
        return ok(status, {"code": 5 if status == 405 else status, "message": message})


def ok(status: int, data: Any) -> Reply:
    return json_reply(status, data, [("x-pinterest-rid", secrets.token_hex(8))])


def invalid(status: int, code: int, message: str) -> Refusal:
    return Refusal(ok(status, {"code": code, "message": message}))


def zoneless(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
