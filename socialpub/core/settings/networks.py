"""The sections of the networks: the app's credentials, the network's URLs, and the hosts for uploads."""

import re
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from socialpub.core.settings.values import (
    PRIVATE_HOSTS,
    BaseUrl,
    PrivateHosts,
    RedirectUrl,
    Secret,
    Section,
    Trimmed,
    Url,
    read_list,
)

AN_API_URL = "an http(s) URL without a query; the path may contain a version"
A_CONSENT_PAGE = "an http(s) URL without a query"
A_REDIRECT_ADDRESS = (
    "the redirect URL that is registered with the app: an absolute http(s) URL without a fragment, or empty for "
    "{base_url}/oauth/<network>/callback"
)
HOSTS = 'a list of host names, such as ["upload.example.com"]; * is one part, and a leading * is one or more parts'
FROM_APP_PAGE = "the secret from the app's page of the network, or empty"

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""The hosts of the machine on which the browser or this process runs."""

_LABEL = r"(?:\*|[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)"
_UPLOAD_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def _check_upload_host(host: str) -> str:
    host = host.lower()
    if not _UPLOAD_HOST.fullmatch(host) or host.split(".")[-1] == "*":
        raise ValueError(f"{host!r} is not a host name; * must be a whole part, and not the last part")
    return host


UploadHosts = Annotated[
    tuple[Annotated[str, AfterValidator(_check_upload_host)], ...],
    BeforeValidator(read_list),
]


TIKTOK_SCOPES = (
    "user.info.basic",
    "user.info.profile",
    "user.info.stats",
    "video.list",
    "video.publish",
    "video.upload",
)
TIKTOK_SCOPES_NEEDED = (
    "a list of TikTok permissions: user.info.basic, video.publish or video.upload or both, and optionally video.list, "
    "user.info.profile, user.info.stats"
)


def _check_scope(name: str) -> str:
    if name not in TIKTOK_SCOPES:
        raise ValueError(f"{name!r} is not one of {', '.join(TIKTOK_SCOPES)}")
    return name


def _check_scopes(names: tuple[str, ...]) -> tuple[str, ...]:
    if "user.info.basic" not in names:
        raise ValueError("must contain user.info.basic, which identifies the account")
    if not {"video.publish", "video.upload"} & set(names):
        raise ValueError("must contain video.publish (direct posts) or video.upload (drafts)")
    return tuple(dict.fromkeys(names))


TikTokScopes = Annotated[
    tuple[Annotated[str, AfterValidator(_check_scope)], ...],
    BeforeValidator(read_list),
    AfterValidator(_check_scopes),
]

PINTEREST_SCOPES = ("user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write")
PINTEREST_SECRET_SCOPES = ("boards:read_secret", "boards:write_secret", "pins:read_secret", "pins:write_secret")
PINTEREST_SCOPES_NEEDED = (
    f"a list of Pinterest permissions: {', '.join(PINTEREST_SCOPES)} and, for secret boards, "
    f"{', '.join(PINTEREST_SECRET_SCOPES)}"
)


def _check_pinterest_scopes(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in (*PINTEREST_SCOPES, *PINTEREST_SECRET_SCOPES):
            raise ValueError(f"{name!r} is not one of {', '.join((*PINTEREST_SCOPES, *PINTEREST_SECRET_SCOPES))}")
    lacking = [name for name in PINTEREST_SCOPES if name not in names]
    if lacking:
        raise ValueError(f"must contain {', '.join(lacking)}: creating a pin needs these permissions")
    return tuple(dict.fromkeys(names))


PinterestScopes = Annotated[tuple[str, ...], BeforeValidator(read_list), AfterValidator(_check_pinterest_scopes)]


PKCE_BASE64URL = "base64url"


def _check_pkce(value: Any) -> Any:
    if value is True or value is False or value == PKCE_BASE64URL:
        return value
    raise ValueError("is not an accepted value")


Pkce = Annotated[bool | Literal["base64url"], BeforeValidator(_check_pkce)]


class NetworkSection(Section):
    """What the section of every network can be asked."""

    ADDRESS_KEY: ClassVar[str] = "api_url"
    """The key with the URL to which the network's calls go first."""

    @property
    def address(self) -> str:
        """The URL to which the network's calls go first."""
        url: str = getattr(self, self.ADDRESS_KEY)
        return url

    @property
    def is_set_up(self) -> bool:
        """Whether accounts can be connected."""
        return not self.missing_keys()

    @property
    def is_stand_in(self) -> bool:
        """Whether the URLs lead to a replacement of the network, such as the sandbox."""
        raise NotImplementedError

    def missing_keys(self) -> list[str]:
        """Return the empty keys that connecting an account needs."""
        return []

    def half_given(self) -> tuple[str, str] | None:
        """Return the set key and the empty key of an incomplete pair, or None."""
        return None

    def is_overridden_host(self, host: str) -> bool:
        """Return whether `host` (a name without port) is the host of a changed address of the network."""
        raise NotImplementedError


