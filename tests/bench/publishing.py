"""The publishing lines: from the caller's request to the network, alone and a thousand at once.

The sandbox notes when a call's first byte arrived, on the clock that all processes of one machine share.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from socialpub.accounts.api_keys import Caller
from socialpub.db.connection import Tx
from socialpub.publishing.delivery import engine, profile_queue
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime
from tests.bench import figures
from tests.bench.figures import Figure
from tests.bench.load import drive, post_of
from tests.bench.servers import MeasuredAppliance, call, wait_until

MEDIAN_MS, SLOWEST_MS = 50, 250
BURST = 1000
BUSY_PROFILES, POSTS_EACH = 40, 80
QUIET_SECONDS = 1
DUE = 20_000
LOOK_MS = 5
BEHIND_SECONDS = 2
AHEAD_SECONDS = 4
OWNER = Caller("bench", "write")


def measure_alone(appliance: MeasuredAppliance, count: int) -> list[Figure]:
    """One post after the other, each while nothing else happens."""
    key = appliance.key()
    sent_at: dict[str, float] = {}
    for number in range(count):
        text = f"Right now, number {number} of {time.time_ns()}"
        body = {"post": {"body": text}, "profiles": [appliance.profiles[number % len(appliance.profiles)]]}
        sent_at[text] = time.monotonic()
        post = call("POST", f"{appliance.url}/api/v1/posts", body, key)["data"]
        settled = call("GET", f"{appliance.url}/api/v1/posts/{post['id']}?wait=20", key=key)["data"]
        if settled["deliveries"][0]["status"] != "published":
            raise SystemExit(f"A post did not go out: {settled['deliveries'][0]}")
    arrived = {post["text"]: post["received_monotonic"] for post in _posts(appliance)}
    times = [(arrived[text] - at) * 1000 for text, at in sent_at.items()]
    median, slow = statistics.median(times), figures.share(times, 0.99)
    return [
        figures.at_most("request to the network, median", f"{median:.1f} ms", "", median, MEDIAN_MS, " ms"),
        figures.at_most("request to the network, 99 %", f"{slow:.1f} ms", "", slow, SLOWEST_MS, " ms"),
    ]


def measure_burst(appliance: MeasuredAppliance, rounds: int) -> list[Figure]:
    """A thousand deliveries due at one instant; when the last of them was started, and what the sandbox alone needs."""
    alone, together = figures.take_turns(rounds, lambda: _alone(appliance), lambda: _burst(appliance))
    behind = statistics.median(theirs - ours for theirs, ours in zip(together, alone, strict=True))
    return [
        figures.at_most(
            f"{BURST:,} deliveries due at once, all started",
            f"{statistics.median(together):.2f} s",
            f"{statistics.median(alone):.2f} s sandbox alone",
            behind,
            BEHIND_SECONDS,
            " s behind",
        )
    ]


def measure_fairness(appliance: MeasuredAppliance, rounds: int) -> list[Figure]:
    """One post of a profile that is behind many busy ones: how long its network waits for it."""
    values = [_behind_busy_profiles(appliance) for _ in range(rounds)]
    line = f"one post behind {BUSY_PROFILES} profiles with {POSTS_EACH} posts each"
    value = statistics.median(values)
    return [figures.at_most(line, f"{value:.2f} s", "", value, QUIET_SECONDS, " s")]


def _behind_busy_profiles(appliance: MeasuredAppliance) -> float:
    before = len(_posts(appliance))
    busy, quiet = appliance.profiles[:BUSY_PROFILES], appliance.profiles[BUSY_PROFILES]
    key, count = appliance.key(), BUSY_PROFILES * POSTS_EACH
    due_at = appliance.rt.now() + timedelta(seconds=AHEAD_SECONDS)
    appliance.rt.write(_schedule, busy, count, due_at)
    wait_until(lambda: _post_count(appliance) > before + BUSY_PROFILES, seconds=60)
    text, sent_at = f"Behind all of them, {time.time_ns()}", time.monotonic()
    call("POST", f"{appliance.url}/api/v1/posts", {"post": {"body": text}, "profiles": [quiet]}, key)
    wait_until(lambda: _post_count(appliance) > before + count, seconds=180, every=0.5)
    return float(next(post["received_monotonic"] for post in _posts(appliance) if post["text"] == text)) - sent_at


def measure_queues(appliance: MeasuredAppliance) -> list[Figure]:
    """What the worker asks its database each second and for each wake-up, with a backlog; nothing sends it."""
    rt = appliance.rt
    for size in (DUE // 500) * [500]:
        rt.write(_schedule, appliance.profiles[:3], size, rt.now() + timedelta(seconds=AHEAD_SECONDS))
    due_at = rt.now() + timedelta(seconds=AHEAD_SECONDS)
    wait_until(lambda: rt.now() > due_at, seconds=2 * AHEAD_SECONDS)
    looks: dict[str, Callable[[], object]] = {  # the last one counts, so it only reports
        "what is due, of all profiles": lambda: engine.list_due_queues(rt.reader, rt.stamp(), rt.process),
        "what comes next, of one profile": lambda: engine.find_next_due(
            rt.reader, appliance.profiles[0], rt.stamp(), rt.process
        ),
        "what is overdue": lambda: profile_queue.find_overdue(rt.reader, rt.stamp(), 0.0),
    }
    found = []
    for name, look in looks.items():
        value = statistics.median(_milliseconds(look) for _ in range(20))
        aim = None if name == "what is overdue" else LOOK_MS
        found.append(figures.at_most(f"{DUE:,} due: {name}", f"{value:.2f} ms", "", value, aim, " ms"))
    return found


def _milliseconds(look: Callable[[], object]) -> float:
    began = time.perf_counter()
    look()
    return (time.perf_counter() - began) * 1000


def _alone(appliance: MeasuredAppliance) -> float:
    """As many calls by a plain client, as many at a time as the worker makes."""
    body = {"text": f"Plain {time.time_ns()} ########"}
    requests = [post_of(appliance.sandbox_url, "/x/2/tweets", token, body) for token in appliance.tokens]
    workers = appliance.rt.settings.publishing.workers
    told = drive(appliance.sandbox_url, requests, count=BURST, connections=workers, expected=201)
    return float(told["seconds"])


def _burst(appliance: MeasuredAppliance) -> float:
    before = len(_posts(appliance))
    due_at = appliance.rt.now() + timedelta(seconds=AHEAD_SECONDS)
    due_monotonic = time.monotonic() + (due_at - appliance.rt.now()).total_seconds()
    appliance.rt.write(_schedule, appliance.profiles, BURST, due_at)
    wait_until(lambda: _post_count(appliance) >= before + BURST, seconds=60, every=0.25)
    arrived = [post["received_monotonic"] for post in _posts(appliance)[before:]]
    if min(arrived) < due_monotonic - 0.002:
        raise SystemExit("A post went out before its time.")
    return float(max(arrived) - due_monotonic)


def _schedule(rt: Runtime, tx: Tx, profiles: Sequence[str], count: int, due_at: Any) -> None:
    marker = time.time_ns()
    for number in range(count):
        profile = profiles[number % len(profiles)]
        posts.create(rt, tx, Draft(f"Burst {marker}, number {number}", due_at, (profile,)), OWNER)


def _posts(appliance: MeasuredAppliance) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = call("GET", f"{appliance.sandbox_url}/_control/x")["posts"]
    return shown


def _post_count(appliance: MeasuredAppliance) -> int:
    return int(call("GET", f"{appliance.sandbox_url}/_control/")["x"]["post_count"])
