"""The publishing lines: from the caller's request to the network, alone, a thousand at once, and behind busy profiles.

The sandbox notes when a call's first byte arrived, on the clock that all processes of one machine share.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from socialpub.accounts.api_keys import Caller
from socialpub.core.clock import parse
from socialpub.db.connection import Database
from socialpub.publishing import profile_queue
from socialpub.publishing.delivery import engine
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import WORKERS, Runtime
from tests.bench import figures, memory
from tests.bench.figures import Figure
from tests.bench.load import drive, post
from tests.bench.servers import MeasuredAppliance, call, wait_until
from tests.bench.turns import Turns
from tests.bench.wal import WalCount
from tests.samples import media
from tests.support.sandbox_http import artifact
from tests.support.select import select_all, select_value

MEDIAN_MS, SLOWEST_MS = 10, 100
PER_SECOND = 100
FIRST_SECONDS, OTHER_NETWORK_MS, BEHIND_SECONDS = 1, 250, 1
BUSY_PROFILES = 40
AHEAD_SECONDS = 2.0
OTHER_POSTS = 10
QUEUE_MS = 5
OWNER = Caller("bench", "write")


def measure_alone(appliance: MeasuredAppliance, turns: Turns, count: int) -> list[Figure]:
    """Publish one post after the other, each while nothing else happens."""
    times: list[float] = turns.once(lambda: _alone(appliance, count))
    return [
        Figure("request to the network's first byte, median", statistics.median(times), "ms", most=MEDIAN_MS),
        Figure("request to the network's first byte, 99 %", figures.share(times, 0.99), "ms", most=SLOWEST_MS),
    ]


def _alone(appliance: MeasuredAppliance, count: int) -> list[float]:
    key = appliance.key()
    sent_at: dict[str, float] = {}
    for number in range(count):
        text = f"Right now, number {number} of {time.time_ns()}"
        body = {"post": {"body": text}, "profiles": [appliance.profiles[number % len(appliance.profiles)]]}
        sent_at[text] = time.monotonic()
        created = call("POST", f"{appliance.url}/api/v1/posts", body, key)["data"]
        settled = call("GET", f"{appliance.url}/api/v1/posts/{created['id']}?wait=20", key=key)["data"]
        if settled["deliveries"][0]["status"] != "published":
            raise SystemExit(f"A post was not published: {settled['deliveries'][0]}")
    arrived = {one["text"]: one["received_monotonic"] for one in posts_at_network(appliance)}
    return [(arrived[text] - at) * 1000 for text, at in sent_at.items()]


# --- a burst ---------------------------------------------------------------------------------------------------------


def measure_burst(appliance: MeasuredAppliance, turns: Turns, count: int) -> list[Figure]:
    """Publish many posts that are due at one instant, in alternation with the same calls by a plain client."""
    alone, bursts = turns.take(lambda: _sandbox_alone(appliance, count), lambda: _burst(appliance, count))
    bytes_per_delivery = turns.once(lambda: _logged_bytes(appliance, max(1, count // 4))) / max(1, count // 4)
    rates = [count / burst["seconds"] for burst in bursts]
    first, other, cpu = (
        statistics.median(burst[name] for burst in bursts) for name in ("first", "other", "worker_cpu")
    )
    name = f"{count:,} deliveries due at once"
    rate = figures.compare(name, rates, [count / one for one in alone], "/s", "sandbox alone", least=PER_SECOND)
    return [
        figures.replace(rate, of_value=True),
        Figure("  last profile queue starts after", first, "s", most=FIRST_SECONDS),
        Figure("  delivery to another network starts after", other, "ms", most=OTHER_NETWORK_MS),
        Figure("  worker's processor time per delivery", cpu / count * 1000, "ms"),
        Figure("  write-ahead log per delivery", bytes_per_delivery / 1024, "KiB"),
    ]


def _sandbox_alone(appliance: MeasuredAppliance, count: int) -> float:
    """Send the same calls with a plain client, as many at a time as the worker makes. Return the seconds."""
    body = {"text": f"Plain {time.time_ns()} ########"}
    requests = [post(appliance.sandbox_url, "/x/2/tweets", token, body) for token in appliance.facts["tokens"]]
    workers = WORKERS
    told = drive(appliance.sandbox_url, requests, count=count, connections=workers, expected=201)
    return float(told["seconds"])


def _burst(appliance: MeasuredAppliance, count: int) -> dict[str, float]:
    """Return when the last call was sent, when the last profile's first call was, and how long Pinterest waited."""
    key, picture = appliance.key(), media.jpeg(appliance.config.parent / "picture.jpg")
    image = artifact(appliance.rt, picture, "image/jpeg")
    before, cpu = post_count(appliance), memory.cpu_seconds([appliance.worker_pid])
    due_at = appliance.rt.now() + timedelta(seconds=AHEAD_SECONDS)
    due = time.monotonic() + (due_at - appliance.rt.now()).total_seconds()
    appliance.rt.write(schedule, appliance.profiles, count, due_at)
    wait_until(lambda: post_count(appliance) > before, seconds=60, every=0.01)
    other = [_to_other_network(appliance, key, image, number) for number in range(OTHER_POSTS)]
    wait_until(lambda: post_count(appliance) >= before + count, seconds=120, every=0.25)
    sent = posts_at_network(appliance)[before:]
    check_early(sent, due)
    first = {one["account_id"]: 0.0 for one in sent}
    for one in reversed(sent):
        first[one["account_id"]] = one["received_monotonic"] - due
    wait_until(lambda: all(_settled(appliance, one) for one in other), seconds=60)
    return {
        "seconds": max(one["received_monotonic"] for one in sent) - due,
        "first": max(first.values()),
        "other": statistics.median(_started_after_ms(appliance, one) for one in other),
        "worker_cpu": memory.cpu_seconds([appliance.worker_pid]) - cpu,
    }


