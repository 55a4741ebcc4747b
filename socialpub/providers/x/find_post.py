"""Did it go out after all? The account's own timeline, read as X shows it, compared with what was sent.

X changes a text on its way: links become t.co, media add one at the end, `&` is written as in HTML, white space is
trimmed. Both sides are brought to one form first. What stays uncertain counts as a match: a post that is found twice
is a smaller harm than one that is made twice.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from socialpub.core.settings.networks import XSection
from socialpub.providers.comparison import nfc
from socialpub.providers.errors import NoAnswer
from socialpub.providers.job import Job
from socialpub.providers.outcomes import CannotTell, Look, Published
from socialpub.providers.x import limits
from socialpub.providers.x.client import call
from socialpub.providers.x.errors import REQUEST_ID, classify
from socialpub.providers.x.publish import permalink
from socialpub.providers.x.text import weigh

FIELDS = "attachments,created_at,entities,note_tweet,text"
"""In the words of OpenAPI 2.166, which describes this request wholly; 2.167 renamed the parameter."""
SLACK = timedelta(minutes=2)
"""Our clock and X's need not agree."""
PAGE = 100
PAGES = 10

SHORT_LINK = re.compile(r"https?://t\.co/\w+")
CUT_SHORT = re.compile(r"…\s*https?://t\.co/\w+\s*$")
ANY_LINK = "\0"
MEDIA_PAGE = re.compile(r"/status/\d+/(photo|video)/\d+/?$")


def look(job: Job, section: XSection) -> Look | CannotTell:
    """One look at everything the account posted since the commit. Raises when the look was not answered."""
    if job.committed_at is None:
        raise ValueError("there is nothing to read back before a commit")
    params = {
        "max_results": str(PAGE),
        "start_time": _timestamp(job.committed_at - SLACK),
        "exclude": "retweets",
        "tweet.fields": FIELDS,
    }
    found: list[dict[str, Any]] = []
    for _ in range(PAGES):
        body = _read(job, f"{section.api_url}/2/users/{job.account.id}/tweets", params)
        found.extend(post for post in body.get("data", []) if _could_be(post, job))
        following = body.get("meta", {}).get("next_token")
        if not following:
            ids = sorted({str(post["id"]) for post in found}, key=int)
            return Look(tuple(Published(id, permalink(job.account.username, id)) for id in ids))
        params = {**params, "pagination_token": str(following)}
    name = f"https://x.com/{job.account.username}" if job.account.username else "the account on x.com"
    return CannotTell(f"The account posted too much since to find it: look at {name}.")


def _read(job: Job, url: str, params: dict[str, str]) -> dict[str, Any]:
    response = call(job, "GET", url, params=params)
    if not response.ok:
        raise classify(response, now=job.now).rejected()
    request_id = response.headers.get(REQUEST_ID)
    body = response.json()
    # An empty timeline has no `data`, but says that it found nothing; anything else was no look.
    posts, meta = (body.get("data"), body.get("meta", {})) if isinstance(body, dict) else (None, None)
    if not isinstance(meta, dict) or not isinstance([] if posts is None else posts, list):
        raise NoAnswer("X's list of posts could not be read.", request_id=request_id)
    if posts is None and meta.get("result_count") != 0:
        raise NoAnswer("X did not say what the account posted.", request_id=request_id)
    return {"data": posts or [], "meta": meta}


def _could_be(post: Any, job: Job) -> bool:
    if not isinstance(post, dict) or not re.fullmatch(r"[0-9]+", str(post.get("id"))):
        return False
    # A server that ignores our fields sends none of them; then there is nothing to conclude from their absence.
    has_fields = "created_at" in post
    attachments = post.get("attachments")
    keys = attachments.get("media_keys", []) if isinstance(attachments, dict) else []
    if has_fields and len(keys) != len(job.content.media):
        return False
    reply = bool(job.options.get("inReplyToPostId"))
    quoted = job.options.get("quotePostId")
    return same_text(job.content.text, _text_of(post, quoted), reply=reply)


def _text_of(post: dict[str, Any], quoted: str | None) -> str:
    """The post's text with its links written out; of a long one only the beginning when X sent no more."""
    note = post.get("note_tweet") or post.get("note_post")
    whole = note if isinstance(note, dict) and isinstance(note.get("text"), str) else post
    text = str(whole.get("text") or "")
    for link in [*_links(post), *_links(whole)]:
        short, target = link.get("url"), link.get("expanded_url")
        if not isinstance(short, str) or not isinstance(target, str):
            continue
        added = "media_key" in link or MEDIA_PAGE.search(target) or (quoted and target.endswith(f"/status/{quoted}"))
        # Only at the end: someone may have written the address of a post, and be quoting that very one.
        if added and text.rstrip().endswith(short):
            text = text.rstrip().removesuffix(short)
        else:
            text = text.replace(short, target)
    return text


def _links(holder: dict[str, Any]) -> Iterator[dict[str, Any]]:
    entities = holder.get("entities")
    urls = entities.get("urls") if isinstance(entities, dict) else None
    yield from (url for url in urls or [] if isinstance(url, dict))


def same_text(ours: str, theirs: str, *, reply: bool = False) -> bool:
    """Whether `theirs` is how X shows `ours`. A short link that nobody could resolve may stand for any link.

    `reply`: X may have put the names of those who are answered in front.
    """
    expected = _plain(ours, reply).split()
    cut = CUT_SHORT.search(theirs) if weigh(ours).length > limits.TEXT_LENGTH else None
    if cut:
        *whole, last = _plain(SHORT_LINK.sub(ANY_LINK, theirs[: cut.start()]), reply).split() or [""]
        rest = expected[len(whole) :]
        return _alike(expected[: len(whole)], whole) and bool(rest) and rest[0].startswith(last)
    shown = _plain(SHORT_LINK.sub(ANY_LINK, theirs), reply).split()
    # The last one may be the link of the media, which was not marked as such.
    return _alike(expected, shown) or (shown[-1:] == [ANY_LINK] and _alike(expected, shown[:-1]))


def _alike(ours: list[str], theirs: list[str]) -> bool:
    return len(ours) == len(theirs) and all(map(_stands_for, theirs, ours))


def _stands_for(pattern: str, word: str) -> bool:
    """Whether the word is the pattern with something in place of each unresolved link; in linear time."""
    first, *others = pattern.split(ANY_LINK)
    if not others:
        return pattern == word
    *middle, last = others
    at, end = len(first), len(word) - len(last)
    if not word.startswith(first) or not word.endswith(last):
        return False
    for piece in middle:
        found = word.find(piece, at + 1, end)
        if found < 0:
            return False
        at = found + len(piece)
    return at < end


def _plain(text: str, reply: bool) -> str:
    """One form for both sides: NFC, single spaces, links without scheme and closing slash."""
    text = nfc(_unescaped(text))
    if reply:
        text = re.sub(r"^(\s*@\w+)+\s*", "", text)
    text = re.sub(r"https?://", "", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<=\w)/(?=$|[\s)\]}>,.;:!?\"'])", "", text)
    return " ".join(text.split())


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _timestamp(instant: datetime) -> str:
    """Whole seconds, the one form that X's own examples show."""
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")
