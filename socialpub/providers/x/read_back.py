"""Finds a post with an unknown outcome: reads the account's timeline and compares it with the sent post.

The comparison is lenient where X changes the text of a post. It is strict where another post could be mistaken for
ours: account, reply, quote, kind and number of media. An absent or null field proves nothing. An uncertain post counts
as a match, because a second post does more harm than a wrong match.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from socialpub.core.settings.networks import XSection
from socialpub.providers.auth import Account
from socialpub.providers.base import CannotTell, Content, Job, Published, Readback
from socialpub.providers.comparison import readings, same_link
from socialpub.providers.responses import HttpResponse, NoAnswer, as_object, object_at, text_at
from socialpub.providers.x import limits
from socialpub.providers.x.client import REQUEST_ID, call, classify, permalink
from socialpub.providers.x.limits import needs_chunks
from socialpub.providers.x.options import ANY_POST, reply_target
from socialpub.providers.x.text import weigh

SHORT_LINK = re.compile(r"https?://t\.co/[A-Za-z0-9]++")
PARTS = re.compile(f"({SHORT_LINK.pattern})")
CUT_SHORT = re.compile(rf"…\s*+(?:{SHORT_LINK.pattern}\s*+)?$")
NAME = re.compile(r"@[A-Za-z0-9_]{1,15}")


@dataclass(frozen=True, slots=True)
class ShownText:
    text: str
    targets: Mapping[str, str] = field(default_factory=dict)
    """The known targets of its short links."""
    appended: frozenset[str] = frozenset()
    """The short links that X may have added at the end."""
    may_append: bool = False
    """Whether X may have added a short link without a known target."""
    cut: bool = False
    """Whether X may have cut the text."""

    def is_appended(self, word: str) -> bool:
        unknown = self.may_append and word not in self.targets
        return SHORT_LINK.fullmatch(word) is not None and (unknown or word in self.appended)


@dataclass(frozen=True, slots=True)
class SentText:
    words: tuple[Sequence[str], ...]
    """The words of each reading."""
    is_long: bool

    @classmethod
    def prepare(cls, text: str) -> Self:
        return cls(_words(text), weigh(text).length > limits.TEXT_LENGTH)

    def is_shown_by(self, shown: ShownText, *, names_in_front: bool = False) -> bool:
        """Compare. `names_in_front`: X may have added the names of the accounts that the post replies to."""
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
        """Return the visible beginning of a long text that X cut, or None if X did not cut the text."""
        cut = CUT_SHORT.search(shown.text) if self.is_long and shown.cut else None
        if cut is None:
            return None
        beginning = shown.text[: cut.start()]
        # X shows about the length of an ordinary post. A short "Read… https://…" is not a cut text.
        return beginning if weigh(beginning).length >= limits.TEXT_LENGTH // 2 else None


def _words(text: str) -> tuple[Sequence[str], ...]:
    return tuple(reading.split() for reading in readings(text))


def _without_names(words: Sequence[str]) -> Sequence[str]:
    count = next((at for at, word in enumerate(words) if not NAME.fullmatch(word)), len(words))
    return words[count:]


def _begins(ours: Sequence[str], theirs: Sequence[str], shown: ShownText) -> bool:
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
    """Return the texts between these pieces of the word, or fewer texts if a piece is missing.

    The first match is correct, because X ends a link at the text that follows.
    """
    first, *middle, last = pieces
    if not word.startswith(first) or not word.endswith(last):
        return []
    parts, at, end = [], len(first), len(word) - len(last)
    for piece in middle:
        following = word.find(piece, at + 1, end)
        if following < 0:
            return []
        parts.append(word[at:following])
        at = following + len(piece)
    return [*parts, word[at:end]] if at < end else []


def _leads_to(written: str, short_link: str, targets: Mapping[str, str]) -> bool:
    """Return whether the short link may replace the written text. Without a known target, it replaces any link."""
    target = targets.get(short_link)
    return written == short_link or ("." in written if target is None else same_link(written, target))


# --- two dialects -----------------------------------------------------------------------------------------------------
#
# X documents the fields of a list as "tweets" (OpenAPI 2.166) or "posts" (2.167). No document says which names the live
# service accepts. A request uses the names of only one dialect, because each document describes only its own.


@dataclass(frozen=True, slots=True)
class Dialect:
    fields_parameter: str
    fields: str
    references: str = ""
    """The expansion that returns replied-to and quoted posts; empty: the fields include them."""

    def parameters(self, *, references: bool) -> dict[str, str]:
        """Return the query parameters. X charges for each expansion, so set `references` only if needed."""
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
    """The dialect that X accepted last in this process, at first that of the newest document."""

    last: Dialect = field(default=POSTS)


# --- the timeline -----------------------------------------------------------------------------------------------------

PAGE_SIZE = 100
MAX_PAGES = 10


def check_account(job: Job, section: XSection, spoken: SpokenDialect) -> Readback | CannotTell:
    """Read the account's posts since the commit once. Raises when X did not answer."""
    timeline = _Timeline(job, f"{section.api_url}/2/users/{job.account.id}/tweets", spoken.last, job.since())
    posts: list[Any] = []
    following = ""
    for _ in range(MAX_PAGES):
        page, following = timeline.read(following)
        spoken.last = timeline.dialect
        posts.extend(page)
        # The newest posts come first, and the response shows X's clock, which narrows `since`. Further pages would be
        # older, and X charges for them.
        since = job.since()
        if not following or (page and all(_is_older(post, since) for post in page)):
            break
    else:
        name = f"{section.site_url}/{job.account.username}" if job.account.username else "the account on x.com"
        return CannotTell(f"The account has too many newer posts to find this post. Check {name}.")
    sent = SentPost.prepare(job.content, job.options, job.account)
    ids = {str(post["id"]) for post in posts if sent.could_be(post) and not _is_older(post, since)}
    return Readback(
        tuple(Published(id, permalink(section.site_url, job.account.username, id)) for id in sorted(ids, key=int))
    )


