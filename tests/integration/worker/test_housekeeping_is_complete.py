"""A task removes the expired rows of every table and the old files of every folder, or a reason says why they stay.

A new table or folder needs a line here.
"""

from fnmatch import fnmatch

import pytest

from socialpub.accounts import api_keys, sign_in, tokens
from socialpub.accounts.sign_in import Purpose
from socialpub.core.clock import after, new_id
from socialpub.db.tables import waits
from socialpub.db.tables.waits import WaitReason
from socialpub.ops import storage
from socialpub.ops.backup import create, schedule
from socialpub.publishing.media import thumbnails
from socialpub.publishing.posts import idempotency
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.publishing.posts.idempotency import RequestKey, StoredResponse
from socialpub.web.http.app import create_app
from tests.integration.uploads.caller import Caller
from tests.samples import media
from tests.support.appliance import accept, add_profile
from tests.support.hand_clock import START
from tests.support.queue_threads import background_tasks
from tests.support.select import select_all, select_value

STAYS = "stays: "

TABLES = {
    "alert": STAYS + "one row for each lasting alert; the notifier removes it an hour after its end",
    "api_key": STAYS + "the audit log and usage name also revoked keys; the owner creates them, so they are few",
    "appliance": STAYS + "one row for each name in db/appliance_state.py",
    "artifact": "unused media: reserved, rejected and unused artifacts; retention removes those of settled posts",
    "attempt": "retention: with its post",
    "audience": "retention: when no post has the audience",
    "audience_member": "retention: with its audience",
    "choice_label": STAYS + "one row for each board of an account",
    "consent": "consents: after a day",
    "delivery": "retention: with its post",
    "delivery_count": STAYS + "one row for each network and outcome",
    "event_count": STAYS + "one row for each network, event and outcome",
    "former_text": "retention: with its post",
    "idempotency": "idempotency keys: after a day",
    "key_use": "posts of limited keys: after a day",
    "log_entry": "retention: after its post",
    "media": "retention: with its post",
    "stored_wait": "past waits: unless an open delivery was due during them; of the profile's own posts after a day",
    "notification": "old notifications: after a day",
    "notification_service": STAYS + "one row for each address",
    "notify_address": STAYS + "the owner creates them; the limit is 20",
    "post": "retention: retention.posts",
    "profile": STAYS + "posts name also disconnected profiles; their tokens are removed at once",
    "schema_migration": STAYS + "one row for each migration",
    "sending_delay": STAYS + "one row for each network and bucket",
    "session": "sessions: when unused for dashboard.session_lifetime",
    "sign_in_link": "sign-in links: after a day",
    "sqlite_sequence": STAYS + "SQLite's own",
    "stored_media": STAYS + "one row",
    "trail": "retention: retention.posts",
    "usage": "old usage",
    "webhook": STAYS + "the owner creates them; the limit is 20",
}
"""By table: the periodic task that removes its rows, and when; or why they stay."""

FOLDERS = {
    "secret.key": STAYS + "the key",
    "socialpub.db*": "free pages: returned to the disk when there are many; the journal has a limit",
    "queue.db*": STAYS + "a task is removed when it starts, and waits once for each profile",
    "upgrades/*": STAYS + "the last few; a new one replaces the oldest",
    "media/incoming/*": "unused media: files that no process holds",
    "media/??/*": "unused media: files that no row names",
    "media/fitted/*/*": "renditions: when the delivery has ended",
    "media/thumbnails/*/*": "thumbnails: when the file was removed",
    "avatars/*": "avatars: of profiles that are not connected, and former ones",
    "backups/*": STAYS + "backup.keep decides; the next backup removes old ones",
    ".restore-*/*": "unfinished restores: within an hour",
    ".download/*": "unfinished backups: within an hour",
    "run/*.sock": STAYS + "one for each queue",
    "run/decoders/*": STAYS + "one for each 256 MiB of memory",
    "run/profiles/*": STAYS + "one empty file for each profile",
    "run/owners/*": "dead processes: within an hour; a hundred deaths are remembered",
    "run/*.lock": STAYS + "one for each kind of work",
}
"""The same by file, as a pattern below `data_dir`; the first match counts."""


