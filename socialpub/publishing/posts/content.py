"""The content of a post in the form for a network's adapter."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from socialpub.accounts import tokens
from socialpub.core.errors import FieldError
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery
from socialpub.db.models import ProfileRow
from socialpub.db.queries import post_content
from socialpub.db.tables import artifact_rows, post_rows
from socialpub.db.tables.waits import step_endpoint
from socialpub.providers.base import Content, MediaFile
from socialpub.providers.options import Options, Table, spelled
from socialpub.providers.options import list_artifacts as list_option_artifacts
from socialpub.providers.registry import OPTIONS
from socialpub.publishing.media import uploads
from socialpub.runtime import Runtime


def load_content(rt: Runtime, db: Database, post_id: str) -> Content:
    """Return the stored content. Its media files may be missing."""
    body, options, media = post_content.load(db, post_id)
    files = _files(rt, db, media) if media else ()
    in_options = option_files(rt, db, options) if options else {}
    return Content(body, files, in_options, rt.settings.base_url)


def load_earlier_contents(rt: Runtime, delivery: Delivery) -> list[tuple[Content, dict[str, Any]]]:
    """Return the other contents and options with which another installation may have published this delivery."""
    post = post_rows.find(rt.db, delivery.post_id)
    media = [list(item) for item in post_rows.list_media(rt.db, delivery.post_id)]
    present = {"body": post and post.body, "media": media, "options": delivery.options}
    return [
        (Content(content["body"] or "", _files(rt, rt.db, content["media"]), {}), content["options"])
        for content in delivery.phase.contents
        if content != present
    ]


def check_content(
    rt: Runtime, profile: ProfileRow, content: Content, given: Mapping[str, Any]
) -> tuple[Options, list[FieldError]]:
    """Return the canonical options, and the problems of this content for the profile's network."""
    provider = rt.providers[profile.provider]
    options, wrong = provider.read_options(given)
    problems = provider.check(content, options, tokens.to_account(profile))
    return options, [*wrong, *_leave_out(problems, wrong, provider.option_table, given)] if wrong else problems


def _leave_out(
    problems: Sequence[FieldError], wrong: Sequence[FieldError], table: Table, given: Mapping[str, Any]
) -> Iterator[FieldError]:
    """Yield the problems without those of options whose value is wrong: such an option is not missing as well."""
    paths = {error.path[:3] for error in wrong if len(error.path) > 2}
    for problem in problems:
        option = [spelled(str(name), table, given) or name for name in problem.path[2:3]]
        if problem.path[:1] != ("providerOptions",) or (*problem.path[:2], *option) not in paths:
            yield problem


def _files(rt: Runtime, db: Database, media: Sequence[tuple[str, str | None]]) -> tuple[MediaFile, ...]:
    return tuple(load_file(rt, db, artifact_id, at, alt) for at, (artifact_id, alt) in enumerate(media))


def load_file(rt: Runtime, db: Database, artifact_id: str, position: int, alt: str | None) -> MediaFile:
    row = artifact_rows.find(db, artifact_id)
    assert row is not None
    return _file(rt, row, position, alt)


def option_files(rt: Runtime, db: Database, given: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, MediaFile]:
    """Return the usable artifacts in options, by id. `given`: the provider and options of each delivery."""
    files = {}
    for provider, options in given:
        for _, artifact_id in list_option_artifacts(OPTIONS.get(provider, ()), options):
            row = artifact_rows.find(db, artifact_id)
            if row is not None and uploads.explain_unusable(row) is None:
                files[artifact_id] = _file(rt, row, 0, None)
    return files


def _file(rt: Runtime, row: Any, position: int, alt: str | None) -> MediaFile:
    # Removed files do not have a key.
    path, facts = rt.files.path(row.storage_key or ""), json.loads(row.facts or "{}")
    return MediaFile(position, row.kind, row.mime_type, row.size_bytes, path, row.file_name, alt, facts)


def first_endpoint(rt: Runtime, provider: str, content: Content, options: Mapping[str, Any]) -> str | None:
    """Return the endpoint of the first step. None: unknown before the claim."""
    network = rt.providers[provider]
    try:
        steps = network.plan(content, network.read_options(options)[0])
    except Exception:
        return None  # the claim checks the content and reports its problems
    return step_endpoint(steps[0].name)


# --- equal content ---------------------------------------------------------------------------------------------------

_LEADING_NAMES = re.compile(r"^(\s*@\w+)+")
_LINK = re.compile(r"\w\.\w|://")


def make_content_key(body: str | None, media_count: int) -> str:
    """Return a key that is equal for posts that a read-back could confuse.

    A network may show a text without its leading names, and links in its own short form. A needlessly equal key only
    delays a post.
    """
    words = unicodedata.normalize("NFC", _LEADING_NAMES.sub("", body or "")).split()
    text = " ".join("<link>" if _LINK.search(word) else word for word in words)
    return hashlib.sha256(f"{media_count} {text}".encode()).hexdigest()[:32]
