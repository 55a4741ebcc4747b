"""Bluesky's API of sessions, the server, handles, and the directory of DIDs."""

import functools
from typing import Any

from socialpub.sandbox.bluesky.models import APP_PASSWORD_SCOPE, HANDLE, MAIN_SCOPE, BlueskyAccount
from socialpub.sandbox.bluesky.network import (
    CALLS_SECONDS,
    DAY_SECONDS,
    REVOKED,
    BlueskySandbox,
    invalid,
    refused,
)
from socialpub.sandbox.endpoint import Call
from socialpub.sandbox.memory import Token
from socialpub.sandbox.messages import Headers, Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import ApiCaller, NetworkHandler, api_call

MAX_JSON_BYTES = 1_000_000

BlueskyCaller = ApiCaller[BlueskyAccount]


def open_call(handler: NetworkHandler) -> NetworkHandler:
    """Count a call that needs no token. The response carries the rate headers."""

    @functools.wraps(handler)
    def counted(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
        headers: Headers = []
        try:
            bluesky.count_call(headers)
            reply = handler(bluesky, request)
        except Refusal as refusal:
            reply = refusal.reply
        own = {name for name, _ in reply.headers}
        return reply.with_headers([one for one in headers if one[0] not in own])

    return counted


def json_body(request: SandboxRequest, *required: str) -> dict[str, Any]:
    """Return the body, which is a JSON object with these members. Raise Refusal."""
    if len(request.body) > MAX_JSON_BYTES:
        raise refused("PayloadTooLargeError")
    if request.content_type != "application/json":
        raise invalid(f"Wrong request encoding (Content-Type): {request.content_type or 'none'}")
    body = request.json_object()
    if body is None:
        raise invalid("Input is not a JSON object")
    for name in required:
        if name not in body:
            raise invalid(f'Input must have the property "{name}"')
    return body


def parameter(request: SandboxRequest, name: str) -> str:
    """Return a required parameter of a query. Raise Refusal."""
    value = request.query().get(name, "")
    if not value:
        raise invalid(f'Params must have the property "{name}"')
    return value


# --- sessions --------------------------------------------------------------------------------------------------------


@open_call
def create_session(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    body = json_body(request, "identifier", "password")
    if not isinstance(body["identifier"], str) or not isinstance(body["password"], str):
        raise invalid("Input/identifier and Input/password must be strings")
    identifier, password = body["identifier"].lower(), body["password"]
    headers: Headers = []
    try:
        bluesky.count("sign_ins", identifier, bluesky.limits["sign_ins"], CALLS_SECONDS, headers)
        bluesky.count("sign_ins_of_day", identifier, bluesky.limits["sign_ins_of_day"], DAY_SECONDS, headers)
        reply = _sign_in(bluesky, request, identifier, password)
    except Refusal as refusal:
        reply = refusal.reply
    reply.headers += headers
    return reply


def _sign_in(bluesky: BlueskySandbox, request: SandboxRequest, identifier: str, password: str) -> Reply:
    # The other accounts of the sandbox have short names, which no server knows.
    account = bluesky.account_named(identifier) if HANDLE.fullmatch(identifier) or ":" in identifier else None
    if account is None or account.status == "deleted":
        raise refused("AuthenticationRequired")
    name = next((name for name, known in account.app_passwords.items() if known == password), None)
    if password != account.password and (name is None or account.status == "takendown"):
        raise refused("AuthenticationRequired")
    if account.status == "takendown":
        raise refused("AccountTakedown")
    scope = MAIN_SCOPE if name is None else APP_PASSWORD_SCOPE
    token = bluesky.issue(account.did, (scope,), name)
    return json_reply(200, _session(bluesky, request, account, token))


def refresh_token_of(bluesky: BlueskySandbox, request: SandboxRequest) -> Token:
    """Return the pair of the refresh token in the header, even a spent or expired one. Raise Refusal."""
    token = bluesky.tokens.by_refresh(request.bearer or "")
    if token is None:
        if "authorization" not in request.headers:
            raise refused("AuthMissing")
        raise refused("InvalidToken", "Bad token scope" if bluesky.tokens.by_access(request.bearer) else "")
    return token


@open_call
def refresh_session(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    token = refresh_token_of(bluesky, request)
    if bluesky.timestamp() >= token.refresh_expires_at:
        raise refused("ExpiredToken")
    account = bluesky.accounts[token.account_id]
    if account.status == "deleted":
        raise _no_user(account)
    if account.status == "takendown":
        raise refused("AccountTakedown")
    successor = None if token.dead else bluesky.rotate(token)
    if successor is None:
        raise refused("ExpiredToken", REVOKED)
    return json_reply(200, _session(bluesky, request, account, successor))


@api_call("read")
def get_session(bluesky: BlueskySandbox, request: SandboxRequest, caller: BlueskyCaller) -> Reply:
    if caller.account.status in ("deleted", "takendown"):
        raise _no_user(caller.account)
    return json_reply(200, _session(bluesky, request, caller.account))


@open_call
def delete_session(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    """End one refresh token. The call is repeatable, and an expired token is accepted."""
    bluesky.tokens.end(refresh_token_of(bluesky, request))
    return Reply(200)


def _no_user(account: BlueskyAccount) -> Refusal:
    return invalid(f"Could not find user info for account: {account.did}")


def _session(
    bluesky: BlueskySandbox, request: SandboxRequest, account: BlueskyAccount, token: Token | None = None
) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "did": account.did,
        "handle": account.username,
        "email": f"{account.username.replace('.', '-')}@example.com",
        "emailConfirmed": account.email_confirmed,
        "active": account.status == "active",
    }
    if account.status != "active":
        shown["status"] = account.status
    if token is not None:
        shown |= {"accessJwt": token.access, "refreshJwt": token.refresh}
    return bluesky.session_facts(shown | {"didDoc": _did_document(bluesky, request, account)})


# --- the server, handles and DIDs ------------------------------------------------------------------------------------


@open_call
def describe_server(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    host = request.headers.get("host", "127.0.0.1").replace(":", "%3A")
    facts: dict[str, Any] = {
        "did": f"did:web:{host}",
        "availableUserDomains": [".test"],
        "inviteCodeRequired": False,
        "links": {},
        "contact": {},
        "blobUploadLimit": bluesky.blob_limit,
    }
    return json_reply(200, bluesky.server_facts(facts))


@open_call
def resolve_handle(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    handle = parameter(request, "handle").lower()
    if not HANDLE.fullmatch(handle):
        raise invalid("Error: handle must be a valid handle")
    account = bluesky.account_named(handle)
    if account is None or account.status == "deleted":
        raise refused("HandleNotFound")
    return json_reply(200, {"did": account.did})


def did_document(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    """Respond as the directory of DIDs."""
    did = request.path_params["did"]
    account = bluesky.accounts.get(did)
    if account is None:
        return json_reply(404, {"message": f"DID not registered: {did}"})
    return json_reply(200, _did_document(bluesky, request, account))


def _did_document(bluesky: BlueskySandbox, request: SandboxRequest, account: BlueskyAccount) -> dict[str, Any]:
    return {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
        "id": account.did,
        "alsoKnownAs": [f"at://{account.username}"],
        "verificationMethod": [],
        "service": [
            {
                "id": "#atproto_pds",
                "type": "AtprotoPersonalDataServer",
                "serviceEndpoint": bluesky.server_of(f"{request.base_url}/bluesky"),
            }
        ],
    }


@open_call
def unknown_method(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    """Respond to a method of another service, or to a known one with the wrong HTTP method."""
    method = request.path_params["method"]
    if method.startswith("com.atproto.") and method.rpartition(".")[2] in bluesky.methods:
        raise invalid(f"Incorrect HTTP method ({request.method})")
    raise invalid(f"No service configured for {method}")


SERVER = "/xrpc/com.atproto.server"
CALLS = (
    Call("POST", f"{SERVER}.createSession", "create_session", create_session),
    Call("POST", f"{SERVER}.refreshSession", "refresh_session", refresh_session),
    Call("GET", f"{SERVER}.getSession", "get_session", get_session),
    Call("POST", f"{SERVER}.deleteSession", "delete_session", delete_session),
    Call("GET", f"{SERVER}.describeServer", "describe_server", describe_server),
    Call("GET", "/xrpc/com.atproto.identity.resolveHandle", "resolve_handle", resolve_handle),
    Call("", "/xrpc/{method}", "unknown_method", unknown_method),
    Call("GET", "/plc/{did}", "did_document", did_document),
)
