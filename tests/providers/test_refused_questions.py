"""X refuses its timeline to the whole app: the post that wanted to look waits, and nobody else does."""

import pytest

from socialpub.db.states import State
from socialpub.db.tables import holds
from tests.providers.grid import Environment, assert_the_outcome_is_true, begin
from tests.providers.networks import story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain

NOT_ENROLLED = {
    "title": "Client Forbidden",
    "detail": "When authenticating requests to the Twitter API v2 endpoints, you must use keys and tokens from a "
    "Twitter developer App that is attached to a Project.",
    "reason": "client-not-enrolled",
    "type": "https://api.twitter.com/2/problems/client-forbidden",
}
CAPPED = {
    "title": "UsageCapExceeded",
    "detail": "Usage cap exceeded: Monthly product cap",
    "period": "Monthly",
    "scope": "Product",
    "type": "https://api.twitter.com/2/problems/usage-capped",
}


@pytest.mark.parametrize(("status", "body"), [(403, NOT_ENROLLED), (429, CAPPED)], ids=["not enrolled", "capped"])
def test_every_other_profile_and_post_goes_out_at_once(env: Environment, status: int, body: object) -> None:
    played, chosen = story_of("x", "text")
    profile = played.connect(env.rt, env.world)
    lost = begin(env, played, chosen, profile)
    env.world.x.next("create_post").times_out_after_effect()
    env.world.x.next("list_posts").fails_with(status, body).forever()
    drain(env.rt)
    env.clock.forward(6)
    drain(env.rt)
    assert [row.scope for row in holds.list_all(env.rt.reader)] == [holds.QUESTIONS]
    others = [played.connect(env.rt, env.world, username=f"other{number}") for number in range(3)]
    for hour in range(12):
        env.clock.forward(3600)
        drain(env.rt)
        said = [begin(env, played, chosen, one, body=f"{hour} by {one}") for one in (*others, profile)]
        drain(env.rt)
        assert {state_of(env.rt, post) for post in said} == {State.PUBLISHED}
    assert state_of(env.rt, lost) is State.QUEUED
    env.world.x.calm()
    drain(env.rt, env.clock)
    assert state_of(env.rt, lost) is State.PUBLISHED, message_of(env.rt, lost)
    assert played.made(env.world) == [env.rt.reader.value("SELECT min(provider_post_id) FROM delivery")]
    assert_the_outcome_is_true(env.rt, env.world, played, lost)
