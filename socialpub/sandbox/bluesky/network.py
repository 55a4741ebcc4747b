"""The memory of a Bluesky server: accounts, sessions, records and blobs. And the words of its refusals."""

import base64
import hashlib
import json
import math
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar, Literal

from socialpub.sandbox.media import sniff
from socialpub.sandbox.memory import FixedWindow, SandboxContext
from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest, StreamedBody, json_reply
from socialpub.sandbox.network import COMMON_FIELDS, ApiCaller, SandboxNetwork

POST = "app.bsky.feed.post"
THREADGATE = "app.bsky.feed.threadgate"
POSTGATE = "app.bsky.feed.postgate"
PROFILE = "app.bsky.actor.profile"

APP_PASSWORD_SCOPE, MAIN_SCOPE = "com.atproto.appPass", "com.atproto.access"

Status = Literal["active", "deactivated", "takendown", "deleted"]

TID_DIGITS = "234567abcdefghijklmnopqrstuvwxyz"
TID = re.compile(rf"[234567abcdefghij][{TID_DIGITS}]{{12}}")
HANDLE = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")


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
    status: Status = "active"
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
    def shown(self) -> dict[str, Any]:
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
    received_monotonic: float = 0.0
    """When the call's first byte arrived, by the machine's clock."""
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
    if value.get("$type") == "blob":
        return [value]
    return [blob for item in value.values() for blob in blobs_in(item)]


REFRESH_SCOPE = "com.atproto.refresh"
FIRST_APP_PASSWORD = "socialpub"
"""The name of the app password that every account has."""

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
INACTIVE = {"deleted": "AccountNotFound", "takendown": "AccountTakedown", "deactivated": "AccountDeactivated"}
HTTP_ERRORS = {
    400: "InvalidRequest", 401: "AuthenticationRequired", 403: "Forbidden", 404: "XRPCNotSupported",
    413: "PayloadTooLarge", 429: "RateLimitExceeded", 501: "MethodNotImplemented", 502: "UpstreamFailure",
    503: "NotEnoughResources", 504: "UpstreamTimeout",
}  # fmt: skip


