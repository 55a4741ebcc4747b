"""URL properties: whose address is it? A prefix is proved by a file that lies under it."""

import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from socialpub.sandbox.call import Refusal
from socialpub.sandbox.fetching import fetch

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok


@dataclass(slots=True)
class Property:
    """What the portal shows: the file to serve under the prefix."""

    prefix: str
    file_name: str = field(default_factory=lambda: f"tiktok{secrets.token_hex(8)}.txt")
    content: str = field(default_factory=lambda: f"tiktok-developers-site-verification={secrets.token_urlsafe(24)}")
    verified: bool = False


def verify(tiktok: "TikTok", claim: Property) -> bool:
    """The portal's button: fetch the file and compare. Blocks."""
    found = fetch(claim.prefix + claim.file_name, tiktok.fetch)
    data = found.data if found is not None else None
    claim.verified = data is not None and data.decode("utf-8", "replace").strip() == claim.content.strip()
    if claim.verified and claim.prefix not in tiktok.verified_prefixes:
        tiktok.verified_prefixes.append(claim.prefix)
        tiktok.world.write("tiktok", "prefix", prefix=claim.prefix)
    return claim.verified


def refuse_unverified(tiktok: "TikTok", endpoint: str, urls: list[object]) -> None:
    if not all(isinstance(url, str) and _may_pull(tiktok, url) for url in urls):
        raise Refusal(tiktok.refusal_answer(endpoint, "url_ownership_unverified"))


def _may_pull(tiktok: "TikTok", url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
    except ValueError:
        return False
    if not host or parts.scheme not in ("http", "https"):
        return False
    if tiktok.public_urls_only and (parts.scheme != "https" or _is_address(host) or "." not in host):
        return False
    if tiktok.all_urls_verified or any(url.startswith(prefix) for prefix in tiktok.verified_prefixes):
        return True
    return any(host == domain or host.endswith(f".{domain}") for domain in tiktok.verified_domains)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
