"""The judge: what the networks' own memory says of every outcome, and whether anything lies silent without a reason."""

from collections import defaultdict
from datetime import timedelta

from socialpub.core.clock import parse
from socialpub.db import appliance_state, delivery_rows
from socialpub.db.models import State
from socialpub.publishing import holds
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from socialpub.sandbox.tiktok.models import COMPLETE, IN_INBOX
from tests.simulation.drawn_posts import DrawnPost
from tests.simulation.drawn_world import LONGEST_LAG_SECONDS

FARTHEST = timedelta(days=1, seconds=35)
"""Nothing that we wait for lies further ahead; a clock that is set by less than half a minute moves nothing."""
SOON_SECONDS = 10.0
"""A wait as short as that needs no words."""


class Untrue(AssertionError):
    """What an episode showed to be wrong."""


# --- at the end ------------------------------------------------------------------------------------------------------


def judge_outcomes(rt: Runtime, world: World, accepted: list[DrawnPost]) -> None:
    """Every outcome against the networks' own count. Those of equal content are counted together."""
    together: dict[tuple[str, str, str], list[DrawnPost]] = defaultdict(list)
    for post in accepted:
        together[post.network, post.account_id, post.marker].append(post)
    world.tiktok.catch_up()
    for (network, account_id, marker), group in together.items():
        made = MADE[network](world, account_id, marker)
        rows = [delivery_rows.of_post(rt.reader, post.id)[0] for post in group]
        told = "\n".join(_told(rt, post) for post in group)
        about = f"{network} {account_id} {marker or 'drafts'}: the network has {made}, and we say\n{told}"
        published = [row for row in rows if row["state"] == State.PUBLISHED]
        unknown = [row for row in rows if row["state"] == State.UNCONFIRMED]
        _must(all(State(row["state"]).final for row in rows), f"not settled: {about}")
        most = len(published) + len(unknown)
        # What a list hides for too long may have been sent once more, and no outcome may hide it.
        most *= 2 if getattr(world.networks[network], "list_lag_seconds", 0) > LONGEST_LAG_SECONDS else 1
        _must(len(made) <= most, f"too many: {about}")
        _must(len(made) >= len(published), f"published, and not there: {about}")
        known = [row["provider_post_id"] for row in published if row["provider_post_id"]]
        _must(len(set(known)) == len(known), f"two have the same id: {about}")
        if network != "tiktok" or marker:
            _must(set(known) <= set(made), f"another id: {about}")
        for row in unknown:
            _must(row["error_message"].startswith("Outcome unknown: "), f"it should say so: {about}")
    for post in accepted:
        _judge_log(rt, post)


def _told(rt: Runtime, post: DrawnPost) -> str:
    """How it ended and what was written down of its way."""
    row = delivery_rows.of_post(rt.reader, post.id)[0]
    attempts = rt.reader.all("SELECT * FROM attempt WHERE delivery_id = ? ORDER BY n", (row["id"],))
    way = (f"    {one['started_at']} {one['step']} {one['outcome']} {one['message']}" for one in attempts)
    ended = f"  {row['state']} {row['provider_post_id']} {row['error_message']} {row['progress']} {row['memo']}"
    return "\n".join((ended, *way))


def _judge_log(rt: Runtime, post: DrawnPost) -> None:
    row = delivery_rows.of_post(rt.reader, post.id)[0]
    end = State(row["state"]).outside
    log = [one[0] for one in rt.reader.all("SELECT type FROM log_entry WHERE post_id = ? ORDER BY n", (post.id,))]
    _must(log == ["pending", end], f"{post} ended as {end}, and its log says {log}")
    status = rt.reader.value("SELECT status FROM post WHERE id = ?", (post.id,))
    _must(status == ("canceled" if end == "canceled" else "settled"), f"{post} ended as {end} and is {status}")


def _on_x(world: World, account_id: str, marker: str) -> list[str]:
    return [post.id for post in world.x.posts if post.account_id == account_id and marker in post.text]


