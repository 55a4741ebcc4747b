"""A response of a proxy is no answer, for any call and any status."""

from itertools import product
from typing import Any

import pytest

from socialpub.db.states import State
from tests.providers.grid import Call, assert_the_outcome_is_true, begin, played
from tests.providers.networks import NETWORKS, story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain
from tests.support.select import select_all, select_value

FORMS: dict[str, dict[str, Any]] = {
    "a page": {"html": True},
    "nothing": {"body": ""},
    "other JSON": {"body": {"message": "Forbidden"}},
}
UPLOAD_HOST = Call("upload_chunk")
"""TikTok's upload host also responds with a bare status."""
STATUSES = (400, 401, 403, 404, 407, 413, 429, 502)
OF_ANY_SERVER = {("bluesky", 413), ("bluesky", 429)}
"""The proxy in front of an account's server may refuse large files and too many calls."""
ROWS = [row for row in product(NETWORKS, STATUSES, FORMS) if row[:2] not in OF_ANY_SERVER]


def in_every_run(network: str, status: int, form: str) -> bool:
    """Return whether a row is played in every run: each status and each form at each network."""
    turn = list(NETWORKS).index(network) + STATUSES.index(status)
    return form == list(FORMS)[turn % len(FORMS)]


@pytest.mark.parametrize(("network", "status", "form"), played(ROWS, in_every_run))
def test_after_a_foreign_response_every_call_is_repeated_and_nothing_is_held(env, network, status, form):
    scene, chosen = story_of(network, "images" if network == "bluesky" else "video")
    profile = scene.connect(env.rt, env.world, expires_in=60)
    env.clock.forward(120)
    for call in map(Call.of, (scene.token_call, *chosen.calls)):
        if call != UPLOAD_HOST or form == "a page":
            env.world.networks[network].next(call.endpoint).skipping(call.skip).fails_with(status, **FORMS[form])
    post = begin(env, scene, chosen, profile)
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert_the_outcome_is_true(env.rt, env.world, scene, post)
    assert select_value(env.rt.db, "SELECT status FROM profile WHERE id = ?", (profile,)) == "active"
    assert select_all(env.rt.db, "SELECT subject FROM stored_wait WHERE reason = 'app'") == []
    assert select_all(env.rt.db, "SELECT calls FROM stored_wait") == []


CALLS_BEFORE = [
    (network, call)
    for network in NETWORKS
    for call in story_of(network, "images" if network == "bluesky" else "video")[1].before
]
BLOCKED = "Blocked by policy 7."


@pytest.mark.parametrize(("network", "call"), CALLS_BEFORE)
def test_the_same_refusal_of_a_proxy_for_six_hours_ends_the_post_with_its_words(env, network, call):
    body = {"reason": BLOCKED} if CALLS_BEFORE.index((network, call)) % 2 else BLOCKED
    scene, chosen = story_of(network, "images" if network == "bluesky" else "video")
    one = Call.of(call)
    env.world.networks[network].next(one.endpoint).skipping(one.skip).fails_with(403, body).forever()
    post = begin(env, scene, chosen, scene.connect(env.rt, env.world))
    began = env.clock.now()
    drain(env.rt, env.clock, within=5.9 * 3600)
    assert state_of(env.rt, post) is State.QUEUED
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.FAILED
    assert BLOCKED in message_of(env.rt, post)
    assert "(HTTP 403)" in message_of(env.rt, post)
    assert (env.clock.now() - began).total_seconds() < 7 * 3600
    assert_the_outcome_is_true(env.rt, env.world, scene, post)
    assert select_all(env.rt.db, "SELECT subject FROM stored_wait WHERE reason = 'app'") == []


UNDECIDED: list[tuple[int, Any, dict[str, str]]] = [
    *((status, "Blocked.", {}) for status in (401, 407, 408, 425, 429, 503)),
    *((403, body, {}) for body in ("", " \r\n", "<!DOCTYPE html><title>No</title>", "<?xml version='1.0'?><No/>")),
    (403, "No.", {"content-type": "text/html"}),
]


@pytest.mark.parametrize(("status", "body", "headers"), UNDECIDED)
def test_no_other_foreign_response_ends_a_post_before_its_deadline(env, status, body, headers):
    scene, chosen = story_of("x", "video")
    env.world.x.next(chosen.before[0]).fails_with(status, body, headers=headers).forever()
    post = begin(env, scene, chosen, scene.connect(env.rt, env.world))
    drain(env.rt, env.clock, within=20 * 3600)
    assert state_of(env.rt, post) is State.QUEUED


def test_refusals_with_different_statuses_or_an_interruption_by_the_clock_do_not_add_up(env):
    scene, chosen = story_of("x", "video")
    script = env.world.x.next(chosen.before[0])
    script.fails_with(403, "Blocked.").times(4)
    post = begin(env, scene, chosen, scene.connect(env.rt, env.world))
    drain(env.rt, env.clock, within=60)
    env.clock.jump(10 * 3600)
    env.world.x.next(chosen.before[0]).fails_with(404, "Blocked.").times(4)
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("network", "status"), [*((network, 403) for network in NETWORKS), ("bluesky", 413), ("bluesky", 429)]
)
def test_after_a_commit_that_arrived_the_read_back_decides(env, network, status, form):
    title = {"x": "text", "tiktok": "video", "pinterest": "image", "bluesky": "text"}[network]
    scene, chosen = story_of(network, title)
    commit = env.world.networks[network].next(chosen.commit)
    commit.fails_with(status, after_effect=True, **FORMS[form])
    post = begin(env, scene, chosen, scene.connect(env.rt, env.world))
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert_the_outcome_is_true(env.rt, env.world, scene, post)
