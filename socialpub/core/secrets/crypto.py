"""Signatures, sealed tokens and API secrets, all from one `secret.key`.

Each purpose has a key that is derived from `secret.key`, so a URL's signature reveals nothing about sealed tokens. A
sealed text belongs to one row and column of the database and cannot be opened in another place. Write access to the
database is therefore not enough to publish with another account's token.
"""

import base64
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.core.machine import user_name
from socialpub.core.secrets import redaction

_FORM = b"2."
"""The beginning of sealed texts."""
_NONCE_BYTES = 12
KEY_BYTES = 32


class Secrets:
    """Encrypts, decrypts and signs with keys derived from `secret.key`. Its repr shows nothing."""

    def __init__(self, key: bytes) -> None:
        self._sealing = AESGCM(_derive(key, b"sealed texts"))
        self._backups = hmac.new(_derive(key, b"sealed copies"), digestmod=hashlib.sha256)
        self.url_key = _derive(key, b"signed urls")
        self._signing = hmac.new(self.url_key, digestmod=hashlib.sha256)
        self._former_urls: list[tuple[bytes, int]] = []
        self.check_value = _derive(key, b"check value").hex()[:32]
        """The database stores this value, so a start detects a database that belongs to another `secret.key`."""

    def __repr__(self) -> str:
        return "Secrets(****)"

    def seal(self, text: str, table: str, row_id: str, column: str) -> bytes:
        """Encrypt a token for this place in the database. ASCII."""
        redaction.add_secrets(text)
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._sealing.encrypt(nonce, text.encode(), "\n".join((table, row_id, column)).encode())
        return _FORM + base64.urlsafe_b64encode(nonce + sealed)

    def open(self, sealed: bytes, table: str, row_id: str, column: str) -> str:
        """Decrypt a text that `seal` returned for this place. Raise OperatorError for another place or `secret.key`."""
        try:
            if not sealed.startswith(_FORM):
                raise ValueError
            content = base64.b64decode(sealed[len(_FORM) :], altchars=b"-_", validate=True)
            nonce, content = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
            text = self._sealing.decrypt(nonce, content, "\n".join((table, row_id, column)).encode()).decode()
        except (InvalidTag, ValueError):
            raise OperatorError(
                "A stored token cannot be decrypted with this secret.key.",
                "Restore the secret.key that belongs to this database, or connect the account again.",
            ) from None
        redaction.add_secrets(text)
        return text

    def sign_backup(self, digest: str) -> str:
        """Return the signature of a backup with this digest in hexadecimal."""
        signing = self._backups.copy()
        signing.update(digest.encode())
        return signing.hexdigest()

    def has_signed_backup(self, seal: str, digest: str) -> bool:
        """Return whether `seal` is the signature of this digest, in constant time."""
        return hmac.compare_digest(seal.encode(), self.sign_backup(digest).encode())

    def sign(self, *parts: str) -> str:
        """Return a signature of the parts as URL-safe text. The first part is the purpose.

        Newlines separate the parts, so parts must not contain a newline.
        """
        signing = self._signing.copy()
        signing.update("\n".join(parts).encode())
        return _as_text(signing.digest()).decode()

    def verify(self, signature: str, *parts: str) -> bool:
        """Return whether `signature` is the signature of `parts`, in constant time."""
        return hmac.compare_digest(signature.encode(), self.sign(*parts).encode())

    def accept_urls(self, url_key: bytes, until: int) -> None:
        """Let `verify_url` accept URLs with signatures of the earlier `url_key`, if they expire by `until`."""
        self._former_urls.append((url_key, until))

    def verify_url(self, signature: str, ends_at: int, *parts: str) -> bool:
        """Return whether a URL that expires at `ends_at` has a valid signature, perhaps of an earlier `secret.key`."""
        if self.verify(signature, *parts):
            return True
        signed = "\n".join(parts).encode()
        return any(
            ends_at <= until and hmac.compare_digest(signature.encode(), _as_text(hmac.digest(key, signed, "sha256")))
            for key, until in self._former_urls
        )


def _as_text(signature: bytes) -> bytes:
    return base64.urlsafe_b64encode(signature).rstrip(b"=")


def _derive(key: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), length=32, salt=None, info=b"socialpub " + purpose).derive(key)


def load(path: Path) -> Secrets:
    """Load `secret.key`. Raise OperatorError."""
    try:
        text = path.read_text("ascii").strip()
        key = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except FileNotFoundError:
        raise OperatorError(
            f"{path} is missing.",
            "Restore the original file from your own copy or from a backup that was made with --with-secret "
            "(tar -xf BACKUP secret.key). If the file is lost, or for a new installation, run "
            f"`{commands.line('init', '--new-secret')}`. The new key cannot read stored tokens and older backups. "
            "Connect the accounts again. Posts, media and API keys stay.",
        ) from None
    except PermissionError:
        raise _unreadable(path) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not URL-safe base64"
        raise OperatorError(f"{path} cannot be read: {reason}.", "Restore the original secret.key.") from None
    if len(key) < KEY_BYTES:
        raise OperatorError(
            f"{path} is too short: it must contain 32 bytes in URL-safe base64.", "Restore the original secret.key."
        )
    return Secrets(key)


def _unreadable(path: Path) -> OperatorError:
    """Return the error for a `secret.key` that this user cannot read, such as a file that root created."""
    own = user_name(os.geteuid())
    try:
        owner = user_name(path.stat().st_uid)
    except OSError:
        return OperatorError(f"{own} cannot read {path}.", "Run the command as the user of socialpub.")
    if owner != own:
        line = commands.system_line("chown", f"{own}:", str(path), root=True)
        return OperatorError(f"{path} is owned by {owner}, and {own} cannot read it.", f"Run `{line}`.")
    line = commands.system_line("chmod", "600", str(path))
    return OperatorError(f"{path} cannot be read: the file mode does not allow reading.", f"Run `{line}`.")


def new_key() -> bytes:
    """Return the content of a new `secret.key`."""
    return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n"


def new_api_secret() -> str:
    """Return 256 random bits as URL-safe text."""
    return secrets.token_urlsafe(32)


def hash_api_secret(secret: str) -> bytes:
    """Return the stored hash of an API secret. SHA-256 is enough: the secret is random."""
    return hashlib.sha256(secret.encode()).digest()


def matches_hash(secret: str, stored: bytes) -> bool:
    """Compare with the stored hash, in constant time."""
    return hmac.compare_digest(hash_api_secret(secret), stored)
