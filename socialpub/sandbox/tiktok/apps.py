"""TikTok's apps: who may ask for tokens, and what comes back to whom."""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from socialpub.sandbox.tiktok.network import TikTok

SCOPES = ("user.info.basic", "user.info.profile", "user.info.stats", "video.list", "video.publish", "video.upload")
LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(slots=True)
class App:
    client_key: str
    client_secret: str = field(default="", repr=False)
    """Empty: any."""
    redirect_uris: tuple[str, ...] = ()
    """Empty: any that its platform allows. A desktop app's may have `*` for its port."""
    platform: Literal["web", "desktop", ""] = ""
    """Empty: desktop when the redirect leads to this machine, else web."""
    scopes: tuple[str, ...] = SCOPES
    audited: bool = True
    target_users: tuple[str, ...] = ()
    """Of an app in TikTok's own sandbox: only these usernames can log in. Empty: everybody."""
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.client_key


def find(tiktok: "TikTok", client_key: str) -> App | None:
    """The app with this key; one that nobody registered takes any secret, unless `strict_apps`."""
    app = tiktok.apps.get(client_key)
    if app is None and client_key and not tiktok.strict_apps:
        return App(client_key, audited=tiktok.audited)
    return app


def is_audited(tiktok: "TikTok", client_key: str | None) -> bool:
    app = tiktok.apps.get(client_key or "")
    return app.audited if app is not None else tiktok.audited


def platform_of(app: App, uri: str) -> str:
    return app.platform or ("desktop" if urlsplit(uri).hostname in LOOPBACK else "web")


def may_return_to(app: App, uri: str) -> bool:
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
