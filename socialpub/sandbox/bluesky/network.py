"""The memory of a Bluesky server: accounts, sessions, records and blobs. And the words of its refusals."""

import base64
import hashlib
import json
import math
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar

from socialpub.sandbox.media import sniff
from socialpub.sandbox.memory import FixedWindow, SandboxContext
from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import COMMON_FIELDS, YES_OR_NO, SandboxCall, SandboxNetwork

POST = "app.bsky.feed.post"
THREADGATE = "app.bsky.feed.threadgate"
POSTGATE = "app.bsky.feed.postgate"
PROFILE = "app.bsky.actor.profile"

APP_PASSWORD_SCOPE, MAIN_SCOPE, REFRESH_SCOPE = "com.atproto.appPass", "com.atproto.access", "com.atproto.refresh"
FIRST_APP_PASSWORD = "socialpub"
"""The name of the app password that every account has."""

TID_DIGITS = "234567abcdefghijklmnopqrstuvwxyz"
TID = re.compile(rf"[234567abcdefghij][{TID_DIGITS}]{{12}}")
HANDLE = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
RAW, DAG_CBOR = 0x55, 0x71

INACTIVE = {"deleted": "AccountNotFound", "takendown": "AccountTakedown", "deactivated": "AccountDeactivated"}
EXPIRED, REVOKED = "Token has expired", "Token has been revoked"
ERRORS: dict[str, tuple[int, str]] = {
    "AccountDeactivated": (401, "Account is deactivated"),
    "AccountNotFound": (403, "Could not find account"),
    "AccountTakedown": (401, "Account has been taken down"),
    "AuthFactorTokenRequired": (401, "A sign in code has been sent to your email address"),
    "AuthMissing": (401, "Authentication Required"),
    "AuthenticationRequired": (401, "Invalid identifier or password"),
    "BlobNotFound": (400, "Could not find blob"),
    "ExpiredToken": (400, EXPIRED),
    "HandleNotFound": (400, "Unable to resolve handle"),
    "InternalServerError": (500, "Internal Server Error"),
    "InvalidMimeType": (400, "Referenced Mimetype does not match stored blob"),
    "InvalidRequest": (400, "Bad Request"),
    "InvalidSize": (400, "Referenced size does not match stored blob"),
    "InvalidSwap": (400, "Record was at another version"),
    "InvalidToken": (400, "Token could not be verified"),
    "PayloadTooLarge": (413, "request entity too large"),
    "PayloadTooLargeError": (413, "request entity too large"),
    "RateLimitExceeded": (429, "Rate Limit Exceeded"),
    "RecordNotFound": (400, "Could not locate record"),
}
HTTP_ERRORS = {
    400: "InvalidRequest", 401: "AuthenticationRequired", 403: "Forbidden", 404: "XRPCNotSupported",
    413: "PayloadTooLarge", 429: "RateLimitExceeded", 501: "MethodNotImplemented", 502: "UpstreamFailure",
    503: "NotEnoughResources", 504: "UpstreamTimeout",
}  # fmt: skip


@dataclass
class BlueskyAccount:
    did: str
    username: str
    """The handle of the day."""
    name: str
    app_passwords: dict[str, str]
    """By name. Each can be revoked alone."""
    password: str
    """The main password, which signs in with all permissions."""
    status: str = "active"
    picture: str = ""
    email_confirmed: bool = True

    @property
    def id(self) -> str:
        return self.did

    @property
    def app_password(self) -> str:
        """The first app password that is not revoked."""
        return next(iter(self.app_passwords.values()))


@dataclass(slots=True)
class BlueskyBlob:
    cid: str
    did: str
    mime_type: str
    size: int
    uploaded_at: datetime

    @property
    def reference(self) -> dict[str, Any]:
        """The object that a record contains."""
        return {"$type": "blob", "ref": {"$link": self.cid}, "mimeType": self.mime_type, "size": self.size}


