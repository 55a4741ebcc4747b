"""A backup that was restored while its original continued: nothing is posted twice, and unknown outcomes say so."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from socialpub.accounts import tokens, upkeep
from socialpub.core.errors import Conflict
from socialpub.db import appliance_state
from socialpub.db.models import ProfileRow
from socialpub.db.states import State
from socialpub.providers.responses import NotSent
from socialpub.providers.tiktok import limits
from socialpub.publishing.delivery import engine, read_back, resume
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support.appliance import OWNER, accept, attempts_of, message_of, state_of, status_of
from tests.support.copies import copy_of, restored, resumed
from tests.support.drain import drain
from tests.support.sandbox_http import (
    FaultTransport,
    ProcessKilled,
    artifact,
    connect_pinterest,
    connect_tiktok,
    connect_x,
)
from tests.support.select import select_one, select_value

HOUR = 3600.0


Story = tuple[Callable[[Runtime, World], str], Callable[[World], int]]


def on_x(rt: Runtime, world: World) -> str:
    return accept(rt, connect_x(rt, world), body="Said once", at=rt.now() + timedelta(minutes=10))


def on_pinterest(rt: Runtime, world: World) -> str:
    profile = connect_pinterest(rt, world)
    picture = artifact(rt, media.jpeg(rt.settings.data_dir / "pin.jpg"), "image/jpeg")
    options = {"pinterest": {"boardId": world.pinterest.boards_of("demo")[0].id}}
    at = rt.now() + timedelta(minutes=10)
    return accept(rt, profile, body="Said once", at=at, media=(DraftMedia(picture),), options=options)


def tweets(world: World) -> int:
    return len(world.x.posts)


def pins(world: World) -> int:
    return len([pin for pin in world.pinterest.pins if pin.description == "Said once"])


READABLE: dict[str, Story] = {"x": (on_x, tweets), "pinterest": (on_pinterest, pins)}
readable = pytest.mark.parametrize(("accepted", "count"), READABLE.values(), ids=READABLE)


# --- networks that can be read back ----------------------------------------------------------------------------------


@readable
def test_what_the_original_sent_is_found_and_not_sent_again(original, world, clock, tmp_path, accepted, count):
    post = accepted(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(601)
    drain(original)
    assert (state_of(original, post), count(world)) == (State.PUBLISHED, 1)
    with restored(copy, world, clock) as rt:
        drain(rt, clock, within=600)
        assert state_of(rt, post) is State.QUEUED
        assert resumed(rt, clock).read_back == 1
        assert state_of(rt, post) is State.PUBLISHED
        assert outcome(rt, post) == outcome(original, post)
        assert attempts_of(rt, post) == [("read_back", "published")]
    assert count(world) == 1


def outcome(rt: Runtime, post: str) -> tuple[Any, ...]:
    row = select_one(rt.db, "SELECT provider_post_id, url FROM delivery WHERE post_id = ?", (post,))
    assert row is not None
    return tuple(row)


@readable
def test_a_post_that_was_not_sent_fails_and_says_so(original, world, clock, tmp_path, accepted, count):
    post = accepted(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(HOUR)
    with restored(copy, world, clock) as rt:
        began = clock.now()
        resumed(rt, clock)
        assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, read_back.NOT_SENT_AFTER_RESTORE)
        assert clock.now() - began >= rt.settings.publishing.resend_after, "lists lag: it was looked for long enough"
        assert status_of(rt, post) == "settled"
    assert count(world) == 0


@readable
def test_the_owners_word_that_nothing_was_sent_sends_it(original, world, clock, tmp_path, accepted, count):
    post = accepted(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(HOUR)
    with restored(copy, world, clock) as rt:
        assert resumed(rt, clock, nothing_was_sent=True) == resume.Resumed(0, 0, restored=True)
        assert state_of(rt, post) is State.PUBLISHED
    assert count(world) == 1


def test_two_equal_posts_are_decided_separately(original, world, clock, tmp_path):
    profile = connect_x(original, world)
    first, second = (
        accept(original, profile, body="Again", at=clock.now() + timedelta(minutes=minutes)) for minutes in (1, 20)
    )
    copy = copy_of(original, tmp_path)
    clock.forward(61)
    drain(original)
    clock.forward(HOUR)
    with restored(copy, world, clock) as rt:
        resumed(rt, clock)
        assert [state_of(rt, post) for post in (first, second)] == [State.PUBLISHED, State.FAILED]
    assert tweets(world) == 1


def test_a_backup_made_in_the_middle_of_a_call_sends_it_no_second_time(original, world, transport, clock, tmp_path):
    for number, words in enumerate(({}, {"nothing_was_sent": True})):
        post = accept(original, connect_x(original, world, f"user{number}"), body=f"In the air {number}")
        folder = tmp_path / str(number)
        folder.mkdir()
        with copied_at(transport, "create_post", original, folder):
            drain(original)
        assert state_of(original, post) is State.PUBLISHED
        with restored(folder / "appliance.copy", world, clock) as rt:
            assert state_of(rt, post) is State.RUNNING
            drain(rt, clock, within=600)
            assert state_of(rt, post) is State.RUNNING, "paused, no process continues the work of another machine"
            resumed(rt, clock, **words)
            assert outcome(rt, post) == outcome(original, post)
            if not words:
                assert attempts_of(rt, post) == [("read_back", "published")]
        assert tweets(world) == number + 1


@contextmanager
def copied_at(
    transport: FaultTransport, endpoint: str, rt: Runtime, folder: Path, *, then_dies: bool = False
) -> Iterator[None]:
    """Make a backup at the first call of this endpoint. The original continues or dies."""
    done: list[Path] = []

    def hook(request: httpx2.Request) -> None:
        if transport.endpoint_of(request) == endpoint and not done:
            done.append(copy_of(rt, folder))
            if then_dies:
                raise ProcessKilled

    transport.before_call = hook
    try:
        yield
    except ProcessKilled:
        pass
    finally:
        transport.before_call = None
    assert done


def test_an_account_that_cannot_be_read_leaves_it_unknown(original, world, clock, tmp_path):
    post = on_x(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(3 * HOUR)
    drain(original)  # it renews its tokens, and those in the copy are spent
    with restored(copy, world, clock) as rt:
        resumed(rt, clock)
        assert state_of(rt, post) is State.UNCONFIRMED
        assert message_of(rt, post).startswith("Outcome unknown: the original installation may have published it. ")
        assert "must be connected again" in message_of(rt, post)
    assert tweets(world) == 1


# --- TikTok ----------------------------------------------------------------------------------------------------------

DIRECT = {"tiktok": {"mode": "direct", "privacyLevel": "PUBLIC_TO_EVERYONE"}}


def film_on_tiktok(rt: Runtime, world: World) -> str:
    make = partial(media.video_mp4, width=360, height=360, size=11_000_000)
    film = artifact(rt, make(rt.settings.data_dir / "video.mp4"), "video/mp4")
    profile = connect_tiktok(rt, world)
    at = rt.now() + timedelta(minutes=10)
    return accept(rt, profile, body="Said once", at=at, media=(DraftMedia(film),), options=DIRECT)


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ONE_CHUNK_BYTES", 10_000_000)
    monkeypatch.setattr(limits, "CHUNK_BYTES", 5_000_000)


def test_a_video_without_a_publish_id_in_the_backup_has_an_unknown_outcome(original, world, clock, tmp_path):
    post = film_on_tiktok(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(601)
    drain(original, clock)
    with restored(copy, world, clock) as rt:
        resumed(rt, clock)
        assert state_of(rt, post) is State.UNCONFIRMED
        assert "TikTok did not return a publish_id" in message_of(rt, post)
    assert len(world.tiktok.tasks) == 1


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("endpoint", ["upload_chunk", "status_fetch"])
def test_a_video_with_a_publish_id_in_the_backup_is_watched(original, world, transport, clock, tmp_path, endpoint):
    post = film_on_tiktok(original, world)
    clock.forward(601)
    with copied_at(transport, endpoint, original, tmp_path):
        drain(original, clock)
    assert state_of(original, post) is State.PUBLISHED
    sent = world.tiktok.counts["upload_chunk"]
    with restored(tmp_path / "appliance.copy", world, clock) as rt:
        resumed(rt, clock)
        assert outcome(rt, post) == outcome(original, post)
    assert len(world.tiktok.tasks) == 1
    assert world.tiktok.counts["upload_chunk"] == sent, "the copy sends no byte"


@pytest.mark.usefixtures("chunks")
def test_a_video_whose_upload_never_ended_may_have_been_uploaded_again(original, world, transport, clock, tmp_path):
    post = film_on_tiktok(original, world)
    clock.forward(601)
    with copied_at(transport, "upload_chunk", original, tmp_path, then_dies=True):
        drain(original, clock)
    with restored(tmp_path / "appliance.copy", world, clock) as rt:
        resumed(rt, clock)
        assert state_of(rt, post) is State.UNCONFIRMED
        assert "The original installation may have started another upload" in message_of(rt, post)
    assert len(world.tiktok.tasks) == 1


@pytest.mark.parametrize(
    ("fate", "state", "tasks"),
    [
        # The original uploads such a video again; the restored appliance cannot know the outcome.
        ("internal", State.UNCONFIRMED, 2),
        # A verdict that ends it ends it for both.
        ("spam_risk_user_banned_from_posting", State.FAILED, 1),
    ],
)
def test_a_video_that_tiktok_calls_failed_is_never_uploaded_again_by_the_backup(
    original, world, clock, tmp_path, fate, state, tasks
):
    post = film_on_tiktok(original, world)
    world.tiktok.next_fate(fate)
    clock.forward(601)
    drain(original)
    copy = copy_of(original, tmp_path)
    drain(original, clock)
    with restored(copy, world, clock) as rt:
        resumed(rt, clock)
        assert state_of(rt, post) is state
        assert message_of(rt, post).startswith("Outcome unknown: ") is (state is State.UNCONFIRMED)
    assert len(world.tiktok.tasks) == tasks


@pytest.mark.usefixtures("chunks")
def test_a_verdict_on_an_upload_that_the_backup_had_not_ended_is_none_on_the_post(
    original, world, transport, clock, tmp_path
):
    post = film_on_tiktok(original, world)
    world.tiktok.next_fate("spam_risk_user_banned_from_posting")
    clock.forward(601)
    with copied_at(transport, "upload_chunk", original, tmp_path):
        drain(original, clock)
    with restored(tmp_path / "appliance.copy", world, clock) as rt:
        resumed(rt, clock)
        assert state_of(rt, post) is State.UNCONFIRMED


@pytest.mark.usefixtures("chunks")
def test_what_the_original_had_half_sent_is_sent_from_its_beginning_when_nothing_was_sent(
    original, world, transport, clock, tmp_path
):
    post = film_on_tiktok(original, world)
    clock.forward(601)
    with copied_at(transport, "upload_chunk", original, tmp_path, then_dies=True):
        drain(original, clock)
    clock.forward(2 * HOUR)
    with restored(tmp_path / "appliance.copy", world, clock) as rt:
        resumed(rt, clock, nothing_was_sent=True)
        assert state_of(rt, post) is State.PUBLISHED
    assert len(world.tiktok.catch_up()) == 1


def test_images_that_the_original_had_fitted_are_fitted_again_when_nothing_was_sent(original, world, clock, tmp_path):
    picture = artifact(original, media.png(tmp_path / "photo.png"), "image/png")
    options = {"tiktok": {"mode": "draft"}}
    post = accept(original, connect_tiktok(original, world), media=(DraftMedia(picture),), options=options)
    world.tiktok.next("content_init").rate_limited(60)
    drain(original)
    assert state_of(original, post) is State.QUEUED
    with restored(copy_of(original, tmp_path), world, clock) as rt:
        clock.forward(120)
        rt.write(resume.resume, nothing_was_sent=True)
        drain(rt)
        assert [step for step, _ in attempts_of(rt, post)].count("fit_photos") == 2
        # That far it came: TikTok was asked, and would not fetch from an address of this kind.
        assert "verified for the app" in message_of(rt, post)


# --- before the resume, and after it ---------------------------------------------------------------------------------


def test_paused_a_backup_neither_refreshes_nor_revokes(original, world, clock, tmp_path):
    post = on_x(original, world)
    lost = connect_x(original, world, "lost")
    original.db.write(
        lambda tx: tx.update(ProfileRow, lost, status="disconnected", disconnected_at=tx.stamp, updated_at=tx.stamp)
    )
    copy = copy_of(original, tmp_path)
    clock.forward(3 * HOUR)
    with restored(copy, world, clock) as rt:
        asked = dict(world.x.counts)
        profile = select_value(rt.db, "SELECT profile_id FROM delivery WHERE post_id = ?", (post,))
        engine.work(rt, profile)
        with pytest.raises(NotSent, match="paused"):
            tokens.replace_spent(rt, profile, spent=token_of(rt, profile))
        assert upkeep.revoke_disconnected(rt) == 1, "an hour later they are erased, and still not revoked"
        assert dict(world.x.counts) == asked


def token_of(rt: Runtime, profile: str) -> str:
    sealed: bytes = select_value(rt.db, "SELECT access_token FROM profile WHERE id = ?", (profile,))
    return rt.secrets.open(sealed, "profile", profile, "access_token")


def test_before_the_resume_a_due_post_is_not_called_unsent(original, world, clock, tmp_path):
    profile = connect_x(original, world)
    due, stopped, later = (
        accept(original, profile, body=str(minutes), at=clock.now() + timedelta(minutes=minutes))
        for minutes in (1, 2, 90)
    )
    copy = copy_of(original, tmp_path)
    clock.forward(600)
    drain(original)
    with restored(copy, world, clock) as rt:
        with pytest.raises(Conflict, match="the original installation may have published this post"):
            rt.write(posts.cancel, due, OWNER)
        rt.write(posts.cancel, later, OWNER)
        rt.write(posts.stop, stopped)
        assert state_of(rt, stopped) is State.QUEUED
        resumed(rt, clock)
        assert [state_of(rt, post) for post in (due, stopped)] == [State.PUBLISHED] * 2
    assert [post.text for post in world.x.posts] == ["1", "2"]


def test_a_post_stopped_before_the_resume_is_not_sent_when_nothing_was_sent(original, world, clock, tmp_path):
    post = on_x(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(601)
    with restored(copy, world, clock) as rt:
        rt.write(posts.stop, post)
        resumed(rt, clock, nothing_was_sent=True)
        assert (state_of(rt, post), message_of(rt, post)) == (State.FAILED, read_back.STOPPED)
    assert tweets(world) == 0


def test_what_is_too_late_is_counted_only_where_it_would_have_been_sent(original, world, clock, tmp_path):
    post = on_pinterest(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(25 * HOUR)
    with restored(copy, world, clock) as rt:
        assert resumed(rt, clock) == resume.Resumed(too_late=0, read_back=1, restored=True)
        assert message_of(rt, post) == read_back.NOT_SENT_AFTER_RESTORE


def test_a_second_pause_is_an_ordinary_one(original, world, clock, tmp_path):
    profile = connect_x(original, world)
    copy = copy_of(original, tmp_path)
    with restored(copy, world, clock) as rt:
        resumed(rt, clock)
        assert appliance_state.restored_from(rt.db) is None
        rt.write(resume.pause)
        post = accept(rt, profile, body="After all")
        clock.forward(600)
        assert resumed(rt, clock) == resume.Resumed(too_late=0, read_back=0, restored=False)
        assert state_of(rt, post) is State.PUBLISHED
    assert tweets(world) == 1
