"""The judge: the networks' own memory of every outcome, and whether anything lies silent without a reason.

An episode has one installation, or several over one world: each may be a backup of another one, brought back. What they
all say of one content is added up, so that no restore hides a second post and no restored outcome is untrue.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from socialpub.core.clock import parse
from socialpub.db import appliance_state
from socialpub.db.delivery import Delivery
from socialpub.db.states import State
from socialpub.db.tables import delivery_rows, waits
from socialpub.db.tables.waits import REASONS, EndedBy, PresentWait, WaitReason
from socialpub.publishing.delivery.read_back import NOT_KNOWN_ELSEWHERE
from socialpub.publishing.posts import details
from socialpub.publishing.posts.replies import find_parent
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from socialpub.sandbox.tiktok.tasks import COMPLETE, IN_INBOX
from tests.simulation.drawn_world import LONGEST_LAG_SECONDS
from tests.simulation.ledger import DrawnPost, Kind, Ledger
from tests.simulation.times import DrawnClock
from tests.stand_ins.bluesky import key_seconds
from tests.support.oracle import Stated, find_misplaced_replies, find_row_contradictions, find_untruths
from tests.support.select import select_all, select_one, select_value

FARTHEST = timedelta(days=1, seconds=35)
"""Nothing that we wait for lies further ahead; a clock that is set by less than half a minute moves nothing."""
SOON_SECONDS = 10.0
"""A wait as short as that needs no words."""
OF_A_RESTORE = re.compile("restored|original|backup", re.IGNORECASE)
VERSION = re.compile(r"e\d{4}e")
"""What an edit has put into the words (`DrawnPosts.draw_edit`)."""


class Untrue(AssertionError):
    """What an episode showed to be wrong."""


# --- what the installations say --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """The state of a delivery in one installation."""

    state: State
    stated: Stated
    past_commit: bool
    way: str
    """The row and its attempts, for who reads the failure."""

    @property
    def may_be_public(self) -> bool:
        return self.state in (State.PUBLISHED, State.UNCONFIRMED) or (not self.state.final and self.past_commit)

    @property
    def leaves_it_open(self) -> bool:
        """Whether it says nothing of what another installation has sent."""
        return self.state is State.CANCELED or not self.state.final


@dataclass(frozen=True)
class Testimony:
    """What one installation knows and says, at its end."""

    name: str
    ledger: Ledger
    said: dict[str, Said]
    public_before: frozenset[str] = frozenset()
    """The ids that were public at the resume. Its own posts became public later."""
    clock_was_set: bool = False


def testimony(rt: Runtime, name: str, ledger: Ledger, public_before: frozenset[str], clock_was_set: bool) -> Testimony:
    said = {post.id: _said(rt, post) for post in ledger.accepted}
    return Testimony(name, ledger, said, public_before, clock_was_set)


def _said(rt: Runtime, post: DrawnPost) -> Said:
    row = delivery_rows.list_of_post(rt.db, post.id)[0]
    attempts = select_all(rt.db, "SELECT * FROM attempt WHERE delivery_id = ? ORDER BY n", (row.id,))
    steps = (f"    {one['started_at']} {one['step']} {one['outcome']} {one['message']}" for one in attempts)
    ended = f"{row.state} {row.provider_post_id} {row.error_message} {row.progress} {row.memo}"
    return Said(
        State(row.state),
        Stated.from_row(row),
        row.committed_at is not None,
        "\n".join((f"  {post.id} due {row.due_at}: {ended}", *steps)),
    )


# --- at the end ------------------------------------------------------------------------------------------------------


def judge_outcomes(
    world: World, last: Testimony, others: Sequence[Testimony] = (), *, settled: bool = True
) -> Counter[str]:
    """What `last` says against the networks' own count, and against what the installations before it did. Posts of
    equal content are counted together. Which accepted limits of a restore were met, and how often."""
    together: dict[tuple[str, str, str], dict[str, DrawnPost]] = defaultdict(dict)
    for one in (last, *others):
        for post in one.ledger.accepted:
            together[post.network, post.account_id, post.marker].setdefault(post.id, post)
    world.tiktok.catch_up()
    limits: Counter[str] = Counter()
    for (network, account_id, marker), group in together.items():
        made = MADE[network](world, account_id, marker)
        limits += _Count(world, network, marker, made, list(group.values()), last, others, settled).judge()
    for post in last.ledger.accepted:
        _judge_ordinary(post, last, others, dated=_tells_time(world, post.network))
    return limits


class _Count:
    """One content: what its network has (`made`: ids and versions), and what the installations say."""

    def __init__(
        self,
        world: World,
        network: str,
        marker: str,
        made: dict[str, str],
        group: list[DrawnPost],
        last: Testimony,
        others: Sequence[Testimony],
        settled: bool,
    ) -> None:
        self.network, self.marker, self.made, self.group = network, marker, made, group
        self.last, self.others, self.settled = last, others, settled
        self.lags = getattr(world.networks[network], "list_lag_seconds", 0) > LONGEST_LAG_SECONDS
        self.versions = {""} | {act.version for act in last.ledger.acts if act.kind is Kind.EDITED}
        self.limits: Counter[str] = Counter()

    def judge(self) -> Counter[str]:
        said = [self.last.said[post.id] for post in self.group if post.id in self.last.said]
        self.must(not self.settled or all(one.state.final for one in said), "not settled")
        # What another installation has edited and published since, no backup of before can recognize.
        known = [one for one, version in self.made.items() if version in self.versions]
        self.limits["edited and published by the original"] += len(self.made) - len(known)
        # A post that a list hides for too long may have been sent again.
        at_most = sum(self.most_of(chance) for chance in self.chances()) * (2 if self.lags else 1)
        at_most += len(self.made) - len(known)
        ids_are_known = self.network != "tiktok" or bool(self.marker)
        stated = [one.stated for one in said]
        for untruth in find_untruths(stated, self.made, at_most=at_most, ids_are_known=ids_are_known):
            self.must(False, untruth)
        if ids_are_known:
            self.judge_words()
        return self.limits

    def chances(self) -> list[list[DrawnPost]]:
        """The posts that share a chance to become public."""
        found: dict[str, list[DrawnPost]] = defaultdict(list)
        for post in self.group:
            found[post.chance].append(post)
        return list(found.values())

    def most_of(self, chance: list[DrawnPost]) -> int:
        """How often these may be public, as they all stand."""
        own = [post for post in chance if post.id in self.last.said]
        foreign = [post for post in chance if post.id not in self.last.said]
        here = any(self.last.said[post.id].may_be_public for post in own)
        open_here = [post for post in own if self.last.said[post.id].leaves_it_open]
        there = any(self.is_public_elsewhere(post) for post in (*foreign, *open_here))
        unaware = self.unaware(chance)
        sent_again = {ways for one, ways in unaware if self.is_public_in(one, chance)}
        return int(here or there or any(one is self.last for one, _ in unaware)) + len(sent_again)

    def is_public_elsewhere(self, post: DrawnPost) -> bool:
        """Whether another installation may have published it, in words that this one knows."""
        return any(
            one.said[post.id].may_be_public and one.ledger.versions.get(post.id, "") in self.versions
            for one in self.others
            if post.id in one.said
        )

    def unaware(self, chance: list[DrawnPost]) -> list[tuple[Testimony, frozenset[str]]]:
        """An accepted limit: TikTok, and an account that this app may not read, cannot be asked. Then an installation
        cannot know what a former one's owner published early, or tried again, or what its own owner has moved while the
        former one published it. Nor what was published on time, when the clock was set back to before that time.

        With each of them, how it says so: what came with a backup says it in the same words.
        """
        everyone, found = (*self.others, self.last), []
        for at, one in enumerate(everyone):
            said = [one.said[post.id] for post in chance if post.id in one.said]
            ways = frozenset(line for each in said for line in each.way.splitlines() if NOT_KNOWN_ELSEWHERE in line)
            if self.network == "tiktok":
                ways = frozenset({one.name})
            if ways and any(self.is_public_unknown_to(one, former, chance) for former in everyone[:at]):
                found.append((one, ways))
        return found

    def is_public_unknown_to(self, one: Testimony, former: Testimony, chance: list[DrawnPost]) -> bool:
        ids = {post.id for post in chance}
        acts, former_acts = ({act for act in each.ledger.acts if act.post_id in ids} for each in (one, former))
        return self.is_public_in(former, chance) and (acts != former_acts or one.clock_was_set)

    def is_public_in(self, one: Testimony, chance: list[DrawnPost]) -> bool:
        return any(one.said[post.id].may_be_public for post in chance if post.id in one.said)

    def judge_words(self) -> None:
        """What is published is up in the words that it has."""
        for post in self.group:
            said = self.last.said.get(post.id)
            if said is not None and said.state is State.PUBLISHED and said.stated.post_id in self.made:
                words = self.last.ledger.versions.get(post.id, "")
                self.must(self.made[said.stated.post_id] == words, f"published with other words than {words!r}")

    def must(self, fact: bool, otherwise: str) -> None:
        if not fact:
            raise Untrue(f"{otherwise}: {self.network} {self.marker or 'drafts'} has {self.made}\n{self.told()}")

    def told(self) -> str:
        lines = []
        for one in (self.last, *self.others):
            lines.append(f"{one.name} says")
            for post in self.group:
                if post.id in one.said:
                    acts = sorted(f"{act.kind} {act.version}" for act in one.ledger.acts if act.post_id == post.id)
                    own = "" if post.id in one.ledger.inherited else "its own "
                    lines.append(f"  {own}chance {post.chance} {acts}\n{one.said[post.id].way}")
        return "\n".join(lines)


def _tells_time(world: World, network: str) -> bool:
    """Return whether the answers and the posts of this network have a date."""
    left_out = world.x.leaves_out if network == "x" else ()
    return world.networks[network].sends_date and world.pinterest.dates_pins and "created_at" not in left_out


def _judge_ordinary(post: DrawnPost, last: Testimony, others: Sequence[Testimony], *, dated: bool) -> None:
    """What a restored appliance has accepted itself is nothing that its original could have sent. An accepted limit:
    after a call of unknown outcome, a network without dates (not `dated`) may show an equal post of the original.
    """
    if not last.ledger.inherited or not last.ledger.is_ordinary(post):
        return
    said = last.said[post.id]
    if said.state in (State.FAILED, State.UNCONFIRMED):
        _must(
            OF_A_RESTORE.search(said.stated.message) is None, f"its own post fails as if it were restored: {said.way}"
        )
    if said.state is State.PUBLISHED and said.stated.post_id is not None and dated:
        _must(said.stated.post_id not in last.public_before, f"its own post was there before: {said.way}")
        foreign = (one.said.values() for one in others)
        taken = any(one.stated.post_id == said.stated.post_id for several in foreign for one in several)
        _must(not taken, f"its own post is another installation's: {said.way}")


def judge_rows(rt: Runtime, world: World, *, is_restored: bool) -> None:
    """The log, the posts and every counter against their deliveries, and replies against the networks.

    A restored appliance may find a reply that the original has published under another post.
    """
    for contradiction in find_row_contradictions(rt.db.execute_sql):
        raise Untrue(contradiction)
    answered: dict[str | None, str | None] = {post.id: post.in_reply_to for post in world.x.posts}
    for record in world.bluesky.posts:
        answered[record.uri] = record.value.get("reply", {}).get("parent", {}).get("uri")
    for misplaced in find_misplaced_replies(rt.db.execute_sql, answered):
        _must(is_restored, misplaced)


def judge_dates(world: World, clock: DrawnClock) -> None:
    """A record of Bluesky has a date, and a key of that date, that the wall clock of its appliance has shown."""
    for record in world.bluesky.records.values():
        dated = parse(record.value["createdAt"])
        _must(clock.has_shown(dated), f"no clock showed {dated}: {record}")
        _must(abs(dated.timestamp() - key_seconds(record.rkey)) < 0.001, f"the key has another date: {record}")


def _on_x(world: World, account_id: str, marker: str) -> dict[str, str]:
    return {
        post.id: _version(post.text) for post in world.x.posts if post.account_id == account_id and marker in post.text
    }


def _on_pinterest(world: World, account_id: str, marker: str) -> dict[str, str]:
    return {
        pin.id: _version(pin.description or "")
        for pin in world.pinterest.pins
        if pin.account_id == account_id and marker in (pin.description or "")
    }


def _on_tiktok(world: World, account_id: str, marker: str) -> dict[str, str]:
    """Posts, and drafts in an inbox."""
    made = {}
    for task in world.tiktok.tasks.values():
        words = f"{task.post_info.get('title', '')} {task.post_info.get('description', '')}"
        fits = marker in words if marker else not task.direct and task.kind == "VIDEO"
        if task.open_id == account_id and fits and task.status in (IN_INBOX, COMPLETE):
            made[task.posts[0] if task.posts else task.publish_id] = _version(words)
    return made


def _on_bluesky(world: World, account_id: str, marker: str) -> dict[str, str]:
    return {
        post.uri: _version(post.value["text"])
        for post in world.bluesky.posts
        if post.did == account_id and marker in post.value["text"]
    }


def _version(words: str) -> str:
    found = VERSION.search(words)
    return found[0] if found else ""


MADE = {"x": _on_x, "tiktok": _on_tiktok, "pinterest": _on_pinterest, "bluesky": _on_bluesky}


# --- at every quiet moment -------------------------------------------------------------------------------------------


class Watch:
    """No delivery is silent for longer than its reason, and what it waits for is no further than a day ahead."""

    def __init__(self) -> None:
        self._jumps = 0
        self.off = timedelta(0)
        """How far our clock was set since the backup. The restored appliance does not know this."""
        self._moved: dict[str, str] = {}
        """Where a clock that was set has moved the next runs; the attempts that named them stay as they were."""

    def as_backed_up(self) -> "Watch":
        """For what is restored from a backup of this instant."""
        watch = Watch()
        watch._jumps, watch._moved, watch.off = self._jumps, dict(self._moved), self.off
        return watch

    def look(self, rt: Runtime, jumps: int) -> None:
        """`jumps`: how often the clock was set so far."""
        now = rt.now()
        if jumps != self._jumps:
            self._jumps = jumps
            open_rows = select_all(rt.db, "SELECT id, run_at FROM delivery WHERE state IN ('queued', 'running')")
            self._moved = {row["id"]: row["run_at"] for row in open_rows}
        if not appliance_state.paused_at(rt.db):
            for row in select_all(rt.db, "SELECT id FROM delivery WHERE state IN ('queued', 'running')"):
                self._look_at(rt, row["id"])
        farthest = select_value(rt.db, "SELECT max(until) FROM stored_wait")
        _must(
            farthest is None or parse(farthest) <= now + FARTHEST + self.off,
            f"a wait ends only at {farthest}, at {now}",
        )
        probe_at = select_value(rt.db, "SELECT max(until) FROM stored_wait WHERE reason = 'app'")
        _must(
            probe_at is None or parse(probe_at) <= now + timedelta(minutes=16) + self.off, f"a probe only at {probe_at}"
        )

    def _look_at(self, rt: Runtime, delivery_id: str) -> None:
        delivery = delivery_rows.find(rt.db, delivery_id)
        assert delivery is not None
        now, run_at = rt.now(), parse(delivery.run_at)
        scheduled = delivery.started_at is None and delivery.run_at == delivery.due_at
        about = f"{delivery} at {rt.stamp()}"
        _must(delivery.state is State.QUEUED, f"it is running without a process: {about}")
        if run_at <= now:
            present = waits.list_current(rt.db, delivery_id, rt.stamp())
            _must(bool(present), f"due, and neither taken up nor kept back: {about}")
            _judge_wait(rt, delivery, present[0], about)
            shown = json.loads(details.load_attempts(rt, rt.db, delivery.post_id))
            last = next(one for one in reversed(shown) if one["deliveryId"] == delivery.id)
            dated = "nextAt" in last or REASONS[present[0].reason].ended_by is EndedBy.POST
            _must("endedAt" not in last and dated, f"it waits for {present[0].reason}, and shows {last}: {about}")
        elif not scheduled:
            # It may have begun before its time, on a clock that was set back later.
            farthest = max(now, parse(delivery.due_at)) + FARTHEST + self.off
            _must(run_at <= farthest, f"too far ahead: {about}")
            if (run_at - now).total_seconds() > SOON_SECONDS and self._moved.get(delivery_id) != delivery.run_at:
                last = select_one(
                    rt.db,
                    "SELECT outcome, next_at FROM attempt WHERE delivery_id = ? ORDER BY n DESC LIMIT 1",
                    (delivery_id,),
                )
                named = None if last is None else last["next_at"]
                near = named is not None and abs((parse(named) - run_at).total_seconds()) < 1
                _must(near, f"no attempt shows its wait, the last attempt shows {named}: {about}")


def _judge_wait(rt: Runtime, delivery: Delivery, wait: PresentWait, about: str) -> None:
    """A wait is true, and its event can still come."""
    match wait.reason:
        case WaitReason.PARENT:
            parent = find_parent(rt.db, delivery.reply_to)
            _must(parent is not None and not parent.state.final, f"it waits, and its post has ended: {about}")
        case WaitReason.RECONNECT:
            status = select_value(rt.db, "SELECT status FROM profile WHERE id = ?", (delivery.profile_id,))
            _must(status == "reauthRequired", f"it waits for its owner, and the account is {status}: {about}")
        case WaitReason.EQUAL:
            others = select_value(
                rt.db,
                """SELECT count(*) FROM delivery WHERE profile_id = ? AND content_key = ? AND id <> ?
                    AND committed_at IS NOT NULL AND state IN ('queued', 'running')""",
                (delivery.profile_id, delivery.content_key, delivery.id),
            )
            _must(others > 0, f"it waits for an equal post, and there is none: {about}")


def _must(fact: bool, otherwise: str) -> None:
    if not fact:
        raise Untrue(otherwise)
