"""The content of the measured appliances: real posts, copied many times.

A seed appliance publishes `TEMPLATES` posts to simulated networks on a clock set by hand. The rows of these posts are
then copied with new ids, texts and times. Every counter is multiplied. So the rows are those that this version of the
appliance writes. Only the files of the copied media are missing.
"""

import hashlib
import json
import logging
import re
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any

from socialpub.accounts import connect
from socialpub.accounts.api_keys import Caller
from socialpub.core.clock import parse, stamp
from socialpub.core.logging import LOGGER
from socialpub.core.settings import loader
from socialpub.providers.http import Http
from socialpub.publishing.posts import content, posts
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.runtime import Runtime, build
from socialpub.sandbox import create_app
from tests.e2e.videos import video_bytes
from tests.samples import media
from tests.stand_ins import World
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact
from tests.support.sandbox_transport import SandboxTransport

TEMPLATES = 50
PROFILES = {"x": 50, "tiktok": 10, "pinterest": 10}
SPACING = timedelta(seconds=10)
CHUNK = 10_000
BODY = "Post number {number:08d} of the stock: as long as people write them, with a café and a 🌅. #bench"
FOREVER = 10 * 365 * 86_400.0
"""The lifetime of the tokens. Several appliances share them, so they are not renewed."""
TABLES = {
    "artifact": "SELECT * FROM artifact WHERE id IN (SELECT artifact_id FROM media WHERE post_id = :post)",
    "post": "SELECT * FROM post WHERE id = :post",
    "media": "SELECT * FROM media WHERE post_id = :post",
    "delivery": "SELECT * FROM delivery WHERE post_id = :post",
    "log_entry": "SELECT * FROM log_entry WHERE post_id = :post ORDER BY n",
    "attempt": "SELECT * FROM attempt WHERE delivery_id IN (SELECT id FROM delivery WHERE post_id = :post) ORDER BY n",
    "trail": "SELECT * FROM trail WHERE subject_id = :post ORDER BY id",
}
"""The rows of a post."""
NUMBERED = {"log_entry": "n", "attempt": "n", "trail": "id"}
"""Tables with a running number, which SQLite assigns."""
COUNTERS = {
    "post_count": ("posts",),
    "audience_count": ("posts",),
    "delivery_count": ("deliveries",),
    "profile": ("posts_count",),
    "event_count": ("count",),
    "sending_delay": ("deliveries", "seconds"),
    "usage": ("count",),
}


@dataclass(frozen=True, slots=True)
class Stock:
    """A folder with the seed's `data` and `sandbox.jsonl`, which are copied for each appliance."""

    folder: Path

    @property
    def journal(self) -> Path:
        return self.folder / "sandbox.jsonl"

    def facts(self) -> dict[str, Any]:
        """`profiles` by network, the `tokens` of X, and the `board` of each profile of Pinterest."""
        found: dict[str, Any] = json.loads((self.folder / "facts.json").read_text())
        return found

    def copy(self, count: int, target: Path) -> None:
        """Copy the data folder with this number of posts. It is filled once."""
        filled = self.folder / f"{count}.db"
        if not filled.exists():
            partly = filled.with_suffix(".partly")
            partly.unlink(missing_ok=True)
            shutil.copy(self.folder / "data" / "socialpub.db", partly)
            fill(partly, count)
            partly.rename(filled)
        shutil.copytree(self.folder / "data", target, ignore=shutil.ignore_patterns("run", "queue.db*", "socialpub.db"))
        shutil.copy(filled, target / "socialpub.db")


def prepare(cache: Path, config: Path, sandbox_url: str) -> Stock:
    """Return the stock of this version of the code. `config` is an unused configuration with a data folder."""
    found = Stock(cache / _key())
    if not found.journal.exists():
        shutil.rmtree(cache, ignore_errors=True)  # the stocks of earlier versions
        found.folder.mkdir(parents=True)
        _make_seed(found, config, sandbox_url)
    return found


def _key() -> str:
    """Hash everything that decides what a stock contains: the code that writes rows, and this file."""
    package = Path(loader.__file__).parents[2]
    read = [
        Path(__file__),
        *sorted(path for part in ("db", "publishing", "providers") for path in _code(package / part)),
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in read)).hexdigest()[:16]


