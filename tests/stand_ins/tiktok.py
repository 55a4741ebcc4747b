"""TikTok's stand-in: it checks every request against the documentation, and has what varies on the real TikTok."""

import json
from collections import defaultdict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from annotated_types import Len

from socialpub.sandbox.media import fetch
from socialpub.sandbox.memory import FixedWindow, SandboxContext, Token
from socialpub.sandbox.messages import Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import SandboxCall
from socialpub.sandbox.tiktok.api import RANGE, TikTokSandbox
from socialpub.sandbox.tiktok.network import VIDEOS
from socialpub.sandbox.tiktok.tasks import (
    COMPLETE,
    FAILED,
    IN_INBOX,
    ONLY_ME,
    PHOTO,
    VIDEO,
    PublishTask,
    TikTokAccount,
    TikTokPost,
)
from tests.stand_ins.media import FateQueue, probe_video
from tests.stand_ins.network import StandIn
from tests.stand_ins.oauth import StrictTikTok
from tests.stand_ins.shapes import SandboxShape, check_shape, dotted_path

FAIL_REASONS = (
    "file_format_check_failed",
    "duration_check_failed",
    "frame_rate_check_failed",
    "picture_size_check_failed",
    "internal",
    "video_pull_failed",
    "photo_pull_failed",
    "publish_cancelled",
    "auth_removed",
    "spam_risk_too_many_posts",
    "spam_risk_user_banned_from_posting",
    "spam_risk_text",
    "spam_risk",
)
COMPLETES, NEVER_ENDS, INBOX = "completes", "never_ends", "inbox"
FATES = (COMPLETES, NEVER_ENDS, INBOX, *FAIL_REASONS)
"""What can happen to a share once all its bytes are there. `inbox`: a direct post ends as a draft of its user."""
MINUTE, DAY = 60, 86400
UNAUDITED_USER_CAP = 5
"""Posting users of an unaudited app in 24 hours."""
LIMITS = {VIDEO: {"title": 2200}, PHOTO: {"title": 90, "description": 4000}}
"""UTF-16 code units."""
FIELDS = {
    "user_info": {
        **dict.fromkeys(("open_id", "union_id", "display_name", "avatar_url"), "user.info.basic"),
        **dict.fromkeys(("username", "bio_description", "profile_deep_link", "is_verified"), "user.info.profile"),
    },
    "video_query": dict.fromkeys(("id", "create_time", "share_url", "title", "video_description"), "video.list"),
}
"""The fields of an endpoint, and the scope that each needs."""
MAX_VIDEOS = 20
OLDEST_APP_FOR_PHOTO_DRAFTS = (31, 8)
NO_SOURCE = "The request source info is empty or incorrect"
NO_POST_INFO = "The request post info is empty or incorrect"
MEGA, MAX_VIDEO_BYTES = 1_000_000, 4 * 1024**3
PHOTO_BYTES = 20_000_000
PHOTO_SHORT_SIDE = 1080
FRAME_RATES = (23, 60)
SIDES = (360, 4096)


class ChunkedSource(SandboxShape, extra="ignore"):
    """Of a video in chunks. The product pulls photos only."""

    source: Literal["FILE_UPLOAD"]
    video_size: int
    chunk_size: int
    total_chunk_count: int


class PulledSource(SandboxShape, extra="ignore"):
    source: Literal["PULL_FROM_URL"]
    photo_images: Annotated[list[Any], Len(1, 35)]
    photo_cover_index: int


class PostInfo(SandboxShape, extra="ignore"):
    title: str = ""
    description: str = ""
    privacy_level: str = ""
    disable_comment: bool = False
    disable_duet: bool = False
    disable_stitch: bool = False
    brand_content_toggle: bool = False
    brand_organic_toggle: bool = False
    is_aigc: bool = False
    auto_add_music: bool = False
    video_cover_timestamp_ms: int = 0