def _on_pinterest(world: World, account_id: str, marker: str) -> list[str]:
    return [
        pin.id for pin in world.pinterest.pins if pin.account_id == account_id and marker in (pin.description or "")
    ]


def _on_tiktok(world: World, account_id: str, marker: str) -> list[str]:
    """Posts, and drafts in an inbox."""
    made = []
    for task in world.tiktok.tasks.all.values():
        words = f"{task.post_info.get('title', '')} {task.post_info.get('description', '')}"
        fits = marker in words if marker else not task.direct and task.kind == "VIDEO"
        if task.open_id == account_id and fits and task.status in (IN_INBOX, COMPLETE):
            made.append(task.posts[0].id if task.posts else task.publish_id)
    return made


MADE = {"x": _on_x, "tiktok": _on_tiktok, "pinterest": _on_pinterest}


# --- at every quiet moment -------------------------------------------------------------------------------------------


class Watch:
    """No delivery is silent for longer than its reason, and what it waits for is no further than a day ahead."""

    def __init__(self) -> None:
        self._jumps = 0
        self._moved: dict[str, str] = {}
        """Where a clock that was set has moved the next runs; the attempts that named them stay as they were."""

    def look(self, rt: Runtime, jumps: int) -> None:
        """`jumps`: how often the clock was set so far."""
        now = rt.now()
        if jumps != self._jumps:
            self._jumps = jumps
            open_rows = rt.reader.all("SELECT id, run_at FROM delivery WHERE state IN ('queued', 'running')")
            self._moved = {row["id"]: row["run_at"] for row in open_rows}
        if not appliance_state.paused_at(rt.reader):
            for row in rt.reader.all("SELECT id FROM delivery WHERE state IN ('queued', 'running')"):
                self._look_at(rt, row["id"])
        farthest = rt.reader.value("SELECT max(until) FROM not_before")
        _must(farthest is None or parse(farthest) <= now + FARTHEST, f"a lane rests until {farthest}, at {now}")
        probe_at = rt.reader.value("SELECT max(probe_at) FROM hold")
        _must(probe_at is None or parse(probe_at) <= now + timedelta(minutes=16), f"a probe only at {probe_at}")

    def _look_at(self, rt: Runtime, delivery_id: str) -> None:
        delivery = delivery_rows.find(rt.reader, delivery_id)
        assert delivery is not None
        now, run_at = rt.now(), parse(delivery.run_at)
        scheduled = delivery.started_at is None and delivery.run_at == delivery.due_at
        about = f"{delivery} at {rt.stamp()}"
        _must(delivery.state is State.QUEUED, f"it runs, and nobody runs it: {about}")
        if run_at <= now:
            held = {row["scope"] for row in holds.list_all(rt.reader) if row["provider"] == delivery.provider}
            _must(bool(held & set(holds.scopes_of(delivery))), f"due, and left lying: {about}")
        elif not scheduled:
            _must(run_at <= now + FARTHEST, f"too far ahead: {about}")
            if (run_at - now).total_seconds() > SOON_SECONDS and self._moved.get(delivery_id) != delivery.run_at:
                last = rt.reader.one(
                    "SELECT outcome, next_at FROM attempt WHERE delivery_id = ? ORDER BY n DESC LIMIT 1", (delivery_id,)
                )
                named = None if last is None else last["next_at"]
                near = named is not None and abs((parse(named) - run_at).total_seconds()) < 1
                _must(near, f"no attempt tells of its wait, the last one says {named}: {about}")
                if last is not None and last["outcome"] == "held" and delivery.progress.waits_for_owner:
                    status = rt.reader.value("SELECT status FROM profile WHERE id = ?", (delivery.profile_id,))
                    _must(status == "reauthRequired", f"it waits for its owner, and the account is {status}: {about}")


def _must(fact: bool, otherwise: str) -> None:
    if not fact:
        raise Untrue(otherwise)
