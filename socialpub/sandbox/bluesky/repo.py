"""Bluesky's API of records and blobs. `put_record` with `swapRecord: null` cannot create a second record."""

from typing import Any

from socialpub.sandbox.bluesky.network import (
    PROFILE,
    TID,
    TID_DIGITS,
    BlueskyAccount,
    BlueskyRecord,
    BlueskySandbox,
    blobs_in,
    invalid,
    refused,
)
from socialpub.sandbox.bluesky.sessions import BlueskyCaller, json_body, parameter
from socialpub.sandbox.endpoint import SandboxCall
from socialpub.sandbox.messages import Reply, SandboxRequest, StreamedBody, json_reply
from socialpub.sandbox.network import api_call
from socialpub.sandbox.pages import avatar

CREATE = "com.atproto.repo.applyWrites#create"
UNSET = object()


# --- who and what ----------------------------------------------------------------------------------------------------


def require_own_repo(bluesky: BlueskySandbox, repo: Any, caller: BlueskyCaller) -> None:
    account = account_of(bluesky, repo)
    if account is None:
        raise refused("AccountNotFound", f"Could not find repo: {repo}")
    if account.did != caller.account.did:
        raise refused("AuthenticationRequired", "Invalid repo: not the account of the token")


def account_of(bluesky: BlueskySandbox, repo: Any) -> BlueskyAccount | None:
    """Return the account of a DID or a whole handle."""
    account = bluesky.account_named(repo) if isinstance(repo, str) and ("." in repo or ":" in repo) else None
    return None if account is None or account.status == "deleted" else account


def uri_of(account: BlueskyAccount, collection: Any, rkey: Any) -> str:
    """Return the URI of a record. Raise Refusal."""
    if not isinstance(collection, str) or collection.count(".") < 2:
        raise invalid("Input/collection must be a valid nsid")
    well_formed = isinstance(rkey, str) and (rkey == "self" if collection == PROFILE else TID.fullmatch(rkey))
    if not well_formed:
        raise invalid(f"Invalid record key {rkey!r} for collection {collection}")
    return f"at://{account.did}/{collection}/{rkey}"


def validated(
    bluesky: BlueskySandbox, collection: str, value: Any, validate: bool | None
) -> tuple[dict[str, Any], str, str]:
    """Return the record with its type, its content id, and how it was validated. Raise Refusal."""
    if not isinstance(value, dict):
        raise invalid("Input/record must be an object")
    record = {"$type": collection, **value}
    if record["$type"] != collection:
        raise invalid(f"Invalid $type: expected {collection}, got {record['$type']}")
    validation = bluesky.check_record(collection, record, validate)
    return record, bluesky.cid_of_record(record), validation


def require_blobs(bluesky: BlueskySandbox, did: str, record: dict[str, Any]) -> None:
    for named in blobs_in(record):
        cid = str(named["ref"]["$link"])
        blob = bluesky.find_blob(did, cid)
        if blob is None:
            raise refused("BlobNotFound", f"Could not find blob: {cid}")
        if bluesky.is_blob_used(did, cid):
            continue  # the server compares only the first use
        if named.get("mimeType") != blob.mime_type:
            raise refused("InvalidMimeType")
        if named.get("size") != blob.size:
            raise refused("InvalidSize")


def commit_json(bluesky: BlueskySandbox) -> dict[str, str]:
    rev = new_tid(bluesky)
    return {"cid": bluesky.cid_of_record({"rev": rev}), "rev": rev}


def new_tid(bluesky: BlueskySandbox) -> str:
    number = int(bluesky.new_id()) & (2**63 - 1)
    return "".join(TID_DIGITS[number >> shift & 31] for shift in range(60, -1, -5))


# --- writes ----------------------------------------------------------------------------------------------------------


@api_call("put_record")
def put_record(bluesky: BlueskySandbox, request: SandboxRequest, caller: BlueskyCaller) -> Reply:
    """Store a record under its key. The same record again writes nothing."""
    body = json_body(request, "repo", "collection", "rkey", "record")
    require_own_repo(bluesky, body["repo"], caller)
    uri = uri_of(caller.account, body["collection"], body["rkey"])
    value, cid, validation = validated(bluesky, body["collection"], body["record"], body.get("validate"))
    answer: dict[str, Any] = {"uri": uri, "cid": cid, "validationStatus": validation}
    present = bluesky.records.get(uri)
    if present is not None and present.cid == cid:
        return json_reply(200, answer)
    swap = body.get("swapRecord", UNSET)
    if swap is not UNSET and swap != (None if present is None else present.cid):
        raise refused("InvalidSwap", f"Record was at {'null' if present is None else present.cid}")
    require_blobs(bluesky, caller.account.did, value)
    bluesky.commit([new_record(bluesky, request, caller, body["collection"], body["rkey"], value, cid)])
    return json_reply(200, answer | {"commit": commit_json(bluesky)})


