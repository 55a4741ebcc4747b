"""A restored appliance: its own posts are ordinary, the owner's decisions count, and a post of the backup never ends as
a certain failure before the account was read back."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from socialpub.accounts import profiles
from socialpub.core.errors import Conflict
from socialpub.db.states import State
from socialpub.db.tables import profile_rows
from socialpub.publishing import retention
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts, retries
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support.appliance import OWNER, accept, attempts_of, message_of, state_of
from tests.support.copies import copy_of, restored, resumed
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import (
    artifact,
    connect_tiktok,
    connect_x,
)
from tests.support.select import select_value

HOUR = 3600.0
DAY = 24 * HOUR
NOW = Draft.change(scheduled_at=None)
UNKNOWN = "Outcome unknown: the original installation may have published it. "


def texts(world: World) -> list[str]:
    return [post.text for post in world.x.posts]


def rewrite(body: str) -> Draft:
    return Draft.change(body=body)


def publish_early(original: Runtime, post: str, clock: HandClock) -> None:
    original.write(posts.edit, post, NOW, OWNER)
    drain(original, clock, within=60)


# --- what the restored appliance accepts itself ----------------------------------------------------------------------


def test_what_is_accepted_before_the_resume_is_published_like_any_other_post(original, world, clock, tmp_path):
    x, tiktok = connect_x(original, world), connect_tiktok(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(HOUR)
    with restored(copy, world, clock) as rt:
        now = accept(rt, x, body="Now")
        soon = accept(rt, x, body="Soon", at=clock.now() + timedelta(minutes=5))
        clip = DraftMedia(artifact(rt, media.video_mp4(tmp_path / "a.mp4", width=360, height=360), "video/mp4"))
        options = {"tiktok": {"privacyLevel": "PUBLIC_TO_EVERYONE"}}
        video = accept(rt, tiktok, body="Video", media=(clip,), options=options)
        clock.forward(600)
        assert resumed(rt, clock) == resume.Resumed(too_late=0, read_back=0, restored=True)
        assert [state_of(rt, post) for post in (now, soon, video)] == [State.PUBLISHED] * 3
        assert attempts_of(rt, now) == [("create_post", "published")]
    assert texts(world) == ["Now", "Soon"]


@pytest.mark.parametrize("ahead", [None, timedelta(days=1)])
def test_an_equal_post_of_the_original_is_not_taken_for_one_of_the_restored_appliance(
    original, world, clock, tmp_path, ahead
):
    profile = connect_x(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(HOUR)
    accept(original, profile, body="Good morning")
    drain(original, clock)
    clock.forward(DAY)
    with restored(copy, world, clock) as rt:
        post = accept(rt, profile, body="Good morning", at=ahead and clock.now() + ahead)
        resumed(rt, clock)
        assert state_of(rt, post) is State.PUBLISHED
    assert texts(world) == ["Good morning"] * 2


# --- the owner's decisions -------------------------------------------------------------------------------------------


DECISIONS = {"publish now": NOW, "change the words": rewrite("Launch")}


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("after_the_resume", [False, True])
@pytest.mark.parametrize("original_published", [False, True])
def test_what_the_owner_decides_about_a_post_of_the_backup_is_read_back_once_and_then_sent(
    original, world, clock, tmp_path, decision, after_the_resume, original_published
):
    post = accept(original, connect_x(original, world), body="Launch", at=clock.now() + timedelta(days=2))
    copy = copy_of(original, tmp_path)
    if original_published:
        original.write(posts.edit, post, NOW, OWNER)
        drain(original, clock, within=60)
    with restored(copy, world, clock) as rt:
        if after_the_resume:
            rt.write(resume.resume)
        rt.write(posts.edit, post, DECISIONS[decision], OWNER)
        clock.forward(HOUR)
        rt.write(resume.resume)
        drain(rt, clock, within=3 * DAY)
        assert state_of(rt, post) is State.PUBLISHED
        assert [step for step, _ in attempts_of(rt, post)].count("read_back") == 1
    assert texts(world) == ["Launch"]


def test_a_post_that_was_moved_after_the_restore_and_due_before_the_resume_is_sent(original, world, clock, tmp_path):
    post = accept(original, connect_x(original, world), body="Moved", at=clock.now() + timedelta(days=2))
    with restored(copy_of(original, tmp_path), world, clock) as rt:
        soon = Draft.change(scheduled_at=clock.now() + timedelta(minutes=5))
        rt.write(posts.edit, post, soon, OWNER)
        clock.forward(600)
        assert resumed(rt, clock).read_back == 0
        assert state_of(rt, post) is State.PUBLISHED
    assert texts(world) == ["Moved"]


@pytest.mark.parametrize("moved_before", [False, True])
@pytest.mark.parametrize("after_the_resume", [False, True])
def test_an_edited_post_whose_earlier_text_is_up_ends_as_unknown_and_says_so(
    original, world, clock, tmp_path, after_the_resume, moved_before
):
    post = accept(original, connect_x(original, world), body="Launhc today", at=clock.now() + timedelta(days=2))
    copy = copy_of(original, tmp_path)
    publish_early(original, post, clock)
    with restored(copy, world, clock) as rt:
        if after_the_resume:
            rt.write(resume.resume)
        if moved_before:
            later = Draft.change(scheduled_at=clock.now() + timedelta(days=1))
            rt.write(posts.edit, post, later, OWNER)
        for body in ("Launch, today", "Launch today"):
            rt.write(posts.edit, post, rewrite(body), OWNER)
        rt.write(resume.resume)
        drain(rt, clock, within=5 * DAY)
        assert state_of(rt, post) is State.UNCONFIRMED
        assert message_of(rt, post).startswith(UNKNOWN + "The account shows the text from before the last edit (http")
    assert texts(world) == ["Launhc today"]


def test_a_post_that_lost_its_media_in_an_edit_is_still_looked_for_when_they_are_cleaned_up(
    original, world, clock, tmp_path
):
    photo = DraftMedia(artifact(original, media.jpeg(tmp_path / "a.jpg"), "image/jpeg"))
    at = clock.now() + timedelta(days=60)
    post = accept(original, connect_x(original, world), body="Launch", at=at, media=(photo,))
    with restored(copy_of(original, tmp_path), world, clock) as rt:
        rt.write(resume.resume)
        rt.write(posts.edit, post, Draft.change(media=()), OWNER)
        clock.forward(40 * DAY)
        retention.remove_unused_media(rt)
        drain(rt, clock, within=30 * DAY)
        assert state_of(rt, post) is State.PUBLISHED
        clock.forward(40 * DAY)
        retention.remove_unused_media(rt)
        assert select_value(rt.db, "SELECT count(*) FROM artifact") == 0
    assert texts(world) == ["Launch"]


# --- restored twice --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resumed_between", [False, True])
def test_after_a_second_restore_the_first_backup_still_counts(original, world, clock, tmp_path, resumed_between):
    post = accept(original, connect_x(original, world), body="Launch", at=clock.now() + timedelta(days=20))
    first = copy_of(original, tmp_path)
    clock.forward(HOUR)
    publish_early(original, post, clock)
    clock.forward(3 * DAY)
    with restored(first, world, clock) as rt:
        if resumed_between:
            rt.write(resume.resume)
        second = copy_of(rt, tmp_path / "second")
    clock.forward(HOUR)
    with restored(second, world, clock) as rt:
        rt.write(resume.resume)
        drain(rt, clock, within=25 * DAY)
        assert state_of(rt, post) is State.PUBLISHED
    assert texts(world) == ["Launch"]


# --- no certain failure without a read-back --------------------------------------------------------------------------


def too_late(rt: Runtime, clock: HandClock, profile: str, post: str) -> None:
    clock.forward(3 * DAY)


def refused_by_the_check(rt: Runtime, clock: HandClock, profile: str, post: str) -> None:
    options = {"x": {"replySetings": "following"}}
    rt.write(posts.edit, post, Draft.change(options=options), OWNER)


def stopped(rt: Runtime, clock: HandClock, profile: str, post: str) -> None:
    rt.write(lambda rt, tx: tx.execute_sql("UPDATE post SET status = 'pending' WHERE id = ?", (post,)))
    rt.write(posts.stop, post)


def disconnected(rt: Runtime, clock: HandClock, profile: str, post: str) -> None:
    rt.write(profiles.disconnect, profile)


def without_access(rt: Runtime, clock: HandClock, profile: str, post: str) -> None:
    rt.write(lambda rt, tx: profile_rows.require_reauth(tx, profile, "The network refuses the token"))


ENDS: dict[Callable[[Runtime, HandClock, str, str], None], State] = {
    too_late: State.PUBLISHED,
    refused_by_the_check: State.PUBLISHED,
    stopped: State.PUBLISHED,
    disconnected: State.UNCONFIRMED,
    without_access: State.UNCONFIRMED,
}


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_what_the_original_published_never_ends_as_failed(original, world, clock, tmp_path, end):
    profile = connect_x(original, world)
    post = accept(original, profile, body="Launch", at=clock.now() + timedelta(days=1))
    copy = copy_of(original, tmp_path)
    publish_early(original, post, clock)
    with restored(copy, world, clock) as rt:
        rt.write(resume.resume)
        end(rt, clock, profile, post)
        drain(rt, clock, within=8 * DAY)
        assert state_of(rt, post) is ENDS[end], message_of(rt, post)
        if ENDS[end] is State.UNCONFIRMED:
            assert message_of(rt, post).startswith(UNKNOWN)
        with pytest.raises(Conflict):
            rt.write(retries.retry, post, OWNER)
    assert texts(world) == ["Launch"]


@pytest.mark.parametrize(
    ("end", "said"),
    [(too_late, "24 hours"), (refused_by_the_check, "replySettings"), (stopped, "Stopped by the owner.")],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_the_original_did_not_publish_fails_with_its_own_reason_once_it_was_read_back(
    original, world, clock, tmp_path, end, said
):
    profile = connect_x(original, world)
    post = accept(original, profile, body="Launch", at=clock.now() + timedelta(days=1))
    with restored(copy_of(original, tmp_path), world, clock) as rt:
        rt.write(resume.resume)
        end(rt, clock, profile, post)
        drain(rt, clock, within=8 * DAY)
        assert state_of(rt, post) is State.FAILED
        assert said in message_of(rt, post)
        assert "read_back" in [step for step, _ in attempts_of(rt, post)]
    assert texts(world) == []


def test_a_video_that_cannot_be_read_back_ends_as_unknown_when_it_is_too_late(original, world, clock, tmp_path):
    clip = DraftMedia(artifact(original, media.video_mp4(tmp_path / "a.mp4", width=360, height=360), "video/mp4"))
    options = {"tiktok": {"privacyLevel": "PUBLIC_TO_EVERYONE"}}
    profile, at = connect_tiktok(original, world), clock.now() + timedelta(days=1)
    post = accept(original, profile, body="Video", at=at, media=(clip,), options=options)
    with restored(copy_of(original, tmp_path), world, clock) as rt:
        rt.write(resume.resume)
        clock.forward(3 * DAY)
        drain(rt, clock)
        assert state_of(rt, post) is State.UNCONFIRMED
        assert message_of(rt, post).startswith(UNKNOWN)


# --- a retry ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after_the_resume", [False, True])
@pytest.mark.parametrize("original_retried", [False, True])
def test_a_retry_of_what_failed_before_the_backup_is_read_back_before_it_is_sent(
    original, world, clock, tmp_path, after_the_resume, original_retried
):
    profile = connect_x(original, world)
    world.x.next("create_post").fails_with(403)
    failed = accept(original, profile, body="Again")
    drain(original, clock)
    assert state_of(original, failed) is State.FAILED
    copy = copy_of(original, tmp_path)
    clock.forward(HOUR)
    if original_retried:
        original.write(retries.retry, failed, OWNER)
        drain(original, clock)
    clock.forward(HOUR)
    with restored(copy, world, clock) as rt:
        if after_the_resume:
            resumed(rt, clock)
            clock.forward(5 * DAY)
        again = rt.write(retries.retry, failed, OWNER)
        resumed(rt, clock)
        assert state_of(rt, again) is State.PUBLISHED
        assert attempts_of(rt, again)[0][0] == "read_back"
    assert texts(world) == ["Again"]
