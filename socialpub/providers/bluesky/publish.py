"""The record of a post: built once, written with a repeatable call, and found again by its key.

The server accepts the same key and record again without effect. It answers the repetition of a call that writes two
records with 500, so a failed call is followed by a query for the record.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers.base import Again, Cause, Done, Job, Memo, Outcome, Published, Refused, Unknown, Wait
from socialpub.providers.bluesky import client, servers, text, upload
from socialpub.providers.bluesky.client import POST
from socialpub.providers.bluesky.record import (
    GATE,
    build_gate,
    build_post,
    cid_of,
    key_of,
    new_key,
    permalink,
    uri_of,
)
from socialpub.providers.error_table import as_outcome
from socialpub.providers.responses import (
    HttpResponse,
    NoAnswer,
    ProviderError,
    Reason,
    Rejected,
    as_object,
    foreign_answer,
    json_object,
    object_at,
    text_at,
)

CARD, RECORD, PUBLISH = "card", "record", "publish"

FRESH_SECONDS = 120
"""A record that was built earlier and not sent is built again: readers see its time."""
TOO_OLD = "The post gets its key and its time again, because the attempt was delayed."
UNTIL_DEADLINE = 1000
BLOBS_GONE = "The account's server no longer has the media. socialpub uploads them again."
BLOB_UPLOADS = 3
CARD_REFUSED = "The account's server refused the post. socialpub sends it again without {}."
KEY_TAKEN = "Another record has the key of this post. socialpub chooses another key."

GET_RECORD = "com.atproto.repo.getRecord"
RESOLVE_HANDLE = "com.atproto.identity.resolveHandle"
LOOKUP_SECONDS = 15.0


# --- the record ------------------------------------------------------------------------------------------------------


def build_record(job: Job, section: BlueskySection) -> Outcome:
    """Choose the key and build the record. Both stay the same in every later call."""
    reply, missing = _find_thread(job, section)
    if missing is not None:
        return missing
    written = text.sent_text(job.content.text)
    memo, later = _look_up_mentions(job, section, text.list_handles(written))
    if later is not None:
        return later
    facets = text.facets(written, {handle: did for handle, did in memo.get("mentions", {}).items() if did})
    key = new_key(job.wall_now)
    post = build_post(job.content, job.options, memo, job.wall_now, facets, reply)
    gate = build_gate(uri_of(job.account.id, key), job.options, job.wall_now)
    built = {"key": key, "post": post, "gate": gate, "cid": cid_of(post)}
    return Done({**memo, "record": built})


def _look_up_mentions(job: Job, section: BlueskySection, handles: list[str]) -> tuple[Memo, Wait | None]:
    """Return the memo with the DID of each mention, or None for plain text, and the wait before another try."""
    memo, later = job.memo, None
    for handle in handles:
        if handle in memo.get("mentions", {}):
            continue
        did = None
        try:
            did = _look_up(job, section, handle)
        except ProviderError as error:
            again = client.ask_again(memo, f"The mention @{handle}", error)
            if again is not None:
                memo, later = again.memo, again
                continue
            note = f"The mention @{handle} is plain text, because the account's server could not look it up."
            memo = client.add_note(memo, note)
        memo = {**memo, "mentions": {**memo.get("mentions", {}), handle: did}}
    job.trace.code = None
    return memo, later and replace(later, memo=memo)


def _look_up(job: Job, section: BlueskySection, handle: str) -> str | None:
    """Return the DID of a handle. None: no account has it."""
    params = {"handle": handle}
    response = client.call(
        job, section, "GET", RESOLVE_HANDLE, authorized=False, params=params, deadline_seconds=LOOKUP_SECONDS
    )
    did = text_at(json_object(response), "did") if response.ok else None
    if did is not None and servers.is_did(did):
        return did
    if 400 <= response.status < 500 and response.status != client.TOO_MANY:
        return None
    raise client.classify(response, now=job.wall_now)


def _find_thread(job: Job, section: BlueskySection) -> tuple[dict[str, Any] | None, Refused | None]:
    """Return the references of a reply to its thread and its parent, or the refusal of a reply without a parent."""
    uri = job.options.get("replyTo")
    if uri is None:
        return None, None
    response = get_record(job, section, key_of(uri))
    if not response.ok:
        rejection = client.classify(response, now=job.wall_now)
        if rejection.reason is not Reason.GONE:
            raise NoAnswer(rejection.message, code=rejection.code)
        message = "The post to reply to is not on the account. Choose another post."
        return None, Refused(message, rejection.code, content=True, parent_missing=True)
    record = json_object(response)
    cid, value = text_at(record, "cid"), object_at(record, "value")
    if cid is None:
        raise NoAnswer("The account's server did not describe the post to reply to.")
    parent = {"uri": uri, "cid": cid}
    root = object_at(object_at(value, "reply"), "root")
    is_complete = text_at(root, "uri") is not None and text_at(root, "cid") is not None
    return {"root": {"uri": root["uri"], "cid": root["cid"]} if is_complete else parent, "parent": parent}, None


# --- the commit ------------------------------------------------------------------------------------------------------


def publish(job: Job, section: BlueskySection) -> Outcome:
    built = job.memo["record"]
    age = job.wall_now - datetime.fromisoformat(built["post"]["createdAt"])
    if not job.unknown_before and abs(age) > timedelta(seconds=FRESH_SECONDS):  # also after the clock was set
        return Again(RECORD, _without(job.memo, "record"), Cause.TOO_OLD, TOO_OLD, UNTIL_DEADLINE)
    response = _write(job, section)
    if _is_written(job, response):
        return _published(job, section)
    if response.ok or response.status >= 500:
        code = client.read_error(response).code or str(response.status)
        message = f"The account's server sent no usable response (HTTP {response.status})."
        return find_own(job, section) or Unknown(message, code)
    if not client.read_error(response).codes:  # a proxy that limits calls may have passed on this one
        raise foreign_answer(response, client.TABLE.network)
    rejection = client.classify(response, now=job.wall_now)
    if job.unknown_before or rejection.reason is Reason.DUPLICATE:
        own = find_own(job, section)
        if own is not None:
            return own
    return _send_again(job, section, rejection) or as_outcome(rejection)


def _write(job: Job, section: BlueskySection) -> HttpResponse:
    built = job.memo["record"]
    post = {"collection": POST, "rkey": built["key"]}
    if not built["gate"]:
        body = {"repo": job.account.id, **post, "record": built["post"], "swapRecord": None, "validate": True}
        return client.call(job, section, "POST", "com.atproto.repo.putRecord", json=body)
    create = {"$type": "com.atproto.repo.applyWrites#create"}
    writes = [
        {**create, **post, "value": built["post"]},
        {**create, "collection": GATE, "rkey": built["key"], "value": built["gate"]},
    ]
    body = {"repo": job.account.id, "writes": writes, "validate": True}
    return client.call(job, section, "POST", "com.atproto.repo.applyWrites", json=body)


def _is_written(job: Job, response: HttpResponse) -> bool:
    """Return whether the server names the record that it wrote. The page of a proxy names none."""
    body = json_object(response) if response.ok else {}
    results = body.get("results")
    named = [body, *map(as_object, results if isinstance(results, list) else [])]
    return uri_of(job.account.id, job.memo["record"]["key"]) in [record.get("uri") for record in named]


def _send_again(job: Job, section: BlueskySection, rejection: Rejected) -> Outcome | None:
    """Return the way to another call after a refusal that may pass. None: the refusal is final."""
    if rejection.reason is Reason.MEDIA_INVALID and job.unknown_before:
        return _upload_and_write(job, section)
    if job.unknown_before:
        return None
    otherwise = _without_card(job, rejection) or as_outcome(rejection)
    if rejection.reason is Reason.MEDIA_INVALID:
        first = f"{upload.UPLOAD}:0" if job.content.media else CARD if job.memo.get("card") else RECORD
        memo = _without(job.memo, "record", "blobs", "card")
        return Again(first, memo, Cause.FORGOTTEN, BLOBS_GONE, BLOB_UPLOADS - 1, otherwise=otherwise)
    if rejection.reason is Reason.TOO_LARGE and job.content.media:
        return upload.shrink_images(job)
    if rejection.reason is Reason.DUPLICATE:
        memo, refused = _without(job.memo, "record"), as_outcome(rejection)
        return Again(RECORD, memo, Cause.KEY_TAKEN, KEY_TAKEN, otherwise=refused)
    return otherwise


def _without_card(job: Job, rejection: Rejected) -> Again | None:
    """Return the way to the post without the image of its card, then without its card: a decoration stops no post."""
    card = job.memo.get("card")
    if not card or not rejection.content:
        return None
    cause, part, kept_memo = Cause.CARD_REFUSED, "its link card", {}
    if "thumb" in card:
        cause, part, kept_memo = Cause.THUMBNAIL_REFUSED, "the image of its link card", _without(card, "thumb")
    memo = client.add_note(_without(job.memo, "record", "card"), f"The account's server refused {part}.")
    return Again(RECORD, memo | ({"card": kept_memo} if kept_memo else {}), cause, CARD_REFUSED.format(part))


def _upload_and_write(job: Job, section: BlueskySection) -> Outcome | None:
    """Upload the same bytes again and repeat the call: key and record must not change after an unknown outcome."""
    for index in range(len(job.content.media)):
        response = upload.send(job, section, upload.fitted(job, index))
        if not response.ok:
            return as_outcome(client.classify(response, now=job.wall_now, sent_bytes=True))
        if upload.read_blob(response) != job.memo["blobs"][str(index)]["blob"]:
            return None
    if not job.content.media:
        if not job.memo.get("card"):
            return None
        # The key stays the same, so the first call cannot take effect as another post.
        built, card = job.memo["record"], _without(job.memo["card"], "thumb")
        post = {**built["post"], "embed": {**built["post"]["embed"], "external": card}}
        job = replace(job, memo={**job.memo, "record": {**built, "post": post, "cid": cid_of(post)}})
    return _published(job, section) if _is_written(job, _write(job, section)) else None


def _without(memo: Memo, *names: str) -> Memo:
    return {name: value for name, value in memo.items() if name not in names}


def _published(job: Job, section: BlueskySection) -> Published:
    key = job.memo["record"]["key"]
    return Published(uri_of(job.account.id, key), permalink(section, job.account.id, key))


# --- finding the record ----------------------------------------------------------------------------------------------


def find_own(job: Job, section: BlueskySection) -> Published | None:
    """Return the post if the account has it under its key. None: it is unknown whether the account will have it."""
    try:
        response = get_record(job, section, job.memo["record"]["key"])
    except ProviderError:
        return None
    return _published(job, section) if response.ok and is_own(json_object(response), job.memo["record"]) else None


def is_own(found: Mapping[str, Any], built: Mapping[str, Any]) -> bool:
    """Return whether the record under our key is ours: by its CID, or by its text and time.

    A server may store the record in another form, which has another CID.
    """
    value, sent = object_at(found, "value"), built["post"]
    is_same = all(value.get(name) == sent[name] for name in ("text", "createdAt"))
    return found.get("cid") == built["cid"] or is_same


def get_record(job: Job, section: BlueskySection, key: str) -> HttpResponse:
    params = {"repo": job.account.id, "collection": POST, "rkey": key}
    return client.call(job, section, "GET", GET_RECORD, authorized=False, params=params)
