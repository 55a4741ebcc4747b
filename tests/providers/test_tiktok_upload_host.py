"""Where TikTok wants the bytes: a host that is not listed is the owner's to decide, once and for all uploads."""

from datetime import timedelta

from socialpub.db.models import State
from tests.providers.grid import Environment, begin
from tests.providers.networks import story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain

NAMED = "open-upload-xx.example"


def test_a_host_that_is_not_listed_holds_uploads_and_fails_none_of_them(env: Environment) -> None:
    played, chosen = story_of("tiktok", "film")
    profile = played.connect(env.rt, env.world)
    env.world.tiktok.upload_host = NAMED
    posts = [begin(env, played, chosen, profile, body=f"Number {number}") for number in range(3)]
    drain(env.rt, env.clock, within=1800)
    assert {state_of(env.rt, post) for post in posts} == {State.QUEUED}
    (held,) = env.rt.reader.all("SELECT provider, reason FROM hold")
    assert held["provider"] == "tiktok"
    assert NAMED in held["reason"]
    assert "upload_hosts of [providers.tiktok]" in held["reason"]
    assert env.world.tiktok.statuses("upload_chunk") == []
    assert len(env.world.tiktok.tasks.all) < 10, "it is tried slowly"

    env.world.tiktok.upload_host = ""
    drain(env.rt, env.clock, within=timedelta(days=1).total_seconds())
    for post in posts:
        assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
