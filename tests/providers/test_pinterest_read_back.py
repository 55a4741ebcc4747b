"""Read-backs of a board with changed texts, dates and sections."""

from socialpub.db.states import State
from tests.providers.grid import begin
from tests.providers.networks import story_of
from tests.support.appliance import state_of
from tests.support.drain import drain


def test_a_pin_without_texts_is_unassigned_while_two_deliveries_may_have_created_it(env):
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
