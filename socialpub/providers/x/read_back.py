"""Finds a post whose outcome is unknown: reads the account's own timeline and compares it with what was sent."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from socialpub.core.settings.networks import XSection
from socialpub.providers.base import Account, CannotTell, Content, Job, Published, Readback
from socialpub.providers.errors import NoAnswer
from socialpub.providers.responses import HttpResponse, as_object, object_at, text_at
from socialpub.providers.x.client import REQUEST_ID, call, classify, permalink
from socialpub.providers.x.limits import in_chunks
from socialpub.providers.x.shown_text import SHORT_LINK, SentText, ShownText

# MERGED from providers/x/dialects.py: The two generations of names in which X's list of posts can be asked: "tweet


@dataclass(frozen=True, slots=True)
class Dialect:
    fields_parameter: str
    fields: str
    references: str = ""
    """The expansion that makes posts name what they reply to or quote; empty: the fields do so already."""

    def parameters(self, *, references: bool) -> dict[str, str]:
        """What to ask of each post. X charges for what an expansion brings: `references` only where it is needed."""
        expansions = {"expansions": self.references} if references and self.references else {}
        return {self.fields_parameter: self.fields, **expansions}


POSTS = Dialect(
    "post.fields", "attachments,conversation_id,created_at,entities,note_post,text", references="referenced_posts"
)
TWEETS = Dialect(
    "tweet.fields",
    "attachments,author_id,conversation_id,created_at,entities,note_tweet,referenced_tweets,text",
)


@dataclass(slots=True)
class SpokenDialect:
    """Which dialect X took last; at first that of the newest document.

    It is a fact about X and not about a post: the adapter holds it for the process, since a look has no memo to leave
    it in. Nothing hangs on it. Who forgets it, or loses it to another thread, asks one time too many.
    """

    last: Dialect = field(default=POSTS)


def other_dialect(dialect: Dialect) -> Dialect:
    return TWEETS if dialect is POSTS else POSTS


# MERGED from providers/x/find_post.py: Did it go out after all? The account's own timeline, read as X shows it, co

PAGE_SIZE = 100
MAX_PAGES = 10


def check_account(job: Job, section: XSection, spoken: SpokenDialect) -> Readback | CannotTell:
    """One look at everything the account posted since the commit. Raises when the look was not answered."""
    timeline = _Timeline(job, f"{section.api_url}/2/users/{job.account.id}/tweets", spoken.last, job.since())
    posts: list[Any] = []
    following = ""
    for _ in range(MAX_PAGES):
        page, following = timeline.read(following)
        spoken.last = timeline.dialect
        posts.extend(page)
        # The newest come first, and the answer told X's clock, and with it more precisely since when: what follows a
        # page of older ones is older still, and costs money.
        since = job.since()
        if not following or (page and all(_is_older(post, since) for post in page)):
            break
    else:
        name = f"{section.site_url}/{job.account.username}" if job.account.username else "the account on x.com"
        return CannotTell(f"The account posted too much since to find it: look at {name}.")
    sent = SentPost.of(job.content, job.options, job.account)
    ids = {str(post["id"]) for post in posts if sent.could_be(post) and not _is_older(post, since)}
    return Readback(tuple(Published(id, permalink(section, job.account.username, id)) for id in sorted(ids, key=int)))


@dataclass(slots=True)
class _Timeline:
    """One reading of the list, page by page, in whichever dialect is taken."""

    job: Job
    url: str
    dialect: Dialect
    since: datetime
    both_tried: bool = False

    def read(self, token: str) -> tuple[list[Any], str]:
        """The posts of the page, and the token of the next one; empty when it is the last."""
        response = self._ask(self.dialect, token)
        if not response.ok:
            response = self._ask_in_the_other(response, token)
        return _read_posts(response)

    def _ask_in_the_other(self, refusal: HttpResponse, token: str) -> HttpResponse:
        """X refuses a question in names that it does not know with 400. Raises what either answer means."""
        rejection = classify(refusal, now=self.job.now)
        if rejection.status != 400 or self.both_tried:
            raise rejection
        self.both_tried = True
        dialect = other_dialect(self.dialect)
        response = self._ask(dialect, token)
        if not response.ok:
            again = classify(response, now=self.job.now)
            # Refused in both it was not the names, and the usual ones tell better what it was.
            raise rejection if again.status == 400 else again
        self.dialect = dialect
        return response

    def _ask(self, dialect: Dialect, token: str) -> HttpResponse:
        chosen = self.job.options
        refers = bool(chosen.get("inReplyToPostId") or chosen.get("quotePostId"))
        params = {
            "max_results": str(PAGE_SIZE),
            "start_time": _timestamp(self.since),
            "exclude": "retweets",
            **dialect.parameters(references=refers),
            **({"pagination_token": token} if token else {}),
        }
        return call(self.job, "GET", self.url, params=params)


def _read_posts(response: HttpResponse) -> tuple[list[Any], str]:
    """An empty timeline has no `data`, but says that it found nothing; anything else was no look."""
    request_id = response.headers.get(REQUEST_ID)
    body = as_object(response.json())
    posts, meta = body.get("data"), body.get("meta", {})
    if not isinstance(meta, dict) or not isinstance([] if posts is None else posts, list):
        raise NoAnswer("X's list of posts could not be read.", request_id=request_id)
    found_none = meta.get("result_count", None if posts is None else 0) == 0
    if not posts and (not found_none or body.get("errors")):
        raise NoAnswer("X did not say what the account posted.", request_id=request_id)
    return posts or [], str(meta.get("next_token") or "")


def _is_older(post: Any, since: datetime) -> bool:
    """Whether it is dated, and before anything of ours."""
    try:
        dated = datetime.fromisoformat(post["created_at"])
    except (KeyError, TypeError, ValueError):
        return False
    return (dated if dated.tzinfo else dated.replace(tzinfo=UTC)) < since


def _timestamp(instant: datetime) -> str:
    """Whole seconds, the one form that X's own examples show."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# MERGED from providers/x/listed_post.py: Whether a post of the account's list could be the one that was sent.

