"""X's stand-in: it checks every request against X's documents, and has what varies on the real X."""

import base64
import html
import json
import math
import re
import unicodedata
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Annotated, Any, Literal

from annotated_types import Le, Len
from pydantic import Field, StringConstraints
from pydantic_core import ErrorDetails

from socialpub.sandbox.memory import SandboxContext, Token
from socialpub.sandbox.messages import BodyPart, Headers, Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import SandboxCall
from socialpub.sandbox.x import api
from socialpub.sandbox.x.api import XSandbox
from socialpub.sandbox.x.network import (
    FAILED,
    GIF,
    IMAGE,
    IN_PROGRESS,
    PROBLEMS,
    SUCCEEDED,
    VIDEO,
    XAccount,
    XMedia,
    XPost,
    forbidden,
    invalid,
    invalid_fields,
    window_headers,
)
from tests.stand_ins.network import StandIn
from tests.stand_ins.oauth import StrictX
from tests.stand_ins.shapes import Digits, SandboxShape, check_shape, dotted_path
from tests.stand_ins.x_text import FORBIDDEN, cashtags, mentions, weighted_length, wrap

DAY_SECONDS = 86400
MAX_BYTES = {IMAGE: 5 * 1024 * 1024, GIF: 15 * 1024 * 1024, VIDEO: 16 * 1024**3}
LONG_POST_TIERS = ("Premium", "PremiumPlus")
SEGMENT = re.compile(r"[0-9]{1,6}")
MAX_SEGMENT_BYTES = 5 * 1024 * 1024
SHORT_TEXT = 276
LIST_PARAMETERS = (
    "max_results", "pagination_token", "start_time", "exclude", "tweet.fields", "post.fields", "expansions",
)  # fmt: skip
NAMED = frozenset(call.name for call in XSandbox.declared_calls()) - {"authorize", "token", "revoke"}
"""The endpoints whose responses have the names of a dialect."""
NOT_PERMITTED = "You are not permitted to perform this action."
EXCLUSIVE = ("quote_tweet_id", "media")
NOT_MENTIONED = (
    "Reply to this conversation is not allowed because you have not been mentioned or otherwise engaged by the author "
    "of the post you are replying to."
)
USER_FIELDS = frozenset({
    "created_at", "description", "id", "name", "profile_image_url", "protected", "public_metrics", "subscription_type",
    "username", "verified", "verified_type",
})  # fmt: skip
_POST_FIELDS = frozenset({
    "attachments", "conversation_id", "created_at", "entities", "id", "paid_partnership", "reply_settings", "text",
})  # fmt: skip
POST_FIELDS = {
    "new": _POST_FIELDS | {"note_post"},
    "old": _POST_FIELDS | {"author_id", "edit_history_tweet_ids", "note_tweet", "referenced_tweets"},
}
"""The fields that the sandbox knows, of X's two generations of names. A request uses one of them, never a mixture."""
EXPANSIONS = {"new": frozenset({"referenced_posts"}), "old": frozenset({"referenced_tweets.id"})}
PARAMETERS = {"new": "post.fields", "old": "tweet.fields"}


NEW_NAMES = {
    "note_tweet": "note_post",
    "referenced_tweets": "referenced_posts",
    "referenced_tweets.id": "referenced_posts",
}
OLD_NAMES = {
    "edit_history_post_ids": "edit_history_tweet_ids",
    "note_post": "note_tweet",
    "post_count": "tweet_count",
    "posts": "tweets",
    "referenced_posts": "referenced_tweets",
}

MESSAGES = {
    "missing": "is missing but it is required",
    "extra_forbidden": "is not defined in the schema and the schema does not allow additional properties",
    "string_type": "string expected",
    "bool_type": "boolean expected",
    "int_type": "integer expected",
    "list_type": "array expected",
    "model_type": "object expected",
    "literal_error": "does not have a value in the enumeration [{expected}]",
    "string_pattern_mismatch": "does not match the regex pattern {pattern}",
    "string_too_long": "must be at most {max_length} characters long",
    "too_short": "there must be at least {min_length} items in the array",
    "too_long": "there must be at most {max_length} items in the array",
}


