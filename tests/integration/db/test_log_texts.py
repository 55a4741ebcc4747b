"""A log entry has the text of its post from the moment of the entry, wherever the log is read."""

import csv
import io
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from socialpub.accounts.api_keys import OWNER, Caller
from socialpub.core.errors import Conflict
from socialpub.db.queries import api_json, log_list
from socialpub.db.queries.log_list import LogFilter
from socialpub.db.tables import log_entries
from socialpub.publishing import log_export, retention
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.runtime import Runtime, build
from tests.samples import media
from tests.support.appliance import accept, add_profile, open_appliance
from tests.support.copies import copy_of, put_back
from tests.support.drain import drain
from tests.support.generated import examples
from tests.support.hand_clock import HandClock
from tests.support.oracle import find_row_contradictions
from tests.support.sandbox_http import artifact
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_all, select_value

Shown = list[tuple[str, str | None]]
TOMORROW = timedelta(days=1)


def shown(rt: Runtime) -> Shown:
    """Return the type and the text of each entry, oldest first, after comparing all ways to read the log."""
    feed = json.loads(api_json.log_entries_after(rt.db, OWNER, 0, 1000))
    every_network = Caller("key", "read", providers=frozenset({"x"}))
    for caller in (OWNER, every_network):
        assert json.loads(api_json.log_entries(rt.db, caller, 1000, 0)) == feed[::-1]
        assert json.loads(api_json.log_entries(rt.db, caller, 1000, 1)) == feed[-2::-1]
    found = [(entry["type"], entry.get("postBody")) for entry in feed]
    events = [api_json.event(rt.db, row[0]) for row in select_all(rt.db, "SELECT n FROM log_entry ORDER BY n")]
    assert [json.loads(event[1])["data"].get("postBody") for event in events if event] == [text for _, text in found]
    page = log_list.load_page(rt.db, LogFilter(per_page=1000)).entries
    assert [(entry.type, entry.text) for entry in page] == found[::-1]
    rows = list(csv.DictReader(io.StringIO(b"".join(log_export.export_csv(rt, LogFilter())).decode(), newline="")))
    assert [(row["type"], row["text"] or None) for row in rows] == found[::-1]
    return found


def edit(rt: Runtime, post: str, **changed: object) -> None:
    rt.write(posts.edit, post, Draft.change(**changed), OWNER)  # type: ignore[arg-type]


def former_texts(rt: Runtime) -> int:
    return int(select_value(rt.db, "SELECT count(*) FROM former_text"))


@pytest.fixture
def scheduled(rt: Runtime, profile: str) -> str:
    """A post scheduled for tomorrow, with the text `first`."""
    return accept(rt, profile, body="first", at=rt.now() + TOMORROW)


def test_an_entry_from_before_an_edit_has_the_former_text(rt, scheduled, clock):
    edit(rt, scheduled, body="second")
    assert shown(rt) == [("pending", "first")]
    drain(rt, clock)
    assert shown(rt) == [("pending", "first"), ("published", "second")]


def test_a_restored_appliance_has_the_same_texts(rt, scheduled, tmp_path, clock):
    edit(rt, scheduled, body="second")
    rt.write(posts.cancel, scheduled, OWNER)
    before = shown(rt)
    copy = copy_of(rt, tmp_path / "copies")
    with closing(build(put_back(copy, tmp_path / "new", clock), clock=clock)) as other:
        assert shown(other) == before == [("pending", "first"), ("canceled", "second")]


def test_the_entries_of_a_removed_post_have_no_text_and_stay_a_position(rt, scheduled, profile, clock):
    edit(rt, scheduled, body="second")
    rt.write(posts.cancel, scheduled, OWNER)
    accept(rt, profile, body="stays")
    [oldest, *_] = json.loads(api_json.log_entries_after(rt.db, OWNER, 0, 1))
    rt.db.write(lambda tx: retention.remove_post(tx, scheduled, rt.stamp()))
    assert former_texts(rt) == 0
    assert shown(rt) == [("pending", None), ("canceled", None), ("pending", "stays")]
    assert api_json.log_number(rt.db, OWNER, oldest["id"]) == 1
    rt.db.write(lambda tx: log_entries.delete_entries(tx, 0, 99))
    assert shown(rt) == [("pending", "stays")]


# --- any order -------------------------------------------------------------------------------------------------------

TEXTS = (None, "one", "two", "Größe “🌅” \\ \n" + "x" * 60)


@dataclass
class ModelledLog:
    """An appliance, and a log that copies each text when an entry is written."""

    folder: Path
    clock: HandClock = field(default_factory=HandClock)
    text: dict[str, str | None] = field(default_factory=dict)
    log: dict[int, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rt = open_appliance(self.folder, self.clock, providers={"x": ScriptedNetwork()})
        self.profiles = [add_profile(self.rt), add_profile(self.rt, account_id="two")]
        self.picture = DraftMedia(artifact(self.rt, media.png(self.folder / "a.png"), "image/png"))

    def create(self, pick: int) -> None:
        at = None if pick % 4 == 0 else self.clock.now() + timedelta(hours=pick % 4)
        text = TEXTS[pick % len(TEXTS)]
        post = accept(self.rt, *self.profiles[pick % 2 :], body=text, at=at, media=(self.picture,))
        self.text[post] = text

    def edit(self, pick: int) -> None:
        self._change(pick, lambda post: edit(self.rt, post, body=TEXTS[1 + pick % 3]))

    def delay(self, pick: int) -> None:
        later = self.clock.now() + timedelta(hours=1 + pick % 3)
        self._change(pick, lambda post: edit(self.rt, post, scheduled_at=later))

    def cancel(self, pick: int) -> None:
        self._change(pick, lambda post: self.rt.write(posts.cancel, post, OWNER))

    def stop(self, pick: int) -> None:
        self._change(pick, lambda post: self.rt.write(posts.stop, post))

    def publish(self, pick: int) -> None:
        drain(self.rt, self.clock, within=3600 * (pick % 3))

    def _change(self, pick: int, change: Callable[[str], object]) -> None:
        if self.text:
            post = sorted(self.text)[pick % len(self.text)]
            try:
                change(post)
            except Conflict:
                return
            self.text[post] = select_value(self.rt.db, "SELECT body FROM post WHERE id = ?", (post,))

    def check(self) -> None:
        new = select_all(self.rt.db, "SELECT n, post_id FROM log_entry WHERE n > ?", (max(self.log, default=0),))
        self.log |= {n: self.text[post] for n, post in new}
        assert [text for _, text in shown(self.rt)] == [text for _, text in sorted(self.log.items())]
        assert list(find_row_contradictions(self.rt.db.execute_sql)) == []


ACTS = (
    *(ModelledLog.create, ModelledLog.edit, ModelledLog.edit, ModelledLog.delay),
    *(ModelledLog.cancel, ModelledLog.stop, ModelledLog.publish),
)


@settings(max_examples=examples(15, 150))
@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 100)), min_size=10, max_size=30))
def test_each_entry_keeps_the_text_of_its_moment(tmp_path_factory, story):
    log = ModelledLog(tmp_path_factory.mktemp("log"))
    with closing(log.rt):
        for act, pick in story:
            act(log, pick)
            log.check()