@pytest.fixture
def caller(rt):
    with Caller(create_app(rt), rt.write(api_keys.create, "test")) as caller:
        yield caller


@pytest.fixture
def tasks(rt):
    with background_tasks(rt) as tasks:
        yield tasks.all


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def line_of(file):
    return next((line for pattern, line in FOLDERS.items() if fnmatch(file, pattern)), None)


def test_every_table_is_listed(rt):
    there = {row[0] for row in select_all(rt.db, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert there - TABLES.keys() == set(), "say who removes its rows, and when"


def test_every_entry_names_a_task_or_a_reason(tasks):
    for name, line in {**TABLES, **FOLDERS}.items():
        assert line.startswith(STAYS) or line.partition(":")[0] in tasks, name


def test_every_file_is_listed(rt, caller, clock, tmp_path):
    png = media.png(tmp_path / "a.png", 64, 48).read_bytes()
    caller.reserve(png)
    artifact_id = caller.upload(png)["artifactId"]
    caller.run(thumbnails.load(rt, artifact_id))
    profile = add_profile(rt)
    with tokens.token_lock(rt, profile), storage.serve_alone(rt.settings):
        accept(rt, profile, media=(DraftMedia(artifact_id),))
    with background_tasks(rt) as tasks:
        tasks.queues.listen(deliver=tasks.deliver, run=tasks.run)
        tasks.queues.deliver("x", profile)
        found = files_below(rt.settings.data_dir)
    create.make_download(rt).__exit__(None, None, None)
    schedule.make_backup(rt)
    found |= files_below(rt.settings.data_dir)
    assert {file for file in found if line_of(file) is None} == set(), "say who removes it, and when"
    assert len({line_of(file) for file in found}) >= 10, "the story leaves most kinds of files"


def test_files_of_dead_processes_are_removed_within_the_hour(rt, tasks):
    data, unknown = rt.settings.data_dir, new_id(START)
    left = [
        data / "media/incoming" / f"{unknown}.abc.part",
        data / "media/incoming" / "abc.promised",
        data / "media" / f"ab/{unknown}-{'0' * 16}.png",
        data / "media/fitted" / unknown / ("0" * 24),
        data / "media/thumbnails" / f"ab/{unknown}-{'0' * 16}.png.jpg",
        data / "avatars" / f"{unknown}.0.fetched",
        data / ".restore-abc" / "secret.key",
        data / "run/owners" / "worker-dead.lock",
    ]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        line = line_of(path.relative_to(data).as_posix())
        assert line is not None
        tasks[line.partition(":")[0]].act(rt)
        assert not path.exists(), f"{path.name}: {line}"


def test_expired_rows_are_removed_within_the_hour(rt, clock, tasks):
    rt.write(sign_in.begin_session, "203.0.113.1", "a browser")
    rt.write(sign_in.create_link, Purpose.SIGN_IN)
    profile = add_profile(rt)
    rt.db.write(lambda tx: waits.begin(tx, WaitReason.NETWORK, profile, "create", after(tx.stamp, 3600.0), "too many"))
    for key in range(1200):
        ticket = RequestKey("k", str(key), "f")
        rt.db.write(lambda tx, ticket=ticket: idempotency.store(tx, ticket, StoredResponse(201, None, b"")))
    some = ("session", "sign_in_link", "stored_wait", "idempotency")

    def counts():
        return [int(select_value(rt.db, f"SELECT count(*) FROM {table}")) for table in some]

    def run_tasks():
        for table in some:
            tasks[TABLES[table].partition(":")[0]].act(rt)
        return counts()

    assert run_tasks() == [1, 1, 1, 1200]
    clock.forward(3601)
    assert run_tasks() == [1, 1, 0, 1200]
    clock.forward(86400)
    assert run_tasks() == [1, 0, 0, 0]
    clock.forward(30 * 86400)
    assert run_tasks() == [0, 0, 0, 0]


def test_housekeeping_creates_no_files(rt, tasks):
    before = set(rt.settings.data_dir.rglob("*"))
    for name in ("unused media", "renditions", "thumbnails", "unfinished backups", "retention"):
        tasks[name].act(rt)
    assert set(rt.settings.data_dir.rglob("*")) == before
