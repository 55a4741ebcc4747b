"""The two generations of names in which X's list of posts can be asked: "tweets" (OpenAPI 2.166), "posts" (2.167).

Which of them the live service takes is told nowhere, so both are known. A question is asked wholly in one of them:
each document describes all of its own names, and none of the other's.
"""

from dataclasses import dataclass, field


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


def other(dialect: Dialect) -> Dialect:
    return TWEETS if dialect is POSTS else POSTS
