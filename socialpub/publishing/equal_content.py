"""Deliveries of equal content to one profile: the post of one could be taken for that of the other."""

import hashlib
import re
import unicodedata

from socialpub.db import delivery_rows
from socialpub.db.models import Delivery
from socialpub.db.transaction import Tx

_LEADING_NAMES = re.compile(r"^(\s*@\w+)+")
_LINK = re.compile(r"\w\.\w|://")


def key(body: str | None, media_count: int) -> str:
    """Equal for deliveries whose posts could not be told apart when the account is read back.

    A network may show a text without its leading names, and any link as its own short one: what is too equal here only
    waits for its turn.
    """
    words = unicodedata.normalize("NFC", _LEADING_NAMES.sub("", body or "")).split()
    text = " ".join("<link>" if _LINK.search(word) else word for word in words)
    return hashlib.sha256(f"{media_count} {text}".encode()).hexdigest()[:32]


def comes_first(tx: Tx, delivery: Delivery) -> bool:
    """Whether a delivery of equal content to the same profile must be resolved before this one's next step.

    Nothing of equal content is sent while one is past its commit, and of several unknowns the oldest is read back
    first.
    """
    others = delivery_rows.equal_past_commit(tx, delivery)
    if delivery.progress.reading_back or delivery.progress.commits:
        return any(other < (delivery.committed_at or "", delivery.id) for other in others)
    return delivery.commits_next and bool(others)
