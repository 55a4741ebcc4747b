"""Bluesky's stand-in: it checks records against their schemas, counts as a server does, and has what varies between
servers."""

import json
import math
from dataclasses import dataclass
from typing import Any

from socialpub.sandbox.bluesky.network import (
    POST,
    TID_DIGITS,
    BlueskyAccount,
    BlueskyBlob,
    BlueskySandbox,
    invalid,
    rate_headers,
    refused,
)
from socialpub.sandbox.memory import FixedWindow, SandboxContext, Token
from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import ApiCaller
from tests.stand_ins.bluesky_cid import cid_of_record
from tests.stand_ins.bluesky_lexicon import InvalidRecord, check_record, find_float
from tests.stand_ins.network import StandIn

WRITE_POINTS = {"create_record": 3, "put_record": 2, "delete_record": 1}
CALLS_SECONDS, HOUR_SECONDS, DAY_SECONDS = 300, 3600, 86400


def key_seconds(rkey: str) -> float:
    """Return the time in a key, as Unix time."""
    number = 0
    for digit in rkey:
        number = number << 5 | TID_DIGITS.index(digit)
    return (number >> 10) / 1e6


@dataclass
class BlueskySwitches:
    """How this server behaves where others may behave in another way. Set them on `world.bluesky` at any time."""

    sends_did_document: bool = True
    """A session names the account's server."""
    server_url: str = ""
    """The server that DID documents name. Empty: the sandbox."""
    reveals_blob_limit: bool = True
    """Older servers do not say how large a blob may be."""
    image_limit: int = 2_000_000
    """Of an image in a post. Older servers accept 1,000,000."""
    refresh_grace_seconds: int = 7200
    """How long a used refresh token still returns the same successor."""
    blob_seconds: float = 6 * 3600
    """How long a blob lives that no record names."""


