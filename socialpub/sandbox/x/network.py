"""The memory of X: uploads and how they become usable, accounts, posts."""

import hashlib
import math
import secrets
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from socialpub.sandbox.media import dimensions, sniff
from socialpub.sandbox.memory import ByteCache, FixedWindows, SandboxContext, from_facts, json_facts
from socialpub.sandbox.messages import Reply
from socialpub.sandbox.network import SandboxNetwork
from socialpub.sandbox.x import problems
from socialpub.sandbox.x.models import IMAGE, KEY_PREFIX, KINDS, SUBSCRIPTIONS, XAccount, XMedia, XPost, XSwitches


@dataclass(slots=True)
class SegmentHash:
    """Hashes segments in their order, so that the bytes need not be kept. The last one may arrive twice."""

    done: Any = field(default_factory=hashlib.sha256)
    before_last: Any = None
    next_index: int = 0
    in_order: bool = True

    def add(self, index: int, data: bytes) -> None:
        if index == self.next_index - 1 and self.before_last is not None:
            self.done = self.before_last
        elif index == self.next_index:
            self.next_index += 1
        else:
            self.in_order = False
            return
        self.before_last = self.done.copy()
        self.done.update(data)


class XMediaStore:
    """All uploads. Their bytes are kept only while there is room, their sizes and hashes always."""

    def __init__(self, switches: XSwitches, context: SandboxContext) -> None:
        self._switches = switches
        self._context = context
        self.cache = ByteCache()
        self.all: dict[str, XMedia] = {}
        self._hashing: dict[str, SegmentHash] = {}

    def begin(self, category: str, mime_type: str, total_bytes: int, owner_id: str) -> XMedia:
        media_id = self._context.ids.new()
        media = XMedia(
            media_id,
            f"{KEY_PREFIX[category]}_{media_id}",
            category,
            mime_type,
            owner_id,
            self._now() + self._switches.media_seconds,
            total_bytes,
        )
        self.all[media_id] = media
        self._hashing[media_id] = SegmentHash()
        return media

    def append(self, media: XMedia, index: int, data: bytes) -> None:
        media.segments[index] = len(data)
        self._hashing[media.id].add(index, data)
        self.cache.put((media.id, index), data)

    def finalize(self, media: XMedia) -> None:
        """Make a whole file of the segments, and begin its processing."""
        indexes = sorted(media.segments)
        pieces = [self.cache.take((media.id, index)) for index in indexes]
        whole = b"".join(piece for piece in pieces if piece is not None) if None not in pieces else None
        hashing = self._hashing.pop(media.id)
        media.size = sum(media.segments.values())
        if hashing.in_order:
            media.sha256 = hashing.done.hexdigest()
        elif whole is not None:
            media.sha256 = hashlib.sha256(whole).hexdigest()
        begin = whole if whole is not None else pieces[0] or b""
        media.width, media.height = dimensions(begin)
        if whole is not None:
            self.cache.put(media.id, whole)
        media.finalized = True
        media.fate = self._switches.processing
        self._start_processing(media, sniff(begin))

    def _start_processing(self, media: XMedia, found: str) -> None:
        unfit = bool(found) and not found.startswith(f"{KINDS[media.category]}/")
        ends_at_once = self._switches.processing_ticks == 0 and media.fate != "never_ends"
        if unfit or (media.category != IMAGE and media.fate == "fails" and ends_at_once):
            media.state = "failed"
        elif media.category != IMAGE:
            media.state = "succeeded" if ends_at_once else "pending"
        media.polled_at = self._context.clock.now()

    def poll(self, media: XMedia) -> None:
        """Count one call for the status. Every call advances the processing."""
        if media.state not in ("pending", "in_progress"):
            return
        now = self._context.clock.now()
        if media.polled_at and (now - media.polled_at).total_seconds() < self._switches.check_after_seconds:
            media.early_polls += 1
        media.polled_at = now
        media.polls += 1
        if media.polls < self._switches.processing_ticks or media.fate == "never_ends":
            media.state = "in_progress"
        else:
            media.state = "failed" if media.fate == "fails" else "succeeded"

    def alive(self, media_id: str) -> XMedia | None:
        media = self.all.get(media_id)
        return media if media is not None and self._now() < media.expires_at else None

    def usable(self, media_id: str, account_id: str) -> XMedia | None:
        """Return the media if a post of this account may carry it now."""
        media = self.alive(media_id)
        if (
            media is None
            or not media.ready
            or media.fate == "refused_at_post"
            or account_id != media.owner_id
            or (media.posted_in and not self._switches.media_reuse_allowed)
        ):
            return None
        return media

    def seconds_left(self, media: XMedia) -> int:
        return max(0, math.floor(media.expires_at - self._now()))

    def _now(self) -> float:
        return self._context.clock.now().timestamp()


ALL_SCOPES = ("tweet.read", "tweet.write", "users.read", "media.write", "offline.access")
JOURNALED = (
    "account_id", "username", "text", "created_at", "options", "client_id", "shown_text", "entities",
    "conversation_id",
)  # fmt: skip
VIEWED = (
    "id", "account_id", "username", "text", "created_at", "received_at", "received_monotonic", "client_id", "options",
)  # fmt: skip
JOURNALED_MEDIA = ("id", "key", "category", "mime_type", "size", "sha256", "alt_text")


