"""Against forged requests: only a form that this browser was given, sent from our own pages, does anything.

Three locks: the cookies' SameSite, the Origin that every browser sends with a form, and a token in the form that fits
the browser's cookie. The token is another one on every page, so that it cannot be guessed from compressed answers.
"""

import hashlib
import hmac
import secrets
from urllib.parse import urlsplit

from socialpub.core.errors import Forbidden
from socialpub.web.request import Request

FIELD = "csrf"
HEADER = b"x-csrf-token"
_SALT_LETTERS = 16

STALE = (
    "This form was not given to this browser, or it is older than your last sign-in. Nothing was done: go back, load "
    "the page again and send it once more."
)
FOREIGN = (
    "This form came from another site, so nothing was done. If you reach the dashboard through a proxy, let it pass on "
    "the Host header, or set base_url to the address that your browser shows."
)


def token(secret: str) -> str:
    """For a form that is shown to the browser with this secret in its cookie."""
    salt = secrets.token_hex(_SALT_LETTERS // 2)
    return salt + _sign(secret, salt)


def check(request: Request, secret: str, given: str) -> None:
    """Raises Forbidden unless the request comes from our own pages with a token for this browser."""
    check_origin(request)
    salt, signature = given[:_SALT_LETTERS], given[_SALT_LETTERS:]
    if not secret or not hmac.compare_digest(signature.encode(), _sign(secret, salt).encode()):
        raise Forbidden(STALE)


def check_origin(request: Request) -> None:
    """Raises Forbidden unless the request comes from our own pages."""
    if not _from_here(request):
        raise Forbidden(FOREIGN)


def _sign(secret: str, salt: str) -> str:
    return hmac.new(secret.encode(), f"form {salt}".encode(), hashlib.sha256).hexdigest()


def _from_here(request: Request) -> bool:
    origin = request.headers.get(b"origin")
    if origin is None:
        # Not every client sends it; browsers that leave it out say this instead, or know neither.
        return request.headers.get(b"sec-fetch-site", b"same-origin") in (b"same-origin", b"none")
    try:
        parts = urlsplit(origin.decode("latin-1").lower())
    except ValueError:
        return False
    base = urlsplit(request.state.rt.settings.base_url.lower())
    if (parts.scheme, parts.netloc) == (base.scheme, base.netloc):
        return True
    host = request.headers.get(b"host", b"").decode("latin-1").lower()
    return parts.scheme in ("http", "https") and parts.netloc != "" and parts.netloc == host