class BlueskyStandIn(StandIn, BlueskySandbox, BlueskySwitches):
    endpoints = (*BlueskySandbox.endpoints, "create_record", "delete_record", "repo_status")
    methods = (
        "createSession", "refreshSession", "getSession", "deleteSession", "describeServer", "resolveHandle",
        "putRecord", "createRecord", "deleteRecord", "applyWrites", "getRecord", "listRecords", "uploadBlob", "getBlob",
        "getRepoStatus",
    )  # fmt: skip

    def __init__(self, context: SandboxContext) -> None:
        BlueskySwitches.__init__(self)
        StandIn.__init__(self, context)
        self.limits = {"calls": 3000, "sign_ins": 30, "sign_ins_of_day": 300, "hour": 5000, "day": 35_000}
        """Calls of an address in 5 minutes. Sign-ins of an account in 5 minutes and in a day. Points for an account's
        writes in an hour and in a day: create 3, update 2, delete 1."""

    def admit(
        self,
        request: SandboxRequest,
        label: str,
        scopes: tuple[str, ...],  # all app passwords may do the same
        headers: Headers,
    ) -> ApiCaller[BlueskyAccount]:
        """The order is: rate, bearer, account, points. `label` is `read` for calls of accounts in any state."""
        self.count_call(headers)
        token = self.tokens.by_access(request.bearer)
        if token is None:
            if "authorization" not in request.headers:
                raise refused("AuthMissing")
            is_refresh_token = self.tokens.by_refresh(request.bearer or "") is not None
            if label == "upload" and not is_refresh_token:
                raise refused("InternalServerError")
            raise refused("InvalidToken", "Bad token scope" if is_refresh_token else "")
        if self.timestamp() >= token.expires_at:
            raise refused("ExpiredToken")
        account = self.accounts[token.account_id]
        if label != "read" and not (label == "upload" and account.status == "deactivated"):
            self.require_active(account)
        if points := _points(label, request):
            self.count_points("hour", account.did, self.limits["hour"], HOUR_SECONDS, headers, points)
            self.count_points("day", account.did, self.limits["day"], DAY_SECONDS, headers, points)
        return ApiCaller(token, account)

    def renew(self, old: Token, client_id: str) -> Token | None:
        """Return the pair that follows, which is the same for every use of a refresh token. None: it was used too long
        ago."""
        successor = self.tokens.by_refresh(old.successor)
        if successor is not None:
            return successor if self.timestamp() - old.spent_at < self.refresh_grace_seconds else None
        new = self.issue(old.account_id, old.scopes, old.client_id, family=old.family)
        old.successor = new.refresh or ""
        self.tokens.spend(old, access_survives=True)
        return new

    # --- rates ---------------------------------------------------------------------------------------------------

    def count_call(self, headers: Headers) -> None:
        """Count a call of any kind. Every caller has the same address."""
        self.count_points("calls", "", self.limits["calls"], CALLS_SECONDS, headers)

    def count_points(
        self, kind: str, subject: str, limit: int, seconds: int, headers: Headers, points: int = 1
    ) -> FixedWindow:
        """Count a call, and add the headers of the tightest window. Raise Refusal."""
        for _ in range(points):
            window = self.windows.count((kind, subject), limit, seconds, self.timestamp())
        shown = {name: value for name, value in headers if name.startswith("ratelimit")}
        if not shown or window.remaining < int(shown["ratelimit-remaining"]):
            headers[:] = [one for one in headers if not one[0].startswith("ratelimit")]
            headers += rate_headers(window.limit, window.remaining, window.reset, seconds)
        if window.over:
            reply = self.refusal_reply("", "RateLimitExceeded")
            reply.headers.append(("retry-after", str(math.ceil(window.reset - self.timestamp()))))
            raise Refusal(reply)
        return window

    # --- records and blobs ------------------------------------------------------------------------------------------

    def delete(self, uri: str) -> None:
        """Let the owner delete a post, with its gates. Raise ValueError for an unknown URI."""
        if uri not in self.records:
            raise ValueError(f"no such record: {uri}")
        kinds = (POST, "app.bsky.feed.threadgate", "app.bsky.feed.postgate")
        self.commit([], [one for kind in kinds if (one := uri.replace(POST, kind)) in self.records])

    def take_down(self, uri: str, lifted: bool = False) -> None:
        """Let the server's moderators hide a record from all readers. Its key stays taken."""
        if uri not in self.records:
            raise ValueError(f"no such record: {uri}")
        self.records[uri].taken_down = not lifted

    def cid_of_record(self, record: Any) -> str:
        try:
            return cid_of_record(record)
        except ValueError as error:
            raise invalid(f"Invalid {record['$type']} record: {error}") from None

    def check_record(self, collection: str, record: dict[str, Any], validate: bool | None) -> str:
        if path := find_float(record):
            raise invalid(f"Invalid {collection} record: not in the data model at {path}")
        if validate is False:
            return "unknown"
        try:
            known = check_record(collection, record, self.image_limit)
        except InvalidRecord as error:
            raise invalid(f"Invalid {collection} record: {error}") from None
        if validate and not known:
            raise invalid(f"Unknown lexicon type: {collection}")
        return "valid" if known else "unknown"

    def find_blob(self, did: str, cid: str) -> BlueskyBlob | None:
        """Return the blob, unless no record has named it for too long."""
        blob = super().find_blob(did, cid)
        if blob is None or self.seconds_since(blob.uploaded_at) < self.blob_seconds:
            return blob
        return blob if self.is_blob_used(did, cid) else None

    # --- responses -----------------------------------------------------------------------------------------------

    def responded(self, endpoint: str, request: SandboxRequest, reply: Reply) -> Reply:
        reply = super().responded(endpoint, request, reply)
        data = json.loads(reply.body) if endpoint in CHANGED and reply.status == 200 else {}
        if not self.sends_did_document:
            data.pop("didDoc", None)
        if not self.reveals_blob_limit:
            data.pop("blobUploadLimit", None)
        if self.server_url:
            for document in (data, data.get("didDoc", {})):
                for service in document.get("service", ()):
                    service["serviceEndpoint"] = self.server_url
        return json_reply(reply.status, data, reply.headers) if data else reply


CHANGED = ("create_session", "refresh_session", "get_session", "describe_server", "did_document")


def _points(label: str, request: SandboxRequest) -> int:
    if label != "apply_writes":
        return WRITE_POINTS.get(label, 0)
    writes = (request.json_object() or {}).get("writes")
    actions = [str(one.get("$type", "")).rpartition("#")[2] for one in writes or () if isinstance(one, dict)]
    return sum(WRITE_POINTS.get(f"{action}_record", 2) for action in actions)