@dataclass(slots=True)
class _Timeline:
    job: Job
    url: str
    dialect: Dialect
    since: datetime
    both_tried: bool = False

    def read(self, token: str) -> tuple[list[Any], str]:
        """Return the posts of the page, and the token of the next page, `""` after the last page."""
        response = self._ask(self.dialect, token)
        if not response.ok:
            response = self._ask_in_the_other(response, token)
        return _read_posts(response)

    def _ask_in_the_other(self, refusal: HttpResponse, token: str) -> HttpResponse:
        """Ask in the other dialect: X refuses unknown names with 400. Raises the error of either response."""
        rejection = classify(refusal, now=self.job.wall_now)
        if rejection.status != 400 or self.both_tried:
            raise rejection
        self.both_tried = True
        dialect = TWEETS if self.dialect is POSTS else POSTS
        response = self._ask(dialect, token)
        if not response.ok:
            again = classify(response, now=self.job.wall_now)
            # X refuses both dialects, so the names are not the cause. The usual dialect has the better message.
            raise rejection if again.status == 400 else again
        self.dialect = dialect
        return response

    def _ask(self, dialect: Dialect, token: str) -> HttpResponse:
        chosen = self.job.options
        refers = bool(reply_target(chosen) or chosen.get("quotePostId"))
        params = {
            "max_results": str(PAGE_SIZE),
            "start_time": _timestamp(self.since),
            "exclude": "retweets",
            **dialect.parameters(references=refers),
            **({"pagination_token": token} if token else {}),
        }
        return call(self.job, "GET", self.url, params=params)


def _read_posts(response: HttpResponse) -> tuple[list[Any], str]:
    """Read a page. Only an empty timeline may lack `data`, and its `meta` then reports no results."""
    request_id = response.headers.get(REQUEST_ID)
    body = as_object(response.json())
    posts, meta = body.get("data"), body.get("meta", {})
    if not isinstance(meta, dict) or not isinstance([] if posts is None else posts, list):
        raise NoAnswer("X's list of posts could not be read.", request_id=request_id)
    found_none = meta.get("result_count", None if posts is None else 0) == 0
    if not posts and (not found_none or body.get("errors")):
        raise NoAnswer("X's response does not list the account's posts.", request_id=request_id)
    return posts or [], str(meta.get("next_token") or "")


def _is_older(post: Any, since: datetime) -> bool:
    try:
        dated = datetime.fromisoformat(post["created_at"])
    except (KeyError, TypeError, ValueError):
        return False
    return (dated if dated.tzinfo else dated.replace(tzinfo=UTC)) < since


