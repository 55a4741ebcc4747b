"""Finds a post with an unknown outcome: by its own key, or by its content.

The key and the CID recognize our own record without doubt. A restored backup may not know the key of the call, so the
account's newer posts are then compared with the sent post.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers.base import CannotTell, Job, Published, Readback
from socialpub.providers.bluesky import client
from socialpub.providers.bluesky.client import POST
from socialpub.providers.bluesky.publish import FRESH_SECONDS, get_record, is_own
from socialpub.providers.bluesky.record import key_at, key_of, permalink, uri_of
from socialpub.providers.bluesky.text import sent_text
from socialpub.providers.comparison import same_text
from socialpub.providers.responses import HttpResponse, NoAnswer, Reason, as_object, json_object, object_at, text_at

PAGE_SIZE = 100
MAX_PAGES = 10
EMBEDS = {"app.bsky.embed.images": "image", "app.bsky.embed.gallery": "image", "app.bsky.embed.video": "video"}


def check_account(job: Job, section: BlueskySection) -> Readback | CannotTell:
    """Read the account once. Raises when the account's server did not answer for this account."""
    own = _find_by_key(job, section)
    return Readback((own,)) if own is not None else _search(job, section)


def _find_by_key(job: Job, section: BlueskySection) -> Published | None:
    built = job.memo.get("record")
    if not built:
        return None
    response = get_record(job, section, built["key"])
    if response.ok:
        return _post(job, section, built["key"]) if is_own(_read(response), built) else None
    _refuse_other_than_absent(job, response)
    return None


def _refuse_other_than_absent(job: Job, response: HttpResponse) -> None:
    """Raise unless the server says that the record is absent. A server without the account says nothing about it."""
    rejection = client.classify(response, now=job.wall_now)
    if rejection.reason is not Reason.GONE:
        raise NoAnswer(rejection.message, code=rejection.code)


def _search(job: Job, section: BlueskySection) -> Readback | CannotTell:
    """Compare the account's posts since the commit, by their places in the list, which the server sorts by key.

    A key and the date of its record come from the same clock, so the date says nothing more.
    """
    lowest, cursor, uris = key_at(job.since().timestamp() - FRESH_SECONDS), "", list[str]()
    for _ in range(MAX_PAGES):
        values, cursor = _list_page(job, section, cursor)
        newer = {key: value for key, value in values.items() if key >= lowest}
        uris += [key for key, value in newer.items() if _could_be(job, value)]
        if not cursor or len(newer) < len(values) or not values:
            return Readback(tuple(_post(job, section, key) for key in sorted(set(uris))))
    page = f"{section.site_url}/profile/{job.account.id}"
    return CannotTell(f"The account has too many newer posts to find this post. Check {page}.")


def _list_page(job: Job, section: BlueskySection, cursor: str) -> tuple[dict[str, Mapping[str, Any]], str]:
    """Return the records by key, and the cursor of the next page."""
    params = {"repo": job.account.id, "collection": POST, "limit": str(PAGE_SIZE)}
    params |= {"cursor": cursor} if cursor else {}
    response = client.call(job, section, "GET", "com.atproto.repo.listRecords", authorized=False, params=params)
    if not response.ok:
        rejection = client.classify(response, now=job.wall_now)
        raise NoAnswer(rejection.message, code=rejection.code)
    body = _read(response)
    records = body.get("records")
    if not isinstance(records, list):
        raise NoAnswer("The account's server did not list the posts.")
    pairs = ((text_at(record, "uri"), object_at(record, "value")) for record in map(as_object, records))
    return {key_of(uri): value for uri, value in pairs if uri}, text_at(body, "cursor") or ""


def _could_be(job: Job, value: Mapping[str, Any]) -> bool:
    """Return whether nothing in this record contradicts the sent post."""
    kinds = [media.kind for media in job.content.media]
    is_reply = bool(job.options.get("replyTo") or job.options.get("replyToPostId"))
    if bool(value.get("reply")) != is_reply or list(_kinds(object_at(value, "embed"))) != kinds:
        return False
    parent = text_at(object_at(object_at(value, "reply"), "parent"), "uri")
    if job.options.get("replyTo") not in (None, parent):
        return False
    return same_text(sent_text(job.content.text), str(value.get("text") or ""))


def _kinds(embed: Mapping[str, Any]) -> Iterator[str]:
    kind = EMBEDS.get(text_at(embed, "$type") or "")
    if kind is not None:
        listed = embed.get("images") or embed.get("items")
        yield from [kind] * (len(listed) if isinstance(listed, list) else 1)


def _read(response: HttpResponse) -> dict[str, Any]:
    body = json_object(response)
    if not body:
        raise NoAnswer("The account's server sent no usable response.")
    return body


def _post(job: Job, section: BlueskySection, key: str) -> Published:
    return Published(uri_of(job.account.id, key), permalink(section, job.account.id, key))
