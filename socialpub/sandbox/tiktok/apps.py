"""TikTok's apps, and where the browser may go back to."""

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from socialpub.sandbox.apps import SandboxApp

SCOPES = ("user.info.basic", "user.info.profile", "user.info.stats", "video.list", "video.publish", "video.upload")
LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(slots=True)
class TikTokApp(SandboxApp):
    """A redirect address of a desktop app may have `*` for its port."""

    platform: Literal["web", "desktop", ""] = ""
    """Empty: desktop when the redirect leads to this machine, else web."""
    scopes: tuple[str, ...] = SCOPES
    audited: bool = True
    target_users: tuple[str, ...] = ()
    """Of an app in TikTok's own sandbox: only these usernames can log in. Empty: everybody."""


def platform_of(app: TikTokApp, uri: str) -> str:
    return app.platform or ("desktop" if urlsplit(uri).hostname in LOOPBACK else "web")


def may_return_to(app: TikTokApp, uri: str) -> bool:
    """By the rules of the platform, and exactly a registered address where there are any."""
    parts = urlsplit(uri)
    if not parts.hostname or parts.query or parts.fragment or "?" in uri or "#" in uri or len(uri) >= 512:
        return False
    if platform_of(app, uri) == "web":
        fits = parts.scheme == "https"
    else:
        fits = (
            parts.scheme in ("http", "https") and parts.hostname in LOOPBACK and parts.netloc.rpartition(":")[1] != ""
        )
    return fits and (not app.redirect_uris or any(_same(known, uri) for known in app.redirect_uris))


def _same(registered: str, uri: str) -> bool:
    if "*" not in registered:
        return registered == uri
    return re.fullmatch(re.escape(registered).replace(r":\*", r":[0-9]+"), uri) is not None
