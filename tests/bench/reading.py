"""The reading lines: one post and a list of posts beside a bare response of the same bytes, and all lists alone."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.bench import figures
from tests.bench.figures import Figure
from tests.bench.load import drive, get, median_ms, per_cpu_second
from tests.bench.servers import MeasuredAppliance, Servers, call, fetch
from tests.bench.turns import Turns
from tests.support.select import select_all, select_value

ONE_POST = 0.2
LIST = 0.1
GROWTH = 1.5
"""The largest growth of a figure from the smallest appliance to the largest."""
LIST_MS, LARGEST_LIST_MS = 25, 150
"""With up to 100,000 posts, and with more."""
DIFFERENT_POSTS = 200

Appliances = dict[int, MeasuredAppliance]
"""By the number of posts."""


@dataclass(frozen=True, slots=True)
class Reading:
    """`paths` are requested with a key of these `limits`, and `least` is a share of a bare response."""

    name: str
    paths: Callable[[MeasuredAppliance], list[str]]
    least: float | None
    limits: Callable[[MeasuredAppliance], dict[str, Any]] = field(default=lambda _: {})
    series: bool = False


def _some_profiles(appliance: MeasuredAppliance) -> dict[str, Any]:
    return {"providers": ["x"], "profiles": appliance.profiles[:10]}


def _posts(appliance: MeasuredAppliance, condition: str) -> list[str]:
    """Return addresses of settled posts from the whole stock."""
    settled = select_all(appliance.rt.db, f"SELECT id FROM post p WHERE status = 'settled' AND {condition} ORDER BY id")
    return [f"/api/v1/posts/{row[0]}" for row in settled[:: max(1, len(settled) // DIFFERENT_POSTS)]]


TWO_DELIVERIES = "outcomes = 'pp'"
PLAIN = f"{TWO_DELIVERIES} AND NOT EXISTS (SELECT 1 FROM media WHERE post_id = p.id)"
PICTURED = f"{TWO_DELIVERIES} AND EXISTS (SELECT 1 FROM media WHERE post_id = p.id)"
SEEN = """outcomes IN ('p', 'pp') AND NOT EXISTS (SELECT 1 FROM media WHERE post_id = p.id)
    AND NOT EXISTS (SELECT 1 FROM audience_member m WHERE m.audience_id = p.audience_id
    AND m.profile_id NOT IN (SELECT id FROM profile WHERE provider = 'x' ORDER BY created_at, id LIMIT 10))"""


def _filtered(appliance: MeasuredAppliance) -> list[str]:
    wanted = ",".join(appliance.profiles[3:4])
    return [f"/api/v1/posts?status=settled&profileIds={wanted}&providers=x"]


READINGS = (
    Reading("one post", lambda one: _posts(one, PLAIN), ONE_POST, series=True),
    Reading("one post with an image", lambda one: _posts(one, PICTURED), None),
    Reading("one post, limited key", lambda one: _posts(one, SEEN), ONE_POST, _some_profiles),
    Reading("list of 20", lambda _: ["/api/v1/posts"], LIST, series=True),
    Reading("list of 20, limited key and filters", _filtered, LIST, _some_profiles),
)


def measure(servers: Servers, appliances: Appliances, turns: Turns, seconds: float) -> list[Figure]:
    """Measure each reading in each appliance, in alternation with a bare response of the same bytes."""
    found: list[Figure] = []
    for reading in READINGS:
        found += _measure(servers, appliances, turns, reading, seconds)
    return found


def _measure(servers: Servers, appliances: Appliances, turns: Turns, reading: Reading, seconds: float) -> list[Figure]:
    keys = {size: one.key(**reading.limits(one)) for size, one in appliances.items()}
    paths = {size: reading.paths(one) for size, one in appliances.items()}
    few = min(appliances)
    sample = fetch("GET", appliances[few].url + paths[few][0], key=keys[few])
    if b'"deliveries"' not in sample:
        raise SystemExit(f"{paths[few][0]} has no post: {sample[:300]!r}")
    name = "post" if "/posts/" in paths[few][0] else "posts"
    fetch("POST", f"{servers.bare_url}/learn/{name}", sample)

    def rate(pid: int, url: str, size: int) -> Callable[[], float]:
        requests = [get(url, path, keys[size]) for path in paths[size]]
        return lambda: per_cpu_second(pid, lambda: drive(url, requests, seconds=seconds))

    floors, *measured = turns.take(
        rate(servers.bare_pid, servers.bare_url, few),
        *(rate(one.pid, one.url, size) for size, one in appliances.items()),
    )
    found = [
        figures.compare(
            f"{reading.name}, {size:,} posts",
            values,
            floors,
            "/s",
            f"bare, {len(sample):,} bytes",
            least=reading.least if size in (few, max(appliances)) else None,
            series=reading.name if reading.series else "",
            posts=size,
        )
        for size, values in zip(appliances, measured, strict=True)
    ]
    return [*found, *growth(found)]


def growth(found: list[Figure]) -> list[Figure]:
    """Return how many times worse the last figure is than the first. There is one for each size."""
    if len(found) < 2:
        return []
    many, few = found[-1], found[0]
    assert many.posts is not None
    name = many.name.removesuffix(f", {many.posts:,} posts")
    return [figures.grown(f"  growth of: {name}", many, few, GROWTH)]


# --- lists -----------------------------------------------------------------------------------------------------------


def measure_lists(appliances: Appliances, turns: Turns, count: int) -> list[Figure]:
    """Measure each list of the API alone, one request after the other: the median latency."""
    limited = {size: one.key(**_some_profiles(one)) for size, one in appliances.items()}
    keys = {size: one.key() for size, one in appliances.items()}
    paths = {size: lists(one, size) for size, one in appliances.items()}
    found, many = [], max(appliances)
    for name in paths[many]:
        chosen = limited if "limited key" in name else keys
        if not call("GET", appliances[many].url + paths[many][name], key=chosen[many])["data"]:
            raise SystemExit(f"This list is empty: {name}")

        def median(size: int, name: str = name, chosen: dict[int, str] = chosen) -> float:
            url = appliances[size].url
            return median_ms(url, get(url, paths[size][name], chosen[size]), count)

        found.append(latency(turns, appliances, name, median, LIST_MS if many <= 100_000 else LARGEST_LIST_MS))
    return found


def latency(turns: Turns, appliances: Appliances, name: str, measure: Callable[[int], float], most: float) -> Figure:
    """Measure a latency with the most posts, beside the same with the fewest. The target is about the latency."""
    few, many = min(appliances), max(appliances)
    name = f"{name}, {many:,} posts"
    if few == many:
        return Figure(name, turns.once(lambda: measure(many)), "ms", most=most)
    (floor,), (value,) = turns.take(lambda: measure(few), lambda: measure(many), rounds=1)
    return Figure(name, value, "ms", floor, f"with {few:,}", value / floor, most=most, of_value=True)


def lists(appliance: MeasuredAppliance, size: int) -> dict[str, str]:
    """Return the address of every kind of list, by its name in the table."""
    reader, posts, logs = appliance.rt.db, "/api/v1/posts", "/api/v1/publish/logs"
    profile, deep = appliance.profiles[3], max(1, size // 20 - 1)
    scheduled = "SELECT scheduled_at FROM post WHERE scheduled_at IS NOT NULL ORDER BY scheduled_at LIMIT 1 OFFSET ?"
    first, middle = (select_value(reader, scheduled, (at,)) for at in (0, size // 4))
    day = f"scheduledAfter={middle[:10]}T00:00:00Z&scheduledBefore={middle[:10]}T23:59:59Z"
    half = (
        "SELECT id FROM log_entry WHERE n >= (SELECT max(n) / 2 FROM log_entry) AND profile_id = ? ORDER BY n LIMIT 1"
    )
    entry = select_value(reader, half, (profile,))
    return {
        "posts": posts,
        "posts, last page": f"{posts}?page={deep}",
        "posts, limited key": posts,
        "posts, providers": f"{posts}?providers=tiktok",
        "posts, profileIds": f"{posts}?profileIds={profile}",
        "posts, status settled": f"{posts}?status=settled",
        "posts, status scheduled": f"{posts}?status=scheduled",
        "posts, status canceled, last page": f"{posts}?status=canceled&page={max(0, size // 1000 - 1)}",
        "posts, deliveryStatus failed": f"{posts}?deliveryStatus=failed",
        "posts, deliveryStatus unknown": f"{posts}?deliveryStatus=unknown",
        "posts, deliveryStatus published": f"{posts}?deliveryStatus=published",
        "posts, deliveryStatus failed, profileIds": f"{posts}?deliveryStatus=failed&profileIds={appliance.profiles[5]}",
        "posts, window over everything": f"{posts}?scheduledAfter={first}",
        "posts, window of one day": f"{posts}?{day}",
        "posts, window and profileIds": f"{posts}?scheduledAfter={first}&profileIds={profile}",
        "posts, window, limited key": f"{posts}?scheduledAfter={first}",
        "posts, window, deliveryStatus published": f"{posts}?scheduledAfter={first}&deliveryStatus=published",
        "posts, window, deliveryStatus failed": f"{posts}?scheduledAfter={first}&deliveryStatus=failed",
        "publish/logs": logs,
        "publish/logs, deep": f"{logs}?offset={min(size, 10_000)}",
        "publish/logs, limited key": logs,
        "publish/logs, after": f"{logs}?after={entry}",
        "publish/logs, after, limited key": f"{logs}?after={entry}",
        "publish/logs, after=start": f"{logs}?after=start",
    }
