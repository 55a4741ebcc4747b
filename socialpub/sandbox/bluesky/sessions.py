"""Bluesky's API of sessions, the server, handles, and the directory of DIDs."""

import json
from typing import Any

from socialpub.sandbox.bluesky.network import (
    APP_PASSWORD_SCOPE,
    HANDLE,
    MAIN_SCOPE,
    REVOKED,
    BlueskyAccount,
    BlueskySandbox,
    invalid,
    refused,
)
from socialpub.sandbox.endpoint import SandboxCall
from socialpub.sandbox.memory import Token
from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import ApiCaller, api_call

MAX_JSON_BYTES = 1_000_000

BlueskyCaller = ApiCaller[BlueskyAccount]


def json_body(request: SandboxRequest, *required: str) -> dict[str, Any]:
    """Return the body, which is a JSON object with these members. Raise Refusal."""
    if len(request.body) > MAX_JSON_BYTES:
        raise refused("PayloadTooLargeError")
    if request.content_type != "application/json":
        raise invalid(f"Wrong request encoding (Content-Type): {request.content_type or 'none'}")
    body = request.json_object()
    if body is None:
        try:
            json.loads(request.body)
        except ValueError:
            raise Refusal(json_reply(400, {"error": "SyntaxError", "message": "The body is not JSON"})) from None
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


def create_session(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    body = json_body(request, "identifier", "password")
    if not isinstance(body["identifier"], str) or not isinstance(body["password"], str):
        raise invalid("Input/identifier and Input/password must be strings")
    identifier, password = body["identifier"].lower(), body["password"]
    # The other accounts of the sandbox have short names, which no server knows.
    account = bluesky.account_named(identifier) if HANDLE.fullmatch(identifier) or ":" in identifier else None
    if account is None or account.status == "deleted":
        raise refused("AuthenticationRequired")
    name = next((name for name, known_password in account.app_passwords.items() if known_password == password), None)
    if password != account.password and (name is None or account.status == "takendown"):
        raise refused("AuthenticationRequired")
    if account.status == "takendown":
        raise refused("AccountTakedown")
    scope = MAIN_SCOPE if name is None else APP_PASSWORD_SCOPE
    token = bluesky.issue(account.did, (scope,), name)
    return json_reply(200, _session(request, account, token))


def refresh_token_of(bluesky: BlueskySandbox, request: SandboxRequest) -> Token:
    """Return the pair of the refresh token in the header, even a spent or expired one. Raise Refusal."""
    token = bluesky.tokens.by_refresh(request.bearer or "")
    if token is None:
        if "authorization" not in request.headers:
            raise refused("AuthMissing")
        raise refused("InvalidToken", "Bad token scope" if bluesky.tokens.by_access(request.bearer) else "")
    return token


def refresh_session(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    token = refresh_token_of(bluesky, request)
    if bluesky.timestamp() >= token.refresh_expires_at:
        raise refused("ExpiredToken")
    account = bluesky.accounts[token.account_id]
    if account.status == "deleted":
        raise _no_user(account)
    if account.status == "takendown":
        raise refused("AccountTakedown")
    successor = None if token.dead else bluesky.renew(token, token.client_id or "")
    if successor is None:
        raise refused("ExpiredToken", REVOKED)
    return json_reply(200, _session(request, account, successor))


@api_call("read")
def get_session(bluesky: BlueskySandbox, request: SandboxRequest, caller: BlueskyCaller) -> Reply:  # noqa: ARG001
    if caller.account.status in ("deleted", "takendown"):
        raise _no_user(caller.account)
    return json_reply(200, _session(request, caller.account))


def delete_session(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:
    """End one refresh token. The call is repeatable, and an expired token is accepted."""
    bluesky.tokens.end(refresh_token_of(bluesky, request))
    return Reply(200)


def _no_user(account: BlueskyAccount) -> Refusal:
    return invalid(f"Could not find user info for account: {account.did}")


def _session(request: SandboxRequest, account: BlueskyAccount, token: Token | None = None) -> dict[str, Any]:
    session: dict[str, Any] = {
        "did": account.did,
        "handle": account.username,
        "email": f"{account.username.replace('.', '-')}@example.com",
        "emailConfirmed": account.email_confirmed,
        "active": account.status == "active",
    }
    if account.status != "active":
        session["status"] = account.status
    if token is not None:
        session |= {"accessJwt": token.access, "refreshJwt": token.refresh}
    return session | {"didDoc": _did_document(request, account)}


# --- the server, handles and DIDs ------------------------------------------------------------------------------------


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
    return json_reply(200, facts)


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
    return json_reply(200, _did_document(request, account))


def _did_document(request: SandboxRequest, account: BlueskyAccount) -> dict[str, Any]:
    return {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
        "id": account.did,
        "alsoKnownAs": [f"at://{account.username}"],
        "verificationMethod": [],
        "service": [
            {
                "id": "#atproto_pds",
                "type": "AtprotoPersonalDataServer",
                "serviceEndpoint": f"{request.base_url}/bluesky",
            }
        ],
    }


def unknown_method(bluesky: BlueskySandbox, request: SandboxRequest) -> Reply:  # noqa: ARG001
    raise invalid(f"No service configured for {request.path_params['method']}")


SERVER = "/xrpc/com.atproto.server"
CALLS = (
    SandboxCall("POST", f"{SERVER}.createSession", "create_session", create_session),
    SandboxCall("POST", f"{SERVER}.refreshSession", "refresh_session", refresh_session),
    SandboxCall("GET", f"{SERVER}.getSession", "get_session", get_session),
    SandboxCall("POST", f"{SERVER}.deleteSession", "delete_session", delete_session),
    SandboxCall("GET", f"{SERVER}.describeServer", "describe_server", describe_server),
    SandboxCall("GET", "/xrpc/com.atproto.identity.resolveHandle", "resolve_handle", resolve_handle),
    SandboxCall("", "/xrpc/{method}", "unknown_method", unknown_method),
    SandboxCall("GET", "/plc/{did}", "did_document", did_document),
)
