"""Pinterest's stand-in: it checks every request against the document, and has what varies on the real Pinterest."""

import html
import json
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Len
from pydantic import Field, StringConstraints
from pydantic_core import ErrorDetails

from socialpub.sandbox.memory import FixedWindow, SandboxContext, Token
from socialpub.sandbox.messages import Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import SandboxCall
from socialpub.sandbox.pinterest.api import MAX_BYTES, TEXTS, PinterestSandbox, upload_refusal
from socialpub.sandbox.pinterest.network import PinImage, PinterestBoard, PinterestMedia, invalid
from tests.stand_ins.media import FateQueue, probe_video
from tests.stand_ins.network import StandIn
from tests.stand_ins.oauth import StrictPinterest
from tests.stand_ins.shapes import SandboxShape, check_shape, dotted_path

FATES = ("succeeds", "fails", "never_ends")
SHOWN = 200
CREATING = ("create_board", "register_media", "create_pin")
COVERS = ("cover_image_data", "cover_image_key_frame_time")
SECONDS = (4, 900)
ASPECT_RATIOS = (0.5, 1.91)
SMALLEST_SIDE = 100
"""Of an image, in pixels."""

ObjectId = Annotated[str, StringConstraints(pattern=r"^\d+$")]
Base64Text = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9+/=]+$")]
Link = Annotated[str, StringConstraints(max_length=2048, pattern=r"^https?://[^\s/?#]+\.?\S*$")]
Index = Annotated[int, Field(ge=0)]
MESSAGES = {
    "missing": "'{path}' is a required property",
    "extra_forbidden": "Additional properties are not allowed ('{path}' was unexpected)",
    "string_type": "{value} is not of type 'string' ({path})",
    "bool_type": "{value} is not of type 'boolean' ({path})",
    "list_type": "{value} is not of type 'array' ({path})",
    "model_type": "{value} is not of type 'object' ({path})",
    "literal_error": "{value} is not one of [{expected}] ({path})",
    "string_pattern_mismatch": "{value} does not match '{pattern}' ('{path}' must match the pattern: {pattern})",
    "string_too_long": "{value} in '{path}' is too long (maxLength={max_length})",
    "string_too_short": "{value} in '{path}' is too short (minLength={min_length})",
    "too_long": "'{path}' has {actual_length} items (maxItems={max_length})",
    "too_short": "'{path}' has {actual_length} items (minItems={min_length})",
}

Title = Annotated[str, StringConstraints(max_length=100)]
Description = Annotated[str, StringConstraints(max_length=800)]
ImageType = Literal["image/jpeg", "image/png"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=180)]


class NewBoard(SandboxShape):
    name: Name
    description: Annotated[str, StringConstraints(max_length=500)] | None = None
    privacy: Literal["PUBLIC", "PROTECTED", "SECRET"] = "PUBLIC"
    is_ads_only: bool = False


class NewSection(SandboxShape):
    name: Name


class NewMedia(SandboxShape):
    media_type: Literal["video"]


class ImageItem(SandboxShape):
    content_type: ImageType
    data: Base64Text
    title: Title = ""
    description: Description = ""
    link: Link = ""


class ImageSource(SandboxShape):
    source_type: Literal["image_base64"]
    content_type: ImageType
    data: Base64Text
    is_standard: bool = True


class CarouselSource(SandboxShape):
    source_type: Literal["multiple_image_base64"]
    items: Annotated[list[ImageItem], Len(2, 5)]
    index: Index = 0


class VideoSource(SandboxShape):
    source_type: Literal["video_id"]
    media_id: ObjectId
    cover_image_content_type: ImageType = "image/jpeg"
    cover_image_data: Base64Text = ""
    cover_image_key_frame_time: Index = 0
    is_standard: bool = True


class Disclosures(SandboxShape):
    """Since 5.28."""

    values: Annotated[list[Literal["AI_MODIFIED", "SYNTHETIC_PERFORMER"]], Len(1, 2)]


class NewPin(SandboxShape):
    board_id: ObjectId
    board_section_id: ObjectId | None = None
    title: Title | None = None
    description: Description | None = None
    alt_text: Annotated[str, StringConstraints(max_length=500)] | None = None
    link: Link | None = None
    dominant_color: Annotated[str, StringConstraints(max_length=30)] | None = None
    ai_disclosures: Disclosures = Field(default_factory=Disclosures.model_construct)
    media_source: Annotated[ImageSource | CarouselSource | VideoSource, Field(discriminator="source_type")]


