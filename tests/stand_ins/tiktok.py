"""TikTok's stand-in: it checks every request against the documentation, and has what varies on the real TikTok."""

import json
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from annotated_types import Len

from socialpub.sandbox.media import fetch
from socialpub.sandbox.memory import FixedWindow, SandboxContext, Token
from socialpub.sandbox.messages import Headers, Reply, SandboxRequest, StreamedBody, json_reply
from socialpub.sandbox.network import ApiCaller
from socialpub.sandbox.tiktok import api
from socialpub.sandbox.tiktok.network import TikTokSandbox
from socialpub.sandbox.tiktok.tasks import (
    COMPLETE,
    DAY,
    FAILED,
    FILE_UPLOAD,
    ONLY_ME,
    PHOTO,
    VIDEO,
    PublishTask,
    TikTokAccount,
    TikTokPost,
)
from tests.stand_ins.media import FateQueue, probe_video
from tests.stand_ins.network import StandIn
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
MINUTE = 60
UNAUDITED_USER_CAP = 5
"""Posting users of an unaudited app in 24 hours."""
LIMITS = {VIDEO: {"title": 2200}, PHOTO: {"title": 90, "description": 4000}}
"""UTF-16 code units."""
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
    fate: str = COMPLETES
    """What happens to shares that begin from now on: one of `FATES`."""
    probes_video: bool = True
    """Examine videos: duration, frame rate, size. Otherwise only the first bytes."""
    post_ids: Literal["one", "several", "none", "missing"] = "one"
    """The ids in the status: one, several, an empty list forever, or no list."""
    post_ids_as_text: bool = False
    """Ids as strings instead of numbers."""