class BlueskySandbox(SandboxNetwork[BlueskyAccount]):
    name = "bluesky"
    label = "Bluesky"
    endpoints = (
        "create_session", "refresh_session", "get_session", "delete_session", "describe_server", "resolve_handle",
        "put_record", "apply_writes", "get_record", "list_records", "upload_blob", "get_blob", "unknown_method",
        "did_document",
    )  # fmt: skip
    default_scopes = (APP_PASSWORD_SCOPE,)
    window_seconds = 300
    account_kind = BlueskyAccount
    common_fields: ClassVar[Mapping[str, str]] = {
        **COMMON_FIELDS, "handle": r"(?=.{3,253}$)(?:[a-z0-9-]{1,63}\.)+[a-z][a-z0-9-]{0,62}",
    }  # fmt: skip
    account_fields = ("status", "email_confirmed")
    account_choices: ClassVar = {"status": ("active", "deactivated", "takendown", "deleted")}
    errors = ERRORS
    unauthorized_code, limited_code = "ExpiredToken", "RateLimitExceeded"

    code_seconds = 0
    """There is no consent page."""
    access_seconds = 7200
    refresh_seconds = 90 * 86400
    blob_limit = 104_857_600
    default_limits: ClassVar = {"put_record": 1000, "apply_writes": 1000}
    """Calls of one account in 5 minutes."""

    def __init__(self, context: SandboxContext) -> None:
        super().__init__(context)
        self.created: list[str] = []
        """The URIs of all posts that were ever created. A post that came back after its deletion is here twice."""
        self.records = self.table("records", BlueskyRecord, key=attrgetter("uri"), on_keep=self._keep_record)
        """By URI, oldest first."""
        self.blobs = self.table("blobs", BlueskyBlob, key=lambda blob: (blob.did, blob.cid))
        """By DID and content id."""
        for username, name in (("demo", "Demo"), ("studio", "Studio")):
            did = "did:plc:" + (username * 6)[:24]
            words = (username * 4)[:16]
            app_password = "-".join(words[index : index + 4] for index in range(0, 16, 4))
            account = BlueskyAccount(
                did, f"{username}.test", name, {FIRST_APP_PASSWORD: app_password}, f"the main password of {username}"
            )
            self.accounts[did] = account

    # --- accounts ------------------------------------------------------------------------------------------------

    def account_named(self, username: str) -> BlueskyAccount | None:
        """Return the account of a handle or a DID. A name without a dot means the handle below `.test`."""
        return self.accounts.get(username) or super().account_named(_handle(username))

    def add_account(self, username: str, *, name: str | None = None, **facts: Any) -> BlueskyAccount:
        """Create an account with an app password. `facts` are fields of `BlueskyAccount`, such as `status`. Raise
        ValueError for a handle that exists."""
        handle = _handle(username)
        self.refuse_taken(handle)
        did = "did:plc:" + base64.b32encode(hashlib.sha256(self.new_id().encode()).digest()).decode().lower()[:24]
        passwords = {"app_passwords": {FIRST_APP_PASSWORD: new_app_password()}, "password": secrets.token_urlsafe(12)}
        return self.accounts.save(
            BlueskyAccount(did, handle, name or username.partition(".")[0].title(), **(passwords | facts))
        )

    def add_app_password(self, username: str, name: str) -> str:
        account = self.existing_account(username)
        account.app_passwords[name] = new_app_password()
        self.accounts.save(account)
        return account.app_passwords[name]

    def revoke_app_password(self, username: str, name: str = FIRST_APP_PASSWORD) -> None:
        """End the refresh tokens of its sessions. Their access tokens work until they expire. Raise ValueError."""
        account = self.existing_account(username)
        if account.app_passwords.pop(name, None) is None:
            raise ValueError(f"{account.username} has no app password {name!r}")
        self.accounts.save(account)
        for token in self.tokens.of(account.did):
            if token.client_id in (None, name) and not token.dead:
                self.tokens.end_family(token.family)

    # --- sessions ------------------------------------------------------------------------------------------------

    def new_token_pair(
        self, scopes: tuple[str, ...], account_id: str, expires_at: tuple[float, float]
    ) -> tuple[str, str | None]:
        now = int(self.timestamp())

        def jwt(scope: str, ends: float) -> str:
            facts = {"scope": scope, "sub": account_id, "iat": now, "exp": int(ends), "jti": secrets.token_urlsafe(16)}
            return ".".join((_base64url({"typ": "at+jwt", "alg": "ES256K"}), _base64url(facts), secrets.token_hex(32)))

        return jwt(scopes[0], expires_at[0]), jwt(REFRESH_SCOPE, expires_at[1])

    def window_headers(self, window: FixedWindow) -> Headers:
        return rate_headers(window.limit, window.remaining, window.reset, self.window_seconds)

    def admit(
        self, request: SandboxRequest, label: str, scopes: tuple[str, ...], headers: Headers
    ) -> ApiCaller[BlueskyAccount]:
        if "authorization" not in request.headers:
            raise refused("AuthMissing")
        if self.tokens.by_access(request.bearer) is None:
            raise refused("InvalidToken")
        return super().admit(request, label, scopes, headers)

    def check_caller(self, caller: ApiCaller[BlueskyAccount], label: str, scopes: tuple[str, ...]) -> None:  # noqa: ARG002
        """All app passwords may do the same. `label` is `read` for calls of accounts in any state."""
        if label != "read":
            self.require_active(caller.account)

    def require_active(self, account: BlueskyAccount) -> None:
        if account.status in INACTIVE:
            raise refused(INACTIVE[account.status])

    # --- records -------------------------------------------------------------------------------------------------

    @property
    def posts(self) -> list[BlueskyRecord]:
        """All posts, oldest first."""
        return [record for record in list(self.records.values()) if record.collection == POST]

    def posts_of(self, account: BlueskyAccount) -> list[BlueskyRecord]:
        return [post for post in self.posts if post.did == account.did]

    def find_record(self, uri: str) -> BlueskyRecord | None:
        """Return a record that readers see."""
        record = self.records.get(uri)
        return None if record is None or record.taken_down else record

    def records_of(self, did: str, collection: str) -> list[BlueskyRecord]:
        """Return what readers see, the highest key first."""
        records = [record for record in self.records.values() if record.did == did and record.collection == collection]
        return sorted(
            (record for record in records if not record.taken_down), key=lambda record: record.rkey, reverse=True
        )

    def commit(self, stored: Iterable[BlueskyRecord], deleted: Iterable[str] = ()) -> None:
        """Store and delete records in one piece. A blob goes with the last record that contains it."""
        gone = [self.records.remove(uri) for uri in deleted]
        for record in stored:
            gone += [self.records[record.uri]] if record.uri in self.records else []
            self.records.save(record)
        for record in gone:
            for blob in blobs_in(record.value):
                if not self.is_blob_used(record.did, _link(blob)):
                    self.blobs.pop((record.did, _link(blob)), None)

    def _keep_record(self, record: BlueskyRecord) -> None:
        if record.collection == POST and record.uri not in self.records:
            self.created.append(record.uri)

    def cid_of_record(self, record: Any) -> str:
        """Return the content id. The stand-in encodes the record as a server does."""
        return cid_of(json.dumps(record, sort_keys=True).encode(), DAG_CBOR)

    def check_record(self, collection: str, record: dict[str, Any], validate: bool | None) -> str:  # noqa: ARG002
        """Return how a record was validated: `valid` or `unknown`. Stand-ins raise Refusal."""
        return "valid"

    # --- blobs ---------------------------------------------------------------------------------------------------

    def add_blob(self, did: str, body: StreamedBody, declared_type: str) -> BlueskyBlob:
        """Keep a file. The type of known files comes from their first bytes."""
        cid = _cid(bytes.fromhex(body.sha256), RAW)
        blob = BlueskyBlob(cid, did, sniff(body.head) or declared_type, body.size, self.now())
        if (data := body.data) is not None:
            self.cache.put(cid, data)
        return self.blobs.save(blob)

    def find_blob(self, did: str, cid: str) -> BlueskyBlob | None:
        return self.blobs.get((did, cid))

    def is_blob_used(self, did: str, cid: str) -> bool:
        """Return whether a record of the account names the blob."""
        records = (record for record in self.records.values() if record.did == did)
        return any(_link(blob) == cid for record in records for blob in blobs_in(record.value))

    # --- what tests see ------------------------------------------------------------------------------------------

    def totals(self) -> dict[str, int]:
        return {"post_count": len(self.posts)}

    def view(self) -> dict[str, Any]:
        records = [facts | {"uri": uri} for uri, facts in zip(self.records, self.records.facts(), strict=True)]
        return {
            "accounts": self.accounts.facts(),
            "posts": [record for record in records if record["collection"] == POST],
            "created": list(self.created),
            "records": [record for record in records if record["collection"] != POST],
        }

    # --- scripted errors -----------------------------------------------------------------------------------------

    def named_reply(self, endpoint: str, code: str) -> Reply:  # noqa: ARG002  # the same at every endpoint
        return refused(code).reply

    def http_error(self, status: int, endpoint: str = "") -> Reply:  # noqa: ARG002  # the same at every endpoint
        name = HTTP_ERRORS.get(status, "InternalServerError")
        message = ERRORS.get(name, (0, "Something went wrong"))[1]
        return json_reply(status, {"error": name, "message": message})