SHAPES: dict[str, tuple[type[SandboxShape], int]] = {
    "boards": (NewBoard, 400),
    "sections": (NewSection, 400),
    "media": (NewMedia, 1),
    "pins": (NewPin, 1),
}
"""The shape of each body, and the code of its refusal."""


def _message(finding: ErrorDetails) -> str:
    if finding["type"] == "string_pattern_mismatch" and str(finding["loc"][-1]).endswith(("link", "url")):
        return f"Entered URL is invalid. ({dotted_path(finding)})"
    written = repr(finding["input"])
    facts = {"path": dotted_path(finding), "value": written if len(written) <= SHOWN else written[:SHOWN] + "…"}
    return MESSAGES.get(finding["type"], "{path}: " + finding["msg"]).format(**finding.get("ctx", {}), **facts)


@dataclass
class PinterestSwitches:
    """How this Pinterest behaves where the real one may behave in several ways. Set them on `world.pinterest` at any
    time."""

    omits_refresh_token: bool = False
    """A refresh returns no refresh token, and the old one still works."""
    old_refresh_survives: bool = False
    """A used refresh token still works."""
    pinner_data_denied: bool = False
    """Boards and pins of accounts that are not businesses cannot be read."""
    board_lag_seconds: float = 0
    """How old a board must be to appear in the list."""
    trims_texts: bool = False
    """Return texts trimmed and with plain line ends."""
    escapes_html: bool = False
    """Return `&amp;`, `&lt;`, `&gt;` in texts and links."""
    composes_texts: bool = False
    """Return texts in NFC."""
    cuts_texts_after: int = 0
    """Return at most this number of characters of a text. 0: all."""
    null_texts: list[str] = field(default_factory=list)
    """Return these texts (`alt_text`) as null."""
    dates_pins: bool = True
    """Return the time of a pin."""
    cover_needed: bool = True
    create_status: int = 201
    """201 or 200."""
    processing: Literal["succeeds", "fails", "never_ends"] = "succeeds"
    """What happens to videos uploaded from now on."""
    media_reuse_allowed: bool = True
    probes_video: bool = True
    """Examine videos: duration and shape. Otherwise only the first bytes."""
    forms_good_once: bool = False
    """An upload form accepts one upload. The next one is 403."""


