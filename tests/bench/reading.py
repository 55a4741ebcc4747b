"""The reading lines: one post and a list of posts, against a bare Starlette answer of the same bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from tests.bench import figures
from tests.bench.figures import Figure
from tests.bench.load import Load
from tests.bench.stage import House, Stage, call

ONE_POST = 0.35
LIST = 0.25
GROWTH = 1.5
"""What more posts may cost: with a stock a hundred or a thousand times as large a figure is at most so much worse."""
DIFFERENT_POSTS = 200


@dataclass(frozen=True, slots=True)
class Reading:
    """What is asked (`paths(house)`) with a key of which limits, and the least share of a bare answer to aim for."""

    line: str
    paths: Callable[[House], list[str]]
    limits: Callable[[House], dict[str, object]]
    aim: float | None


def _no_limits(_house: House) -> dict[str, object]:
    return {}


def _some_profiles(house: House) -> dict[str, object]:
    return {"providers": ["x"], "profiles": house.profiles[:10]}


def _posts(house: House, more: str, *params: str) -> list[str]:
    """Addresses of settled posts from all over the stock."""
    settled = int(house.rt.reader.value("SELECT count(*) FROM post WHERE status = 'settled'"))
    rows = house.rt.reader.all(
        f"""SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM post p
            WHERE status = 'settled' {more}) WHERE n % {max(1, settled // (4 * DIFFERENT_POSTS))} = 0 LIMIT ?""",
        (*params, DIFFERENT_POSTS),
    )
    return [f"/api/v1/posts/{row[0]}" for row in rows]


PLAIN = "AND NOT EXISTS (SELECT 1 FROM media WHERE post_id = p.id)"
PICTURED = "AND EXISTS (SELECT 1 FROM media WHERE post_id = p.id)"
SEEN = """AND NOT EXISTS (SELECT 1 FROM audience_member m WHERE m.audience_id = p.audience_id
    AND m.profile_id NOT IN (SELECT id FROM profile ORDER BY created_at, id LIMIT 10))"""


def _filtered(house: House) -> list[str]:
    wanted = ",".join(house.profiles[2:4])
    return [f"/api/v1/posts?status=settled&profileIds={wanted}&providers=x"]


READINGS = (
    Reading("one post", lambda house: _posts(house, PLAIN), _no_limits, ONE_POST),
    Reading("one post with a picture", lambda house: _posts(house, PICTURED), _no_limits, None),
    Reading("one post, limited key", lambda house: _posts(house, PLAIN + SEEN), _some_profiles, ONE_POST),
    Reading("list of 20", lambda _house: ["/api/v1/posts"], _no_limits, LIST),
    Reading("list of 20, limited key, filters", _filtered, _some_profiles, LIST),
)


def measure(stage: Stage, houses: dict[int, House], load: Load, rounds: int, seconds: float) -> list[Figure]:
    """Each reading in every house, in turns with a bare answer of the same bytes."""
    found: list[Figure] = []
    for reading in READINGS:
        found += _measure(stage, houses, load, reading, rounds, seconds)
    return found


def _measure(
    stage: Stage, houses: dict[int, House], load: Load, reading: Reading, rounds: int, seconds: float
) -> list[Figure]:
    keys = {size: house.key(**reading.limits(house)) for size, house in houses.items()}
    paths = {size: reading.paths(house) for size, house in houses.items()}
    smallest = min(houses)
    sample = _answer(houses[smallest], paths[smallest][0], keys[smallest])
    name = "posts" if "/posts/" not in paths[smallest][0] else "post"
    _teach(stage, name, sample)

    def bare() -> float:
        return load.gets(stage.bare_url, paths[smallest], keys[smallest], seconds)

    def house(size: int) -> Callable[[], float]:
        return lambda: load.gets(houses[size].url, paths[size], keys[size], seconds)

    yardstick, *measured = figures.take_turns(rounds, bare, *(house(size) for size in houses))
    found = [
        figures.at_least(
            f"{reading.line}, {size:,} posts",
            figures.per_second(values),
            f"{figures.per_second(yardstick)} bare, {len(sample):,} bytes",
            figures.ratio(values, yardstick),
            reading.aim,
        )
        for size, values in zip(houses, measured, strict=True)
    ]
    for values in measured[1:]:
        growth = figures.ratio(measured[0], values)
        line = f"  how many times slower than with {smallest:,}"
        told = figures.per_second(values), figures.per_second(measured[0])
        found.append(figures.at_most(line, *told, growth, GROWTH, "×"))
    return found


def measure_long(houses: dict[int, House], asked: int) -> list[Figure]:
    """Deep pages and windows of time: reported, since they have to look at what they skip."""
    found = []
    for size, house in houses.items():
        key = house.key()
        per_page = 20
        deep = f"{house.url}/api/v1/posts?page={size // per_page - 1}"
        window = f"{house.url}/api/v1/posts?scheduledAfter=2000-01-01T00:00:00Z"
        for line, url in (("the last page of 20", deep), ("a window over everything scheduled", window)):
            times = []
            for _ in range(asked):
                began = house.rt.clock.monotonic()
                call("GET", url, key=key)
                times.append((house.rt.clock.monotonic() - began) * 1000)
            found.append(Figure(f"{line}, {size:,} posts", f"{median(times):.1f} ms"))
    return found


def _answer(house: House, path: str, key: str) -> bytes:
    """The bytes that the house answers with; to be sure that there is something in them, a post is asked for there."""
    import http.client

    host = house.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.request("GET", path, headers={"authorization": f"Bearer {key}"})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    if response.status != 200 or b'"deliveries"' not in text:
        raise SystemExit(f"GET {path} was answered with {response.status}: {text[:300]!r}")
    return text


def _teach(stage: Stage, name: str, answer: bytes) -> None:
    import http.client

    connection = http.client.HTTPConnection(stage.bare_url.removeprefix("http://"), timeout=10)
    connection.request("POST", f"/learn/{name}", answer)
    assert connection.getresponse().status == 204
    connection.close()
