"""The drawn world of an episode: how each network behaves.

A list that hides a post for longer than `publishing.resend_after` causes a second post, as configured. Left out are
worlds in which the truth cannot be known:

- lists that hide a post for longer than two rounds of read-backs;
- networks without dates, if our clock differs by more than a day, or after a restore;
- after a restore, lists that hide a post for longer than a read-back takes, or that cut or hide its text;
- lists that leave out the text of a post: such a post cannot be assigned to a delivery.
"""

import random

from tests.simulation.times import DrawnClock
from tests.stand_ins import World
from tests.stand_ins.tiktok import COMPLETES, FAIL_REASONS, INBOX, NEVER_ENDS

HOUR = 3600.0
DAY = 24 * HOUR
LONGEST_LAG_SECONDS = 590.0
"""The longest that needs no second call."""
TOO_LATE_SECONDS = (610.0, 1100.0)
"""Shown only after a second call was allowed, and before the looks that follow it end."""
MOST_SKEW_SECONDS = 8 * HOUR


def draw_world(dice: random.Random, clock: DrawnClock, *, in_time: bool = False) -> World:
    """`in_time`: what lists show is enough for a read-back."""
    world = World(clock)
    world.instant_faults = True
    world.tiktok.verified_domains.append("social.example.org")
    for network in world.networks.values():
        network.clock_skew_seconds = dice.choice([0, 0, dice.uniform(-300, 300), skew(dice)])
        network.sends_date = dice.random() < 0.85
    _draw_x(dice, world)
    _draw_tiktok(dice, world)
    _draw_pinterest(dice, world)
    if in_time:
        world.x.list_lag_seconds = min(world.x.list_lag_seconds, LONGEST_LAG_SECONDS)
        world.pinterest.list_lag_seconds = min(world.pinterest.list_lag_seconds, LONGEST_LAG_SECONDS)
        world.pinterest.cuts_texts_after = 0
        world.pinterest.null_texts = [name for name in world.pinterest.null_texts if name != "description"]
    clock.world = world
    return world


def skew(dice: random.Random) -> float:
    return dice.uniform(-MOST_SKEW_SECONDS, MOST_SKEW_SECONDS)


def lag(dice: random.Random) -> float:
    if rarely(dice, 0.1):
        return dice.uniform(*TOO_LATE_SECONDS)
    return dice.choice([0.0, dice.uniform(0, 20), dice.uniform(0, LONGEST_LAG_SECONDS)])


def rarely(dice: random.Random, chance: float = 0.15) -> bool:
    return dice.random() < chance


def _draw_x(dice: random.Random, world: World) -> None:
    x = world.x
    x.dialect = dice.choice(["new", "old"])
    x.one_dialect = dice.random() < 0.3
    x.kill_family_on_reuse = dice.random() < 0.3
    x.old_access_token_survives = dice.random() < 0.3
    x.access_seconds = dice.choice([7200, 7200, 900])
    x.append_answers = dice.choice([200, 204])
    x.media_seconds = dice.choice([86400, 86400, 300])
    x.processing = dice.choices(["succeeds", "fails", "never_ends", "refused_at_post"], [12, 1, 1, 1])[0]  # type: ignore[assignment]
    x.processing_ticks = dice.randrange(5)
    x.check_after_seconds = dice.choice([1, 1, 30, 3600])
    x.media_reuse_allowed = dice.random() < 0.7
    # Its own refusal of a duplicate would hide in most episodes that we sent one.
    x.duplicate_window_seconds = dice.choice([0, 0, 86400])
    x.list_lag_seconds = lag(dice)
    x.escapes_html = dice.random() < 0.5
    x.strips_invisible = dice.random() < 0.5
    x.needs_text = dice.random() < 0.3
    x.leaves_out = dice.sample(["attachments", "entities", "author_id", "created_at"], dice.choice([0, 0, 0, 1, 2]))
    if rarely(dice):
        x.limits = {**x.limits, "POST /2/tweets": dice.choice([1, 2]), "GET /2/users/:id/tweets": dice.choice([1, 5])}
    if rarely(dice, 0.1):
        x.daily_limits = {"POST /2/tweets": 2}


def _draw_tiktok(dice: random.Random, world: World) -> None:
    tiktok = world.tiktok
    tiktok.refresh_restarts = dice.random() < 0.5
    tiktok.oauth_error_status = dice.choice([400, 200])
    tiktok.rotates = dice.random() < 0.7
    tiktok.refresh_grace_seconds = dice.choice([0, 0, 60])
    tiktok.omits_refresh_token = dice.random() < 0.2
    tiktok.old_access_token_survives = dice.random() < 0.5
    tiktok.access_seconds = dice.choice([86400, 86400, 1200])
    tiktok.upload_seconds = dice.choice([3600, 3600, 300])
    tiktok.count_lag_seconds = lag(dice)
    tiktok.last_chunk_status = dice.choice([200, 201])
    tiktok.progress_is_last_index = dice.random() < 0.5
    fates = [COMPLETES, INBOX, NEVER_ENDS, dice.choice(FAIL_REASONS)]
    tiktok.fate = dice.choices(fates, [20, 2, 1, 2])[0]
    tiktok.processing_ticks = dice.randrange(6)
    tiktok.processing_seconds = dice.choice([0, 30, 30, 600, 4000])
    tiktok.moderation_seconds = dice.choice([0, 60, 3600])
    tiktok.post_ids = dice.choice(["one", "one", "several", "none", "missing"])
    tiktok.post_ids_as_text = dice.random() < 0.5
    if rarely(dice):
        tiktok.posts_per_day = dice.choice([1, 3])
    if rarely(dice):
        tiktok.pending_shares_per_day = 1
    if rarely(dice, 0.1):
        tiktok.audited_user_cap = 1
    if rarely(dice):
        tiktok.limits = {**tiktok.limits, "video_init": 1, "content_init": 1, "status_fetch": dice.choice([1, 3])}


def _draw_pinterest(dice: random.Random, world: World) -> None:
    pinterest = world.pinterest
    pinterest.omits_refresh_token = dice.random() < 0.3
    pinterest.old_refresh_survives = dice.random() < 0.5
    pinterest.access_seconds = dice.choice([2592000, 2592000, 1800])
    if rarely(dice):
        pinterest.limits = {"org_read": dice.choice([2, 10]), "org_write": dice.choice([1, 3])}
    pinterest.list_lag_seconds = lag(dice)
    pinterest.trims_texts = dice.random() < 0.5
    pinterest.escapes_html = dice.random() < 0.5
    pinterest.composes_texts = dice.random() < 0.5
    pinterest.cuts_texts_after = dice.choice([0, 0, 0, 3, 12])
    pinterest.null_texts = dice.sample(["alt_text", "description", "title", "link"], dice.choice([0, 0, 1, 2]))
    pinterest.dates_pins = not rarely(dice, 0.1)
    pinterest.cover_needed = dice.random() < 0.5
    pinterest.create_status = dice.choice([200, 201])
    pinterest.processing = dice.choices(["succeeds", "fails", "never_ends"], [12, 1, 1])[0]  # type: ignore[assignment]
    pinterest.processing_ticks = dice.randrange(5)
    pinterest.media_reuse_allowed = dice.random() < 0.7
    pinterest.policy_seconds = dice.choice([3600, 3600, 120])
    pinterest.forms_good_once = dice.random() < 0.5
    pinterest.pinner_data_denied = rarely(dice, 0.05)
