"""Bluesky's stand-in: it checks records against their schemas, counts as a server does, and has what varies between
servers."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from socialpub.sandbox.bluesky.api import BlueskySandbox
from socialpub.sandbox.bluesky.network import (
    FIRST_APP_PASSWORD,
    HANDLE,
    POST,
    POSTGATE,
    PROFILE,
    THREADGATE,
    TID,
    TID_DIGITS,
    BlueskyAccount,
    BlueskyBlob,
    BlueskyRecord,
    blobs_in,
    invalid,
    link_of,
    rate_headers,
    refused,
    require_active,
)
from socialpub.sandbox.memory import SandboxContext, Token
from socialpub.sandbox.messages import Refusal, SandboxRequest, json_reply
from socialpub.sandbox.network import SandboxCall
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


IMAGE_BYTES = 2_000_000
"""Of an image in a post."""
BLOB_SECONDS = 6 * 3600
"""How long a blob lives that no record names."""


@dataclass
class BlueskySwitches:
    """How this server behaves where others may behave in another way. Set them on `world.bluesky` at any time."""

    refresh_grace_seconds: int = 7200
    """How long a used refresh token still returns the same successor."""


class BlueskyServer(StandIn, BlueskySandbox, BlueskySwitches):
    def __init__(self, context: SandboxContext) -> None:
        BlueskySwitches.__init__(self)
        StandIn.__init__(self, context)
        self.limits = {"calls": 3000, "sign_ins": 30, "sign_ins_of_day": 300, "hour": 5000, "day": 35_000}
        """Calls of an address in 5 minutes. Sign-ins of an account in 5 minutes and in a day. Points for an account's
        writes in an hour and in a day: create 3, update 2, delete 1."""
        self.created: list[str] = []
        """The URIs of all posts that were ever created. A post that came back after its deletion is here twice."""

    def check_request(self, request: SandboxRequest, call: SandboxCall) -> None:
        """Count a call of any kind. Every caller has the same address."""
        if call.name not in ("unknown_method", "did_document"):
            self.count_points(request, ("calls",), self.limits["calls"], CALLS_SECONDS)
        super().check_request(request, call)
        if call.name in PROPERTIES:
            check_body(request, *PROPERTIES[call.name])
        query = request.query()
        for name in PARAMETERS.get(call.name, ()):
            if not query.get(name):
                raise invalid(f'Params must have the property "{name}"')
        if call.name == "resolve_handle" and not HANDLE.fullmatch(query["handle"].lower()):
            raise invalid("Error: handle must be a valid handle")
        limit = query.get("limit", "50")
        if call.name == "list_records" and not (limit.isdecimal() and 1 <= int(limit) <= 100):
            raise invalid("Error: limit must be between 1 and 100")
        if call.name == "upload_blob":
            self._check_blob(request)
        if call.name == "put_record":
            self.repo_body(request)

    def _check_blob(self, request: SandboxRequest) -> None:
        if len(request.body) > self.blob_limit:
            raise refused("PayloadTooLarge")
        if not request.body:
            raise invalid("A request body was expected but none was provided")
        if request.headers.get("content-encoding"):
            raise refused("InternalServerError")

    def admit(self, request: SandboxRequest, call: SandboxCall) -> None:
        """The order is: rate, bearer, account, points."""
        token = self.tokens.get(request.bearer)
        if token is None:
            if "authorization" not in request.headers:
                raise refused("AuthMissing")
            is_refresh_token = self.tokens.by_refresh(request.bearer) is not None
            if call.name == "upload_blob" and not is_refresh_token:
                raise refused("InternalServerError")
            raise refused("InvalidToken", "Bad token scope" if is_refresh_token else "")
        if self.timestamp() >= token.expires_at:
            raise refused("ExpiredToken")
        request.token, account = token, self.accounts[token.account_id]
        request.account = account
        if call.name != "get_session" and not (call.name == "upload_blob" and account.status == "deactivated"):
            require_active(account)
        if points := _points(call.name, request):
            self.count_points(request, ("hour", account.did), self.limits["hour"], HOUR_SECONDS, points)
            self.count_points(request, ("day", account.did), self.limits["day"], DAY_SECONDS, points)

    def refresh_token_of(self, request: SandboxRequest) -> Token:
        if self.tokens.by_refresh(request.bearer) is None and "authorization" not in request.headers:
            raise refused("AuthMissing")
        if request.bearer in self.tokens:
            raise refused("InvalidToken", "Bad token scope")
        return super().refresh_token_of(request)

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

    def count_points(
        self, request: SandboxRequest, key: tuple[str, ...], limit: int, seconds: int, points: int = 1
    ) -> None:
        """Count a call, and respond with the headers of the tightest window. Raise Refusal."""
        for _ in range(points):
            window = self.count_in_window(key, limit, seconds)
        tightest = dict(request.reply_headers).get("ratelimit-remaining")
        if tightest is None or window.remaining < int(tightest):
            request.reply_headers = rate_headers(window, seconds)
        if window.over:
            reply = self.refusal_reply("RateLimitExceeded")
            reply.headers.append(("retry-after", str(math.ceil(window.reset - self.timestamp()))))
            raise Refusal(reply)

    # --- app passwords -------------------------------------------------------------------------------------------

    def revoke_app_password(self, username: str, name: str = FIRST_APP_PASSWORD) -> None:
        """End the refresh tokens of its sessions. Their access tokens work until they expire."""
        account = self.existing_account(username)
        del account.app_passwords[name]
        self.accounts.save(account)
        for token in self.tokens.of(account.did):
            if token.client_id in (None, name) and not token.dead:
                self.tokens.end_family(token.family)

    # --- records and blobs ------------------------------------------------------------------------------------------

    def delete(self, uri: str) -> None:
        """Let the owner delete a post, with its gates. Raise ValueError for an unknown URI."""
        if uri not in self.records:
            raise ValueError(f"no such record: {uri}")
        kinds = (POST, THREADGATE, POSTGATE)
        self.remove([one for kind in kinds if (one := uri.replace(POST, kind)) in self.records])

    def remove(self, uris: Iterable[str]) -> None:
        """Delete records. A blob goes with the last record that contains it."""
        for record in [self.records.remove(uri) for uri in uris]:
            self._forget_blobs(record)

    def commit(self, stored: Iterable[BlueskyRecord]) -> None:
        for record in stored:
            replaced = self.records.get(record.uri)
            if record.collection == POST and replaced is None:
                self.created.append(record.uri)
            super().commit([record])
            if replaced is not None:
                self._forget_blobs(replaced)

    def _forget_blobs(self, record: BlueskyRecord) -> None:
        for blob in blobs_in(record.value):
            if not self.is_blob_used(record.did, link_of(blob)):
                self.blobs.pop((record.did, link_of(blob)), None)

    def take_down(self, uri: str, lifted: bool = False) -> None:
        """Let the server's moderators hide a record from all readers. Its key stays taken."""
        if uri not in self.records:
            raise ValueError(f"no such record: {uri}")
        self.records[uri].taken_down = not lifted

    def repo_body(self, request: SandboxRequest) -> dict[str, Any]:
        """Return the body of a call that writes to the caller's own repository. Raise Refusal."""
        body = request.json_object()
        account = self.served_account(body["repo"])
        if account is None:
            raise refused("AccountNotFound", f"Could not find repo: {body['repo']}")
        if account.did != request.account.did:
            raise refused("AuthenticationRequired", "Invalid repo: not the account of the token")
        return body

    def uri_of(self, account: BlueskyAccount, collection: object, rkey: object) -> str:
        """Return the URI of a record. Raise Refusal."""
        if not isinstance(collection, str) or collection.count(".") < 2:
            raise invalid("Input/collection must be a valid nsid")
        well_formed = isinstance(rkey, str) and (rkey == "self" if collection == PROFILE else TID.fullmatch(rkey))
        if not well_formed:
            raise invalid(f"Invalid record key {rkey!r} for collection {collection}")
        return f"at://{account.did}/{collection}/{rkey}"

    def new_record(
        self, request: SandboxRequest, place: dict[str, Any], value: Any, validate: bool | None
    ) -> tuple[BlueskyRecord, str]:
        self.uri_of(request.account, place.get("collection"), place.get("rkey"))
        if not isinstance(value, dict):
            raise invalid("Input/record must be an object")
        if value.get("$type", place["collection"]) != place["collection"]:
            raise invalid(f"Invalid $type: expected {place['collection']}, got {value['$type']}")
        return super().new_record(request, place, value, validate)

    def require_blobs(self, record: BlueskyRecord) -> None:
        for named in blobs_in(record.value):
            blob = self.find_blob(record.did, link_of(named))
            if blob is None:
                raise refused("BlobNotFound", f"Could not find blob: {link_of(named)}")
            if self.is_blob_used(record.did, blob.cid):
                continue  # the server compares only the first use
            if named.get("mimeType") != blob.mime_type:
                raise refused("InvalidMimeType")
            if named.get("size") != blob.size:
                raise refused("InvalidSize")

    def is_blob_used(self, did: str, cid: str) -> bool:
        """Return whether a record of the account names the blob."""
        records = (record for record in self.records.values() if record.did == did)
        return any(link_of(blob) == cid for record in records for blob in blobs_in(record.value))

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
            known = check_record(collection, record, IMAGE_BYTES)
        except InvalidRecord as error:
            raise invalid(f"Invalid {collection} record: {error}") from None
        if validate and not known:
            raise invalid(f"Unknown lexicon type: {collection}")
        return "valid" if known else "unknown"

    def find_blob(self, did: str, cid: str) -> BlueskyBlob | None:
        """Return the blob, unless no record has named it for too long."""
        blob = super().find_blob(did, cid)
        if blob is None or self.seconds_since(blob.uploaded_at) < BLOB_SECONDS:
            return blob
        return blob if self.is_blob_used(did, cid) else None


