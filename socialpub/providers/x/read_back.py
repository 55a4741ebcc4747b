"""Finds a post whose outcome is unknown: reads the account's own timeline and compares it with what was sent.

The comparison is lenient where X writes text differently from what it was given. It is strict where another post could
be taken for ours: account, reply and quote, kind and number of media. A field that the list omits or shows as null
proves nothing, so an uncertain post counts as a match: a post found twice does less harm than a post made twice.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from socialpub.core.settings.networks import XSection
from socialpub.providers.base import Account, CannotTell, Content, Job, Published, Readback
from socialpub.providers.comparison import readings, same_link
from socialpub.providers.responses import HttpResponse, NoAnswer, as_object, object_at, text_at
from socialpub.providers.x import limits
from socialpub.providers.x.client import REQUEST_ID, call, classify, permalink
from socialpub.providers.x.limits import in_chunks
from socialpub.providers.x.text import weigh

SHORT_LINK = re.compile(r"https?://t\.co/[A-Za-z0-9]++")
PARTS = re.compile(f"({SHORT_LINK.pattern})")
CUT_SHORT = re.compile(rf"…\s*+(?:{SHORT_LINK.pattern}\s*+)?$")
NAME = re.compile(r"@[A-Za-z0-9_]{1,15}")


@dataclass(frozen=True, slots=True)
class ShownText:
    text: str
    targets: Mapping[str, str] = field(default_factory=dict)
    """Where its short links lead, as far as X says so."""
    appended: frozenset[str] = frozenset()
    """The short links that X may have added at the end."""
    may_append: bool = False
    """Whether a short link without a known target may be such a link."""
    cut: bool = False
    """Whether the text may be only the beginning."""

    def is_appended(self, word: str) -> bool:
        unknown = self.may_append and word not in self.targets
        return SHORT_LINK.fullmatch(word) is not None and (unknown or word in self.appended)


@dataclass(frozen=True, slots=True)
class SentText:
    words: tuple[Sequence[str], ...]
    """Of each of its readings."""
    is_long: bool

    @classmethod
    def of(cls, text: str) -> Self:
        return cls(_words(text), weigh(text).length > limits.TEXT_LENGTH)

    def is_shown_by(self, shown: ShownText, *, names_in_front: bool = False) -> bool:
        """Compare. `names_in_front`: X may have added the names of the people who are answered."""
        beginning = self._beginning_in(shown)
        if beginning is not None:
            theirs = _words(beginning)
            return any(_begins(ours, words, shown) for ours, words in self._pairs(theirs, names_in_front))
        return any(
            _alike(ours, words, shown) or (words and shown.is_appended(words[-1]) and _alike(ours, words[:-1], shown))
            for ours, words in self._pairs(_words(shown.text), names_in_front)
        )

    def _pairs(
        self, shown: tuple[Sequence[str], ...], names_in_front: bool
    ) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
        for ours in self.words:
            for theirs in shown:
                yield ours, theirs
                rest = _without_names(ours)
                # A text of names alone would equal any other names.
                if names_in_front and (rest or not ours):
                    yield rest, _without_names(theirs)

    def _beginning_in(self, shown: ShownText) -> str | None:
        """Return the beginning of a long text that X cut; None when the text is whole."""
        cut = CUT_SHORT.search(shown.text) if self.is_long and shown.cut else None
        if cut is None:
            return None
        beginning = shown.text[: cut.start()]
        # X shows about as much as fits into an ordinary post. A short "Read… https://…" is no cut text.
        return beginning if weigh(beginning).length >= limits.TEXT_LENGTH // 2 else None


def _words(text: str) -> tuple[Sequence[str], ...]:
    return tuple(reading.split() for reading in readings(text))


def _without_names(words: Sequence[str]) -> Sequence[str]:
    count = next((at for at, word in enumerate(words) if not NAME.fullmatch(word)), len(words))
    return words[count:]


def _begins(ours: Sequence[str], theirs: Sequence[str], shown: ShownText) -> bool:
    """Return whether theirs are the first words of ours; the last word may be cut."""
    *whole, last = theirs or [""]
    rest = ours[len(whole) :]
    return bool(rest) and _alike(ours[: len(whole)], whole, shown) and rest[0].startswith(PARTS.split(last, 1)[0])


def _alike(ours: Sequence[str], theirs: Sequence[str], shown: ShownText) -> bool:
    return len(ours) == len(theirs) and all(_same_word(*pair, shown) for pair in zip(ours, theirs, strict=True))


def _same_word(ours: str, theirs: str, shown: ShownText) -> bool:
    if ours == theirs:
        return True
    parts = PARTS.split(theirs)
    if len(parts) == 1:
        return "://" in ours and "://" in theirs and same_link(ours, theirs)
    short_links, written = parts[1::2], _written_between(parts[::2], ours)
    return len(written) == len(short_links) and all(
        _leads_to(text, short_link, shown.targets) for text, short_link in zip(written, short_links, strict=True)
    )


def _written_between(pieces: list[str], word: str) -> list[str]:
    """Return what the word has between these pieces; fewer texts when a piece is missing. The first place that fits is
    correct: X ends a link at what follows it."""
    first, *middle, last = pieces
    if not word.startswith(first) or not word.endswith(last):
        return []
    found, at, end = [], len(first), len(word) - len(last)
    for piece in middle:
        following = word.find(piece, at + 1, end)
        if following < 0:
            return []
        found.append(word[at:following])
        at = following + len(piece)
    return [*found, word[at:end]] if at < end else []


def _leads_to(written: str, short_link: str, targets: Mapping[str, str]) -> bool:
    """Return whether the short link may replace what was written. A link without a known target replaces any link."""
    target = targets.get(short_link)
    return written == short_link or ("." in written if target is None else same_link(written, target))


# --- two generations of names -----------------------------------------------------------------------------------------
#
# X's list of posts can be asked for "tweets" (OpenAPI 2.166) or "posts" (2.167). No document says which names the live
# service accepts, so both are known. A question uses one dialect: each document describes only its own names.


@dataclass(frozen=True, slots=True)
class Dialect:
    fields_parameter: str
    fields: str
    references: str = ""
    """The expansion that makes posts name what they reply to or quote; empty: the fields do so already."""

    def parameters(self, *, references: bool) -> dict[str, str]:
        """Return the fields to ask for. X charges for each expansion, so set `references` only where it is needed."""
        expansions = {"expansions": self.references} if references and self.references else {}
        return {self.fields_parameter: self.fields, **expansions}


POSTS = Dialect(
    "post.fields", "attachments,conversation_id,created_at,entities,note_post,text", references="referenced_posts"
)
TWEETS = Dialect(
    "tweet.fields", "attachments,author_id,conversation_id,created_at,entities,note_tweet,referenced_tweets,text"
)


@dataclass(slots=True)
class SpokenDialect:
    """The dialect that X accepted last; at first that of the newest document.

    It is a fact about X and not about a post, so the class of the network keeps it for the process. Losing it costs one
    more question.
    """

    last: Dialect = field(default=POSTS)


# --- the timeline -----------------------------------------------------------------------------------------------------

PAGE_SIZE = 100
MAX_PAGES = 10


def check_account(job: Job, section: XSection, spoken: SpokenDialect) -> Readback | CannotTell:
    """Read once what the account posted since the commit. Raises when X did not answer."""
    timeline = _Timeline(job, f"{section.api_url}/2/users/{job.account.id}/tweets", spoken.last, job.since())
    posts: list[Any] = []
    following = ""
    for _ in range(MAX_PAGES):
        page, following = timeline.read(following)
        spoken.last = timeline.dialect
        posts.extend(page)
        # The newest posts come first, and the answer shows X's clock, which narrows `since`. Pages after a page of
        # older posts are older still, and cost money.
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
    """One reading of the list, page by page, in the dialect that X accepts."""

    job: Job
    url: str
    dialect: Dialect
    since: datetime
    both_tried: bool = False

    def read(self, token: str) -> tuple[list[Any], str]:
        """Return the posts of the page, and the token of the next one; empty after the last."""
        response = self._ask(self.dialect, token)
        if not response.ok:
            response = self._ask_in_the_other(response, token)
        return _read_posts(response)

    def _ask_in_the_other(self, refusal: HttpResponse, token: str) -> HttpResponse:
        """Ask with the other names: X refuses unknown names with 400. Raises what either answer means."""
        rejection = classify(refusal, now=self.job.now)
        if rejection.status != 400 or self.both_tried:
            raise rejection
        self.both_tried = True
        dialect = TWEETS if self.dialect is POSTS else POSTS
        response = self._ask(dialect, token)
        if not response.ok:
            again = classify(response, now=self.job.now)
            # Refused in both dialects: the names were not the cause, and the usual dialect describes it better.
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
    """Read a page. An empty timeline has no `data`, but says that it found nothing; anything else is no answer."""
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
    try:
        dated = datetime.fromisoformat(post["created_at"])
    except (KeyError, TypeError, ValueError):
        return False
    return (dated if dated.tzinfo else dated.replace(tzinfo=UTC)) < since


def _timestamp(instant: datetime) -> str:
    """Return whole seconds, the only form in X's own examples."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- one post of the list ---------------------------------------------------------------------------------------------

