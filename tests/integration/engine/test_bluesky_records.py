"""Bluesky's records have the wall clock's date, and a restored appliance finds them. No decoration stops a post."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from socialpub.accounts import choices, upkeep
from socialpub.accounts.api_keys import OWNER
from socialpub.core.clock import parse
from socialpub.db.states import State
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import drafts, posts
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.stand_ins.bluesky import key_seconds
from tests.support.appliance import accept, message_of, state_of
from tests.support.copies import copy_of, restored
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact, connect_bluesky, providers_of_the_sandbox
from tests.support.select import select_value

HOUR = 3600.0
DAY = 24 * HOUR
JUMPS = [44 * DAY, -44 * DAY, -5 * HOUR, 365 * DAY]


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return {**sandbox_options, "networks": providers_of_the_sandbox(bluesky=True)}


@pytest.fixture
def appliance_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "original"
    folder.mkdir()
    return folder


def set_clock(rt: Runtime, clock: HandClock, seconds: float) -> None:
    clock.jump(seconds)
    rt.db.follow_clock()


def texts(world: World) -> list[str]:
    return [post.text for post in world.bluesky.posts]


# --- dates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", JUMPS)
def test_a_record_has_the_date_of_the_wall_clock_although_the_clock_was_once_set(rt, world, clock, jump):
    set_clock(rt, clock, jump)
    clock.forward(40 * DAY)
    accept(rt, connect_bluesky(rt, world), options={"bluesky": {"replyControl": "nobody"}})
    drain(rt)
    records = [record for record in world.bluesky.records.values() if "createdAt" in record.value]
    assert len(records) == 2, "the post and its gate"
    for record in records:
        assert abs(parse(record.value["createdAt"]) - clock.now()) < timedelta(minutes=1)
        assert abs(key_seconds(record.rkey) - clock.now().timestamp()) < 60


# --- after a restore -------------------------------------------------------------------------------------------------


def publish_then_restore(
    rt: Runtime,
    world: World,
    clock: HandClock,
    folder: Path,
    jump_after_backup: float = 0.0,
    jump_after_call: float = 0.0,
) -> None:
    """Publish a scheduled post early, and restore the backup that has it scheduled. It exists once."""
    world.bluesky.refresh_grace_seconds = 90 * 86400  # both use the same session
    profile = connect_bluesky(rt, world)
    post = accept(rt, profile, body="Launch", at=clock.now() + timedelta(days=25))
    copy = copy_of(rt, folder)
    clock.forward(600)
    if jump_after_backup:
        set_clock(rt, clock, jump_after_backup)
    rt.write(posts.edit, post, Draft.change(scheduled_at=None), OWNER)
    drain(rt)
    assert texts(world) == ["Launch"]
    set_clock(rt, clock, jump_after_call)
    clock.forward(3 * DAY)
    with restored(copy, world, clock, bluesky=True) as again:
        again.write(resume.resume)
        drain(again, clock, within=50 * DAY)
        assert state_of(again, post) is State.PUBLISHED, message_of(again, post)
    assert texts(world).count("Launch") == 1


@pytest.mark.parametrize("jump", [20 * DAY, 44 * DAY])
def test_a_restored_appliance_finds_a_record_although_the_clock_was_behind_at_its_call(
    rt, world, clock, tmp_path, jump
):
    set_clock(rt, clock, 365 * DAY)
    publish_then_restore(rt, world, clock, tmp_path, jump_after_call=jump)


@pytest.mark.parametrize("jump", [20 * DAY, -20 * DAY, -5 * HOUR])
def test_a_restored_appliance_finds_a_record_although_the_clock_was_set_after_the_backup(
    rt, world, clock, tmp_path, jump
):
    publish_then_restore(rt, world, clock, tmp_path, jump_after_backup=jump)


# --- decorations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["503", "timeout", "rate limit", "page"])
def test_a_mention_that_cannot_be_looked_up_is_plain_text_after_three_tries(rt, world, clock, fault):
    script, profile = world.bluesky.next("resolve_handle"), connect_bluesky(rt, world)
    match fault:
        case "503":
            script.fails_with(503)
        case "timeout":
            script.times_out_before_effect()
        case "rate limit":
            script.rate_limited(86_400)
        case "page":
            script.fails_with(200, html=True)
    script.forever()
    began = clock.now()
    post = accept(rt, profile, body="Thanks @demo.test and #tea")
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert timedelta(minutes=1) < clock.now() - began < timedelta(minutes=15)
    (record,) = world.bluesky.posts
    assert [facet["features"][0]["$type"] for facet in record.value["facets"]] == ["app.bsky.richtext.facet#tag"]
    note = select_value(rt.db, "SELECT message FROM attempt WHERE outcome = 'published'")
    assert note == "The mention @demo.test is plain text, because the account's server could not look it up."


def test_a_mention_is_marked_when_the_server_answers_again(rt, world, clock):
    profile = connect_bluesky(rt, world)
    world.bluesky.next("resolve_handle").fails_with(503).times(2)
    post = accept(rt, profile, body="Thanks @demo.test")
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED
    assert world.bluesky.posts[0].value["facets"]
    assert select_value(rt.db, "SELECT message FROM attempt WHERE outcome = 'published'") is None


# --- an unconfirmed email address ------------------------------------------------------------------------------------


def test_a_video_is_refused_once_the_server_says_that_the_email_address_is_not_confirmed(rt, world, clock, tmp_path):
    """The account is connected before a version that kept the fact, so the renewal of its token reports it first."""
    world.bluesky.existing_account("demo").email_confirmed = False
    profile = connect_bluesky(rt, world)
    clip = DraftMedia(artifact(rt, media.video_mp4(tmp_path / "a.mp4", width=360, height=360), "video/mp4"))
    clock.forward(3 * HOUR)
    post = accept(rt, profile, media=(clip,))
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    assert "The email address of this account is not confirmed" in message_of(rt, post)
    assert f"refresh-profile {profile}" in message_of(rt, post)
    assert not world.bluesky.blobs
    (checked,) = drafts.check_draft(rt, rt.db, Draft(None, None, (profile,), (clip,)), OWNER)
    assert [problem.path for problem in checked.problems] == [("media", 0)]
    (words,) = drafts.check_draft(rt, rt.db, Draft("Words", None, (profile,)), OWNER)
    assert (words.problems, words.notes) == ([], [checked.problems[0].message])
    assert anyio.run(choices.describe, rt, profile)["notes"] == words.notes
    text = accept(rt, profile, body="Words")
    drain(rt, clock)
    assert state_of(rt, text) is State.PUBLISHED
    world.bluesky.existing_account("demo").email_confirmed = True
    upkeep.fetch_account_data(rt, profile)
    later = accept(rt, profile, media=(clip,))
    drain(rt, clock)
    assert state_of(rt, later) is State.PUBLISHED
