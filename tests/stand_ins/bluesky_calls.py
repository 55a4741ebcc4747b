"""The further calls of a Bluesky server, which the product does not make: create, delete, and mixed writes. And calls
that count."""

import functools
from dataclasses import dataclass
from typing import Any

from socialpub.sandbox.bluesky import repo, sessions
from socialpub.sandbox.bluesky.network import BlueskyRecord, BlueskySandbox, invalid, refused
from socialpub.sandbox.bluesky.sessions import BlueskyCaller, json_body, parameter
from socialpub.sandbox.endpoint import SandboxCall
from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import NetworkHandler, api_call
from tests.stand_ins.bluesky import CALLS_SECONDS, DAY_SECONDS, BlueskyStandIn

MAX_WRITES = 200
OPEN = (
    "create_session", "refresh_session", "delete_session", "describe_server", "resolve_handle", "get_record",
    "list_records", "get_blob",
)  # fmt: skip
"""The calls that need no access token."""


def open_call(handler: NetworkHandler) -> NetworkHandler:
    """Count a call that needs no token. The response carries the rate headers."""

    @functools.wraps(handler)
    def counted(bluesky: BlueskyStandIn, request: SandboxRequest) -> Reply:
        headers: Headers = []
        try:
            bluesky.count_call(headers)
            reply = handler(bluesky, request)
        except Refusal as refusal:
            reply = refusal.reply
        own = {name for name, _ in reply.headers}
        return reply.with_headers([one for one in headers if one[0] not in own])

    return counted


def sign_in(bluesky: BlueskyStandIn, request: SandboxRequest) -> Reply:
    """Count the sign-in of an account."""
    body = request.json_object() or {}
    identifier = str(body.get("identifier", "")).lower()
    if not isinstance(body.get("password"), str):
        return sessions.create_session(bluesky, request)
    headers: Headers = []
    try:
        bluesky.count_points("sign_ins", identifier, bluesky.limits["sign_ins"], CALLS_SECONDS, headers)
        bluesky.count_points("sign_ins_of_day", identifier, bluesky.limits["sign_ins_of_day"], DAY_SECONDS, headers)
        reply = sessions.create_session(bluesky, request)
    except Refusal as refusal:
        reply = refusal.reply
    reply.headers += headers
    return reply


def unknown_method(bluesky: BlueskyStandIn, request: SandboxRequest) -> Reply:
    """Respond to a method of another service, or to a known one with the wrong HTTP method."""
    method = request.path_params["method"]
    if method.startswith("com.atproto.") and method.rpartition(".")[2] in bluesky.methods:
        raise invalid(f"Incorrect HTTP method ({request.method})")
    raise invalid(f"No service configured for {method}")


@api_call("create_record")
def create_record(bluesky: BlueskySandbox, request: SandboxRequest, caller: BlueskyCaller) -> Reply:
    """Store a new record. A key that is taken is an internal error, as on the real server."""
    body = json_body(request, "repo", "collection", "record")
    repo.require_own_repo(bluesky, body["repo"], caller)
    rkey = body.get("rkey") or repo.new_tid(bluesky)
    uri = repo.uri_of(caller.account, body["collection"], rkey)
    value, cid, validation = repo.validated(bluesky, body["collection"], body["record"], body.get("validate"))
    if uri in bluesky.records:
        raise refused("InternalServerError")
    repo.require_blobs(bluesky, caller.account.did, value)
    bluesky.commit([repo.new_record(bluesky, request, caller, body["collection"], rkey, value, cid)])
    return json_reply(
        200, {"uri": uri, "cid": cid, "commit": repo.commit_json(bluesky), "validationStatus": validation}
    )


@api_call("delete_record")
def delete_record(bluesky: BlueskySandbox, request: SandboxRequest, caller: BlueskyCaller) -> Reply:
    body = json_body(request, "repo", "collection", "rkey")
    repo.require_own_repo(bluesky, body["repo"], caller)
    present = bluesky.records.get(f"at://{caller.account.did}/{body['collection']}/{body['rkey']}")
    if present is None:
        return json_reply(200, {})
    if body.get("swapRecord") not in (None, present.cid):
        raise refused("InvalidSwap", f"Record was at {present.cid}")
    bluesky.commit([], [present.uri])
    return json_reply(200, {"commit": repo.commit_json(bluesky)})