KINDS = {"3": "picture", "7": "video", "13": "video", "16": "GIF"}
"""By the beginning of a media_key; any other beginning names no kind."""
MEDIA_KEY = re.compile(r"([0-9]+)_")
MEDIA_PAGE = re.compile(r"/status/([0-9]+)/(?:photo|video)/[0-9]+/?$")
ENDS_OPEN = re.compile(rf"(?:…|{SHORT_LINK.pattern})\s*+$")


@dataclass(frozen=True, slots=True)
class SentPost:
    """The sent post, prepared for many comparisons."""

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
        """Return whether nothing in this post of the list contradicts it."""
        if not isinstance(post, dict) or not re.fullmatch(r"[0-9]{1,19}", str(post.get("id"))):
            return False
        if str(post.get("author_id") or self.account_id) != self.account_id:
            return False
        return self._place_fits(post) and self._media_fit(post) and self._text_fits(post)

    def _place_fits(self, post: dict[str, Any]) -> bool:
        """Compare what the post replies to and what it quotes."""
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
        # X omits what is empty, and also a field that failed. The text of a post with media ends with their link.
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
            # A link without an explanation may be the one that X appends.
            may_append=bool(self.kinds or self.quotes),
            cut=whole is post,
        )
        same_parent = bool(self.replies_to) and dict(_references(post)).get("replied_to") == self.replies_to
        return self.text.is_shown_by(shown, names_in_front=same_parent)

    def _is_appended(self, link: dict[str, Any]) -> bool:
        """Return whether X adds this link to the text: that of the media, or of the quoted post."""
        target = str(link.get("expanded_url")).split("?", 1)[0].rstrip("/")
        if self.kinds and ("media_key" in link or MEDIA_PAGE.search(target)):
            return True
        return bool(self.quotes) and target.endswith(f"/status/{self.quotes}")


def _references(post: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield kind of reference and id, in either dialect."""
    listed = post.get("referenced_posts") or post.get("referenced_tweets")
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict) and one.get("type") and one.get("id"):
            yield str(one["type"]), str(one["id"])


def _is_reply(post: dict[str, Any], references: Mapping[str, str]) -> bool | None:
    """Return whether the post is a reply. None: the list does not say."""
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