@api_call("apply_writes")
def apply_writes(bluesky: BlueskySandbox, request: SandboxRequest, caller: BlueskyCaller) -> Reply:
    """Create records. All of them are stored, or none."""
    body = json_body(request, "repo", "writes")
    require_own_repo(bluesky, body["repo"], caller)
    stored: dict[str, BlueskyRecord] = {}
    for write in body["writes"]:
        if write["$type"] != CREATE:
            raise invalid(f"Action not supported: {write['$type']}")
        collection, rkey = write.get("collection"), write.get("rkey")
        uri = uri_of(caller.account, collection, rkey)
        value, cid, _ = validated(bluesky, collection, write.get("value"), body.get("validate"))
        if uri in stored or uri in bluesky.records:
            raise refused("InternalServerError")
        stored[uri] = new_record(bluesky, request, caller, collection, rkey, value, cid)
    for record in stored.values():
        require_blobs(bluesky, record.did, record.value)
    bluesky.commit(stored.values())
    results = [
        {"$type": f"{CREATE}Result", "uri": uri, "cid": record.cid, "validationStatus": "valid"}
        for uri, record in stored.items()
    ]
    return json_reply(200, {"commit": commit_json(bluesky), "results": results})


def new_record(
    bluesky: BlueskySandbox,
    request: SandboxRequest,
    caller: BlueskyCaller,
    collection: str,
    rkey: str,
    value: dict[str, Any],
    cid: str,
) -> BlueskyRecord:
    did = caller.account.did
    return BlueskyRecord(did, collection, rkey, value, cid, bluesky.now(), request.received_monotonic)


# --- reads -----------------------------------------------------------------------------------------------------------


def _served(bluesky: BlueskySandbox, repo: str) -> BlueskyAccount | None:
    """Return an account whose records this server shows."""
    account = account_of(bluesky, repo)
    return account if account is not None and account.status == "active" else None


def _record_json(record: BlueskyRecord) -> dict[str, Any]:
    return {"uri": record.uri, "cid": record.cid, "value": record.value}


def get_record(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    collection, rkey = parameter(request, "collection"), parameter(request, "rkey")
    account = _served(bluesky, parameter(request, "repo"))
    if account is None:
        raise invalid("Could not locate record")
    uri = f"at://{account.did}/{collection}/{rkey}"
    record = bluesky.find_record(uri)
    if record is None and (collection, rkey) == (PROFILE, "self"):
        record = _profile(bluesky, account)
    if record is None or request.query().get("cid") not in (None, record.cid):
        raise refused("RecordNotFound", f"Could not locate record: {uri}")
    return json_reply(200, _record_json(record))


def _profile(bluesky: BlueskySandbox, account: BlueskyAccount) -> BlueskyRecord:
    """Return the name and the picture of an account that has stored no profile of its own."""
    body = StreamedBody()
    body.write(bytes(avatar(account.picture or account.name, 128).body))
    blob = bluesky.add_blob(account.did, body, "image/png")
    value = {"$type": PROFILE, "displayName": account.name, "avatar": blob.shown}
    return BlueskyRecord(account.did, PROFILE, "self", value, bluesky.cid_of_record(value), bluesky.now())


def list_records(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    query = request.query()
    collection, written = parameter(request, "collection"), query.get("limit", "50")
    account = _served(bluesky, parameter(request, "repo"))
    if account is None:
        raise invalid(f"Could not find repo: {query['repo']}")
    if not written.isdecimal() or not 1 <= int(written) <= 100:
        raise invalid("Error: limit must be between 1 and 100")
    records = bluesky.records_of(account.did, collection)
    backwards = query.get("reverse") == "true"
    if backwards:
        records.reverse()
    if cursor := query.get("cursor"):
        records = [record for record in records if (record.rkey > cursor if backwards else record.rkey < cursor)]
    page = records[: int(written)]
    answer: dict[str, Any] = {"records": [_record_json(record) for record in page]}
    if page:
        answer["cursor"] = page[-1].rkey
    return json_reply(200, answer)


# --- blobs -----------------------------------------------------------------------------------------------------------


def open_blob_sink(bluesky: BlueskySandbox, request: SandboxRequest) -> StreamedBody:  # noqa: ARG001
    return StreamedBody()


@api_call("upload")
def upload_blob(bluesky: BlueskySandbox, request: SandboxRequest, caller: BlueskyCaller) -> Reply:
    body: StreamedBody = request.sink
    if body.size > bluesky.blob_limit:
        raise refused("PayloadTooLarge")
    if not body.size:
        raise invalid("A request body was expected but none was provided")
    if request.headers.get("content-encoding"):
        raise refused("InternalServerError")
    blob = bluesky.add_blob(caller.account.did, body, request.content_type or "application/octet-stream")
    return json_reply(200, {"blob": blob.shown})


def get_blob(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    did, cid = parameter(request, "did"), parameter(request, "cid")
    blob = bluesky.find_blob(did, cid) if _served(bluesky, did) else None
    data = None if blob is None else bluesky.cache.get(cid)
    if blob is None or data is None:
        raise refused("BlobNotFound" if blob is None else "InternalServerError")
    headers = [("x-content-type-options", "nosniff"), ("content-security-policy", "default-src 'none'; sandbox")]
    return Reply(200, data, blob.mime_type, headers)


CALLS = (
    SandboxCall("POST", "/xrpc/com.atproto.repo.putRecord", "put_record", put_record),
    SandboxCall("POST", "/xrpc/com.atproto.repo.applyWrites", "apply_writes", apply_writes),
    SandboxCall("GET", "/xrpc/com.atproto.repo.getRecord", "get_record", get_record),
    SandboxCall("GET", "/xrpc/com.atproto.repo.listRecords", "list_records", list_records),
    SandboxCall("POST", "/xrpc/com.atproto.repo.uploadBlob", "upload_blob", upload_blob, open_blob_sink),
    SandboxCall("GET", "/xrpc/com.atproto.sync.getBlob", "get_blob", get_blob),
)