class TikTokStandIn(StandIn, TikTokSandbox, TikTokSwitches):
    def __init__(self, context: SandboxContext) -> None:
        TikTokSwitches.__init__(self)
        StandIn.__init__(self, context)
        self._calls: dict[Hashable, deque[float]] = {}
        self.posted_at: dict[tuple[str, str], float] = {}
        """When a user last posted through an app: by client key and open_id."""
        self.fates = FateQueue(FATES)
        """What happens to the next shares, before `fate` counts again."""

    # --- calls and tokens ----------------------------------------------------------------------------------------

    def count(self, label: str, token: Token) -> FixedWindow:
        """Count the call in a sliding minute."""
        key, limit, now = (label, token.account_id, token.client_id), self.limits.get(label, 600), self.timestamp()
        calls = self._calls.setdefault(key, deque())
        while calls and calls[0] <= now - MINUTE:
            calls.popleft()
        if len(calls) < limit:
            calls.append(now)
            return FixedWindow(limit, len(calls), now)
        return FixedWindow(limit, limit + 1, now)

    def admit(
        self, request: SandboxRequest, label: str, scopes: tuple[str, ...], headers: Headers
    ) -> ApiCaller[TikTokAccount]:
        """Check the request as well, before its handler."""
        caller = super().admit(request, label, scopes, headers)
        self._check(request, caller, label)
        return caller

    def _check(self, request: SandboxRequest, caller: ApiCaller[TikTokAccount], label: str) -> None:
        if label not in ("video_init", "inbox_init", "content_init"):
            return
        body, kind = api.json_object(self, request), PHOTO if label == "content_init" else VIDEO
        direct = label == "video_init" or body.get("post_mode") == "DIRECT_POST"
        if kind == PHOTO:
            self._check_mode(body, caller, direct)
        self._check_source(body.get("source_info", {}), kind)
        if direct or (kind == PHOTO and "post_info" in body):
            self._check_info(body.get("post_info"), kind)
        if direct:
            code = self._direct_code(caller, body["post_info"].get("privacy_level"))
        else:
            code = self._draft_code(caller, kind)
        if code:
            raise self.refused(label, code)

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
                self._change_status(data["data"], self.tasks.all[api.json_object(self, request)["publish_id"]])
                return json_reply(200, data, reply.headers)
        return super().responded(endpoint, request, reply)

    def _chunk_reply(self, reply: Reply) -> Reply:
        received, _, size = dict(reply.headers)["content-range"].removeprefix("bytes 0-").partition("/")
        if self.progress_is_last_index:
            received = str(max(0, int(received) - 1))
        status = self.last_chunk_status if reply.status == 201 else reply.status
        return Reply(status, headers=[("content-range", f"bytes 0-{received}/{size}")])

    def _change_status(self, shown: dict[str, Any], task: PublishTask) -> None:
        if task.source == FILE_UPLOAD and task.is_open:
            moment = self.now() - timedelta(seconds=self.count_lag_seconds)
            shown["uploaded_bytes"] = max((count for at, count in task.arrivals if at <= moment), default=0)
        name = "publicaly_available_post_id"
        ids = shown.get(name)
        if ids is None or self.post_ids == "missing":
            shown.pop(name, None)
            return
        ids = [] if self.post_ids == "none" else [*ids, ids[0] + 1] if self.post_ids == "several" and ids else ids
        shown[name] = [str(one) for one in ids] if self.post_ids_as_text else ids

    # --- who may post --------------------------------------------------------------------------------------------

    def refusal_code(self, caller: ApiCaller[TikTokAccount]) -> str:
        if code := super().refusal_code(caller):
            return code
        open_id, client_key = caller.account.open_id, caller.token.client_id or ""
        cap = self.audited_user_cap if self.audited else UNAUDITED_USER_CAP
        since = self.timestamp() - DAY
        posting = {who for (key, who), at in self.posted_at.items() if key == client_key and at > since}
        return "reached_active_user_cap" if cap and open_id not in posting and len(posting) >= cap else ""

    def _direct_code(self, caller: ApiCaller[TikTokAccount], privacy: str | None) -> str:
        allowed = privacy in caller.account.privacy_options
        code = self.refusal_code(caller) if allowed else "privacy_level_option_mismatch"
        if not code and not self.audited and not (caller.account.private and privacy == ONLY_ME):
            return "unaudited_client_can_only_post_to_private_accounts"
        return code

    def _draft_code(self, caller: ApiCaller[TikTokAccount], kind: str) -> str:
        if kind == PHOTO and tuple(map(int, caller.account.app_version.split("."))) < OLDEST_APP_FOR_PHOTO_DRAFTS:
            return "app_version_check_failed"
        if caller.account.banned:
            return "spam_risk_user_banned_from_posting"
        cap = self.pending_shares_per_day
        pending = self.tasks.count_today(
            caller.account.open_id, cap, lambda task: not task.direct and task.status not in (FAILED, COMPLETE)
        )
        return "spam_risk_too_many_pending_share" if pending >= cap else ""

    def begin(self, task: PublishTask) -> None:
        super().begin(task)
        if task.direct:
            self.posted_at[(task.client_key or "", task.open_id)] = self.timestamp()

    # --- requests ------------------------------------------------------------------------------------------------

    def _check_mode(self, body: dict[str, Any], caller: ApiCaller[TikTokAccount], direct: bool) -> None:
        if body.get("media_type") != PHOTO or body.get("post_mode") not in ("DIRECT_POST", "MEDIA_UPLOAD"):
            raise self.invalid("Invalid media_type or post_mode")
        if not caller.may("video.publish" if direct else "video.upload"):
            raise self.refused("content_init", "scope_not_authorized")

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
        if super().may_pull(url):
            return True
        return any(host == domain or host.endswith(f".{domain}") for domain in self.verified_domains)

    # --- bytes ---------------------------------------------------------------------------------------------------

    def check_video(self, task: PublishTask, data: bytes | None) -> str:
        if (reason := super().check_video(task, data)) or not self.probes_video or data is None:
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

    def check_photo(self, body: StreamedBody) -> tuple[str, int, int]:
        reason, width, height = super().check_photo(body)
        if body.size > PHOTO_BYTES:
            return "file_format_check_failed", 0, 0
        too_large = min(width, height) > PHOTO_SHORT_SIDE
        return reason or ("picture_size_check_failed" if too_large else ""), width, height

    def catch_up(self) -> list[TikTokPost]:
        """Return the posts as if all pulls and processing were over. Never on the event loop: it may fetch."""
        for task in self.tasks.open_tasks():
            if task.wants_pull:
                self.tasks.accept_photos(task, [fetch(url, self.fetch) for url in task.urls])
            self.tasks.advance(task, at_once=True)
        return self.posts

    # --- fates and statuses --------------------------------------------------------------------------------------

    def next_fate(self, fate: str, times: int = 1) -> None:
        """Set the fate of the next share: a fail reason, `never_ends`, `inbox` or `completes`."""
        self.fates.schedule(fate, times)

    def fate_of_next(self) -> str:
        fate = self.fates.take(self.fate)
        return "" if fate == COMPLETES else fate

    def noticed_at(self, task: PublishTask) -> datetime | None:
        if task.whole_at is None or task.source != FILE_UPLOAD:
            return task.whole_at
        return task.whole_at + timedelta(seconds=self.count_lag_seconds)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
