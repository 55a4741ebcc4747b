"""Boards of a post: Pinterest decides about access, and messages name missing scopes."""

from datetime import timedelta

import pytest

from socialpub.core.settings.networks import PINTEREST_SCOPES, PINTEREST_SECRET_SCOPES
from socialpub.db.states import State
from socialpub.sandbox.pinterest.network import SECRET
from tests.providers.grid import BODY, HOURS, Environment
from tests.providers.stories_pinterest import image, video
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import connect_pinterest


@pytest.fixture
def give_up_after() -> timedelta:
    return HOURS


@pytest.mark.parametrize("make", [image, video])
def test_a_board_that_cannot_be_read_may_still_accept_the_pin(env: Environment, make: object) -> None:
    profile = connect_pinterest(env.rt, env.world)
    board = env.world.pinterest.boards_of("demo")[0]
    env.world.pinterest.next("read_board").refuses("not_permitted")
    post = accept(
        env.rt,
        profile,
        body=BODY,
        media=make(env.rt, env.samples),
        options={"pinterest": {"boardId": board.id}},  # type: ignore[operator]
    )
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert [pin.board_id for pin in env.world.pinterest.pins] == [board.id]


@pytest.mark.parametrize("granted", [PINTEREST_SCOPES, (*PINTEREST_SCOPES, *PINTEREST_SECRET_SCOPES)])
def test_the_refusal_of_a_secret_board_names_the_missing_scopes(env: Environment, granted: tuple[str, ...]) -> None:
    profile = connect_pinterest(env.rt, env.world, scopes=granted)
    board = env.world.pinterest.add_board(env.world.pinterest.existing_account("demo"), "Plans", privacy=SECRET)
    options = {"pinterest": {"boardId": board.id}}
    post = accept(env.rt, profile, body=BODY, media=image(env.rt, env.samples), options=options)
    drain(env.rt, env.clock)
    if set(PINTEREST_SECRET_SCOPES) <= set(granted):
        assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
        return
    assert state_of(env.rt, post) is State.FAILED
    for part in (*PINTEREST_SECRET_SCOPES, "This connection lacks", "scopes in [providers.pinterest]", "connect"):
        assert part in message_of(env.rt, post)