class PinterestStandIn(StandIn, StrictPinterest, PinterestSandbox, PinterestSwitches):
    def __init__(self, context: SandboxContext) -> None:
        PinterestSwitches.__init__(self)
        StandIn.__init__(self, context)
        self.category_counts: Counter[str] = Counter()
        """Calls by rate category."""
        self.fates = FateQueue(FATES)
        """What happens to the next videos, before `processing` counts again."""

    # --- calls and tokens ----------------------------------------------------------------------------------------

    def count(self, limit: str, token: Token) -> FixedWindow:
        self.category_counts[limit] += 1
        return super().count(limit, token)

    def view(self) -> dict[str, Any]:
        return super().view() | {"categories": dict(self.category_counts)}

    def renew(self, old: Token, client_id: str) -> Token | None:
        if not self.tokens.may_refresh(old, client_id):
            return None
        if not self.old_refresh_survives and not self.omits_refresh_token:
            return super().renew(old, client_id)
        kept = old.refresh if self.omits_refresh_token else None
        return self.issue(old.account_id, old.scopes, client_id, family=old.family, refresh=kept)

    def check_caller(self, request: SandboxRequest, call: SandboxCall) -> None:
        """Check the request as well, before its handler."""
        super().check_caller(request, call)
        kind = request.path.rpartition("/")[2]
        if request.method == "POST" and kind in SHAPES:
            if request.content_type != "application/json" or not request.body.lstrip().startswith(b"{"):
                raise invalid(400, 1, "Invalid request: the body is not a JSON object.")
            self._check_body(kind, request.json_object())
        size, bookmark = request.query().get("page_size", "25"), request.query().get("bookmark") or "0"
        if not size.isdecimal() or not 1 <= int(size) <= 250:
            raise invalid(400, 1, f"Invalid request: page_size {size!r} is not between 1 and 250.")
        if not bookmark.isdecimal():
            raise invalid(400, 1, "Invalid request: the bookmark is not valid.")
        is_of_boards = request.method == "GET" and request.path.startswith("/v5/boards")
        if is_of_boards and self.pinner_data_denied and not request.account.is_business:
            raise self.refused("pinner_data")

    def _check_body(self, kind: str, body: dict[str, Any]) -> None:
        shape, code = SHAPES[kind]
        for finding in check_shape(shape, body):
            raise invalid(400, code, f"Invalid request: {_message(finding)}")
        if kind == "pins" and "media_id" in body["media_source"]:
            covers = sum(name in body["media_source"] for name in COVERS)
            if covers > 1 or (self.cover_needed and not covers):
                message = "Invalid request: give one of cover_image_url, cover_image_data with its content type, or"
                raise invalid(400, 1, f"{message} cover_image_key_frame_time.")

    # --- videos --------------------------------------------------------------------------------------------------

    def next_fate(self, fate: str, times: int = 1) -> None:
        """Set the fate of the next uploaded video: `succeeds`, `fails`, `never_ends`."""
        self.fates.schedule(fate, times)

    def fate(self, media: PinterestMedia, data: bytes) -> str:
        fate = self.fates.take(self.processing)
        unfit = self.probes_video and not _fits(data)
        return "fails" if unfit or super().fate(media, data) == "fails" else fate

    def upload_media(self, request: SandboxRequest) -> Reply:
        parts = request.parts or []
        if "content-length" not in request.headers:
            raise upload_refusal(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
        if "authorization" in request.headers:
            raise upload_refusal(400, "InvalidArgument", "Only one auth mechanism allowed: the form is signed.")
        if not parts or parts[-1].name != "file":
            raise upload_refusal(400, "InvalidArgument", "The file must be the last field of the form.")
        fields = {part.name: part.text for part in parts[:-1]}
        media = self.media_by_key.get(fields.get("key", ""))
        if media is None or fields != media.form or len(parts) != len(fields) + 1:
            raise upload_refusal(403, "AccessDenied", "Invalid according to Policy: a field is missing or changed.")
        if media.uploads and self.forms_good_once:
            raise upload_refusal(403, "AccessDenied", "The form has been used.")
        size = len(parts[-1].data)
        if not 1 <= size <= MAX_BYTES:
            code = "EntityTooLarge" if size else "EntityTooSmall"
            raise upload_refusal(400, code, "Your upload is outside of the allowed size.")
        return super().upload_media(request)

    def check_images(self, images: list[PinImage]) -> None:
        if any(min(image.width, image.height) < SMALLEST_SIDE for image in images):
            raise self.refused("image_too_small")
        if len({(image.width, image.height) for image in images}) > 1:
            raise invalid(400, 1, "Invalid request: all images of a carousel must have the same size.")

    def may_use(self, media: PinterestMedia) -> bool:
        return super().may_use(media) and (self.media_reuse_allowed or not media.pinned_in)

    # --- responses -----------------------------------------------------------------------------------------------

    def responded(self, endpoint: str, request: SandboxRequest, reply: Reply) -> Reply:
        reply = super().responded(endpoint, request, reply)
        data = json.loads(reply.body) if reply.body.startswith(b"{") else {}
        if endpoint == "token" and self.omits_refresh_token and request.form().get("grant_type") == "refresh_token":
            data = {name: value for name, value in data.items() if not name.startswith("refresh_")}
        if endpoint == "list_boards" and "items" in data:
            data["items"] = [one for one in data["items"] if self._is_listed(self.boards[one["id"]])]
        if endpoint == "list_pins" and "items" in data:
            data["items"] = [self._shown_pin(one) for one in data["items"]]
        if endpoint == "create_pin" and reply.status == 201:
            data = self._shown_pin(data)
        if endpoint in CREATING and reply.status == 201:
            reply.status = self.create_status
        return json_reply(reply.status, data, reply.headers) if data else reply

    def _is_listed(self, board: PinterestBoard) -> bool:
        return self.seconds_since(board.created_at) >= self.board_lag_seconds

    def _shown_pin(self, facts: dict[str, Any]) -> dict[str, Any]:
        texts = {name: self._shown_text(name, facts[name]) for name in TEXTS}
        return facts | texts | ({} if self.dates_pins else {"created_at": None})

    def _shown_text(self, name: str, value: str | None) -> str | None:
        if not value or name in self.null_texts:
            return None
        if self.trims_texts:
            value = value.replace("\r\n", "\n").strip()
        if self.composes_texts:
            value = unicodedata.normalize("NFC", value)
        if self.cuts_texts_after:
            value = value[: self.cuts_texts_after]
        return html.escape(value, quote=False) if self.escapes_html else value


def _fits(data: bytes) -> bool:
    video = probe_video(data)
    if video is None or not video.height:
        return False
    ratio = video.width / video.height
    return (
        SECONDS[0] - 0.05 <= video.seconds <= SECONDS[1] + 0.5
        and ASPECT_RATIOS[0] - 0.01 <= ratio <= ASPECT_RATIOS[1] + 0.01
    )
