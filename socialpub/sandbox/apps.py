"""Apps: who may ask for tokens, and how they prove who they are."""

import base64
import binascii
from dataclasses import dataclass, field


@dataclass(slots=True)
class SandboxApp:
    client_id: str
    client_secret: str | None = field(default="", repr=False)
    """Empty: any. None: a public client, which has none."""
    redirect_uris: tuple[str, ...] = ()
    """Empty: any that the network allows."""
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.client_id

    def accepts(self, secret: str) -> bool:
        return bool(secret) and self.client_secret in ("", secret)


def basic_credentials(header: str) -> tuple[str, str] | None:
    """Id and secret of an `Authorization: Basic` header; None when it is none."""
    scheme, _, encoded = header.partition(" ")
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    client_id, colon, secret = decoded.partition(":")
    return (client_id, secret) if scheme.lower() == "basic" and colon else None