KINDS = {"3": "picture", "7": "video", "13": "video", "16": "GIF"}
"""By the beginning of a media_key; any other beginning tells no kind."""
MEDIA_KEY = re.compile(r"([0-9]+)_")
MEDIA_PAGE = re.compile(r"/status/([0-9]+)/(?:photo|video)/[0-9]+/?$")
ENDS_OPEN = re.compile(rf"(?:…|{SHORT_LINK.pattern})\s*+$")


@dataclass(frozen=True, slots=True)
class SentPost:
    """What was sent, ready to be compared with many."""

    account_id: str
    text: SentText
    kinds: tuple[str, ...]
    """Of its media, in order."""
    replies_to: str | None
    quotes: str | None

    @classmethod
    def of(cls, content: Content, chosen: Mapping[str, Any], account: Account) -> "SentPost":
        kinds = tuple(
            "video" if media.kind == "video" else "GIF" if in_chunks(media) else "picture" for media in content.media
        )
        replies_to, quotes = chosen.get("inReplyToPostId"), chosen.get("quotePostId")
        return cls(account.id, SentText.of(content.text), kinds, replies_to, quotes)

    def could_be(self, post: Any) -> bool:
        """Whether nothing that this post of the list tells speaks against it."""
        if not isinstance(post, dict) or not re.fullmatch(r"[0-9]{1,19}", str(post.get("id"))):
            return False
        if str(post.get("author_id") or self.account_id) != self.account_id:
            return False
        return self._place_fits(post) and self._media_fit(post) and self._text_fits(post)

    def _place_fits(self, post: dict[str, Any]) -> bool:
        """Where it stands: under which post, around which one."""
        references = dict(_references(post))
        if self.quotes and references.get("quoted", self.quotes) != self.quotes:
            return False
        if "replied_to" in references:
            return references["replied_to"] == self.replies_to
        is_reply = _is_reply(post, references)
        return is_reply is None or is_reply == bool(self.replies_to)

    def _media_fit(self, post: dict[str, Any]) -> bool:
        keys = object_at(post, "attachments").get("media_keys")
        if isinstance(keys, list):
            return len(keys) == len(self.kinds) and self._kinds_fit(keys)
        marked = [link for link in _links(post) if _is_media_of(link, post)]
        if marked:
            return bool(self.kinds) and self._kinds_fit([link.get("media_key") for link in marked])
        # X leaves out what is empty, but a field that failed it leaves out too: the text of a post with media ends with
        # their link all the same.
        none_told = "created_at" in post and "attachments" not in post and not ENDS_OPEN.search(_written(post))
        return not (none_told and self.kinds)

    def _kinds_fit(self, keys: list[Any]) -> bool:
        begun = (MEDIA_KEY.match(str(key)) for key in keys)
        return {KINDS[match[1]] for match in begun if match and match[1] in KINDS} <= set(self.kinds)

    def _text_fits(self, post: dict[str, Any]) -> bool:
        note = object_at(post, "note_post") or object_at(post, "note_tweet")
        whole = note if isinstance(note.get("text"), str) else post
        links = [*_links(post), *_links(whole)]
        targets = {link["url"]: link["expanded_url"] for link in links if isinstance(link.get("expanded_url"), str)}
        shown = ShownText(
            _written(whole),
            targets,
            appended=frozenset(link["url"] for link in links if self._is_appended(link)),
            # A link that nobody explained may be the one that X appends.
            may_append=bool(self.kinds or self.quotes),
            cut=whole is post,
        )
        same_parent = bool(self.replies_to) and dict(_references(post)).get("replied_to") == self.replies_to
        return self.text.is_shown_by(shown, names_in_front=same_parent)

    def _is_appended(self, link: dict[str, Any]) -> bool:
        """Whether X adds this link to the text: that of the media, or of the quoted post."""
        target = str(link.get("expanded_url")).split("?", 1)[0].rstrip("/")
        if self.kinds and ("media_key" in link or MEDIA_PAGE.search(target)):
            return True
        return bool(self.quotes) and target.endswith(f"/status/{self.quotes}")


def _references(post: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind of reference and id, in either generation's names."""
    listed = post.get("referenced_posts") or post.get("referenced_tweets")
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict) and one.get("type") and one.get("id"):
            yield str(one["type"]), str(one["id"])


def _is_reply(post: dict[str, Any], references: Mapping[str, str]) -> bool | None:
    """None: it is not told."""
    conversation = post.get("conversation_id")
    if conversation:
        # An edited post keeps the conversation that its first version began.
        versions = post.get("edit_history_post_ids") or post.get("edit_history_tweet_ids")
        begun = [post["id"], *(versions if isinstance(versions, list) else [])]
        return str(conversation) not in map(str, begun)
    return False if references else None


def _is_media_of(link: dict[str, Any], post: dict[str, Any]) -> bool:
    page = MEDIA_PAGE.search(str(link.get("expanded_url")))
    return bool(link.get("media_key")) or (page is not None and page[1] == str(post["id"]))


def _links(holder: dict[str, Any]) -> Iterator[dict[str, Any]]:
    urls = object_at(holder, "entities").get("urls")
    for link in urls if isinstance(urls, list) else []:
        if isinstance(link, dict) and SHORT_LINK.fullmatch(str(link.get("url"))):
            yield link


def _written(holder: dict[str, Any]) -> str:
    return text_at(holder, "text") or ""
