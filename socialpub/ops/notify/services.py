"""The services that the owner is told through, as `[notify] urls` lists them.

An address holds a password: elsewhere a service is named by its place in the list and by what its address begins with,
and known by a digest.
"""

from dataclasses import dataclass, field

from pydantic import SecretStr

from socialpub.core.crypto import Secrets
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.notify import service_of


@dataclass(frozen=True, slots=True)
class Service:
    id: str
    name: str
    """`1 mailto`: the first address, which begins with mailto://."""
    url: SecretStr = field(repr=False)


def configured(settings: Settings, secrets: Secrets) -> list[Service]:
    """In the order of the list."""
    return [
        Service(secrets.sign("notify", url.get_secret_value()), name_of(number, url), url)
        for number, url in enumerate(settings.notify.urls, 1)
    ]


def name_of(number: int, url: SecretStr) -> str:
    return f"{number} {service_of(url.get_secret_value())}"