@dataclass(slots=True)
class BlueskyRecord:
    did: str
    collection: str
    rkey: str
    value: dict[str, Any]
    cid: str
    created_at: datetime
    """By the world's clock: when the server stored it."""
    taken_down: bool = False

    @property
    def uri(self) -> str:
        return f"at://{self.did}/{self.collection}/{self.rkey}"

    @property
    def sorted_at(self) -> datetime:
        """Where readers find it: at its own date, but never after the server stored it."""
        try:
            dated = datetime.fromisoformat(self.value["createdAt"])
        except (KeyError, TypeError, ValueError):
            return self.created_at
        return min(dated, self.created_at) if dated.tzinfo else self.created_at

    @property
    def text(self) -> str:
        return str(self.value.get("text", ""))


def blobs_in(value: Any) -> list[dict[str, Any]]:
    """Return all blob objects in a record."""
    if isinstance(value, list):
        return [blob for item in value for blob in blobs_in(item)]
    if not isinstance(value, dict):
        return []
    return [value] if value.get("$type") == "blob" else blobs_in(list(value.values()))


class BlueskyNetwork(SandboxNetwork):
    name = "bluesky"
    label = "Bluesky"
    errors = ERRORS
    unauthorized_code, limited_code = "ExpiredToken", "RateLimitExceeded"
    default_scopes = (APP_PASSWORD_SCOPE,)
    window_seconds = 300
    default_limits: ClassVar = {"put_record": 1000, "apply_writes": 1000}
    """Calls of one account in 5 minutes."""
    account_kind = BlueskyAccount
    account_fields: ClassVar = {
        **COMMON_FIELDS,
        "handle": r"(?=.{3,253}$)(?:[a-z0-9-]{1,63}\.)+[a-z][a-z0-9-]{0,62}",
        "status": ("active", *INACTIVE),
        "email_confirmed": YES_OR_NO,
    }
    access_seconds = 7200
    refresh_seconds = 90 * 86400
    blob_limit = 104_857_600

    def __init__(self, context: SandboxContext) -> None:
        super().__init__(context)
        self.records = self.table("records", BlueskyRecord, key=attrgetter("uri"))
        """By URI, oldest first."""
        self.blobs = self.table("blobs", BlueskyBlob, key=lambda blob: (blob.did, blob.cid))
        """By DID and content id."""
        for username in ("demo", "studio"):
            did, app_password = "did:plc:" + (username * 6)[:24], _grouped((username * 4)[:16])
            self.accounts[did] = BlueskyAccount(
                did,
                _handle(username),
                username.title(),
                {FIRST_APP_PASSWORD: app_password},
                f"the main password of {username}",
            )

    # --- accounts and sessions -----------------------------------------------------------------------------------

    def account_named(self, username: str) -> BlueskyAccount | None:
        """Return the account of a handle or a DID. A name without a dot means the handle below `.test`."""
        account: BlueskyAccount | None = self.accounts.get(username) or super().account_named(_handle(username))
        return account

    def new_account(self, username: str, name: str, **facts: Any) -> BlueskyAccount:
        did = "did:plc:" + base64.b32encode(hashlib.sha256(self.new_id().encode()).digest()).decode().lower()[:24]
        passwords = {"app_passwords": {FIRST_APP_PASSWORD: new_app_password()}, "password": secrets.token_urlsafe(12)}
        name = name if name != username else username.partition(".")[0].title()
        return BlueskyAccount(did, _handle(username), name, **(passwords | facts))

    def new_token_pair(
        self, scopes: tuple[str, ...], account_id: str, expires_at: tuple[float, float]
    ) -> tuple[str, str | None]:
        now = int(self.timestamp())

        def jwt(scope: str, ends: float) -> str:
            facts = {"scope": scope, "sub": account_id, "iat": now, "exp": int(ends), "jti": secrets.token_urlsafe(16)}
            return ".".join((_base64url({"typ": "at+jwt", "alg": "ES256K"}), _base64url(facts), secrets.token_hex(32)))

        return jwt(scopes[0], expires_at[0]), jwt(REFRESH_SCOPE, expires_at[1])

    def check_caller(self, request: SandboxRequest, call: SandboxCall) -> None:
        """Require an active account. All app passwords may do the same."""
        if call.name != "get_session":
            require_active(request.account)

    def window_headers(self, window: FixedWindow) -> Headers:
        return rate_headers(window, self.window_seconds)

    # --- records -------------------------------------------------------------------------------------------------

    @property
    def posts(self) -> list[BlueskyRecord]:
        """All posts, oldest first."""
        return [record for record in list(self.records.values()) if record.collection == POST]

    def find_record(self, uri: str) -> BlueskyRecord | None:
        """Return a record that readers see."""
        record = self.records.get(uri)
        return None if record is None or record.taken_down else record

    def records_of(self, did: str, collection: str) -> list[BlueskyRecord]:
        """Return what readers see, the highest key first."""
        records = [
            record
            for record in self.records.values()
            if record.did == did and record.collection == collection and not record.taken_down
        ]
        return sorted(records, key=lambda record: record.rkey, reverse=True)

    def commit(self, stored: Iterable[BlueskyRecord]) -> None:
        """Store records in one piece."""
        for record in stored:
            self.records.save(record)

    def cid_of_record(self, record: Any) -> str:
        """Return the content id. The stand-in encodes the record as a server does."""
        return cid_of(json.dumps(record, sort_keys=True).encode(), DAG_CBOR)

    def check_record(self, collection: str, record: dict[str, Any], validate: bool | None) -> str:  # noqa: ARG002
        """Return how a record was validated: `valid` or `unknown`. Stand-ins raise Refusal."""
        return "valid"

    def new_tid(self) -> str:
        number = int(self.new_id()) & (2**63 - 1)
        return "".join(TID_DIGITS[number >> shift & 31] for shift in range(60, -1, -5))

    # --- blobs ---------------------------------------------------------------------------------------------------

    def add_blob(self, did: str, data: bytes, declared_type: str) -> BlueskyBlob:
        """Keep a file. The type of known files comes from their first bytes."""
        cid = cid_of(data)
        self.cache.put(cid, data)
        return self.blobs.save(BlueskyBlob(cid, did, sniff(data) or declared_type, len(data), self.now()))

    def find_blob(self, did: str, cid: str) -> BlueskyBlob | None:
        return self.blobs.get((did, cid))

    # --- what programs see ---------------------------------------------------------------------------------------

    def totals(self) -> dict[str, int]:
        return {"post_count": len(self.posts)}

    def view(self) -> dict[str, Any]:
        records = [facts | {"uri": uri} for uri, facts in zip(self.records, self.records.facts(), strict=True)]
        return {
            "accounts": self.accounts.facts(),
            "posts": [record for record in records if record["collection"] == POST],
            "records": [record for record in records if record["collection"] != POST],
        }

    def error_reply(self, code: str, endpoint: str) -> Reply:  # noqa: ARG002  # the same at every endpoint
        return refused(code).reply

    def http_error(self, status: int, endpoint: str = "") -> Reply:  # noqa: ARG002  # the same at every endpoint
        name = HTTP_ERRORS.get(status, "InternalServerError")
        message = ERRORS.get(name, (0, "Something went wrong"))[1]
        return json_reply(status, {"error": name, "message": message})


