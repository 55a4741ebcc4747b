"""`[notify]`: where the owner is told what needs them, and what they want to be told.

The addresses hold passwords. Everything that is said of one names it by its scheme and its host.
"""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from socialpub.core.cause_kinds import CauseKind
from socialpub.core.settings.values import SecretList, Section, Trimmed, read_list

_WITH_HOST = (
    "apprise bark emby enigma2 evolution form gorush gotify growl hassio humhub irc jellyfin json kodi mailgun "
    "mailto mastodon misskey mmost mqtt ncloud nctalk onebot parsep pjet rocket rsyslog signal smseagle "
    "synology toot xbmc xml xmpp"
)
HOSTED = frozenset(f"{name}{secure}" for name in _WITH_HOST.split() for secure in ("", "s"))
"""Schemes whose addresses always name a host. Most others have a token in its place, which is a secret."""
HOSTED_WITH_PATH = frozenset(("matrix", "matrixs", "ntfy", "ntfys"))
"""Schemes whose addresses name a host if a path follows it. Otherwise they have a topic or a token there."""
LOCAL = frozenset(("dbus", "glib", "gnome", "kde", "macosx", "qt", "syslog", "windows"))
"""Schemes of a desktop or a log: Apprise needs nothing after them."""
_HOST = re.compile(r"[a-z0-9][a-z0-9_.-]*|[0-9a-f:]+")

EXAMPLES = "mailto://…, ntfy://…, gotify://… or tgram://…"


def service_of(url: str) -> str:
    """What an address begins with, in front of ://; empty when it does not begin as one."""
    service, mark, rest = url.partition("://")
    return service.lower() if mark and rest.strip() and service.isascii() and service.isalnum() else ""


def name_of(url: str) -> str:
    """Return scheme and host of an address, `ntfys://ntfy.example.com`. The host is missing if it could be a secret."""
    scheme = service_of(url)
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return f"{scheme}://"
    is_hosted = scheme in HOSTED or (scheme in HOSTED_WITH_PATH and parts.path.strip("/"))
    # A name without a dot or a port can be half of an unescaped user name.
    if is_hosted and _HOST.fullmatch(host) and (port or "." in host or ":" in host or host == "localhost"):
        return f"{scheme}://[{host}]" if ":" in host else f"{scheme}://{host}"
    return f"{scheme}://"


def malformed(url: str) -> str | None:
    """Return what is wrong with the form of an address, as the end of a sentence; None when nothing is."""
    scheme, mark, rest = url.strip().partition("://")
    if mark and not rest.strip() and scheme.lower() in LOCAL:
        return "is of a service of this machine itself, which socialpub does not support"
    if mark and not rest.strip() and scheme.isascii() and scheme.isalnum():
        return f"is not complete: it needs the rest after {scheme.lower()}://, as {EXAMPLES}"
    if not service_of(url):
        return f"must begin with a service and ://, and go on, as {EXAMPLES}"
    return None if url.isprintable() else "must not hold line breaks or control characters"


def _check_urls(values: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    for number, value in enumerate(values, 1):
        url = value.get_secret_value()
        fault = malformed(url)
        if fault:
            raise ValueError(f"number {number} {f'({service_of(url)}) ' if service_of(url) else ''}{fault}")
        if value in values[: number - 1]:
            raise ValueError(f"number {number} ({service_of(url)}) is there twice: keep one of them")
    return values


def _check_kind(name: str) -> str:
    if name not in list(CauseKind):
        raise ValueError(f"{name[:60]!r} is none of them")
    return name


_KINDS = ", ".join(f'"{kind}"' for kind in CauseKind)


class NotifySection(Section):
    urls: Annotated[SecretList, AfterValidator(_check_urls)] = Field(
        default=(), description=f"a list of addresses, such as {EXAMPLES}"
    )
    urls_file: Trimmed = Field(
        default="",
        description="the name of a readable file with one address a line, looked for in $CREDENTIALS_DIRECTORY, then "
        "beside the configuration; empty when urls itself is given",
    )
    causes: Annotated[tuple[Annotated[str, AfterValidator(_check_kind)], ...], BeforeValidator(read_list)] = Field(
        default=tuple(kind.value for kind in CauseKind), description=f"a list of some of {_KINDS}"
    )
    daily_limit: int = Field(default=20, ge=1, le=1000, description="a whole number from 1 to 1000")