def _to_other_network(appliance: MeasuredAppliance, key: str, image: str, number: int) -> str:
    """Publish a post with an image to a profile of Pinterest. Return its id."""
    pinterest = appliance.facts["profiles"]["pinterest"]
    profile = pinterest[number % len(pinterest)]
    body = {
        "post": {"body": f"Another network, {time.time_ns()}"},
        "media": [{"artifactId": image}],
        "profiles": [profile],
        "providerOptions": {"pinterest": {"boardId": appliance.facts["boards"][profile]}},
    }
    return str(call("POST", f"{appliance.url}/api/v1/posts", body, key)["data"]["id"])


def _settled(appliance: MeasuredAppliance, post_id: str) -> bool:
    return bool(select_value(appliance.rt.db, "SELECT status = 'settled' FROM post WHERE id = ?", (post_id,)))


def _started_after_ms(appliance: MeasuredAppliance, post_id: str) -> float:
    due_at, started_at = select_all(
        appliance.rt.db, "SELECT due_at, started_at FROM delivery WHERE post_id = ?", (post_id,)
    )[0]
    return (parse(started_at) - parse(due_at)).total_seconds() * 1000


def _logged_bytes(appliance: MeasuredAppliance, count: int) -> int:
    """Return the bytes of the write-ahead log for this number of deliveries, without their creates."""
    before = post_count(appliance)
    due_at = appliance.rt.now() + timedelta(seconds=AHEAD_SECONDS)
    appliance.rt.write(schedule, appliance.profiles, count, due_at)
    with WalCount(appliance.database) as log:
        wait_until(lambda: post_count(appliance) >= before + count, seconds=120, every=0.25)
        wait_until(lambda: not select_value(appliance.rt.db, "SELECT count(*) FROM post WHERE status = 'pending'"))
    return log.bytes


# --- fairness --------------------------------------------------------------------------------------------------------


def measure_fairness(appliance: MeasuredAppliance, turns: Turns, posts_each: int) -> list[Figure]:
    """Publish one post of one profile behind many busy profiles: how long its network waits for it."""
    value = turns.once(lambda: _behind_busy_profiles(appliance, posts_each))
    name = f"one post behind {BUSY_PROFILES} profiles with {posts_each} posts each"
    return [Figure(name, value, "s", most=BEHIND_SECONDS)]


def _behind_busy_profiles(appliance: MeasuredAppliance, posts_each: int) -> float:
    before = post_count(appliance)
    busy, quiet = appliance.profiles[:BUSY_PROFILES], appliance.profiles[BUSY_PROFILES]
    key, count = appliance.key(), BUSY_PROFILES * posts_each
    due_at = appliance.rt.now() + timedelta(seconds=AHEAD_SECONDS)
    appliance.rt.write(schedule, busy, count, due_at)
    wait_until(lambda: post_count(appliance) > before + BUSY_PROFILES // 2, seconds=60)
    text, sent_at = f"Behind all of them, {time.time_ns()}", time.monotonic()
    call("POST", f"{appliance.url}/api/v1/posts", {"post": {"body": text}, "profiles": [quiet]}, key)
    wait_until(lambda: post_count(appliance) > before + count, seconds=180, every=0.5)
    arrived = next(one["received_monotonic"] for one in posts_at_network(appliance) if one["text"] == text)
    return float(arrived) - sent_at


# --- the queue -------------------------------------------------------------------------------------------------------


def measure_queues(appliance: MeasuredAppliance, turns: Turns, count: int) -> list[Figure]:
    """Measure what the worker asks its database each second and for each wake-up, with a backlog that is not sent."""
    rt = appliance.rt
    rt.write(schedule, appliance.profiles[:3], count, rt.now() + timedelta(seconds=0.5))
    time.sleep(1)
    queries: dict[str, Callable[[], object]] = {
        "what is due, of all profiles": lambda: engine.list_due_queues(rt),
        "what is next, of one profile": lambda: engine.find_next_due(rt, appliance.profiles[0]),
        "what is overdue": lambda: profile_queue.find_overdue(rt.db, rt.stamp(), 0.0),
    }
    found = []
    for name, query in queries.items():
        value = statistics.median(turns.take(lambda query=query: _milliseconds(query), rounds=1)[0][0])
        # The last query counts all of them, so it only reports.
        most = None if name == "what is overdue" else QUEUE_MS
        found.append(Figure(f"{count:,} due: {name}", value, "ms", most=most))
    return found


def _milliseconds(query: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(20):
        began = time.perf_counter()
        query()
        times.append((time.perf_counter() - began) * 1000)
    return times


# --- posts -----------------------------------------------------------------------------------------------------------


def schedule(rt: Runtime, tx: Database, profiles: Sequence[str], count: int, due_at: datetime) -> None:
    """Create this number of posts of different profiles, in one write."""
    marker = time.time_ns()
    for number in range(count):
        profile = profiles[number % len(profiles)]
        posts.create(rt, tx, Draft(f"Burst {marker}, number {number}", due_at, (profile,)), OWNER)


def posts_at_network(appliance: MeasuredAppliance) -> list[dict[str, Any]]:
    """Return what the sandbox's X has, oldest first."""
    shown: list[dict[str, Any]] = call("GET", f"{appliance.sandbox_url}/_control/x")["posts"]
    return shown


def post_count(appliance: MeasuredAppliance) -> int:
    return int(call("GET", f"{appliance.sandbox_url}/_control/")["x"]["post_count"])


def check_early(sent: Sequence[dict[str, Any]], due: float) -> None:
    if min(one["received_monotonic"] for one in sent) < due - 0.002:
        raise SystemExit("A post was sent before its time.")
