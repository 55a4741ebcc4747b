"""The servers of accounts: found from a handle or a DID, and checked before each call.

Handles, DID documents and the addresses in them come from outside. A server must be public and use https, unless the
owner lists it or it is the server of the configuration. The connection goes to a checked IP address.
"""

import re
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers import ip_addresses
from socialpub.providers.http import Http
from socialpub.providers.ip_addresses import AllowedHosts
from socialpub.providers.responses import (
    HttpResponse,
    NoAnswer,
    NotSent,
    as_object,
    json_object,
    object_at,
    positive_int_at,
    text_at,
)

_ADDRESS = re.compile(r"(https?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/:%-]*)?")
"""Stricter than URLs: no user, no query, nothing that two parsers could read differently."""
_DID = re.compile(r"did:plc:[a-z0-9]{1,64}|did:web:[A-Za-z0-9._-]{1,253}(?:%3A[0-9]{1,5})?")
_HANDLE = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_MAX_HANDLE_LENGTH = 253
_DEFAULT_PORTS = {"https": 443, "http": 80}
_READ_SECONDS = 15.0


class ServerRefused(NotSent):
    """The address of a server is not allowed."""


def is_did(text: str) -> bool:
    return _DID.fullmatch(text) is not None


def is_handle(text: str) -> bool:
    return len(text) <= _MAX_HANDLE_LENGTH and _HANDLE.fullmatch(text) is not None


def pick_address(section: BlueskySection, url: str) -> str | None:
    """Return the checked IP address for a call to this URL. None: the client chooses.

    Raises `ServerRefused`, and `NotSent` when the host is not found. Waits for DNS.
    """
    match = _ADDRESS.fullmatch(url)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        match = None
    if match is None:
        raise ServerRefused("The address of the account's server is not a plain https address.")
    if _is_configured(section, parts.scheme, host, port):
        return None
    addresses_of_host = ip_addresses.look_up(host, port)
    if not addresses_of_host:
        raise NotSent(f"{host} could not be reached: its name was not found.")
    allowed = AllowedHosts.parse(section.private_servers)
    is_listed = all(allowed.lists(host, address) for address in addresses_of_host)
    if parts.scheme != "https" and not is_listed:
        raise ServerRefused(f"The server {host} does not use https. {_LIST_IT}")
    if not all(allowed.allow(host, address) for address in addresses_of_host):
        raise ServerRefused(f"The server {host} has a private IP address. {_LIST_IT}")
    # A proxy looks names up by itself.
    return None if not is_listed and getproxies().keys() & {"https", "all"} else addresses_of_host[0]


_LIST_IT = "If the server is yours, add it to private_servers in [providers.bluesky]."


def _is_configured(section: BlueskySection, scheme: str, host: str, port: int) -> bool:
    for own in map(urlsplit, (section.service, section.plc_url)):
        if (scheme, host, port) == (own.scheme, own.hostname, own.port or _DEFAULT_PORTS[own.scheme]):
            return True
    return False


HOSTED = {"https://bsky.social": ".host.bsky.network"}
"""The end of the names of the servers whose accounts sign in at this service."""


def is_of_service(server: str, service: str) -> bool:
    """Return whether the accounts of this server sign in at the service."""
    hosted = HOSTED.get(service)
    return server == service or (hosted is not None and (urlsplit(server).hostname or "").endswith(hosted))


def name_of(server: str) -> str:
    return server.removeprefix("https://")


def is_named(server: str, name: str) -> bool:
    """Return whether the owner's name for a server means this one."""
    return name_of(server).casefold() == name_of(name.strip().casefold()).rstrip("/")


# --- from a handle to a server -----------------------------------------------------------------------------------


def find_did(http: Http, section: BlueskySection, handle: str) -> str | None:
    """Return the DID of a handle. None: no account has it."""
    url = f"{section.service}/xrpc/com.atproto.identity.resolveHandle"
    response = http.call("GET", url, params={"handle": handle}, deadline_seconds=_READ_SECONDS)
    did = text_at(json_object(response), "did") if response.ok else None
    if did is not None and is_did(did):
        return did
    if 400 <= response.status < 500 and response.status != 429:
        return None
    raise NoAnswer(f"Bluesky sent no usable response (HTTP {response.status}).")


def find_server(http: Http, section: BlueskySection, did: str, handle: str | None = None) -> str | None:
    """Return the URL of the account's server. None: the DID has no server, or does not name this handle."""
    document = _read_document(http, section, did)
    names = document.get("alsoKnownAs")
    if handle is not None and f"at://{handle}" not in (names if isinstance(names, list) else []):
        return None
    return read_endpoint(document)


def read_endpoint(document: Any) -> str | None:
    """Return the URL of the account's server in a DID document, without a slash at the end."""
    listed = as_object(document).get("service")
    for service in map(as_object, listed if isinstance(listed, list) else []):
        if (text_at(service, "id") or "").endswith("#atproto_pds"):
            return (text_at(service, "serviceEndpoint") or "").rstrip("/") or None
    return None


def _read_document(http: Http, section: BlueskySection, did: str) -> dict[str, Any]:
    if did.startswith("did:plc:"):
        url = f"{section.plc_url}/{did}"
    else:
        url = f"https://{unquote(did.removeprefix('did:web:'))}/.well-known/did.json"
    address = pick_address(section, url)
    response = http.call("GET", url, address=address, deadline_seconds=_READ_SECONDS)
    if response.status in (404, 410):
        return {}
    if not response.ok:
        raise NoAnswer(f"The directory of accounts sent no usable response (HTTP {response.status}).")
    document = as_object(response.json())
    return document if document.get("id") == did else {}


def ask(
    http: Http, section: BlueskySection, server: str, name: str, *, token: str | None = None, **request: Any
) -> HttpResponse:
    """Send one call to a server outside of a job. A call with `params` is a query."""
    url = f"{server}/xrpc/{name}"
    method = "GET" if "params" in request else "POST"
    return http.call(method, url, token=token, address=pick_address(section, url), **request)


def is_usable(section: BlueskySection, server: str) -> bool:
    """Return whether calls may go to this server now."""
    try:
        pick_address(section, server)
    except NotSent:
        return False
    return True


def describe(http: Http, section: BlueskySection, server: str) -> dict[str, Any]:
    """Return the server's limits as facts of its accounts. Empty if the server does not report them."""
    response = ask(http, section, server, "com.atproto.server.describeServer", params={})
    limit = positive_int_at(json_object(response), "blobUploadLimit") if response.ok else None
    return {} if limit is None else {BLOB_LIMIT: limit}


EMAIL_CONFIRMED = "email_confirmed"
"""The key in the facts: whether the account's email address is confirmed. None: the server does not say."""
BLOB_LIMIT = "blob_limit"
"""The key in the facts for the largest file in bytes that the server accepts."""


def read_profile(http: Http, section: BlueskySection, server: str, did: str) -> tuple[str | None, str | None]:
    """Return the account's name and the URL of its picture, if it has them."""
    params = {"repo": did, "collection": "app.bsky.actor.profile", "rkey": "self"}
    response = ask(http, section, server, "com.atproto.repo.getRecord", params=params)
    record = object_at(json_object(response), "value") if response.ok else {}
    picture = text_at(object_at(object_at(record, "avatar"), "ref"), "$link")
    url = f"{server}/xrpc/com.atproto.sync.getBlob?did={did}&cid={picture}"
    return text_at(record, "displayName"), url if picture and picture.isalnum() else None