def chunk_plan_complaint(size: int, chunk_size: int, count: int) -> str:
    """Return what is wrong with a plan, or an empty text. `count` is the whole number of chunks in the file, and the
    last one contains the rest."""
    if size <= 0 or chunk_size <= 0 or size > MAX_VIDEO_BYTES:
        return "The chunk size is invalid"
    if not 1 <= count <= 1000 or count != size // chunk_size:
        return "The total chunk count is invalid"
    if count == 1:
        fits = chunk_size == size <= 64 * MEGA
    else:
        last = size - (count - 1) * chunk_size
        fits = 5 * MEGA <= chunk_size <= 64 * MEGA and last <= 128 * MEGA
    return "" if fits else "The chunk size is invalid"


@dataclass
class TikTokSwitches:
    """How this TikTok behaves where the real one may behave in several ways. Set them on `world.tiktok` at any time."""

    oauth_error_status: int = 400
    """400 or 200. The documentation does not specify the status."""
    rotates: bool = True
    """A refresh returns a new refresh token and ends the old one."""
    refresh_grace_seconds: float = 0
    """How long a used refresh token still works."""
    omits_refresh_token: bool = False
    """A refresh returns no refresh token, and the old one still works."""
    audited: bool = True
    """An unaudited app posts for its user alone, on private accounts."""
    posts_per_day: int = 15
    """Direct posts of one user."""
    pending_shares_per_day: int = 5
    audited_user_cap: int = 0
    """Posting users of an audited app in 24 hours. 0: no cap."""
    count_lag_seconds: float = 0
    """How late TikTok notices a chunk. Until then the status does not count it, and the last one begins no
    processing."""
    last_chunk_status: int = 201
    """201 or 200."""
    progress_is_last_index: bool = False
    """The PUT's `Content-Range` ends with the last index instead of the count."""
    public_urls_only: bool = True
    """Pulls need https and a domain. False permits any address, such as one of this machine."""
    verified_domains: list[str] = field(default_factory=list)
    """Domains verified by DNS, with their subdomains."""
    verified_prefixes: list[str] = field(default_factory=list)
    """URL prefixes verified by a file."""
    fate: str = COMPLETES
    """What happens to shares that begin from now on: one of `FATES`."""
    probes_video: bool = True
    """Examine videos: duration, frame rate, size. Otherwise only the first bytes."""
    post_ids: Literal["one", "several", "none", "missing"] = "one"
    """The ids in the status: one, several, an empty list forever, or no list."""
    post_ids_as_text: bool = False
    """Ids as strings instead of numbers."""


@dataclass(slots=True)
class TikTokStandInAccount(TikTokAccount):
    app_version: str = "36.1.0"
    """Of the TikTok app on the user's phone."""


