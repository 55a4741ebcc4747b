"""What is scheduled in a restored copy: the original may have sent, changed or canceled it since."""

from datetime import timedelta

import pytest

from socialpub.db.states import State
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support.appliance import OWNER, accept, attempts_of, state_of
from tests.support.copies import copy_of, restored, resumed
from tests.support.drain import drain
from tests.support.sandbox_http import artifact, connect_pinterest, connect_tiktok, connect_x
from tests.support.select import select_all

HOUR = 3600.0
WEEK = timedelta(days=7)
NOW = Draft.change(scheduled_at=None)


def on_x(rt: Runtime, world: World) -> str:
    return accept(rt, connect_x(rt, world), body="Launch!", at=rt.now() + WEEK)


def on_pinterest(rt: Runtime, world: World) -> str:
    picture = artifact(rt, media.jpeg(rt.settings.data_dir / "pin.jpg"), "image/jpeg")
    profile = connect_pinterest(rt, world)
    options = {"pinterest": {"boardId": world.pinterest.boards_of("demo")[0].id}}
    return accept(rt, profile, body="Launch!", at=rt.now() + WEEK, media=(DraftMedia(picture),), options=options)


READABLE = pytest.mark.parametrize("accepted", [on_x, on_pinterest])


def public(world: World) -> int:
    return len(world.x.posts) + len(world.pinterest.pins)


@READABLE
def test_what_the_original_published_before_its_time_is_found_and_not_sent_again(
    original, world, clock, tmp_path, accepted
):
    post = accepted(original, world)
    copy = copy_of(original, tmp_path)
    clock.forward(HOUR)
    original.write(posts.edit, post, NOW, OWNER)
    drain(original, clock, within=60)
    before = public(world)
    clock.forward(HOUR)
    with restored(copy, world, clock) as rt:
        outcome = rt.write(resume.resume)
        assert [(still.id, still.body) for still in outcome.scheduled] == [(post, "Launch!")]
        drain(rt, clock, within=8 * 86_400)
        assert (state_of(rt, post), public(world)) == (State.PUBLISHED, before)
        ids = [row[0] for row in select_all(rt.db, "SELECT provider_post_id FROM delivery")]
        assert ids == [row[0] for row in select_all(original.db, "SELECT provider_post_id FROM delivery")]


@READABLE
def test_what_the_original_did_not_send_is_looked_for_once_and_sent_at_its_time(
    original, world, clock, tmp_path, accepted
):
    post = accepted(original, world)
    before, due = public(world), clock.now() + WEEK
    with restored(copy_of(original, tmp_path), world, clock) as rt:
        resumed(rt, clock)
        assert state_of(rt, post) is State.QUEUED
        drain(rt, clock, within=8 * 86_400)
        assert (state_of(rt, post), public(world)) == (State.PUBLISHED, before + 1)
        assert attempts_of(rt, post)[0] == ("read_back", "done")
        assert [step for step, _ in attempts_of(rt, post)].count("read_back") == 1
        assert clock.now() >= due


@READABLE
def test_an_unanswered_read_back_still_comes_first(original, world, clock, tmp_path, accepted):
    post = accepted(original, world)
    copy = copy_of(original, tmp_path)
    original.write(posts.edit, post, NOW, OWNER)
    drain(original, clock, within=60)
    before = public(world)
    for network, endpoint in ((world.x, "list_posts"), (world.pinterest, "list_pins")):
        network.next(endpoint).fails_with(503).times(3)
    with restored(copy, world, clock) as rt:
        resumed(rt, clock)
        drain(rt, clock, within=8 * 86_400)
        assert (state_of(rt, post), public(world)) == (State.PUBLISHED, before)


def test_an_app_that_may_not_ask_does_not_keep_a_scheduled_post_back(original, world, clock, tmp_path):
    post = on_x(original, world)
    world.x.next("list_posts").credits_depleted().forever()
    with restored(copy_of(original, tmp_path), world, clock) as rt:
        resumed(rt, clock)
        drain(rt, clock, within=8 * 86_400)
        assert (state_of(rt, post), len(world.x.posts)) == (State.PUBLISHED, 1)


def test_tiktok_has_nothing_to_look_at_and_gets_it_at_its_time(original, world, clock, tmp_path):
    film = artifact(original, media.video_mp4(tmp_path / "video.mp4", width=360, height=360), "video/mp4")
    options = {"tiktok": {"mode": "direct", "privacyLevel": "PUBLIC_TO_EVERYONE"}}
    profile = connect_tiktok(original, world)
    post = accept(original, profile, at=clock.now() + WEEK, media=(DraftMedia(film),), options=options)
    with restored(copy_of(original, tmp_path), world, clock) as rt:
        resumed(rt, clock)
        drain(rt, clock, within=8 * 86_400)
        assert (state_of(rt, post), len(world.tiktok.tasks)) == (State.PUBLISHED, 1)


def test_the_owners_word_that_nothing_was_sent_spares_the_look(original, world, clock, tmp_path):
    post = on_x(original, world)
    with restored(copy_of(original, tmp_path), world, clock) as rt:
        resumed(rt, clock, nothing_was_sent=True)
        drain(rt, clock, within=8 * 86_400)
        assert attempts_of(rt, post) == [("create_post", "published")]