class MediaReferences(SandboxShape):
    media_ids: Annotated[list[Digits], Len(1, 4)]


class ReplyTarget(SandboxShape):
    in_reply_to_tweet_id: Digits


class NewPost(SandboxShape):
    """The fields that the product can send. X has more."""

    text: str = ""
    community_id: Digits = ""
    made_with_ai: bool = False
    media: MediaReferences = Field(default_factory=MediaReferences.model_construct)
    paid_partnership: bool = False
    quote_tweet_id: Digits = ""
    reply: ReplyTarget = Field(default_factory=ReplyTarget.model_construct)
    reply_settings: Literal["following", "mentionedUsers", "subscribers", "verified"] = "verified"
    share_with_followers: bool = False


class NewUpload(SandboxShape):
    media_category: Literal["tweet_image", "tweet_gif", "tweet_video"]
    media_type: Literal[
        "video/mp4", "video/webm", "video/mp2t", "video/quicktime", "image/jpeg", "image/gif", "image/bmp", "image/png",
        "image/webp", "image/pjpeg", "image/tiff",
    ]  # fmt: skip
    total_bytes: Annotated[int, Field(ge=0), Le(MAX_BYTES[VIDEO])]


class AltText(SandboxShape):
    text: Annotated[str, StringConstraints(max_length=1000)]


class MediaFacts(SandboxShape, extra="ignore"):
    alt_text: AltText = Field(default_factory=AltText.model_construct)


class MediaMetadata(SandboxShape):
    id: Digits
    metadata: MediaFacts


def _message(finding: ErrorDetails) -> str:
    words = MESSAGES.get(finding["type"], finding["msg"]).format(**finding.get("ctx", {}))
    return f"$.{dotted_path(finding)}: {words}"


def _require_valid(shape: type[SandboxShape], body: dict[str, Any]) -> None:
    if found := check_shape(shape, body):
        raise invalid_fields([({dotted_path(one): [str(one["input"])[:200]]}, _message(one)) for one in found])