def _code(folder: Path) -> list[Path]:
    return list(folder.rglob("*.py"))


# --- the seed --------------------------------------------------------------------------------------------------------


def _make_seed(stock: Stock, config: Path, sandbox_url: str) -> None:
    """Publish the templates, in this process."""
    started = datetime.now(UTC) - timedelta(days=2)
    clock = HandClock(started.replace(microsecond=0))
    journal = stock.folder / "sandbox.partly"
    world = World(clock, journal=journal)
    world.instant_faults = True
    settings = loader.load(config)
    settings = settings.model_copy(update={"publishing": settings.publishing.model_copy(update={"resend_after": None})})
    logger = logging.getLogger(LOGGER)
    level = logger.level
    logger.setLevel(logging.ERROR)  # the templates that fail write warnings
    http = Http(mounts={sandbox_url: SandboxTransport(create_app(world))})
    rt = build(settings, clock=clock, http=http, role="bench")
    try:
        facts = _connect(rt, world)
        video_file = stock.folder / "video.mp4"
        video_file.write_bytes(video_bytes(400_000))
        image = artifact(rt, media.jpeg(stock.folder / "image.jpg", 1200, 800), "image/jpeg")
        video = artifact(rt, video_file, "video/mp4")
        for number in range(TEMPLATES):
            _publish(rt, world, clock, facts, number, image, video)
            clock.forward(SPACING.total_seconds())
    finally:
        rt.close()
        http.close()
        world.close()
        logger.setLevel(level)
    with closing(sqlite3.connect(settings.database_file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.move(settings.data_dir, stock.folder / "data")
    (stock.folder / "facts.json").write_text(json.dumps(facts))
    journal.rename(stock.journal)


def _connect(rt: Runtime, world: World) -> dict[str, Any]:
    facts: dict[str, Any] = {"profiles": {}, "tokens": [], "boards": {}}
    for name, count in PROFILES.items():
        network = world.networks[name]
        for number in range(count):
            grant = network.grant(f"bench{number}", expires_in=FOREVER)
            grant = {key: value for key, value in grant.items() if not key.startswith("refresh")}
            profile = connect.import_account(rt, name, connect.read_credentials(json.dumps(grant))).profile_id
            facts["profiles"].setdefault(name, []).append(profile)
            if name == "x":
                facts["tokens"].append(grant["accessToken"])
            if name == "pinterest":
                owner = network.existing_account(f"bench{number}")
                boards = world.pinterest.boards.values()
                facts["boards"][profile] = next(board.id for board in boards if board.owner_id == owner.id)
    return facts


def _publish(
    rt: Runtime, world: World, clock: HandClock, facts: dict[str, Any], number: int, image: str, video: str
) -> None:
    """Publish the template of this number until its outcome is final.

    Every second post is scheduled for 5 seconds later. The first two are scheduled for a far future, and one of them is
    canceled. One fails, and one ends with an unknown outcome. A quarter has media.
    """
    x, tiktok, pinterest = (facts["profiles"][name] for name in PROFILES)
    file, to, options = None, [x[number], x[(number + 7) % len(x)]], dict[str, Any]()
    if number % 20 == 0:
        file, to = video, [tiktok[number // 20]]
        options = {"tiktok": {"mode": "direct", "privacyLevel": "PUBLIC_TO_EVERYONE"}}
    elif number % 4 == 0:
        file = image
        if number % 20 != 8:
            to[1] = pinterest[number // 4 % len(pinterest)]
            options = {"pinterest": {"boardId": facts["boards"][to[1]]}}
    elif number % 10 == 3:
        del to[1]
    at = None
    match number:
        case 1 | 2:
            at = rt.now() + timedelta(days=500)
        case 5:
            world.x.next("create_post").fails_with(403)
        case 6:
            world.x.next("create_post").times_out_before_effect()
    if at is None and number % 2:
        at = rt.now() + timedelta(seconds=5)
    attached = (DraftMedia(file, "An evening sky over violet hills"),) if file else ()
    draft = Draft(BODY.format(number=number), at, tuple(to), attached, options or None)
    post = rt.write(posts.create, draft, Caller("bench", "write"))
    clock.forward(0.004)
    if number == 2:
        rt.write(posts.cancel, post, Caller("bench", "write"))
    if number not in (1, 2):
        drain(rt, clock)


# --- copies ----------------------------------------------------------------------------------------------------------


_ID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class Template:
    """The rows of one post. `copy` returns them with other ids, times and numbers."""

    def __init__(self, database: sqlite3.Connection, post_id: str, number: int) -> None:
        self._body = BODY.format(number=number)
        self._number = f"{number:08d}"
        self.post_id = post_id
        rows = {name: database.execute(sql, {"post": post_id}).fetchall() for name, sql in TABLES.items()}
        (post,) = rows["post"]
        self._created_at = parse(post["created_at"])
        self._key = content.make_content_key(self._body, len(rows["media"]))
        own = {row["id"] for name in ("artifact", "post", "media", "delivery", "log_entry") for row in rows[name]}
        networks = sorted({row["provider_post_id"] for row in rows["delivery"]} - {None})
        texts = {value for some in rows.values() for row in some for value in row if isinstance(value, str)}
        stamps = sorted(set(re.findall(_STAMP, "\n".join(texts))))
        self._ids, self._networks = sorted(own), networks
        self._offsets = [parse(one) - self._created_at for one in stamps]
        self._media = len(rows["media"])
        slots = [*self._ids, *networks, *stamps, self._body, self._key, self._number]
        self._slots = len(slots)
        self._formats: list[tuple[Callable[..., str], Callable[[Sequence[Any]], Any]]] = []
        self._constants: list[Any] = []
        pattern = re.compile("|".join(re.escape(one) for one in slots))
        place = {value: at for at, value in enumerate(slots)}
        made: dict[Any, int] = {}

        def index(value: Any) -> tuple[str, int]:
            """Return where the values of a copy have this one: among slots, constants or formats."""
            if isinstance(value, str) and value in place:
                return "slot", place[value]
            if isinstance(value, str) and (found := pattern.findall(value)):
                if value not in made:
                    escaped = pattern.sub("\0", value).replace("{", "{{").replace("}", "}}").replace("\0", "{}")
                    picked = [place[one] for one in found]
                    get = itemgetter(*picked) if len(picked) > 1 else itemgetter(slice(picked[0], picked[0] + 1))
                    made[value] = len(self._formats)
                    self._formats.append((escaped.format, get))
                return "format", made[value]
            self._constants.append(value)
            return "constant", len(self._constants) - 1

        places = []
        for name, some in rows.items():
            columns = copied(database, name)
            places += [(name, [index(row[column]) for column in columns]) for row in some]
        begins = {"slot": 0, "constant": self._slots, "format": self._slots + len(self._constants)}
        self._rows: list[tuple[str, Callable[[Sequence[Any]], tuple[Any, ...]]]] = [
            (name, itemgetter(*(begins[kind] + at for kind, at in row))) for name, row in places
        ]

    def copy(self, number: int, at: datetime, rows: dict[str, list[tuple[Any, ...]]]) -> None:
        """Add the rows of another post to `rows`."""
        head, body = f"{int(at.timestamp() * 1000):012x}", BODY.format(number=number)
        start, end = f"{head[:8]}-{head[8:]}-7", f"-8{number % 4096:03x}-{number * 2654435761 % (1 << 48):012x}"
        values: list[Any] = [f"{start}{place:03x}{end}" for place in range(len(self._ids))]
        values += [f"{one[:-10]}{number * 4 + place:010d}" for place, one in enumerate(self._networks)]
        values += [stamp(at + offset) for offset in self._offsets]
        values += [body, f"{number:032x}", f"{number:08d}"]
        values += self._constants
        values += [fill(*get(values)) for fill, get in self._formats]
        for table, get in self._rows:
            rows[table].append(get(values))


def copied(database: sqlite3.Connection, table: str) -> list[str]:
    """Return the columns of a table, without generated columns and numbers that SQLite assigns."""
    shown = database.execute(f"PRAGMA table_xinfo({table})")
    return [row["name"] for row in shown if not row["hidden"] and row["name"] != NUMBERED.get(table)]


def fill(path: Path, count: int) -> None:
    """Replace the templates in this database by `count` posts, the newest a minute ago."""
    if count % TEMPLATES:
        raise SystemExit(f"The number of posts must be a multiple of {TEMPLATES}, not {count}.")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.row_factory = sqlite3.Row
        for name, value in (("journal_mode", "off"), ("synchronous", "off"), ("cache_size", -400_000), ("threads", 2)):
            database.execute(f"PRAGMA {name} = {value}")
        found = database.execute("SELECT id FROM post ORDER BY created_at").fetchall()
        templates = [Template(database, row["id"], number) for number, row in enumerate(found)]
        indexes = _drop_indexes(database)
        (schema,) = database.execute("SELECT sql FROM sqlite_master WHERE name = 'delivery'").fetchone()
        _set_schema(database, "delivery", without_generated(schema))
        for table in TABLES:
            database.execute(f"DELETE FROM {table}")
        sql = {}
        for table in TABLES:
            columns = copied(database, table)
            sql[table] = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        began = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1) - count * SPACING
        written_at, later = itemgetter(copied(database, "log_entry").index("occurred_at")), list[tuple[Any, ...]]()
        for first in range(0, count, CHUNK):
            rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
            end = min(first + CHUNK, count)
            for number in range(first, end):
                templates[number % TEMPLATES].copy(number, began + number * SPACING, rows)
            # The log is in the order of time, and some outcomes come minutes after the next posts.
            entries, next_at = sorted(rows["log_entry"] + later, key=written_at), stamp(began + end * SPACING)
            rows["log_entry"] = [row for row in entries if end == count or written_at(row) < next_at]
            later = entries[len(rows["log_entry"]) :]
            database.execute("BEGIN")
            for table, some in rows.items():
                database.executemany(sql[table], some)
            database.execute("COMMIT")
        _set_schema(database, "delivery", schema)
        for statement in indexes:
            database.execute(statement)
        # `--against` may measure a version with other tables.
        for table, columns in ((table, columns) for table, columns in COUNTERS.items() if _has_table(database, table)):
            values = ", ".join(f"{column} = {column} * {count} / {TEMPLATES}" for column in columns)
            database.execute(f"UPDATE {table} SET {values}")
        if _has_table(database, "post_day"):
            groups = "substr(created_at, 1, 10), audience_id, status, outcomes"
            database.execute("DELETE FROM post_day")
            database.execute(f"INSERT INTO post_day SELECT {groups}, count(*) FROM post GROUP BY {groups}")
        # The templates share two files, and each copy has its own.
        stored = "SELECT count(*), total(declared_bytes) FROM artifact WHERE storage_key > ''"
        database.execute(f"UPDATE stored_media SET (files, size_bytes) = ({stored})")
        database.execute("PRAGMA journal_mode = wal")


def _has_table(database: sqlite3.Connection, name: str) -> bool:
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def _set_schema(database: sqlite3.Connection, table: str, sql: str) -> None:
    """Replace the statement of a table. Its rows must have the same form."""
    database.execute("PRAGMA writable_schema = on")
    database.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, table))
    database.execute("PRAGMA writable_schema = reset")


def without_generated(sql: str) -> str:
    """Return the statement of a table without its virtual columns.

    SQLite does not store them, but computes all of them for each inserted row, which takes most of the time.
    """
    while found := re.search(r",\s*\w+ TEXT GENERATED ALWAYS AS \(", sql):
        end, depth = found.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(sql[end], 0)
            end += 1
        sql = sql[: found.start()] + sql[end:].removeprefix(" VIRTUAL")
    return sql


def _drop_indexes(database: sqlite3.Connection) -> list[str]:
    """Drop the indexes of the copied tables. Return the statements that create them."""
    found = database.execute("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    dropped = [row for row in found.fetchall() if row["tbl_name"] in TABLES]
    for row in dropped:
        database.execute(f"DROP INDEX {row['name']}")
    return [row["sql"] for row in dropped]