MAX_JSON_BYTES = 1_000_000
PROPERTIES = {
    "create_session": ("identifier", "password"),
    "put_record": ("repo", "collection", "rkey", "record"),
    "create_record": ("repo", "collection", "record"),
    "delete_record": ("repo", "collection", "rkey"),
    "apply_writes": ("repo", "writes"),
}
"""The members that a body must have."""
PARAMETERS = {
    "get_record": ("collection", "rkey", "repo"),
    "list_records": ("collection", "repo"),
    "resolve_handle": ("handle",),
    "get_blob": ("did", "cid"),
    "repo_status": ("did",),
}
"""The parameters that a query must have."""


def check_body(request: SandboxRequest, *required: str) -> None:
    """Require a JSON object with these members. Raise Refusal."""
    if len(request.body) > MAX_JSON_BYTES:
        raise refused("PayloadTooLargeError")
    if request.content_type != "application/json":
        raise invalid(f"Wrong request encoding (Content-Type): {request.content_type or 'none'}")
    try:
        body = json.loads(request.body)
    except ValueError:
        raise Refusal(json_reply(400, {"error": "SyntaxError", "message": "The body is not JSON"})) from None
    if not isinstance(body, dict):
        raise invalid("Input is not a JSON object")
    for name in required:
        if name not in body:
            raise invalid(f'Input must have the property "{name}"')


def _points(endpoint: str, request: SandboxRequest) -> int:
    if endpoint != "apply_writes":
        return WRITE_POINTS.get(endpoint, 0)
    writes = request.json_object().get("writes")
    actions = [str(one.get("$type", "")).rpartition("#")[2] for one in writes or () if isinstance(one, dict)]
    return sum(WRITE_POINTS.get(f"{action}_record", 2) for action in actions)
