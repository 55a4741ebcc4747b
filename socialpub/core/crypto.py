"""Signatures, tokens at rest and the secrets of keys, all from the one `secret.key`.

Every use derives a key of its own from `secret.key`, so that what was made for one purpose is worthless for another:
a URL's signature gives nothing away about stored tokens.
"""

import base64
import hashlib
import hmac
import secrets
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from socialpub.core.errors import OperatorError


class Secrets:
    """Encrypts, decrypts and signs with keys derived from `secret.key`. Its repr shows nothing."""

    def __init__(self, key: bytes) -> None:
        self._fernet = Fernet(base64.urlsafe_b64encode(_derive(key, b"tokens at rest")))
        self._signing = hmac.new(_derive(key, b"signed urls"), digestmod=hashlib.sha256)
        self.check_value = _derive(key, b"check value").hex()[:32]
        """Stored in the database: a database that belongs to another `secret.key` is detected at start."""

    def __repr__(self) -> str:
        return "Secrets(****)"

    def seal(self, text: str) -> bytes:
        """Encrypt a token for the database."""
        return self._fernet.encrypt(text.encode())

    def open(self, sealed: bytes) -> str:
        """Decrypt what `seal` returned. Raises OperatorError when it was sealed with another `secret.key`."""
        try:
            return self._fernet.decrypt(bytes(sealed)).decode()
        except InvalidToken:
            raise OperatorError(
                "A stored token cannot be read with this secret.key.",
                "Put back the secret.key that belongs to this database, or connect the account again.",
            ) from None

    def sign(self, *parts: str) -> str:
        """A signature over the parts: first the purpose (a method), then what it binds. URL-safe text.

        Parts are joined with a newline, which none of them may contain.
        """
        signing = self._signing.copy()
        signing.update("\n".join(parts).encode())
        return base64.urlsafe_b64encode(signing.digest()).rstrip(b"=").decode()

    def verify(self, signature: str, *parts: str) -> bool:
        """Whether `signature` is that of `parts`, compared in constant time."""
        return hmac.compare_digest(signature.encode(), self.sign(*parts).encode())


def _derive(key: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), length=32, salt=None, info=b"socialpub " + purpose).derive(key)


def load(path: Path) -> Secrets:
    """Read `secret.key`. Raises OperatorError, which names the file and what to do."""
    try:
        text = path.read_text("ascii").strip()
        key = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except FileNotFoundError:
        raise OperatorError(
            f"{path} is missing.",
            "Run `socialpub init` to make one; after a restore put the original secret.key there.",
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not URL-safe base64"
        raise OperatorError(f"{path} cannot be read: {reason}.", "Put the original secret.key there.") from None
    if len(key) < 32:
        raise OperatorError(
            f"{path} is too short: 32 bytes in URL-safe base64 are needed.", "Put the original secret.key there."
        )
    return Secrets(key)


def new_api_secret() -> str:
    """256 random bits, URL-safe."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> bytes:
    """What is stored of an API key's secret. SHA-256 is enough: the secret is random, not chosen."""
    return hashlib.sha256(secret.encode()).digest()


def matches(secret: str, stored: bytes) -> bool:
    """Constant-time comparison with what is stored."""
    return hmac.compare_digest(digest(secret), stored)
