"""The end of a TikTok post: in the inbox, or with an address."""

from socialpub.db.states import State
from socialpub.publishing.delivery import backfill
from tests.providers.grid import Environment, assert_the_outcome_is_true, begin
from tests.providers.networks import story_of
from tests.support.appliance import state_of
from tests.support.drain import drain


def test_a_direct_post_in_the_inbox_is_settled_with_a_note(env: Environment) -> None:
    played, chosen = story_of("tiktok", "video")
    env.world.tiktok.fate = "inbox"
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    told = env.rt.reader.all("SELECT message FROM attempt WHERE outcome = 'published'")
    assert any("in the TikTok inbox" in row["message"] for row in told)

    (task,) = env.world.tiktok.tasks.all.values()
    env.world.tiktok.tasks.finish_draft(task.publish_id)
    env.clock.forward(3600)
    assert backfill.fill_in_missing(env.rt) == 1
    assert_the_outcome_is_true(env.rt, env.world, played, post)
