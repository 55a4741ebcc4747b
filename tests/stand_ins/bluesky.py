"""Bluesky's stand-in: it checks records against their schemas, and has what varies between servers."""

from dataclasses import dataclass
from typing import Any

from socialpub.sandbox.bluesky.models import TID_DIGITS, BlueskyBlob
from socialpub.sandbox.bluesky.network import BlueskySandbox, invalid
from socialpub.sandbox.memory import SandboxContext
from tests.stand_ins.bluesky_lexicon import InvalidRecord, check_record, find_float
from tests.stand_ins.network import StandIn


def key_seconds(rkey: str) -> float:
    """Return the time in a key, as Unix time."""
    number = 0
    for digit in rkey:
        number = number << 5 | TID_DIGITS.index(digit)
    return (number >> 10) / 1e6


@dataclass
class BlueskySwitches:
    """How this server behaves where others may behave in another way. Set them on `world.bluesky` at any time."""

    sends_did_document: bool = True
    """A session names the account's server."""
    server_url: str = ""
    """The server that DID documents name. Empty: the sandbox."""
    reveals_blob_limit: bool = True
    """Older servers do not say how large a blob may be."""
    image_limit: int = 2_000_000
    """Of an image in a post. Older servers accept 1,000,000."""
    blob_seconds: float = 6 * 3600
    """How long a blob lives that no record names."""


class BlueskyStandIn(StandIn, BlueskySandbox, BlueskySwitches):
    endpoints = (*BlueskySandbox.endpoints, "create_record", "delete_record", "repo_status")
    methods = (*BlueskySandbox.methods, "createRecord", "deleteRecord", "getRepoStatus")

    def __init__(self, context: SandboxContext) -> None:
        BlueskySwitches.__init__(self)
        StandIn.__init__(self, context)

    def session_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        return facts if self.sends_did_document else {name: facts[name] for name in facts if name != "didDoc"}

    def server_of(self, here: str) -> str:
        return self.server_url or here

    def server_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        return facts if self.reveals_blob_limit else {name: facts[name] for name in facts if name != "blobUploadLimit"}

    def check_record(self, collection: str, record: dict[str, Any], validate: bool | None) -> str:
        if path := find_float(record):
            raise invalid(f"Invalid {collection} record: not in the data model at {path}")
        if validate is False:
            return "unknown"
        try:
            known = check_record(collection, record, self.image_limit)
        except InvalidRecord as error:
            raise invalid(f"Invalid {collection} record: {error}") from None
        if validate and not known:
            raise invalid(f"Unknown lexicon type: {collection}")
        return "valid" if known else "unknown"

    def find_blob(self, did: str, cid: str) -> BlueskyBlob | None:
        """Return the blob, unless no record has named it for too long."""
        blob = super().find_blob(did, cid)
        if blob is None or self.seconds_since(blob.uploaded_at) < self.blob_seconds:
            return blob
        return blob if self.is_blob_used(did, cid) else None
