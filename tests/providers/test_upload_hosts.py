"""Upload hosts: an address that is not allowed holds all uploads until the owner decides."""

from datetime import timedelta
from typing import Any

import pytest

from socialpub.db.states import State
from tests.providers.grid import Environment, begin
from tests.providers.networks import story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain
from tests.support.select import select_all

HOST = "open-upload-xx.example"
UPLOAD_CALLS = {"tiktok": "upload_chunk", "pinterest": "upload_media"}
DAY = timedelta(days=1).total_seconds()


def network_of(env: Environment, name: str) -> Any:
    return env.world.networks[name]


@pytest.mark.parametrize(
    ("name", "address", "reason"),
    [
        ("tiktok", HOST, f"the upload host {HOST}, which upload_hosts in [providers.tiktok] does not list"),
        ("tiktok", "up.tiktokapis.com:8443", "port 8443 of the upload host up.tiktokapis.com"),
        ("pinterest", HOST, f"the upload host {HOST}, which upload_hosts in [providers.pinterest] does not list"),
        ("pinterest", "bucket.amazonaws.com:8443", "port 8443 of the upload host bucket.amazonaws.com"),
    ],
)
def test_an_address_that_is_not_allowed_holds_uploads_and_fails_none_of_them(env, name, address, reason):
    played, chosen = story_of(name, "video")
    network, profile = network_of(env, name), played.connect(env.rt, env.world)
    network.upload_host = address
    posts = [begin(env, played, chosen, profile, body=f"Number {number}") for number in range(3)]
    drain(env.rt, env.clock, within=1800)
    assert {state_of(env.rt, post) for post in posts} == {State.QUEUED}
    (held,) = select_all(env.rt.db, "SELECT subject, message FROM stored_wait WHERE reason = 'app'")
    assert held["subject"] == name
    assert reason in held["message"]
    assert network.statuses(UPLOAD_CALLS[name]) == []
    opened = env.transport.called.count("video_init") + env.transport.called.count("register_media")
    assert opened < 10, "it is tried slowly"

    network.upload_host = ""
    drain(env.rt, env.clock, within=DAY)
    for post in posts:
        assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)


def test_a_held_upload_delays_no_image(env):
    played, video = story_of("pinterest", "video")
    profile = played.connect(env.rt, env.world)
    env.world.pinterest.upload_host = HOST
    waiting = begin(env, played, video, profile, body="A video")
    drain(env.rt, env.clock, within=60)
    image = begin(env, played, story_of("pinterest", "image")[1], profile, body="A image")
    drain(env.rt, env.clock, within=60)
    assert (state_of(env.rt, waiting), state_of(env.rt, image)) == (State.QUEUED, State.PUBLISHED)


@pytest.mark.parametrize("name", ["tiktok", "pinterest"])
def test_after_a_probe_with_its_own_refusal_another_post_probes(env, name):
    played, chosen = story_of(name, "video")
    network, profile = network_of(env, name), played.connect(env.rt, env.world)
    network.upload_host = HOST
    first, second = (begin(env, played, chosen, profile, body=f"Number {number}") for number in range(2))
    drain(env.rt, env.clock, within=60)
    network.upload_host = ""
    network.next({"tiktok": "video_init", "pinterest": "register_media"}[name]).fails_with(400)
    drain(env.rt, env.clock, within=1800)
    assert (state_of(env.rt, first), state_of(env.rt, second)) == (State.FAILED, State.PUBLISHED)
    assert select_all(env.rt.db, "SELECT * FROM stored_wait WHERE reason = 'app'") == []
