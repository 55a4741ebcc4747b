"""Something between here and Pinterest answers in its place: with a page, with nothing, with JSON of its own.

That is no answer, whatever its status: it fails no post, marks no account and holds no network.
"""

from typing import Any

import pytest

from socialpub.db.states import State
from tests.providers.grid import Environment, assert_the_outcome_is_true, begin
from tests.providers.networks import story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain

STATUSES = (400, 401, 403, 404, 405, 407, 409, 413, 429, 502)
FORMS: dict[str, dict[str, Any]] = {
    "a page": {"html": True},
    "nothing": {"body": ""},
    "other JSON": {"body": {"message": "Forbidden"}},
}
CALLS = ("read_board", "register_media", "upload_media", "media_status", "create_pin")


def played(env: Environment, story: str, call: str, status: int, form: str) -> str:
    network, chosen = story_of("pinterest", story)
    post = begin(env, network, chosen, network.connect(env.rt, env.world))
    env.world.pinterest.next(call).fails_with(status, **FORMS[form])
    drain(env.rt, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, network, post)
    assert env.rt.reader.value("SELECT count(*) FROM hold") == 0
    assert env.rt.reader.value("SELECT status FROM profile") == "active"
    return post


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("call", CALLS)
def test_no_such_answer_ends_a_post(env: Environment, call: str, form: str) -> None:
    for status in (401, 403, 404):
        network, chosen = story_of("pinterest", "film")
        env.world.pinterest.next(call).fails_with(status, **FORMS[form])
    post = begin(env, network, chosen, network.connect(env.rt, env.world))
    drain(env.rt, env.clock)
    if call == "create_pin":
        # The second call met one too: there is no third.
        assert state_of(env.rt, post) is State.UNCONFIRMED
    else:
        assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert_the_outcome_is_true(env.rt, env.world, network, post)


@pytest.mark.parametrize("status", STATUSES)
def test_on_the_call_that_makes_the_pin_it_leaves_the_outcome_open(env: Environment, status: int) -> None:
    for form in FORMS:
        network, chosen = story_of("pinterest", "picture")
        post = begin(env, network, chosen, network.connect(env.rt, env.world), body=f"{status} with {form}")
        env.world.pinterest.next("create_pin").fails_with(status, after_effect=True, **FORMS[form])
        drain(env.rt, env.clock)
        assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
        env.rt.write(lambda rt, tx: tx.execute("UPDATE profile SET status = 'disconnected'"))
    assert len(env.world.pinterest.pins) == len(FORMS), "none was made twice"


@pytest.mark.parametrize("status", STATUSES)
def test_a_board_that_is_read_back_is_asked_again(env: Environment, status: int) -> None:
    env.world.pinterest.next("create_pin").times_out_after_effect()
    post = played(env, "picture", "list_pins", status, "a page")
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert len(env.world.pinterest.pins) == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("status", STATUSES)
def test_at_the_token_endpoint_it_says_nothing_about_the_account(env: Environment, status: int, form: str) -> None:
    network, chosen = story_of("pinterest", "picture")
    network.connect(env.rt, env.world, expires_in=60)
    env.clock.forward(120)
    profile = env.rt.reader.value("SELECT id FROM profile")
    post = begin(env, network, chosen, profile)
    env.world.pinterest.next("token").fails_with(status, **FORMS[form])
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert env.rt.reader.value("SELECT status FROM profile") == "active"
    assert env.rt.reader.value("SELECT count(*) FROM hold") == 0


@pytest.mark.parametrize("status", [400, 403, 413, 429, 502])
def test_a_page_on_the_way_to_the_storage_is_an_upload_that_broke_off(env: Environment, status: int) -> None:
    post = played(env, "film", "upload_media", status, "a page")
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert [media.uploads for media in env.world.pinterest.media.values()] == [0, 1]


def test_a_page_in_place_of_the_board_is_no_board(env: Environment) -> None:
    post = played(env, "picture", "read_board", 200, "a page")
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert env.transport.called.count("read_board") == 2
