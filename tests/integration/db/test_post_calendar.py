"""The calendar has every post on its day in the reader's time zone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from socialpub.core.clock import stamp
from socialpub.db.queries import calendar
from socialpub.db.queries.calendar import CalendarDelivery
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import DraftMedia
from tests.samples import media
from tests.support.appliance import OWNER, accept, add_profile
from tests.support.drain import drain
from tests.support.sandbox_http import artifact
from tests.support.select import select_value


def midnights(first: datetime, days: int) -> list[str]:
    return [stamp(first + timedelta(days=day)) for day in range(days + 1)]


def test_posts_are_on_the_day_of_their_time_with_their_outcomes(rt, profile, clock, tmp_path):
    other = add_profile(rt, account_id="other", name="Second")
    picture = artifact(rt, media.png(tmp_path / "a.png"), "image/png")
    key = select_value(rt.db, "SELECT storage_key FROM artifact")
    now = accept(rt, profile, body="w" * 300)
    drain(rt, clock)
    clock.forward(60)
    tomorrow = accept(
        rt, profile, other, body=None, at=rt.now() + timedelta(days=1), media=(DraftMedia(picture), DraftMedia(picture))
    )
    gone = accept(rt, profile, at=rt.now() + timedelta(days=1, hours=-2))
    rt.write(posts.cancel, gone, OWNER)
    accept(rt, profile, at=rt.now() + timedelta(days=9))
    today, next_day, empty = calendar.load_days(rt.db, midnights(datetime(2026, 10, 12, tzinfo=UTC), 3))
    assert [day.begins_at for day in (today, next_day, empty)] == midnights(datetime(2026, 10, 12, tzinfo=UTC), 2)
    assert (empty.posts, empty.more, today.more) == ((), 0, 0)
    (shown,) = today.posts
    assert (shown.id, shown.status, shown.at, shown.text) == (now, "settled", "2026-10-12T09:00:00.000Z", "w" * 100)
    (delivery,) = shown.deliveries
    assert delivery == CalendarDelivery("x", "x profile", "published", None, delivery.provider_post_id)
    assert (shown.media, shown.artifact_id, shown.storage_key) == (0, None, None)
    assert [(post.id, post.status) for post in next_day.posts] == [(gone, "canceled"), (tomorrow, "scheduled")]
    assert next_day.posts[0].deliveries[0].outcome == "canceled"
    pictured = next_day.posts[1]
    assert [(one.profile_name, one.outcome) for one in pictured.deliveries] == [
        ("x profile", "pending"),
        ("Second", "pending"),
    ]
    assert (pictured.text, pictured.media, pictured.artifact_id, pictured.kind) == (None, 2, picture, "image")
    assert pictured.storage_key == key


def test_a_full_day_shows_its_first_posts_and_how_many_more_there_are(rt, profile, clock):
    made = []
    for _ in range(5):
        clock.forward(1)
        made.append(accept(rt, profile))
    early = accept(rt, profile, at=rt.now() + timedelta(hours=1))
    days = midnights(datetime(2026, 10, 12, tzinfo=UTC), 1)
    for most, more in ((4, 2), (6, 0), (7, 0)):
        (day,) = calendar.load_days(rt.db, days, most)
        assert [post.id for post in day.posts] == [*made, early][:most]
        assert day.more == more


def test_a_day_is_the_readers_own_also_when_it_has_25_hours(rt, profile):
    zone = ZoneInfo("Europe/Berlin")
    late = accept(rt, profile, at=datetime(2026, 10, 25, 23, 30, tzinfo=zone))
    first = accept(rt, profile, at=datetime(2026, 10, 26, 0, 0, tzinfo=zone))
    days = [stamp(datetime(2026, 10, day, tzinfo=zone)) for day in (25, 26, 27)]
    found = calendar.load_days(rt.db, days)
    assert [[post.id for post in day.posts] for day in found] == [[late], [first]]


def test_posts_of_a_day_are_counted_up_to_a_limit(rt, profile):
    for _ in range(6):
        accept(rt, profile)
    days = midnights(datetime(2026, 10, 12, tzinfo=UTC), 1)
    for most, counted, more in ((2, 3, 3), (2, 4, 4), (2, 5, 4), (6, 3, 0)):
        (day,) = calendar.load_days(rt.db, days, most, counted)
        assert (len(day.posts), day.more) == (most, more)