class TikTokStandIn(StandIn, StrictTikTok, TikTokSandbox, TikTokSwitches):
    account_kind = TikTokStandInAccount
    account_fields = TikTokSandbox.account_fields | {"app_version": r"[0-9.]+"}

    def __init__(self, context: SandboxContext) -> None:
        TikTokSwitches.__init__(self)
        StandIn.__init__(self, context)
        self._calls: dict[Hashable, deque[float]] = {}
        self.posted_at: dict[tuple[str, str], float] = {}
        """When a user last posted through an app: by client key and open_id."""
        self.fates = FateQueue(FATES)
        """What happens to the next shares, before `fate` counts again."""
        self._fate_of: dict[str, str] = {}
        self._arrivals: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
        """When each number of bytes of a share was there."""

    # --- calls and tokens ----------------------------------------------------------------------------------------

    def count(self, limit: str, token: Token) -> FixedWindow:
        """Count the call in a sliding minute."""
        key, most, now = (limit, token.account_id, token.client_id), self.limits.get(limit, 600), self.timestamp()
        calls = self._calls.setdefault(key, deque())
        while calls and calls[0] <= now - MINUTE:
            calls.popleft()
        if len(calls) < most:
            calls.append(now)
            return FixedWindow(most, len(calls), now)
        return FixedWindow(most, most + 1, now)

    def check_caller(self, request: SandboxRequest, call: SandboxCall) -> None:
        """Check the request as well, before its handler."""
        super().check_caller(request, call)
        if call.name in FIELDS:
            self._check_fields(request, FIELDS[call.name])
        is_object = request.content_type == "application/json" and request.body.lstrip().startswith(b"{")
        if call.method == "POST" and call.name != "creator_info" and not is_object:
            raise self.invalid("The request body is not a JSON object.")
        if call.name == "video_query":
            filters = request.json_object().get("filters")
            wanted = filters.get("video_ids") if isinstance(filters, dict) else None
            if not isinstance(wanted, list) or not 0 < len(wanted) <= MAX_VIDEOS:
                raise self.invalid("filters.video_ids must be 1 to 20 ids as strings.")
        if call.name not in ("video_init", "inbox_init", "content_init"):
            return
        body, kind = request.json_object(), PHOTO if call.name == "content_init" else VIDEO
        direct = call.name == "video_init" or body.get("post_mode") == "DIRECT_POST"
        if kind == PHOTO:
            self._check_mode(body, request, direct)
        self._check_source(body.get("source_info", {}), kind)
        if direct or (kind == PHOTO and "post_info" in body):
            self._check_info(body.get("post_info"), kind)
        if direct:
            code = self._direct_code(request, body["post_info"].get("privacy_level"))
        else:
            code = self._draft_code(request.account, kind)
        if code:
            raise self.refused(code, call.name)

    def renew(self, old: Token, client_id: str) -> Token | None:
        if not self.tokens.may_refresh(old, client_id, self.refresh_grace_seconds):
            return None
        keeps = not self.rotates or self.omits_refresh_token
        if not keeps and not old.spent:
            self.tokens.spend(old, access_survives=self.old_access_token_survives)
        return self.issue(
            old.account_id, old.scopes, client_id, refresh=old.refresh if keeps else None, family=old.family,
            refresh_seconds=self.seconds_of_next(old),
        )  # fmt: skip

    def responded(self, endpoint: str, request: SandboxRequest, reply: Reply) -> Reply:
        data = json.loads(reply.body) if reply.body.startswith(b"{") else {}
        match endpoint:
            case "token" if reply.status == 200 and self.omits_refresh_token:
                if request.form().get("grant_type") == "refresh_token":
                    facts = {name: value for name, value in data.items() if not name.startswith("refresh_")}
                    return json_reply(200, facts, reply.headers)
            case "token" | "revoke" if reply.status == 400:
                reply.status = self.oauth_error_status
            case "upload_chunk" if "content-range" in dict(reply.headers):
                return self._chunk_reply(reply)
            case "status_fetch" if "status" in data["data"]:
                self._change_status(data["data"], self.tasks[request.json_object()["publish_id"]])
                return json_reply(200, data, reply.headers)
        return super().responded(endpoint, request, reply)

    def _chunk_reply(self, reply: Reply) -> Reply:
        received, _, size = dict(reply.headers)["content-range"].removeprefix("bytes 0-").partition("/")
        if self.progress_is_last_index:
            received = str(max(0, int(received) - 1))
        status = self.last_chunk_status if reply.status == 201 else reply.status
        return Reply(status, headers=[("content-range", f"bytes 0-{received}/{size}")])

    def _change_status(self, shown: dict[str, Any], task: PublishTask) -> None:
        if task.kind == VIDEO and task.is_open:
            moment = self.now() - timedelta(seconds=self.count_lag_seconds)
            arrivals = self._arrivals[task.publish_id]
            shown["uploaded_bytes"] = max((count for at, count in arrivals if at <= moment), default=0)
        name = "publicaly_available_post_id"
        ids = shown.get(name)
        if ids is None or self.post_ids == "missing":
            shown.pop(name, None)
            return
        ids = [] if self.post_ids == "none" else [*ids, ids[0] + 1] if self.post_ids == "several" and ids else ids
        shown[name] = [str(one) for one in ids] if self.post_ids_as_text else ids

    # --- who may post --------------------------------------------------------------------------------------------

    def posting_refusal(self, request: SandboxRequest) -> str:
        if code := super().posting_refusal(request):
            return code
        tasks = self.tasks_today(request.account.open_id)
        if sum(task.direct and task.status != FAILED for task in tasks) >= self.posts_per_day:
            return "spam_risk_too_many_posts"
        assert request.token is not None
        open_id, client_key = request.account.open_id, request.token.client_id or ""
        cap = self.audited_user_cap if self.audited else UNAUDITED_USER_CAP
        since = self.timestamp() - DAY
        posting = {who for (key, who), at in self.posted_at.items() if key == client_key and at > since}
        return "reached_active_user_cap" if cap and open_id not in posting and len(posting) >= cap else ""

    def tasks_today(self, open_id: str) -> list[PublishTask]:
        """Return the user's shares of the last 24 hours."""
        tasks = [task for task in self.tasks.values() if task.open_id == open_id]
        return [task for task in tasks if self.seconds_since(task.created_at) < DAY]

    def _direct_code(self, request: SandboxRequest, privacy: str | None) -> str:
        allowed = privacy in request.account.privacy_options
        code = self.posting_refusal(request) if allowed else "privacy_level_option_mismatch"
        if not code and not self.audited and not (request.account.private and privacy == ONLY_ME):
            return "unaudited_client_can_only_post_to_private_accounts"
        return code

    def _draft_code(self, account: TikTokStandInAccount, kind: str) -> str:
        if kind == PHOTO and tuple(map(int, account.app_version.split("."))) < OLDEST_APP_FOR_PHOTO_DRAFTS:
            return "app_version_check_failed"
        if account.banned:
            return "spam_risk_user_banned_from_posting"
        tasks = self.tasks_today(account.open_id)
        pending = sum(not task.direct and task.status not in (FAILED, COMPLETE) for task in tasks)
        return "spam_risk_too_many_pending_share" if pending >= self.pending_shares_per_day else ""

    def new_task(self, request: SandboxRequest, publish_id: str, kind: str, direct: bool) -> PublishTask:
        task = super().new_task(request, publish_id, kind, direct)
        self._fate_of[publish_id] = self.fates.take(self.fate)
        if direct:
            self.posted_at[(task.client_key or "", task.open_id)] = self.timestamp()
        return task

    # --- requests ------------------------------------------------------------------------------------------------

    def _check_fields(self, request: SandboxRequest, scopes: dict[str, str]) -> None:
        """Check the parameter `fields`. Each field needs its scope."""
        fields = [name for name in request.query().get("fields", "").split(",") if name]
        if not fields or not set(fields) <= set(scopes):
            raise self.invalid("fields is missing or names an unknown field.")
        if not request.may(*(scopes[name] for name in fields)):
            raise self.refused("scope_permission_missed")

    def _check_mode(self, body: dict[str, Any], request: SandboxRequest, direct: bool) -> None:
        if body.get("media_type") != PHOTO or body.get("post_mode") not in ("DIRECT_POST", "MEDIA_UPLOAD"):
            raise self.invalid("Invalid media_type or post_mode")
        if not request.may("video.publish" if direct else "video.upload"):
            raise self.refused("scope_not_authorized")

    def _check_source(self, source: dict[str, Any], kind: str) -> None:
        if check_shape(ChunkedSource if kind == VIDEO else PulledSource, source):
            raise self.invalid(NO_SOURCE)
        if kind == PHOTO:
            if not 0 <= source["photo_cover_index"] < len(source["photo_images"]):
                raise self.invalid(NO_SOURCE)
        elif wrong := chunk_plan_complaint(source["video_size"], source["chunk_size"], source["total_chunk_count"]):
            raise self.invalid(wrong)

    def _check_info(self, info: Any, kind: str) -> None:
        if not info:
            raise self.invalid(NO_POST_INFO)
        if found := check_shape(PostInfo, info):
            raise self.invalid(f"{NO_POST_INFO}: {dotted_path(found[0])}")
        for name, limit in LIMITS[kind].items():
            if len(info.get(name, "").encode("utf-16-le", "surrogatepass")) // 2 > limit:
                raise self.invalid(f"The {name} is longer than {limit} UTF-16 characters")

    def may_pull(self, url: object) -> bool:
        """Return whether TikTok pulls from this address: it is public, and verified."""
        if not isinstance(url, str):
            return False
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").lower()
        except ValueError:
            return False
        if not host or parts.scheme not in ("http", "https"):
            return False
        if self.public_urls_only and (parts.scheme != "https" or _is_address(host) or "." not in host):
            return False
        if self.all_urls_verified or url.startswith(tuple(self.verified_prefixes)):
            return True
        return any(host == domain or host.endswith(f".{domain}") for domain in self.verified_domains)

    def verify(self, prefix: str, file_name: str, content: str) -> bool:
        """Fetch the file of a URL prefix and compare it, as the button in the portal does. Never on the event loop."""
        if not prefix.endswith("/"):
            raise ValueError("a URL prefix ends in /")
        data = fetch(prefix + file_name, self.fetch)
        verified = data is not None and data.decode("utf-8", "replace").strip() == content.strip()
        if verified and prefix not in self.verified_prefixes:
            self.verified_prefixes.append(prefix)
        return verified

    # --- bytes ---------------------------------------------------------------------------------------------------

    def chunk_status(self, request: SandboxRequest, task: PublishTask) -> int:
        if self.timestamp() >= task.upload_expires_at:
            return 403
        asked = RANGE.fullmatch(request.headers.get("content-range", ""))
        if asked is None or request.content_type not in VIDEOS or "authorization" in request.headers:
            return 400
        first, last, total = (int(number) for number in asked.groups())
        size = last - first + 1
        if size < 1 or request.headers.get("content-length") != str(size) or len(request.body) != size:
            return 400
        if total != task.size or first != task.received or last != _last_index(task, first):
            return 416
        return 201 if last + 1 == total else 206

    def accept_chunk(self, task: PublishTask, data: bytes) -> None:
        self._arrivals[task.publish_id].append((self.now(), task.received + len(data)))
        super().accept_chunk(task, data)

    def check_video(self, task: PublishTask, data: bytes) -> str:
        if (reason := super().check_video(task, data)) or not self.probes_video or not data:
            return reason
        video = probe_video(data)
        if video is None:
            return "file_format_check_failed"
        if video.seconds > self.accounts[task.open_id].max_duration + 0.5:
            return "duration_check_failed"
        if video.frame_rate and not FRAME_RATES[0] <= round(video.frame_rate) <= FRAME_RATES[1]:
            return "frame_rate_check_failed"
        if min(video.width, video.height) < SIDES[0] or max(video.width, video.height) > SIDES[1]:
            return "picture_size_check_failed"
        return ""

    def check_photo(self, data: bytes) -> tuple[str, int, int]:
        reason, width, height = super().check_photo(data)
        if len(data) > PHOTO_BYTES:
            return "file_format_check_failed", 0, 0
        too_large = min(width, height) > PHOTO_SHORT_SIDE
        return reason or ("picture_size_check_failed" if too_large else ""), width, height

    def catch_up(self) -> list[TikTokPost]:
        """Return the posts as if all pulls and processing were over. Never on the event loop: it may fetch."""
        for task in self.open_tasks():
            if task.wants_pull:
                self.accept_photos(task, self.fetch_photos(task))
            self.advance(task, at_once=True)
        return self.posts

    # --- fates and statuses --------------------------------------------------------------------------------------

    def next_fate(self, fate: str, times: int = 1) -> None:
        """Set the fate of the next share: a fail reason, `never_ends`, `inbox` or `completes`."""
        self.fates.schedule(fate, times)

    def end(self, task: PublishTask) -> None:
        fate = self._fate_of.get(task.publish_id, COMPLETES)
        if fate in FAIL_REASONS:
            self.fail(task, fate)
        elif fate == INBOX and not task.finding:
            self.close_task(task, IN_INBOX)
        elif fate != NEVER_ENDS:
            super().end(task)

    def noticed_at(self, task: PublishTask) -> datetime | None:
        if task.whole_at is None or task.kind != VIDEO:
            return task.whole_at
        return task.whole_at + timedelta(seconds=self.count_lag_seconds)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _last_index(task: PublishTask, first: int) -> int:
    """Return the last index of the chunk that begins at `first`, by the declared plan."""
    is_last = first // task.chunk_size >= task.chunk_count - 1
    return task.size - 1 if is_last else first + task.chunk_size - 1