class AppSection(NetworkSection):
    """The app credentials and URLs of a network with a consent page. Each network has its own key for the app's id."""

    OWN_API_URL: ClassVar[str]
    OWN_SITE: ClassVar[str]
    CONSENT_PATH: ClassVar[str]
    ID_KEY: ClassVar[str] = "client_id"
    NEEDS_SECRET: ClassVar[bool] = True
    """False: the network has apps without a secret (public clients)."""

    client_secret: Secret = Field(default=SecretStr(""), description=FROM_APP_PAGE)
    api_url: BaseUrl = Field(description=AN_API_URL)
    authorize_url: Url = Field(description=A_CONSENT_PAGE)
    redirect_url: RedirectUrl = Field(default="", description=A_REDIRECT_ADDRESS)

    @property
    def upload_host_patterns(self) -> tuple[str, ...]:
        """The hosts to which the network may direct uploads. X never names one: its media goes to `api_url`."""
        return getattr(self, "upload_hosts", ())

    @property
    def site_url(self) -> str:
        """The site on which people read posts, without a slash at the end.

        It is the site of the consent page, or `OWN_SITE` if the page has another path.
        """
        page, path = self.authorize_url.rstrip("/"), self.CONSENT_PATH.rstrip("/")
        return page.removesuffix(path) if page.endswith(path) else self.OWN_SITE

    @property
    def is_stand_in(self) -> bool:
        own_page = self.authorize_url.rstrip("/") == (self.OWN_SITE + self.CONSENT_PATH).rstrip("/")
        domain = ".".join((urlsplit(self.OWN_API_URL).hostname or "").split(".")[-2:])
        # Pinterest's own sandbox is another host of Pinterest's domain.
        return not own_page or not f".{urlsplit(self.api_url).hostname}".endswith(f".{domain}")

    def missing_keys(self) -> list[str]:
        named = {self.ID_KEY: bool(getattr(self, self.ID_KEY))}
        if self.NEEDS_SECRET:
            named["client_secret"] = bool(self.client_secret)
        return [key for key, is_set in named.items() if not is_set]

    def half_given(self) -> tuple[str, str] | None:
        app_id, secret = bool(getattr(self, self.ID_KEY)), bool(self.client_secret)
        if secret and not app_id:
            return "client_secret", self.ID_KEY
        if app_id and not secret and self.NEEDS_SECRET:
            return self.ID_KEY, "client_secret"
        return None

    def is_overridden_host(self, host: str) -> bool:
        return self.api_url != self.OWN_API_URL and host == urlsplit(self.api_url).hostname

    def allows_upload_host(self, host: str) -> bool:
        """Return whether an upload to `host` (a name without port), which the network returned, is allowed.

        A leading `*.` matches one or more parts, and `*` elsewhere matches one part. The host of a changed `api_url` is
        allowed. The caller checks scheme and port of the URL.
        """
        host = host.lower().rstrip(".").strip("[]")
        return self.is_overridden_host(host) or any(_matches(pattern, host) for pattern in self.upload_host_patterns)


