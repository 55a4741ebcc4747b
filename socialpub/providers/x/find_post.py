"""Did it go out after all? The account's own timeline, read as X shows it, compared with what was sent.

What stays uncertain counts as a match: a post that is found twice is a smaller harm than one that is made twice.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from socialpub.core.settings.networks import XSection
from socialpub.providers.errors import NoAnswer
from socialpub.providers.job import Job
from socialpub.providers.outcomes import CannotTell, Look, Published
from socialpub.providers.responses import HttpResponse, as_object
from socialpub.providers.x.client import call
from socialpub.providers.x.dialects import Dialect, SpokenDialect, other
from socialpub.providers.x.errors import REQUEST_ID, classify
from socialpub.providers.x.listed_post import SentPost
from socialpub.providers.x.publish import permalink

PAGE = 100
PAGES = 10


def look(job: Job, section: XSection, spoken: SpokenDialect) -> Look | CannotTell:
    """One look at everything the account posted since the commit. Raises when the look was not answered."""
    timeline = _Timeline(job, f"{section.api_url}/2/users/{job.account.id}/tweets", spoken.last, job.since())
    posts: list[Any] = []
    following = ""
    for _ in range(PAGES):
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
    return Look(tuple(Published(id, permalink(section, job.account.username, id)) for id in sorted(ids, key=int)))


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
        return _posts_of(response)

    def _ask_in_the_other(self, refusal: HttpResponse, token: str) -> HttpResponse:
        """X refuses a question in names that it does not know with 400. Raises what either answer means."""
        rejection = classify(refusal, now=self.job.now)
        if rejection.status != 400 or self.both_tried:
            raise rejection.rejected()
        self.both_tried = True
        dialect = other(self.dialect)
        response = self._ask(dialect, token)
        if not response.ok:
            again = classify(response, now=self.job.now)
            # Refused in both it was not the names, and the usual ones tell better what it was.
            raise (rejection if again.status == 400 else again).rejected()
        self.dialect = dialect
        return response

    def _ask(self, dialect: Dialect, token: str) -> HttpResponse:
        chosen = self.job.options
        refers = bool(chosen.get("inReplyToPostId") or chosen.get("quotePostId"))
        params = {
            "max_results": str(PAGE),
            "start_time": _timestamp(self.since),
            "exclude": "retweets",
            **dialect.parameters(references=refers),
            **({"pagination_token": token} if token else {}),
        }
        return call(self.job, "GET", self.url, params=params)


def _posts_of(response: HttpResponse) -> tuple[list[Any], str]:
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
