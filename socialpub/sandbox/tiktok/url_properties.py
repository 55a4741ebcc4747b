"""URL properties: whose address is it? A prefix is proved by a file that lies under it."""

import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from socialpub.sandbox.fetch import fetch
from socialpub.sandbox.tiktok.switches import TikTokSwitches


@dataclass(slots=True)
class UrlProperty:
    """What the portal shows: the file to serve under the prefix."""

    prefix: str
    file_name: str = field(default_factory=lambda: f"tiktok{secrets.token_hex(8)}.txt")
    content: str = field(default_factory=lambda: f"tiktok-developers-site-verification={secrets.token_urlsafe(24)}")
    verified: bool = False


def is_proved(switches: TikTokSwitches, claim: UrlProperty) -> bool:
    """Fetch the file and compare. Blocks."""
    found = fetch(claim.prefix + claim.file_name, switches.fetch)
    data = found.data if found is not None else None
    return data is not None and data.decode("utf-8", "replace").strip() == claim.content.strip()


def may_pull(switches: TikTokSwitches, url: object) -> bool:
    """It is an address that TikTok pulls from, and somebody proved it to be theirs."""
    if not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
    except ValueError:
        return False
    if not host or parts.scheme not in ("http", "https"):
        return False
    if switches.public_urls_only and (parts.scheme != "https" or _is_address(host) or "." not in host):
        return False
    if switches.all_urls_verified or any(url.startswith(prefix) for prefix in switches.verified_prefixes):
        return True
    return any(host == domain or host.endswith(f".{domain}") for domain in switches.verified_domains)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