@dataclass(slots=True)
class Batch:
    """The writes of one call. All of them happen, or none."""

    stored: dict[str, BlueskyRecord]
    deleted: list[str]
    results: list[dict[str, Any]]


@api_call("apply_writes")
def apply_writes(bluesky: BlueskySandbox, request: SandboxRequest, caller: BlueskyCaller) -> Reply:
    body = json_body(request, "repo", "writes")
    repo.require_own_repo(bluesky, body["repo"], caller)
    writes = body["writes"]
    if not isinstance(writes, list) or not all(isinstance(one, dict) and "$type" in one for one in writes):
        raise invalid("Input/writes must be an array of objects with the property $type")
    if len(writes) > MAX_WRITES:
        raise invalid(f"Too many writes. Max: {MAX_WRITES}")
    batch = Batch({}, [], [])
    for one in writes:
        _add_write(bluesky, request, caller, batch, one, body.get("validate"))
    for record in batch.stored.values():
        repo.require_blobs(bluesky, record.did, record.value)
    bluesky.commit(batch.stored.values(), batch.deleted)
    return json_reply(200, {"commit": repo.commit_json(bluesky), "results": batch.results})


def _add_write(
    bluesky: BlueskySandbox,
    request: SandboxRequest,
    caller: BlueskyCaller,
    batch: Batch,
    write: dict[str, Any],
    validate: bool | None,
) -> None:
    action = str(write["$type"]).rpartition("#")[2]
    collection, rkey = write.get("collection"), write.get("rkey")
    if action == "create" and rkey is None:
        rkey = repo.new_tid(bluesky)
    uri = repo.uri_of(caller.account, collection, rkey)
    assert isinstance(collection, str)
    taken = uri in batch.stored or (uri in bluesky.records and uri not in batch.deleted)
    if action not in ("create", "update", "delete"):
        raise invalid(f"Action not supported: {write['$type']}")
    value: dict[str, Any] = {}
    if action != "delete":
        value, cid, validation = repo.validated(bluesky, collection, write.get("value"), validate)
    if taken == (action == "create"):
        raise refused("InternalServerError")
    result: dict[str, Any] = {"$type": f"com.atproto.repo.applyWrites#{action}Result"}
    if action == "delete":
        batch.deleted.append(uri)
    else:
        batch.stored[uri] = repo.new_record(bluesky, request, caller, collection, str(rkey), value, cid)
        result |= {"uri": uri, "cid": cid, "validationStatus": validation}
    batch.results.append(result)


@open_call
def repo_status(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    account = repo.account_of(bluesky, parameter(request, "did"))
    if account is None:
        raise Refusal(json_reply(400, {"error": "RepoNotFound", "message": "Could not find repo"}))
    if account.status == "active":
        return json_reply(200, {"did": account.did, "active": True, "rev": repo.new_tid(bluesky)})
    return json_reply(200, {"did": account.did, "active": False, "status": account.status})


OWN = (
    SandboxCall("POST", "/xrpc/com.atproto.repo.createRecord", "create_record", create_record),
    SandboxCall("POST", "/xrpc/com.atproto.repo.deleteRecord", "delete_record", delete_record),
    SandboxCall("POST", "/xrpc/com.atproto.repo.applyWrites", "apply_writes", apply_writes),
    SandboxCall("GET", "/xrpc/com.atproto.sync.getRepoStatus", "repo_status", repo_status),
)
CHANGED = {call.name: call.handler for call in OWN} | {
    "create_session": open_call(sign_in),
    "unknown_method": unknown_method,
}


def _changed(call: SandboxCall) -> SandboxCall:
    handler = CHANGED.get(call.name) or (open_call(call.handler) if call.name in OPEN else call.handler)
    return call._replace(handler=handler)


CALLS = (*OWN, *map(_changed, (*repo.CALLS, *sessions.CALLS)))
