"""A network with a memory whose next answers are drawn: it makes posts, loses answers, throttles, kills its caller."""

from collections import Counter, deque
from collections.abc import Callable
from enum import Enum, auto

from socialpub.providers.base import CannotTell, Done, Job, Kind, Outcome, Published, Readback, Refused
from socialpub.providers.responses import AuthExpired, NoAnswer, NotSent, Rejected, Throttled
from tests.support.sandbox_http import ProcessKilled
from tests.support.scripted_network import ScriptedNetwork


class Fate(Enum):
    """What becomes of one call."""

    WELL = auto()
    REFUSED = auto()
    NEVER_LEFT = auto()
    THROTTLED = auto()
    LOST = auto()
    LOST_BUT_MADE = auto()
    TOKEN_EXPIRED = auto()
    ACCESS_TAKEN = auto()
    KILLED_BEFORE = auto()
    KILLED_AFTER = auto()


class RememberingNetwork(ScriptedNetwork):
    """An upload that prepares, then the call that publishes. Without a fate all goes well.

    A repeatable call has a key, which the upload chooses. The same call again changes nothing.
    """

    def __init__(
        self,
        name: str,
        before_call: Callable[[str, str], None] = lambda _account, _text: None,
        commit: Kind = Kind.COMMIT,
    ) -> None:
        super().__init__(("upload", Kind.PREPARE), ("create_post", commit))
        self.is_repeatable, self.keys = commit is Kind.REPEATABLE, 0
        self.before_call = before_call
        self.name, self.label = name, name.title()
        self.fates: deque[Fate] = deque()
        self.posts: list[tuple[str, str, str]] = []
        """Account, text, id."""

    def made(self) -> Counter[tuple[str, str]]:
        return Counter((account_id, text) for account_id, text, _ in self.posts)

    def run(self, step: str, job: Job) -> Outcome:
        self.before_call(job.account.id, job.content.text)
        fate = self.fates.popleft() if self.fates else Fate.WELL
        publishes = step == "create_post"
        match fate:
            case Fate.REFUSED:
                return Refused("The text is too long.", "too_long")
            case Fate.NEVER_LEFT:
                raise NotSent("The name was not found.")
            case Fate.THROTTLED:
                raise Throttled("Too many requests.", retry_after_seconds=90)
            case Fate.TOKEN_EXPIRED:
                raise AuthExpired("The token has expired.")
            case Fate.ACCESS_TAKEN:
                self.auth.answers.append(Rejected("The grant was taken back.", status=400, reauth=True))
                raise AuthExpired("The token is revoked.")
            case Fate.KILLED_BEFORE:
                raise ProcessKilled
            case Fate.LOST:
                raise NoAnswer("The connection was cut.")
        published = self._make(job) if publishes else None
        match fate:
            case Fate.LOST_BUT_MADE:
                raise NoAnswer("The connection was cut.")
            case Fate.KILLED_AFTER:
                raise ProcessKilled
        self.keys += 1
        return published or Done({**job.memo, step: True, "key": f"{self.name}-key-{self.keys}"})

    def recover(self, job: Job) -> Readback | CannotTell:
        if self.is_repeatable:
            key = job.memo.get("key")
            return Readback(tuple(Published(id, None) for *_, id in self.posts if id == key))
        own = (job.account.id, job.content.text)
        return Readback(tuple(Published(id, None) for *made, id in self.posts if tuple(made) == own))

    def _make(self, job: Job) -> Published:
        number = job.memo["key"] if self.is_repeatable else f"{self.name}-{len(self.posts) + 1}"
        if any(id == number for *_, id in self.posts):
            return Published(number, f"https://x.example/{number}")
        self.posts.append((job.account.id, job.content.text, number))
        return Published(number, f"https://x.example/{number}")
