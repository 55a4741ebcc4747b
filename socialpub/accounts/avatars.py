"""The images of accounts. The appliance fetches them itself: the dashboard shows images from no other host.

Only the pixels of a fetched file are kept, small and rewritten by the decoder process. A missing image is not a
failure. A disconnected profile does not have an image. A restored installation does not fetch images while it is
paused.
"""

import hashlib
import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from socialpub.core import logging
from socialpub.core.settings.networks import NetworkSection
from socialpub.db import appliance_state
from socialpub.db.models import ProfileRow
from socialpub.db.tables import profile_rows
from socialpub.media.decoder import client
from socialpub.media.decoder.client import DecoderFailed
from socialpub.media.types import CannotFit, FitLimits
from socialpub.providers import ip_addresses
from socialpub.providers.ip_addresses import AllowedHosts
from socialpub.providers.responses import ProviderError
from socialpub.runtime import Runtime

SIDE_PIXELS = 96
MAX_FETCHED_BYTES = 1024 * 1024
MAX_KEPT_BYTES = 32 * 1024
RENEWED_AFTER = timedelta(days=7)
RETRY_SECONDS = 3600.0
FETCH_SECONDS, DECODE_SECONDS = 10.0, 60.0
HTTPS_PORT = 443

log = logging.get_logger(__name__)


class ImageRefused(Exception):
    """The file at the URL is refused. The message is for the log and does not contain the URL."""


def list_versions(rt: Runtime) -> dict[str, str]:
    """Return the version of each profile's stored image. A new image has a new version."""
    return {row.id: _version(row) for row in profile_rows.with_avatar(rt.db) if _path(rt, row).exists()}


def load(rt: Runtime, profile_id: str) -> bytes | None:
    """Return the JPEG image of a connected profile, or None."""
    row = next((row for row in profile_rows.with_avatar(rt.db) if row.id == profile_id), None)
    try:
        return None if row is None else _path(rt, row).read_bytes()
    except OSError:
        return None


def fetch_next(rt: Runtime) -> str | None:
    """Fetch one missing or old image, and return the profile's id, or None. Remove unused images.

    May wait for a network, so do not call on the event loop.
    """
    wanted = profile_rows.with_avatar(rt.db)
    _remove_others(rt, {_path(rt, row) for row in wanted})
    if appliance_state.restored_from(rt.db):
        return None
    for row in wanted:
        if rt.avatar_pauses.is_over((row.id, row.picture_url), rt.clock.monotonic()) and _is_due(rt, _path(rt, row)):
            try:
                _renew(rt, row)
            except Exception:
                log.error("the avatar of a profile failed unexpectedly", profile=row.id, exc_info=True)
            return str(row.id)
    return None


def _path(rt: Runtime, row: ProfileRow) -> Path:
    return rt.settings.avatars_dir / f"{row.id}.{_version(row)}.jpg"


def _version(row: ProfileRow) -> str:
    return hashlib.sha256((row.picture_url or "").encode()).hexdigest()[:16]


def _is_due(rt: Runtime, path: Path) -> bool:
    try:
        return path.stat().st_mtime + RENEWED_AFTER.total_seconds() <= rt.now().timestamp()
    except FileNotFoundError:
        return True


def _renew(rt: Runtime, row: ProfileRow) -> None:
    path, subject = _path(rt, row), (row.id, row.picture_url)
    rt.avatar_pauses.begin(subject, rt.clock.monotonic() + RETRY_SECONDS)
    try:
        _fetch(rt, row, path)
        rt.avatar_pauses.end(subject)
    except (ProviderError, ImageRefused, CannotFit, DecoderFailed, OSError) as error:
        why = "the disk cannot store it" if isinstance(error, OSError) else str(error)
        log.info("the avatar of a profile could not be fetched", profile=row.id, why=why)
        if not path.exists():
            return
        # Some URLs expire: the stored image stays, and is fetched again in a week.
    now = rt.now().timestamp()
    os.utime(path, (now, now))


def _fetch(rt: Runtime, row: ProfileRow, path: Path) -> None:
    """Store the image at `path`."""
    url, http = row.picture_url or "", rt.http_for(row.provider)
    address = _public_address(getattr(rt.settings.providers, row.provider), url)
    response = http.call("GET", url, deadline_seconds=FETCH_SECONDS, address=address)
    if not response.ok:
        raise ImageRefused(f"HTTP {response.status}")
    if len(response.body) > MAX_FETCHED_BYTES:
        raise ImageRefused(f"the image has {len(response.body)} bytes, more than {MAX_FETCHED_BYTES}")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    source, target = path.with_suffix(".fetched"), path.with_suffix(".fitted")
    try:
        source.write_bytes(response.body)
        limits = FitLimits(("image/jpeg",), MAX_KEPT_BYTES, SIDE_PIXELS, SIDE_PIXELS, rewrite=True)
        client.fit(source, target, limits, timeout_seconds=DECODE_SECONDS)
        target.replace(path)
    finally:
        source.unlink(missing_ok=True)
        target.unlink(missing_ok=True)


def _public_address(section: NetworkSection, url: str) -> str | None:
    """Return the checked IP address to connect to. None: the client chooses.

    Raises ImageRefused unless `url` is a public HTTPS URL, or a URL at the host of an overridden `api_url`.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ImageRefused("the URL of the image cannot be read") from None
    if section.is_overridden_host(host) and parts.scheme in ("http", "https"):
        return None
    if parts.scheme != "https" or not host or port not in (None, HTTPS_PORT):
        raise ImageRefused("the URL of the image does not use HTTPS on port 443")
    of_host = ip_addresses.look_up(host, HTTPS_PORT)
    if not of_host:
        raise ImageRefused("the host of the image was not found")
    if not all(AllowedHosts().allow(host, address) for address in of_host):
        raise ImageRefused("the host of the image has a private IP address")
    # A proxy looks names up by itself.
    return None if getproxies().keys() & {"https", "all"} else of_host[0]


def _remove_others(rt: Runtime, wanted: set[Path]) -> None:
    """Remove images of profiles that are no longer connected, images from earlier URLs, and unfinished files."""
    folder = rt.settings.avatars_dir
    for path in folder.iterdir() if folder.is_dir() else ():
        if path not in wanted:
            path.unlink(missing_ok=True)