def require_active(account: BlueskyAccount) -> None:
    if account.status in INACTIVE:
        raise refused(INACTIVE[account.status])


def refused(name: str, message: str = "") -> Refusal:
    status, usual = ERRORS[name]
    return Refusal(json_reply(status, {"error": name, "message": message or usual}))


def invalid(message: str) -> Refusal:
    return refused("InvalidRequest", message)


def rate_headers(window: FixedWindow, seconds: int) -> Headers:
    return [
        ("ratelimit-limit", str(window.limit)),
        ("ratelimit-remaining", str(window.remaining)),
        ("ratelimit-reset", str(math.ceil(window.reset))),
        ("ratelimit-policy", f"{window.limit};w={seconds}"),
    ]


def cid_of(data: bytes, codec: int = RAW) -> str:
    """Return the content id of a file or an encoded record: CIDv1 of its SHA-256 in base32."""
    digest = bytes((1, codec, 0x12, 32)) + hashlib.sha256(data).digest()
    return "b" + base64.b32encode(digest).decode().rstrip("=").lower()


def link_of(blob: dict[str, Any]) -> str:
    return str(blob["ref"]["$link"])


def new_app_password() -> str:
    return _grouped("".join(secrets.choice(TID_DIGITS) for _ in range(16)))


def _grouped(letters: str) -> str:
    return "-".join(letters[index : index + 4] for index in range(0, 16, 4))


def _handle(username: str) -> str:
    return username if "." in username or username.startswith("did:") else f"{username}.test"


def _base64url(facts: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(facts).encode()).decode().rstrip("=")
