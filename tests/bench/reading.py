"""The reading lines: one post and a list of posts, against a bare Starlette answer of the same bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from tests.bench import figures
from tests.bench.figures import Figure
from tests.bench.load import Load
from tests.bench.servers import MeasuredAppliance, Servers, call

ONE_POST = 0.35
LIST = 0.25
GROWTH = 1.5
"""The largest growth of a figure with a hundred or a thousand times as many posts."""
DIFFERENT_POSTS = 200


@dataclass(frozen=True, slots=True)
class Reading:
    """What is asked (`paths(appliance)`) with a key of which limits, and the aim as a share of a bare answer."""

    line: str
    paths: Callable[[MeasuredAppliance], list[str]]
    limits: Callable[[MeasuredAppliance], dict[str, object]]
    aim: float | None


def _no_limits(_appliance: MeasuredAppliance) -> dict[str, object]:
    return {}


def _some_profiles(appliance: MeasuredAppliance) -> dict[str, object]:
    return {"providers": ["x"], "profiles": appliance.profiles[:10]}


def _posts(appliance: MeasuredAppliance, more: str, *params: str) -> list[str]:
    """Addresses of settled posts from all over the stock."""
    settled = int(appliance.rt.reader.value("SELECT count(*) FROM post WHERE status = 'settled'"))
    rows = appliance.rt.reader.all(
        f"""SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM post p
            WHERE status = 'settled' {more}) WHERE n % {max(1, settled // (4 * DIFFERENT_POSTS))} = 0 LIMIT ?""",
        (*params, DIFFERENT_POSTS),
    )
    return [f"/api/v1/posts/{row[0]}" for row in rows]


PLAIN = "AND NOT EXISTS (SELECT 1 FROM media WHERE post_id = p.id)"
PICTURED = "AND EXISTS (SELECT 1 FROM media WHERE post_id = p.id)"
SEEN = """AND NOT EXISTS (SELECT 1 FROM audience_member m WHERE m.audience_id = p.audience_id
    AND m.profile_id NOT IN (SELECT id FROM profile ORDER BY created_at, id LIMIT 10))"""


def _filtered(appliance: MeasuredAppliance) -> list[str]:
    wanted = ",".join(appliance.profiles[2:4])
    return [f"/api/v1/posts?status=settled&profileIds={wanted}&providers=x"]


READINGS = (
    Reading("one post", lambda appliance: _posts(appliance, PLAIN), _no_limits, ONE_POST),
    Reading("one post with a picture", lambda appliance: _posts(appliance, PICTURED), _no_limits, None),
    Reading("one post, limited key", lambda appliance: _posts(appliance, PLAIN + SEEN), _some_profiles, ONE_POST),
    Reading("list of 20", lambda _appliance: ["/api/v1/posts"], _no_limits, LIST),
    Reading("list of 20, limited key, filters", _filtered, _some_profiles, LIST),
)


def measure(
    servers: Servers, appliances: dict[int, MeasuredAppliance], load: Load, rounds: int, seconds: float
) -> list[Figure]:
    """Each reading in every appliance, in turns with a bare answer of the same bytes."""
    found: list[Figure] = []
    for reading in READINGS:
        found += _measure(servers, appliances, load, reading, rounds, seconds)
    return found


def _measure(
    servers: Servers,
    appliances: dict[int, MeasuredAppliance],
    load: Load,
    reading: Reading,
    rounds: int,
    seconds: float,
) -> list[Figure]:
    keys = {size: appliance.key(**reading.limits(appliance)) for size, appliance in appliances.items()}
    paths = {size: reading.paths(appliance) for size, appliance in appliances.items()}
    smallest = min(appliances)
    sample = _answer(appliances[smallest], paths[smallest][0], keys[smallest])
    name = "posts" if "/posts/" not in paths[smallest][0] else "post"
    _teach(servers, name, sample)

    def bare() -> float:
        return load.gets(servers.bare_url, paths[smallest], keys[smallest], seconds)

    def of_appliance(size: int) -> Callable[[], float]:
        return lambda: load.gets(appliances[size].url, paths[size], keys[size], seconds)

    yardstick, *measured = figures.take_turns(rounds, bare, *(of_appliance(size) for size in appliances))
    found = [
        figures.at_least(
            f"{reading.line}, {size:,} posts",
            figures.per_second(values),
            f"{figures.per_second(yardstick)} bare, {len(sample):,} bytes",
            figures.ratio(values, yardstick),
            reading.aim,
        )
        for size, values in zip(appliances, measured, strict=True)
    ]
    for values in measured[1:]:
        growth = figures.ratio(measured[0], values)
        line = f"  how many times slower than with {smallest:,}"
        told = figures.per_second(values), figures.per_second(measured[0])
        found.append(figures.at_most(line, *told, growth, GROWTH, "×"))
    return found


def measure_long(appliances: dict[int, MeasuredAppliance], asked: int) -> list[Figure]:
    """Deep pages and windows of time: reported, since they have to look at what they skip."""
    found = []
    for size, appliance in appliances.items():
        key = appliance.key()
        per_page = 20
        deep = f"{appliance.url}/api/v1/posts?page={size // per_page - 1}"
        window = f"{appliance.url}/api/v1/posts?scheduledAfter=2000-01-01T00:00:00Z"
        for line, url in (("the last page of 20", deep), ("a window over everything scheduled", window)):
            times = []
            for _ in range(asked):
                began = appliance.rt.clock.monotonic()
                call("GET", url, key=key)
                times.append((appliance.rt.clock.monotonic() - began) * 1000)
            found.append(Figure(f"{line}, {size:,} posts", f"{median(times):.1f} ms"))
    return found


def _answer(appliance: MeasuredAppliance, path: str, key: str) -> bytes:
    """The bytes that the appliance answers with; there must be a post in them."""
    import http.client

    host = appliance.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.request("GET", path, headers={"authorization": f"Bearer {key}"})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    if response.status != 200 or b'"deliveries"' not in text:
        raise SystemExit(f"GET {path} was answered with {response.status}: {text[:300]!r}")
    return text


def _teach(servers: Servers, name: str, answer: bytes) -> None:
    import http.client

    connection = http.client.HTTPConnection(servers.bare_url.removeprefix("http://"), timeout=10)
    connection.request("POST", f"/learn/{name}", answer)
    assert connection.getresponse().status == 204
    connection.close()