def _matches(pattern: str, host: str) -> bool:
    wanted, parts = pattern.split("."), host.split(".")
    if wanted[0] == "*" and len(parts) > len(wanted):
        parts = parts[len(parts) - len(wanted) :]
    return len(wanted) == len(parts) and all(w in ("*", f) and f for w, f in zip(wanted, parts, strict=True))


class XSection(AppSection):
    """An app without `client_secret` is a public client."""

    OWN_API_URL = "https://api.x.com"
    OWN_SITE = "https://x.com"
    CONSENT_PATH = "/i/oauth2/authorize"
    NEEDS_SECRET = False

    client_id: Trimmed = Field(default="", description="the app's OAuth 2.0 client id, from console.x.com")
    api_url: BaseUrl = Field(default=OWN_API_URL, description=AN_API_URL)
    authorize_url: Url = Field(default=OWN_SITE + CONSENT_PATH, description=A_CONSENT_PAGE)


class TikTokSection(AppSection):
    OWN_API_URL = "https://open.tiktokapis.com"
    OWN_SITE = "https://www.tiktok.com"
    CONSENT_PATH = "/v2/auth/authorize/"
    ID_KEY = "client_key"

    client_key: Trimmed = Field(default="", description="the app's client key, from developers.tiktok.com")
    api_url: BaseUrl = Field(default=OWN_API_URL, description=AN_API_URL)
    authorize_url: Url = Field(default=OWN_SITE + CONSENT_PATH, description=A_CONSENT_PAGE)
    upload_hosts: UploadHosts = Field(default=("*.tiktokapis.com",), description=HOSTS)
    scopes: TikTokScopes = Field(
        default=("user.info.basic", "video.publish", "video.upload"), description=TIKTOK_SCOPES_NEEDED
    )
    pkce: Pkce = Field(
        default=True,
        description='true (TikTok\'s hexadecimal challenge), "base64url" (RFC 7636) or false (no challenge)',
    )
    audited: bool = Field(default=False, description="true if TikTok has audited the app, otherwise false")


class PinterestSection(AppSection):
    OWN_API_URL = "https://api.pinterest.com/v5"
    OWN_SITE = "https://www.pinterest.com"
    CONSENT_PATH = "/oauth/"

    client_id: Trimmed = Field(default="", description="the app id, from developers.pinterest.com")
    api_url: BaseUrl = Field(default=OWN_API_URL, description=AN_API_URL)
    authorize_url: Url = Field(default=OWN_SITE + CONSENT_PATH, description=A_CONSENT_PAGE)
    upload_hosts: UploadHosts = Field(default=("*.amazonaws.com",), description=HOSTS)
    scopes: PinterestScopes = Field(default=PINTEREST_SCOPES, description=PINTEREST_SCOPES_NEEDED)


class BlueskySection(NetworkSection):
    """A network without apps. Each account has a server, and the servers of accounts come from outside."""

    ADDRESS_KEY = "service"
    OWN_SERVICE: ClassVar[str] = "https://bsky.social"
    OWN_DIRECTORY: ClassVar[str] = "https://plc.directory"
    OWN_SITE: ClassVar[str] = "https://bsky.app"

    enabled: bool = Field(default=False, description="true if socialpub publishes to Bluesky, otherwise false")
    service: BaseUrl = Field(default=OWN_SERVICE, description="an http(s) URL without a query; a path is allowed")
    plc_url: BaseUrl = Field(default=OWN_DIRECTORY, description="an http(s) URL without a query; a path is allowed")
    private_servers: PrivateHosts = Field(default=(), description=PRIVATE_HOSTS)

    @property
    def site_url(self) -> str:
        """The site on which people read posts. The sandbox has its directory at `/plc` of this site."""
        return self.OWN_SITE if self.plc_url == self.OWN_DIRECTORY else self.plc_url.removesuffix("/plc")

    @property
    def is_set_up(self) -> bool:
        return self.enabled

    @property
    def is_stand_in(self) -> bool:
        return self.plc_url != self.OWN_DIRECTORY

    def is_overridden_host(self, host: str) -> bool:
        return self.service != self.OWN_SERVICE and host == urlsplit(self.service).hostname
