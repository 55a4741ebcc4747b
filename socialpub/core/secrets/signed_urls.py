"""Signed URLs, with which a caller without an API key can upload one file or read one file for a limited time.

A signature covers the method, the path below base_url's path, the expiry and the required headers. It does not cover
the Host header, which proxies change. The method is the purpose, so an upload URL cannot read a file.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import parse_qsl

from socialpub.core.errors import Forbidden
from socialpub.core.secrets.crypto import Secrets
from socialpub.core.settings.loader import Settings

UPLOADS = "/storage/uploads/"
MEDIA = "/storage/media/"
MAX_DIGITS = 12

UPLOAD_LIFETIME = MEDIA_LIFETIME = timedelta(hours=1)
"""A caller uploads and reads at once. An expired URL is renewed with the next response."""


def upload_url(settings: Settings, secrets: Secrets, artifact_id: str, mime_type: str, now: datetime) -> str:
    """Return the URL for the PUT of an upload, valid for `UPLOAD_LIFETIME`."""
    expires = now + UPLOAD_LIFETIME
    return _url(settings, secrets, "PUT", UPLOADS + artifact_id, expires, required_headers(mime_type))


def media_url(
    settings: Settings, secrets: Secrets, storage_key: str, now: datetime, lifetime: timedelta = MEDIA_LIFETIME
) -> str:
    """Return the URL of a stored file, valid for `lifetime`."""
    return _url(settings, secrets, "GET", MEDIA + storage_key, now + lifetime, {})


def required_headers(mime_type: str) -> dict[str, str]:
    """Return the headers that the PUT of an upload must have, with names in lower case."""
    return {"content-type": mime_type}


def check_upload(secrets: Secrets, artifact_id: str, mime_type: str, query: str, now: datetime) -> None:
    """Raise Forbidden unless `query` is the query of a valid upload URL of this artifact."""
    _check(secrets, "PUT", UPLOADS + artifact_id, query, now, required_headers(mime_type))


def check_media(secrets: Secrets, storage_key: str, query: str, now: datetime) -> int:
    """Return the whole seconds left. Raise Forbidden unless `query` is the query of a valid read URL of this file."""
    return _check(secrets, "GET", MEDIA + storage_key, query, now, {})


def _url(
    settings: Settings, secrets: Secrets, method: str, path: str, expires_at: datetime, headers: Mapping[str, str]
) -> str:
    expires = str(int(expires_at.timestamp()))
    signature = secrets.sign(*_bound(method, path, expires, headers))
    return f"{settings.base_url.rstrip('/')}{path}?expires={expires}&signature={signature}"


def _check(secrets: Secrets, method: str, path: str, query: str, now: datetime, headers: Mapping[str, str]) -> int:
    parameters = parse_qsl(query, keep_blank_values=True, max_num_fields=20) if query.count("&") < 20 else []
    expires = [value for name, value in parameters if name == "expires"]
    signatures = [value for name, value in parameters if name == "signature"]
    # The signed text has one form of the number, and the path does not contain line breaks.
    well_formed = (
        "\n" not in path
        and len(expires) == len(signatures) == 1
        and expires[0].isascii()
        and expires[0].isdigit()
        and len(expires[0]) <= MAX_DIGITS
    )
    bound = _bound(method, path, expires[0], headers) if well_formed else []
    if not well_formed or not secrets.verify_url(signatures[0], int(expires[0]), *bound):
        raise Forbidden("The URL's signature is not valid. Use the URL unchanged and with the right method.")
    left = int(expires[0]) - now.timestamp()
    if left <= 0:
        raise Forbidden("The URL has expired. Request a new URL.")
    return int(left)


def _bound(method: str, path: str, expires: str, headers: Mapping[str, str]) -> list[str]:
    return [method, path, expires, *(f"{name}:{value}" for name, value in sorted(headers.items()))]
