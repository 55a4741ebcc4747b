"""Read-backs of a board with changed texts, dates and sections."""

from typing import Any

import pytest

from socialpub.db.states import State
from tests.providers.grid import Environment, begin
from tests.providers.networks import story_of
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain

BODY = "Tea & <biscuits> \u200bat 5 > 4, e\u0301clairs \U0001f389"
OPTIONS = {"title": "Poster & \u200dprint", "link": "https://M\u00fcller.example:443/caf\u00e9/?x=1&y=2"}


def pinned_and_lost(env: Environment, story: str = "image", **options: Any) -> str:
    network, chosen = story_of("pinterest", story)
    profile = network.connect(env.rt, env.world)
    given = {"pinterest": {**network.options(env.world, "demo"), **OPTIONS, **options}}
    post = accept(env.rt, profile, body=BODY, media=chosen.make(env.rt, env.samples), options=given)
    env.world.pinterest.next("create_pin").times_out_after_effect()
    drain(env.rt, env.clock)
    return post


def assert_found(env: Environment, post: str) -> None:
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    (pin,) = env.world.pinterest.pins
    assert env.rt.reader.value("SELECT provider_post_id FROM delivery") == pin.id


@pytest.mark.parametrize("story", ["image", "carousel", "video"])
@pytest.mark.parametrize(
    "changed",
    [
        {"escapes_html": True},
        {"trims_texts": True},
        {"composes_texts": True},
        {"escapes_html": True, "trims_texts": True, "composes_texts": True},
        {"null_texts": ["alt_text"]},
        {"null_texts": ["title", "description", "alt_text", "link"]},
        {"dates_pins": False},
    ],
)
def test_a_pin_is_found_after_every_change_that_pinterest_makes(
    env: Environment, story: str, changed: dict[str, Any]
) -> None:
    for name, value in changed.items():
        setattr(env.world.pinterest, name, value)
    assert_found(env, pinned_and_lost(env, story))


def test_a_pin_in_a_section_is_found_in_its_board(env: Environment) -> None:
    network, _ = story_of("pinterest", "image")
    board = str(network.options(env.world, "demo")["boardId"])
    post = pinned_and_lost(env, boardSectionId=env.world.pinterest.add_section(board, "Blue"))
    assert_found(env, post)


@pytest.mark.parametrize("seconds", [-7200, 0, 7200])
def test_an_older_pin_with_the_same_words_is_not_taken_for_ours(env: Environment, seconds: float) -> None:
    env.world.pinterest.clock_skew_seconds = seconds
    network, chosen = story_of("pinterest", "image")
    profile = network.connect(env.rt, env.world)
    first = begin(env, network, chosen, profile)
    drain(env.rt, env.clock)
    assert state_of(env.rt, first) is State.PUBLISHED
    env.rt.write(lambda rt, tx: tx.execute_sql("UPDATE delivery SET provider_post_id = NULL"))
    env.clock.forward(600)
    second = begin(env, network, chosen, profile)
    env.world.pinterest.next("create_pin").times_out_before_effect()
    drain(env.rt, env.clock)
    assert state_of(env.rt, second) is State.PUBLISHED, message_of(env.rt, second)
    assert len(env.world.pinterest.pins) == 2


def test_a_pin_of_another_board_member_is_never_ours(env: Environment) -> None:
    network, chosen = story_of("pinterest", "image")
    board = str(network.options(env.world, "demo")["boardId"])
    env.world.pinterest.boards[board].collaborators = (env.world.pinterest.existing_account("studio").id,)
    theirs = network.connect(env.rt, env.world, "studio")
    others = accept(
        env.rt, theirs, body=BODY, media=chosen.make(env.rt, env.samples), options={"pinterest": {"boardId": board}}
    )
    mine = network.connect(env.rt, env.world)
    post = accept(
        env.rt, mine, body=BODY, media=chosen.make(env.rt, env.samples), options={"pinterest": {"boardId": board}}
    )
    env.world.pinterest.next("create_pin").skipping(1).times_out_before_effect()
    drain(env.rt, env.clock)
    for one in (post, others):
        known = env.rt.reader.value("SELECT provider_post_id FROM delivery WHERE post_id = ?", (one,))
        account = env.rt.reader.value("SELECT account_id FROM delivery WHERE post_id = ?", (one,))
        assert known is None or env.world.pinterest.find_pin(known).account_id == account  # type: ignore[union-attr]


def test_a_pin_without_texts_is_unassigned_while_two_deliveries_may_have_created_it(
    env: Environment,
) -> None:
    env.world.pinterest.null_texts = ["description"]
    network, chosen = story_of("pinterest", "image")
    profile = network.connect(env.rt, env.world)
    env.world.pinterest.next("create_pin").times_out_after_effect()
    env.world.pinterest.next("create_pin").times_out_before_effect()
    posts = [begin(env, network, chosen, profile, body=body) for body in ("One", "Two")]
    drain(env.rt)
    env.world.pinterest.next("list_pins").fails_with(503)
    drain(env.rt, env.clock)
    descriptions = [pin.description for pin in env.world.pinterest.pins]
    assert len(descriptions) == len(set(descriptions)), "never twice"
    for post, body in zip(posts, ("One", "Two"), strict=True):
        if state_of(env.rt, post) is State.PUBLISHED:
            assert body in descriptions
        assert state_of(env.rt, post) is not State.FAILED