def json_object(request: SandboxRequest) -> dict[str, Any]:
    if request.body and request.content_type != "application/json":
        raise invalid("Requests with bodies must have content-type of application/json.")
    try:
        body = json.loads(request.body) if request.body else None
    except ValueError:
        raise invalid("Request body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise invalid("Request body must be a JSON object.")
    return body


def in_old_names(data: Any) -> Any:
    """Return a response in the names of the older document."""
    if isinstance(data, list):
        return [in_old_names(item) for item in data]
    if isinstance(data, str):
        return data.replace("https://api.x.com/2/problems/", "https://api.twitter.com/2/problems/")
    if not isinstance(data, dict):
        return data
    renamed = {OLD_NAMES.get(name, name): in_old_names(value) for name, value in data.items()}
    if renamed.get("state") == "failed":
        renamed["error"] = {"code": 1, "name": "InvalidMedia", "message": "Unsupported video format"}
    return renamed


@dataclass
class XSwitches:
    """How this X behaves where the real one may behave in several ways. Set them on `world.x` at any time."""

    dialect: Literal["new", "old"] = "new"
    """Of responses: `new` (2.167: posts, api.x.com) or `old` (2.166: tweets, api.twitter.com)."""
    one_dialect: bool = False
    """Queries in the names of the other dialect are 400. By default, both are accepted. After the new document, the
    real X still accepted the old names and refused some queries in the new names."""
    kill_family_on_reuse: bool = False
    """A second use of a refresh token also ends the newest pair."""
    append_answers: int = 200
    """200 with `expires_at`, or 204 without a body."""
    processing: Literal["succeeds", "fails", "never_ends", "refused_at_post"] = "succeeds"
    """What happens to the next finalized GIFs and videos."""
    media_reuse_allowed: bool = True
    reply_lag_seconds: float = 0
    """How old a post must be before X accepts replies to it. Before, X reports that the post is not visible."""
    too_long_status: int = 400
    escapes_html: bool = False
    """Return `&amp;`, `&lt;`, `&gt;` in texts."""
    strips_invisible: bool = False
    """Return texts without zero-width, direction and control characters."""
    leaves_out: list[str] = field(default_factory=list)
    """Fields of posts that a list omits although the query names them, as after a failed hydration."""
    needs_text: bool = False
    """A body without `text` is 400, even with media, as behind X's gateway. Without it, an absent text is `""`."""
    credits_depleted: int = 0
    """1 or 2: every call gets a 402 in that shape."""
    daily_limits: dict[str, int] = field(default_factory=dict)
    """Calls of one user in 24 hours. These calls also get the 24-hour headers."""


def _check_size(category: str, size: int) -> None:
    if not 0 < size <= MAX_BYTES[category]:
        message = f"The size of the media is not between 1 and {MAX_BYTES[category]} bytes."
        raise invalid(message, total_bytes=size)


@dataclass(slots=True)
class XStandInAccount(XAccount):
    max_length: int | None = None
    """Overrides what follows from the subscription."""

    @property
    def longest_post(self) -> int:
        if self.max_length is not None:
            return self.max_length
        return 25_000 if self.subscription_type in LONG_POST_TIERS else 280


class XStandIn(StandIn, StrictX, XSandbox, XSwitches):
    account_kind = XStandInAccount

    def __init__(self, context: SandboxContext) -> None:
        XSwitches.__init__(self)
        StandIn.__init__(self, context)
        self._fate_of: dict[str, str] = {}
        """What happens to an upload, by its id."""
        self.limits = {
            "POST /2/tweets": 100,
            "GET /2/users/me": 75,
            "GET /2/users/:id/tweets": 900,
            "POST /2/media/upload": 500,
            "GET /2/media/upload": 1000,
            "POST /2/media/upload/initialize": 1875,
            "POST /2/media/upload/:id/append": 1875,
            "POST /2/media/upload/:id/finalize": 1875,
            "POST /2/media/metadata": 500,
        }

    # --- calls ---------------------------------------------------------------------------------------------------

    def admit(self, request: SandboxRequest, call: SandboxCall) -> None:
        try:
            super().admit(request, call)
        except Refusal as refusal:
            if refusal.reply.status == 401:
                limit, reset = self.limits[self.limit_of(call)], self.timestamp() + self.window_seconds
                request.reply_headers += window_headers("x-rate-limit", limit, limit, reset)
            raise

    def check_caller(self, request: SandboxRequest, call: SandboxCall) -> None:
        """Check the request as well, before its handler."""
        label, account = self.limit_of(call), request.account
        if label in self.daily_limits:
            day = self.count_in_window(("day", label, account.id), self.daily_limits[label], DAY_SECONDS)
            request.reply_headers += window_headers("x-user-limit-24hour", day.limit, day.remaining, day.reset)
            if day.over:
                raise self.refused(self.limited_code)
        if self.credits_depleted:
            raise Refusal(self.credits_reply(self.credits_depleted))
        super().check_caller(request, call)
        match label:
            case "GET /2/users/me":
                self._checked_query(request, "user.fields")
            case "GET /2/users/:id/tweets":
                self._post_fields(self._checked_query(request, *LIST_PARAMETERS))
            case "GET /2/media/upload":
                self._checked_query(request, "media_id", "command")
            case "POST /2/media/upload":
                self._checked_form(request, "media_category")
                part, category = api.file_and_field(request, "media_category")
                if category != IMAGE:
                    raise invalid(f"media_category must be one of ['{IMAGE}']", media_category=category)
                _check_size(category, len(part.data))
            case "POST /2/media/upload/:id/append" | "POST /2/media/upload/:id/finalize":
                if label.endswith("finalize"):
                    json_object(request)
                self._check_segments(request, label, self.own_media(request, request.path_params["id"]))
            case "POST /2/media/upload/initialize":
                body = json_object(request)
                _require_valid(NewUpload, body)
                _check_size(body["media_category"], body["total_bytes"])
            case "POST /2/media/metadata":
                body = json_object(request)
                if "id" not in body or not isinstance(body.get("metadata"), dict):
                    # The real X sends this response to requests in the shape of its previous version.
                    raise Refusal(json_reply(500, {"errors": ["internal server error"]}))
                _require_valid(MediaMetadata, body)
            case "POST /2/tweets":
                self._check_post(account, json_object(request))

    def renew(self, old: Token, client_id: str) -> Token | None:
        pair = super().renew(old, client_id)
        if pair is None and old.spent and self.kill_family_on_reuse:
            self.tokens.end_family(old.family)
        return pair

    def rate_limited_reply(self, seconds: float, endpoint: str = "", told_in: str = "window") -> Reply:
        """The wait of a 429 can also be in the day's headers, in `retry-after` as a date, or in milliseconds."""
        now = self.timestamp()
        reset = now + seconds
        headers: dict[str, Headers] = {
            "day": [
                *window_headers("x-rate-limit", 100, 99, now + 1),
                *window_headers("x-user-limit-24hour", 100, 0, reset),
            ],
            "date": [("retry-after", format_datetime(datetime.fromtimestamp(math.ceil(reset), UTC), usegmt=True))],
            "milliseconds": window_headers("x-rate-limit", 100, 0, reset * 1000),
        }
        if told_in not in headers:
            return super().rate_limited_reply(seconds, endpoint, told_in)
        return super().rate_limited_reply(seconds, endpoint, "nothing").with_headers(headers[told_in])

    def credits_reply(self, shape: int) -> Reply:
        """Return a 402 in one of X's two shapes."""
        if shape == 1:
            return self.refusal_reply("credits_depleted")
        kind, detail = f"{PROBLEMS}/credits-depleted", "credits depleted"
        return json_reply(402, {"detail": detail, "status": 402, "title": "Payment Required", "type": kind})

    # --- queries and bodies --------------------------------------------------------------------------------------

    def _checked_query(self, request: SandboxRequest, *names: str) -> dict[str, str]:
        query = request.query()
        for name in query:
            if name not in names:
                message = f"The query parameter [{name}] is not one of {sorted(names)}"
                raise invalid(message, **{name: query[name]})
        if query.get("command", "STATUS") != "STATUS":
            raise invalid("command must be STATUS", command=query["command"])
        if "user.fields" in query:
            self._field_list(query, "user.fields", USER_FIELDS)
        if "start_time" in query:
            self._check_time(query["start_time"])
        if not set(query.get("exclude", "replies").split(",")) <= {"replies", "retweets"}:
            raise invalid("exclude is `replies`, `retweets` or both", exclude=query["exclude"])
        for name, low, high in (("max_results", 5, 100), ("pagination_token", 0, 10**9)):
            written = query.get(name, str(low))
            if not (written.isascii() and written.isdecimal()) or not low <= int(written[:25]) <= high:
                raise invalid(f"The `{name}` query parameter value [{written}] is not valid", **{name: written})
        return query

    def _check_time(self, written: str) -> None:
        try:
            instant = datetime.fromisoformat(written)
        except ValueError:
            instant = None
        if instant is None or instant.tzinfo is None or "T" not in written:
            message = f"The `start_time` query parameter value [{written}] is not a valid RFC3339 date time"
            raise invalid(message, start_time=written)

    def _post_fields(self, query: dict[str, str]) -> set[str]:
        asked = [generation for generation, parameter in PARAMETERS.items() if parameter in query]
        if len(asked) > 1:
            raise invalid("tweet.fields and post.fields belong to different documents", **query)
        if self.one_dialect and asked not in ([], [self.dialect]):
            parameter = PARAMETERS[asked[0]]
            raise invalid(f"The query parameter [{parameter}] is not known", **{parameter: query[parameter]})
        generations = asked or ([self.dialect] if self.one_dialect else ["new", "old"])
        found = self._field_list(query, "expansions", *(EXPANSIONS[one] for one in generations))
        for generation in asked:
            found |= self._field_list(query, PARAMETERS[generation], POST_FIELDS[generation])
        return {NEW_NAMES.get(name, name) for name in found}

    def _field_list(self, query: dict[str, str], name: str, *known: frozenset[str]) -> set[str]:
        """Return the members of a comma list if one of these sets contains all of them. Raise Refusal."""
        if name not in query:
            return set()
        fields = query[name].split(",")
        if len(set(fields)) != len(fields) or not any(one.issuperset(fields) for one in known):
            message = f"The `{name}` query parameter value [{query[name]}] is not one of {sorted(known[0])}"
            raise invalid(message, **{name: query[name]})
        return set(fields)

    def _checked_form(self, request: SandboxRequest, name: str) -> None:
        """Check the file `media` and the one field beside it. X also takes them as JSON, with the file in base64."""
        if request.content_type == "application/json":
            fields = json_object(request)
            try:
                data = base64.b64decode(fields.get("media", ""), validate=True)
            except (TypeError, ValueError):
                raise invalid("media is not base64.", media="") from None
            request.parts = [
                BodyPart(field, None, data if field == "media" else str(value).encode())
                for field, value in fields.items()
            ]
        if request.parts is None:
            raise invalid("Requests with bodies must have content-type of application/json.")
        names = [part.name for part in request.parts]
        if len(set(names)) < len(names):
            raise invalid("A field is given twice.")
        for unknown in {*names} - {"media", name}:
            raise invalid(f"$.{unknown}: is not defined in the schema", **{unknown: ""})
        if "media" not in names:
            raise invalid("media is missing but it is required", media="")

    def _check_segments(self, request: SandboxRequest, label: str, media: XMedia) -> None:
        if label.endswith("finalize"):
            if not media.finalized and sorted(media.segments) != list(range(len(media.segments))):
                raise invalid("Segments are missing.", segments=sorted(media.segments))
            if not media.finalized and (received := sum(media.segments.values())) != media.declared_bytes:
                raise invalid("Segments do not add up to provided total file size.", total_bytes=received)
            return
        self._checked_form(request, "segment_index")
        part, index = api.file_and_field(request, "segment_index")
        if not SEGMENT.fullmatch(index) or int(index) > 999:
            raise invalid("SegmentIndex must be between 0 and 999.", segment_index=index)
        if len(part.data) > MAX_SEGMENT_BYTES:
            raise Refusal(Reply(413))
        if media.finalized:
            raise invalid("The upload is already finalized.", id=media.id)

    def _check_post(self, account: XStandInAccount, body: dict[str, Any]) -> None:
        _require_valid(NewPost, body)
        if self.needs_text and "text" not in body:
            raise invalid("$.text: is missing but it is required", text="")
        if all(name in body for name in EXCLUSIVE):
            message = (
                "You can only provide one of poll or quote_tweet_id or direct_message_deep_link or media or card_uri."
            )
            raise invalid(message, **{name: body[name] for name in EXCLUSIVE})
        if "quote_tweet_id" in body:
            raise forbidden(NOT_PERMITTED)
        ids = body.get("media", {}).get("media_ids", [])
        media = [item for media_id in ids if (item := self.find_media(media_id)) is not None]
        mixed = len(media) > 1 and {item.category for item in media} != {IMAGE}
        if len(set(ids)) < len(ids) or mixed:
            raise invalid_fields([({"media.media_ids": ids}, "Your media IDs are invalid.")])
        text = unicodedata.normalize("NFC", body.get("text", ""))
        if not text.strip() and "media" not in body:
            raise invalid("text is required when there is no media.", text=text)
        if FORBIDDEN.intersection(text):
            raise invalid("text contains characters that are not allowed.", text=text)
        if weighted_length(text) > account.longest_post:
            if self.too_long_status == 403:
                raise forbidden(NOT_PERMITTED)
            message = "Your Tweet text is too long. For more information see the documentation."
            raise invalid(message, text=text)
        if len(cashtags(text)) > 1:
            raise forbidden("Posts are limited to a maximum of one cashtag.")
        parent = self.find_post(body.get("reply", {}).get("in_reply_to_tweet_id"))
        if parent is None:
            return
        if self.seconds_since(parent.created_at) < self.reply_lag_seconds:
            raise forbidden("You attempted to reply to a Tweet that is deleted or not visible to you.")
        if parent.account_id != account.id and account.username.lower() not in mentions(parent.text):
            raise forbidden(NOT_MENTIONED)

    def list_posts(self, request: SandboxRequest) -> Reply:
        user_id = request.path_params["id"]
        return super().list_posts(request) if user_id in self.accounts else _no_such_user(user_id)

    # --- media ---------------------------------------------------------------------------------------------------

    def usable_media(self, media_id: str, account: XAccount) -> XMedia | None:
        media = super().usable_media(media_id, account)
        if (
            media is None
            or self._fate_of.get(media_id) == "refused_at_post"
            or (media.posted_in and not self.media_reuse_allowed)
        ):
            return None
        return media

    def finish_upload(self, media: XMedia) -> None:
        self._fate_of[media.id] = self.processing
        super().finish_upload(media)

    def process(self, media: XMedia) -> None:
        was_open = media.state != SUCCEEDED
        super().process(media)
        if was_open and media.state == SUCCEEDED:
            media.state = {"fails": FAILED, "never_ends": IN_PROGRESS}.get(self._fate_of.get(media.id, ""), SUCCEEDED)

    # --- responses -----------------------------------------------------------------------------------------------

    def responded(self, endpoint: str, request: SandboxRequest, reply: Reply) -> Reply:
        """Show posts as the query and the switches say, in the names of the dialect."""
        if endpoint == "upload_append" and reply.status == 200 and self.append_answers == 204:
            return Reply(204, headers=reply.headers)
        if reply.status == 204 or endpoint not in NAMED or not reply.body.startswith(b"{"):
            return reply
        data = json.loads(reply.body)
        if endpoint == "create_post" and reply.status == 201:
            data["data"]["text"] = self._shown(self.wrapped(self.post_table[data["data"]["id"]])[0])
        if endpoint == "list_posts" and reply.status == 200:
            fields = self._post_fields(request.query())
            for page in (data, data.get("includes", {})):
                for name in {"data", "posts"} & page.keys():
                    page[name] = [self._post_json(self.post_table[post["id"]], fields) for post in page[name]]
        shown = json_reply(reply.status, in_old_names(data) if self.dialect == "old" else data)
        shown.headers = reply.headers
        return shown

    def _post_json(self, post: XPost, fields: set[str]) -> dict[str, Any]:
        (text, entities), is_long = self.wrapped(post), weighted_length(post.text) > 280
        facts = api.post_json(post) | {"author_id": post.account_id}
        shown = {name: value for name, value in facts.items() if name in fields | {"id", "edit_history_post_ids"}}
        if "note_post" in fields and is_long:
            shown["note_post"] = {"text": self._shown(text), **({"entities": entities} if entities else {})}
        if is_long:
            text = text[:SHORT_TEXT] + "…"
        shown["text"] = self._shown(text)
        if "entities" in fields and (urls := [url for url in entities.get("urls", ()) if url["end"] <= len(text)]):
            shown["entities"] = {"urls": urls}
        left_out = {NEW_NAMES.get(name, name) for name in self.leaves_out}
        return {name: value for name, value in shown.items() if name not in left_out}

    def wrapped(self, post: XPost) -> tuple[str, dict[str, Any]]:
        """Return the text with t.co links, and for a reply with the mention that X adds. And its entities."""
        text, parent = post.text, self.find_post(post.in_reply_to)
        if self.strips_invisible:
            text = "".join(one for one in text if one.isspace() or unicodedata.category(one) not in ("Cc", "Cf"))
        if parent is not None and parent.username != post.username and parent.username.lower() not in mentions(text):
            text = f"@{parent.username} {text}".rstrip()
        kind = "photo" if post.media and post.media[0].category == IMAGE else "video"
        page = f"https://x.com/{post.username}/status/{post.id}/{kind}/1" if post.media else ""
        return wrap(text, page, tuple(item.key for item in post.media))

    def _shown(self, text: str) -> str:
        return html.escape(text, quote=False) if self.escapes_html else text


def _no_such_user(user_id: str) -> Reply:
    error = {
        "value": user_id,
        "detail": f"Could not find user with id: [{user_id}].",
        "title": "Not Found Error",
        "resource_type": "user",
        "parameter": "id",
        "resource_id": user_id,
        "type": f"{PROBLEMS}/resource-not-found",
    }
    return json_reply(200, {"errors": [error]})