class XSandbox(SandboxNetwork[XAccount], XSwitches):
    name = "x"
    endpoints = (
        "authorize",
        "token",
        "revoke",
        "me",
        "upload_one_shot",
        "upload_initialize",
        "upload_append",
        "upload_finalize",
        "upload_status",
        "metadata",
        "create_post",
        "list_posts",
    )
    default_scopes = ALL_SCOPES
    reveals_refresh_expiry = False
    account_fields = ("subscription_type", "protected", "suspended", "max_length")
    account_choices: ClassVar = {"subscription_type": SUBSCRIPTIONS}

    def __init__(self, context: SandboxContext) -> None:
        SandboxNetwork.__init__(self, context)
        XSwitches.__init__(self)
        self.media = XMediaStore(self, context)
        self.windows = FixedWindows()
        self.posts: list[XPost] = []
        """Oldest first."""
        self._posts: dict[str, XPost] = {}
        self._posts_of: dict[str, list[XPost]] = {}
        self._last_posted_at: dict[tuple[str, str, str], datetime] = {}
        """By account id, text, and the post that is replied to."""
        for number, (username, name, tier) in enumerate((("demo", "Demo", "None"), ("studio", "Studio", "Premium"))):
            account = XAccount(str(1000000000000000001 + number), username, name, tier)
            self.accounts[account.id] = account

    # --- accounts, apps, tokens ----------------------------------------------------------------------------------

    def add_account(
        self,
        username: str,
        *,
        name: str | None = None,
        subscription_type: str = "None",
        protected: bool = False,
        suspended: bool = False,
        max_length: int | None = None,
    ) -> XAccount:
        """Create an account. Raise ValueError for a username that exists."""
        self.refuse_taken(username)
        return self.store_account(
            XAccount(self.new_id(), username, name or username, subscription_type, protected, suspended, max_length)
        )

    def account_named(self, username: str) -> XAccount | None:
        """Return the account. Upper and lower case are the same."""
        wanted = username.lower()
        return next((one for one in list(self.accounts.values()) if one.username.lower() == wanted), None)

    def new_token_pair(self, scopes: tuple[str, ...]) -> tuple[str, str | None]:
        return secrets.token_urlsafe(72), secrets.token_urlsafe(72) if "offline.access" in scopes else None

    # --- posts ---------------------------------------------------------------------------------------------------

    def posts_of(self, account: XAccount | str) -> list[XPost]:
        """Return the posts of an account, its id or its username, oldest first."""
        if isinstance(account, str):
            found = self.accounts.get(account) or self.account_named(account)
            if found is None:
                return []
            account = found
        return list(self._posts_of.get(account.id, ()))

    def find_post(self, post_id: str) -> XPost | None:
        return self._posts.get(post_id)

    def was_posted_lately(self, account: XAccount, text: str, reply_to: str) -> bool:
        """Return whether the account posted this text in this place within the window for duplicates."""
        before = self._last_posted_at.get(_content_key(account.id, text, reply_to))
        return before is not None and self.seconds_since(before) < self.duplicate_window_seconds

    def add_post(self, post: XPost) -> None:
        self._keep_post(post)
        media = [json_facts(item, JOURNALED_MEDIA) for item in post.media]
        self.write("post", post_id=post.id, media=media, **json_facts(post, JOURNALED))

    def _keep_post(self, post: XPost) -> None:
        for item in post.media:
            item.posted_in.append(post.id)
        self.posts.append(post)
        self._posts[post.id] = post
        self._posts_of.setdefault(post.account_id, []).append(post)
        self._last_posted_at[_content_key(post.account_id, post.text, post.in_reply_to or "")] = post.created_at

    def totals(self) -> dict[str, int]:
        return {"post_count": len(self.posts)}

    def view(self) -> dict[str, Any]:
        return {
            "accounts": [asdict(account) for account in self.accounts.values()],
            "posts": [
                json_facts(post, VIEWED) | {"media": [json_facts(item, JOURNALED_MEDIA) for item in post.media]}
                for post in self.posts
            ],
        }

    # --- from the journal ----------------------------------------------------------------------------------------

    def replay_account(self, **facts: Any) -> None:
        self.reserve_id(facts["id"])
        self.accounts[facts["id"]] = from_facts(XAccount, facts)

    def replay_post(self, post_id: str, created_at: str, media: list[dict[str, Any]], **facts: Any) -> None:
        self.reserve_id(post_id)
        kept = []
        for item in media:
            self.reserve_id(item["id"])
            kept.append(
                XMedia(
                    item["id"], item["key"], item["category"], item["mime_type"], facts["account_id"], 0,
                    item["size"], item["size"], item["sha256"], alt_text=item["alt_text"], finalized=True,
                )
            )  # fmt: skip
            self.media.all[item["id"]] = kept[-1]
        self._keep_post(XPost(post_id, created_at=datetime.fromisoformat(created_at), media=tuple(kept), **facts))

    # --- scripted errors -----------------------------------------------------------------------------------------

    def http_error(self, status: int) -> Reply:
        return problems.problem(status)

    def unauthorized_reply(self) -> Reply:
        return problems.unauthorized()

    def rate_limited_reply(self, seconds: float, told_in: str) -> Reply:
        return problems.rate_limited(self.timestamp(), seconds, told_in)

    def credits_reply(self, shape: int) -> Reply:
        return problems.credits_depleted(shape)


def _content_key(account_id: str, text: str, reply_to: str) -> tuple[str, str, str]:
    return account_id, " ".join(text.split()), reply_to
