"""In any order of posts, clock changes and housekeeping, no needed row is removed and all counts are correct.

A model knows the true age of everything; the appliance only knows a clock that is set sometimes.
"""

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from socialpub.core.errors import Conflict
from socialpub.db.tables import artifact_rows
from socialpub.media.types import Facts
from socialpub.publishing import retention
from socialpub.publishing.posts import posts, retries
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.publishing.retention import Retention
from tests.samples import media
from tests.support.appliance import OWNER, accept, add_profile, open_appliance
from tests.support.drain import drain
from tests.support.generated import examples
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_one, select_value

DAY = 86_400.0
UNUSED_DAYS, KEPT_DAYS = 30, 40


class KeptHouse:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp())
        self.clock = HandClock()
        self.rt = open_appliance(
            self.folder, self.clock, providers={"x": ScriptedNetwork()}, retention={"posts": f"{KEPT_DAYS}d"}
        )
        self.rt.write(lambda rt, tx: None)  # the clock is known from here on
        self.profiles = [add_profile(self.rt), add_profile(self.rt, account_id="two")]
        self.source = media.png(self.folder / "a.png", 8, 8)
        self.facts = Facts("image", "image/png", self.source.stat().st_size, {"width": 8, "height": 8, "frames": 1})
        self.retention = Retention()
        self.unused_since = {}
        self.shown = {}
        self.ended = {}
        self.tried_by = {}

    def close(self):
        self.rt.close()
        shutil.rmtree(self.folder)

    # --- what callers do; `pick` chooses among what there is ----------------------------------------------------------

    def create(self, pick):
        use = self._some_artifacts(pick)
        profiles = self.profiles if pick % 2 else self.profiles[:1]
        at = None if pick % 3 == 0 else self.clock.now() + timedelta(days=100 * (pick % 3))
        post = accept(self.rt, *profiles, at=at, media=tuple(map(DraftMedia, use)))
        self.shown[post] = use

    def patch(self, pick):
        open_ones = sorted(self.shown.keys() - self.ended.keys())
        if not open_ones:
            return
        post, use = open_ones[pick % len(open_ones)], self._some_artifacts(pick)
        try:
            self.rt.write(posts.edit, post, Draft.change(media=tuple(map(DraftMedia, use))), OWNER)
        except Conflict:
            return  # its time has come
        for one in set(self.shown[post]) - set(use):
            self.unused_since[one] = self.clock.monotonic()
        self.shown[post] = use

    def stop(self, pick):
        if self.shown:
            self.rt.write(posts.stop, self._some_post(pick))

    def fail_and_retry(self, pick):
        """Published again after it failed: two posts say something of the same delivery."""
        if not self.shown:
            return
        post = self._some_post(pick)
        self.rt.write(posts.stop, post)
        self.rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET state = 'failed' WHERE post_id = ?", (post,)))
        try:
            again = self.rt.write(retries.retry, post, OWNER)
        except Conflict:
            return  # a try of it is on its way
        self.shown[again] = list(self.shown[post])
        self.tried_by[again] = post

    # --- what time does ----------------------------------------------------------------------------------------------

    def deliver(self, pick):
        drain(self.rt, self.clock, within=60 + pick % 7)

    def time_passes(self, pick):
        """With housekeeping at its end."""
        self.clock.forward((0.1, 0.1, 12.0, 25.0, 41.0)[pick % 5] * DAY + retention.EVERY_SECONDS)
        self.keep_house()

    def set_clock(self, pick):
        self.clock.jump((41.0, -41.0, 25.0, -25.0, 900.0, -900.0)[pick % 6] * DAY)
        self.rt.db.follow_clock()

    def keep_house(self):
        self.retention.remove_expired(self.rt)
        while self.retention.is_under_way:
            self.retention.remove_expired(self.rt)
        for post in [post for post in self.shown if not self._exists("post", post)]:
            assert self._days_since(self.ended.get(post)) >= KEPT_DAYS, "a post went before its time"
            assert self.tried_by.get(post) not in self.shown, "the original could be published again"
            for one in self.shown.pop(post):
                self.unused_since[one] = max(self.unused_since[one], self.ended[post])
        retention.remove_unused_media(self.rt)
        for one in [one for one in self.unused_since if not self._is_there(one)]:
            assert self._days_since(self.unused_since.pop(one)) >= UNUSED_DAYS, "a file went before its time"

    # --- what holds at any time --------------------------------------------------------------------------------------

    def check(self):
        for post in self.shown:
            status = select_value(self.rt.db, "SELECT status FROM post WHERE id = ?", (post,))
            assert status is not None, "a post is gone"
            if status in ("settled", "canceled"):
                self.ended.setdefault(post, self.clock.monotonic())
            assert all(self._is_there(one) for one in self.shown[post]), "what a post shows is gone"
        self._check_counts()

    def _check_counts(self):
        db = self.rt.db
        named = select_one(
            db, "SELECT count(*), coalesce(sum(declared_bytes), 0) FROM artifact WHERE storage_key <> ''"
        )
        assert named is not None
        assert artifact_rows.stored(db) == tuple(named)
        for table, most in (("delivery", 0), ("media", 0), ("log_entry", 1)):  # the newest entry stays
            orphans = f"SELECT count(*) FROM {table} WHERE post_id NOT IN (SELECT id FROM post)"
            assert select_value(db, orphans) <= most, table

    # --- inside ------------------------------------------------------------------------------------------------------

    def _some_artifacts(self, pick):
        """A new one, or known ones."""
        known = sorted(self.unused_since)
        if pick % 2 or not known:
            return [self._upload()]
        return list(dict.fromkeys([known[pick % len(known)], known[pick // 7 % len(known)]]))

    def _upload(self):
        made = artifact(self.rt, self.source, "image/png", self.facts)
        self.unused_since[made] = self.clock.monotonic()
        return made

    def _some_post(self, pick):
        known = sorted(self.shown)
        return known[pick % len(known)]

    def _days_since(self, at):
        return -1.0 if at is None else (self.clock.monotonic() - at) / DAY

    def _exists(self, table, row_id):
        return select_one(self.rt.db, f"SELECT 1 FROM {table} WHERE id = ?", (row_id,)) is not None

    def _is_there(self, artifact_id):
        row = artifact_rows.find(self.rt.db, artifact_id)
        return row is not None and self.rt.files.path(row.storage_key).exists()


ACTS = (
    KeptHouse.create,
    KeptHouse.create,
    KeptHouse.patch,
    KeptHouse.stop,
    KeptHouse.fail_and_retry,
    KeptHouse.deliver,
    KeptHouse.time_passes,
    KeptHouse.time_passes,
    KeptHouse.set_clock,
)


@settings(max_examples=examples(10, 100))
@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 1000)), min_size=20, max_size=30))
def test_housekeeping_never_removes_what_a_post_needs(story):
    house = KeptHouse()
    try:
        for act, pick in story:
            act(house, pick)
            house.check()
    finally:
        house.close()
