"""Apps: who may ask for tokens, and what comes back to whom."""

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from socialpub.sandbox.call import Call
from socialpub.sandbox.x import problems

if TYPE_CHECKING:
    from socialpub.sandbox.x.network import X


@dataclass(frozen=True, slots=True)
class App:
    client_id: str
    client_secret: str | None = field(repr=False)
    """None: a public client."""
    redirect_uris: tuple[str, ...] = ()
    """Empty: any."""
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.client_id


def find(x: "X", client_id: str) -> App | None:
    """The app with this id; one that nobody registered is taken for a confidential one with any secret, unless
    `strict_apps`."""
    app = x.apps.get(client_id)
    if app is None and client_id and not x.strict_apps:
        return App(client_id, "")
    return app


def may_return_to(app: App, uri: str) -> bool:
    """Exactly a registered address (any, when none is registered); never one on `localhost`."""
    scheme, _, rest = uri.partition("://")
    host = rest.split("/", 1)[0].rsplit(":", 1)[0]
    if scheme not in ("http", "https") or not host or host == "localhost" or "#" in uri:
        return False
    return not app.redirect_uris or uri in app.redirect_uris


def authenticate(x: "X", call: Call, form: dict[str, str]) -> App:
    """The app behind a call to the token endpoints: Basic for a confidential one, `client_id` in the body for a public
    one."""
    header = call.headers.get("authorization")
    if header is None:
        app = x.apps.get(form.get("client_id", ""))
        if app is None or app.client_secret is not None:
            raise problems.oauth(401, "unauthorized_client", "Missing valid authorization header")
        return app
    client_id, secret = _basic(header)
    app = find(x, client_id)
    if app is None:
        raise problems.oauth(401, "invalid_client", "Value passed for the client id was invalid.")
    known_secret = app.client_secret
    if known_secret is None or not secret or (known_secret and secret != known_secret) or "client_secret" in form:
        raise problems.oauth(401, "unauthorized_client", "Missing valid authorization header")
    if form.get("client_id", client_id) != client_id:
        raise problems.oauth(400, "invalid_request", "Value passed for the client id does not match the header.")
    return app


def _basic(header: str) -> tuple[str, str]:
    scheme, _, encoded = header.partition(" ")
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        decoded = ""
    client_id, colon, secret = decoded.partition(":")
    if scheme.lower() != "basic" or not colon or any(sign.isspace() for sign in decoded):
        raise problems.oauth(401, "unauthorized_client", "Missing valid authorization header")
    return client_id, secret
