"""The drawing of faults: what one call meets.

Left out is a network that lies about the one call that makes something public: that it refuses, in its own words, what
it did nevertheless. (Where a network is known to do so, as Pinterest with 2787, it is drawn.)
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from socialpub.sandbox import World
from socialpub.sandbox.faults import FaultScript
from tests.simulation.draws import Draws

MAKE_PUBLIC = frozenset({"create_post", "create_pin", "content_init", "put_record", "apply_writes"})
PAGES = (200, 400, 401, 402, 403, 404, 407, 408, 409, 413, 418, 422, 425, 429, 451, 500, 502, 503, 504, 520, 530)
REFUSALS = (400, 403, 404, 409, 422)
TROUBLES = (500, 502, 503, 504)
USAGE_CAP = {"title": "UsageCapExceeded", "detail": "Usage cap exceeded: Monthly product cap"}


@dataclass(frozen=True, slots=True)
class Site:
    """Where a fault plays."""

    dice: random.Random
    network: str
    endpoint: str

    @property
    def after(self) -> bool:
        """Draw whether the failed call has its effect."""
        return self.dice.random() < 0.5

    @property
    def after_a_refusal(self) -> bool:
        return self.endpoint not in MAKE_PUBLIC and self.dice.random() < 0.2


Play = Callable[[FaultScript, Site], object]


def _rate_limited(up: FaultScript, site: Site) -> None:
    tells = ["window", "retry-after", "nothing", *(("day", "date") if site.network == "x" else ())]
    seconds = site.dice.choice([5, 60, 600, site.dice.uniform(1, 7200), site.dice.uniform(3600, 90000)])
    up.rate_limited(seconds, site.dice.choice(tells))


def _rate_limited_absurdly(up: FaultScript, site: Site) -> None:
    tells = ["window", "retry-after", *(("milliseconds", "date") if site.network == "x" else ())]
    up.rate_limited(site.dice.choice([-86400, -1, 0, 10**7, 3 * 10**8]), site.dice.choice(tells))


def _garbage(up: FaultScript, site: Site) -> None:
    up.answers_garbage(after_effect=site.after, status=site.dice.choice([200, 200, 201]))


FAULTS: dict[str, tuple[float, Play]] = {
    "page": (3, lambda up, site: up.fails_with(site.dice.choice(PAGES), html=True, after_effect=site.after)),
    "empty body": (2, lambda up, site: up.fails_with(site.dice.choice(PAGES), "", after_effect=site.after)),
    "refusal": (1, lambda up, site: up.fails_with(site.dice.choice(REFUSALS), after_effect=site.after_a_refusal)),
    "401": (1, lambda up, site: up.unauthorized()),
    "429": (2, _rate_limited),
    "429 with an absurd time": (1, _rate_limited_absurdly),
    "5xx before": (2, lambda up, site: up.fails_with(site.dice.choice(TROUBLES))),
    "5xx after": (3, lambda up, site: up.fails_with(site.dice.choice(TROUBLES), after_effect=True)),
    "time-out before": (2, lambda up, site: up.times_out_before_effect()),
    "time-out after": (3, lambda up, site: up.times_out_after_effect()),
    "cut before": (2, lambda up, site: up.drops_connection_before_effect()),
    "cut after": (3, lambda up, site: up.drops_connection_after_effect()),
    "trickle": (1, lambda up, site: up.trickles(after_effect=site.after)),
    "garbage": (2, _garbage),
}
"""By name: how often, and how it is scripted."""

OF_NETWORK: dict[str, dict[str, tuple[float, Play]]] = {
    "x": {
        "402": (1, lambda up, site: up.credits_depleted(site.dice.choice([1, 2]))),
        "usage cap": (1, lambda up, site: up.fails_with(429, USAGE_CAP)),
    },
    "tiktok": {
        "refusal by name": (
            3,
            lambda up, site: up.refuses(site.dice.choice((
                "reached_active_user_cap", "spam_risk_too_many_posts", "spam_risk_too_many_pending_share",
                "spam_risk_user_banned_from_posting", "scope_not_authorized", "url_ownership_unverified",
                "invalid_publish_id", "internal_error", "app_version_check_failed", "rate_limit_exceeded",
            ))),
        ),
    },
    "pinterest": {
        "refusal by name": (
            3,
            lambda up, site: up.refuses(site.dice.choice((
                "unapproved", "missing_scope", "pinner_data", "trial", "spam", "conflict", "ramped_down",
                "media_not_found", "board_not_found", "rate_limited", "server_error", "account_under_review",
            ))),
        ),
        "2787": (2, lambda up, site: up.refuses("2787", after_effect=site.after)),
    },
    "bluesky": {
        "refusal by name": (
            3,
            lambda up, site: up.refuses(site.dice.choice((
                "InvalidRequest", "RecordNotFound", "BlobNotFound", "InvalidToken", "ExpiredToken", "AccountTakedown",
                "RateLimitExceeded", "InternalServerError",
            ))),
        ),
    },
}  # fmt: skip
"""What only one network says. Of its tokens it speaks in other words."""

UNREACHABLE = "unreachable"
LOST = ("5xx after", "time-out after", "cut after", "garbage", "page", "empty body")
AFTERWARDS_REFUSED = 0.15
"""How often a call that makes something public is refused once one before it was not answered."""
TAKE_TIME = ("time-out before", "time-out after", "trickle")
APP_WIDE = {"x": ("402", "usage cap"), "tiktok": ("refusal by name",), "pinterest": ("refusal by name",), "bluesky": ()}


class DrawnFaults:
    """Draws, for each call, what it meets; a spell keeps one endpoint of a network in the same trouble for a while."""

    def __init__(self, draws: Draws, world: World, met: Counter[str]) -> None:
        self._dice, self._world, self._met = draws.of("spells"), world, met
        self._of_network = {network: draws.of(f"faults of {network}") for network in world.networks}
        dice = self._dice
        self.rate = dice.choice([0.0, 0.03, 0.1, 0.1, 0.2, 0.35])
        self.on_commits = dice.choice([self.rate, 0.5])
        """What makes something public is what the simulation is about."""
        self._spell: tuple[str, str, str, float] | None = None
        self._lost: set[str] = set()
        """What makes something public and was not answered, the last time."""

    def begin_spell(self, now: float) -> None:
        """From now on, for a drawn time, an endpoint meets one kind of trouble."""
        network = self._dice.choice(list(self._world.networks))
        played = [one for one in self._world.networks[network].endpoints if one not in ("authorize", "me", "revoke")]
        kinds = [*FAULTS, *OF_NETWORK[network], UNREACHABLE, *(APP_WIDE[network] * 6)]
        length = self._dice.choice([60, 600, 3600, 30 * 3600])
        self._spell = network, self._dice.choice([*played, "", ""]), self._dice.choice(kinds), now + length

    def end(self) -> None:
        self.rate = self.on_commits = 0.0
        self._lost.clear()
        self._spell = None

    def draw(self, network: str, endpoint: str, now: float) -> str | None:
        """The kind that this call meets, scripted already; None: it goes well."""
        kind = self._kind(network, endpoint, now)
        if kind is None:
            return None
        self._met[kind] += 1
        if endpoint in MAKE_PUBLIC and kind in LOST:
            self._lost.add(endpoint)
        if kind != UNREACHABLE:
            own = OF_NETWORK[network].get(kind)
            _, play = own or FAULTS[kind]
            play(self._world.networks[network].next(endpoint), Site(self._of_network[network], network, endpoint))
        return kind

    def _kind(self, network: str, endpoint: str, now: float) -> str | None:
        dice = self._of_network[network]
        known = {} if endpoint in ("token", "revoke", "refresh_session") else OF_NETWORK[network]
        if self._spell is not None:
            where, which, kind, until = self._spell
            if now >= until:
                self._spell = None
            elif where == network and which in ("", endpoint) and (kind in FAULTS or kind in known):
                return kind
        if endpoint in self._lost and dice.random() < AFTERWARDS_REFUSED:
            self._lost.discard(endpoint)
            return "refusal"
        rate = self.on_commits if endpoint in MAKE_PUBLIC or endpoint == "upload_chunk" else self.rate
        if dice.random() >= rate:
            return None
        weights = {UNREACHABLE: 3.0} | {name: weight for name, (weight, _) in {**FAULTS, **known}.items()}
        return dice.choices(list(weights), list(weights.values()))[0]