def _timestamp(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- one post of the list ---------------------------------------------------------------------------------------------

KINDS = {"3": "image", "7": "video", "13": "video", "16": "GIF"}
"""By the first part of a media_key. Any other first part does not show the kind."""
MEDIA_KEY = re.compile(r"([0-9]+)_")
MEDIA_PAGE = re.compile(r"/status/([0-9]+)/(?:photo|video)/[0-9]+/?$")
ENDS_OPEN = re.compile(rf"(?:…|{SHORT_LINK.pattern})\s*+$")


@dataclass(frozen=True, slots=True)
class SentPost:
    account_id: str
    text: SentText
    kinds: tuple[str, ...]
    """The kinds of its media, in order."""
    replies_to: str | None
    """The id of its parent, or `ANY_POST`."""
    quotes: str | None

    @classmethod
    def prepare(cls, content: Content, chosen: Mapping[str, Any], account: Account) -> Self:
        kinds = tuple(
            "video" if media.kind == "video" else "GIF" if needs_chunks(media) else "image" for media in content.media
        )
        replies_to, quotes = reply_target(chosen), chosen.get("quotePostId")
        return cls(account.id, SentText.prepare(content.text), kinds, replies_to, quotes)

    def could_be(self, post: Any) -> bool:
        """Return whether nothing in this listed post contradicts the sent post."""
        if not isinstance(post, dict) or not re.fullmatch(r"[0-9]{1,19}", str(post.get("id"))):
            return False
        if str(post.get("author_id") or self.account_id) != self.account_id:
            return False
        return self._place_fits(post) and self._media_fit(post) and self._text_fits(post)

    def _place_fits(self, post: dict[str, Any]) -> bool:
        references = dict(_references(post))
        if self.quotes and references.get("quoted", self.quotes) != self.quotes:
            return False
        if "replied_to" in references:
            return self.replies_to in (ANY_POST, references["replied_to"])
        is_reply = _is_reply(post, references)
        return is_reply is None or is_reply == bool(self.replies_to)

    def _media_fit(self, post: dict[str, Any]) -> bool:
        keys = object_at(post, "attachments").get("media_keys")
        if isinstance(keys, list):
            return len(keys) == len(self.kinds) and self._kinds_fit(keys)
        marked = [link for link in _links(post) if _is_media_of(link, post)]
        if marked:
            return bool(self.kinds) and self._kinds_fit([link.get("media_key") for link in marked])
        # X omits empty fields and failed fields. The text of a post with media ends with their link.
        has_none = "created_at" in post and "attachments" not in post and not ENDS_OPEN.search(_written(post))
        return not (has_none and self.kinds)

    def _kinds_fit(self, keys: list[Any]) -> bool:
        begun = (MEDIA_KEY.match(str(key)) for key in keys)
        return {KINDS[match[1]] for match in begun if match and match[1] in KINDS} <= set(self.kinds)

    def _text_fits(self, post: dict[str, Any]) -> bool:
        note = object_at(post, "note_post") or object_at(post, "note_tweet")
        whole = note if isinstance(note.get("text"), str) else post
        links = [*_links(post), *_links(whole)]
        targets = {link["url"]: link["expanded_url"] for link in links if isinstance(link.get("expanded_url"), str)}
        published = ShownText(
            _written(whole),
            targets,
            appended=frozenset(link["url"] for link in links if self._is_appended(link)),
            may_append=bool(self.kinds or self.quotes),
            cut=whole is post,
        )
        parent = dict(_references(post)).get("replied_to")
        same_parent = parent is not None and self.replies_to in (ANY_POST, parent)
        return self.text.is_shown_by(published, names_in_front=same_parent)

    def _is_appended(self, link: dict[str, Any]) -> bool:
        """Return whether X adds this link to the text: the link of the media or of the quoted post."""
        target = str(link.get("expanded_url")).split("?", 1)[0].rstrip("/")
        if self.kinds and ("media_key" in link or MEDIA_PAGE.search(target)):
            return True
        return bool(self.quotes) and target.endswith(f"/status/{self.quotes}")


def _references(post: dict[str, Any]) -> Iterator[tuple[str, str]]:
    listed = post.get("referenced_posts") or post.get("referenced_tweets")
    for reference in listed if isinstance(listed, list) else []:
        if isinstance(reference, dict) and reference.get("type") and reference.get("id"):
            yield str(reference["type"]), str(reference["id"])


def _is_reply(post: dict[str, Any], references: Mapping[str, str]) -> bool | None:
    """Return whether the post is a reply. None: the list does not show this."""
    conversation = post.get("conversation_id")
    if conversation:
        # An edited post keeps the conversation of its first version.
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