RAW, DAG_CBOR = 0x55, 0x71


def cid_of(data: bytes, codec: int = RAW) -> str:
    """Return the content id of a file or an encoded record: CIDv1 of its SHA-256 in base32."""
    return _cid(hashlib.sha256(data).digest(), codec)


def _cid(digest: bytes, codec: int) -> str:
    return "b" + base64.b32encode(bytes((1, codec, 0x12, len(digest))) + digest).decode().rstrip("=").lower()


def _handle(username: str) -> str:
    return username if "." in username or username.startswith("did:") else f"{username}.test"


def _link(blob: dict[str, Any]) -> str:
    return str(blob["ref"]["$link"])


def _base64url(facts: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(facts).encode()).decode().rstrip("=")


def new_app_password() -> str:
    letters = [secrets.choice("abcdefghijklmnopqrstuvwxyz234567") for _ in range(16)]
    return "-".join("".join(letters[index : index + 4]) for index in range(0, 16, 4))


def rate_headers(limit: int, remaining: int, reset: float, seconds: int) -> Headers:
    return [
        ("ratelimit-limit", str(limit)),
        ("ratelimit-remaining", str(remaining)),
        ("ratelimit-reset", str(math.ceil(reset))),
        ("ratelimit-policy", f"{limit};w={seconds}"),
    ]


# --- replies ---------------------------------------------------------------------------------------------------------


def refused(name: str, message: str = "") -> Refusal:
    status, usual = ERRORS[name]
    return Refusal(json_reply(status, {"error": name, "message": message or usual}))


def invalid(message: str) -> Refusal:
    return refused("InvalidRequest", message)
