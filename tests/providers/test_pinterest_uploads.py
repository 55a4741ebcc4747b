"""A film's way to Pinterest's storage: whatever breaks or dies, a form serves one upload."""

import httpx2
import pytest

from socialpub.db.states import State
from tests.providers.grid import Environment, assert_the_outcome_is_true, begin, grid_appliance
from tests.providers.networks import story_of
from tests.support.appliance import message_of, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import ProcessKilled


def keys_of_uploads(env: Environment) -> list[str]:
    """Which forms were sent to the storage, each as often as it was."""
    return [media.id for media in env.world.pinterest.media.values() for _ in range(media.uploads)]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_that_dies_in_the_middle_of_an_upload_leaves_a_form_that_nobody_uses_again(
    env: Environment, moment: str
) -> None:
    env.world.pinterest.forms_good_once = True
    network, chosen = story_of("pinterest", "film")
    post = begin(env, network, chosen, network.connect(env.rt, env.world))

    def dies(request: httpx2.Request) -> None:
        if env.transport.endpoint_of(request) == "upload_media":
            env.transport.before_call = env.transport.after_call = None
            raise ProcessKilled

    setattr(env.transport, "before_call" if moment == "before" else "after_call", dies)
    with pytest.raises(ProcessKilled):
        drain(env.rt, env.clock)
    env.rt.process.close()
    successor = grid_appliance(env.folder, env.clock, env.rt.http)
    try:
        drain(successor, env.clock)
        assert state_of(successor, post) is State.PUBLISHED, message_of(successor, post)
        assert_the_outcome_is_true(successor, env.world, network, post)
    finally:
        successor.db.close()
        successor.process.close()
    assert len(set(keys_of_uploads(env))) == len(keys_of_uploads(env))
    assert env.world.pinterest.statuses("upload_media") == ([204, 204] if moment == "after" else [204])
    assert env.transport.called.count("register_media") == 2


@pytest.mark.parametrize(
    "fault", ["times_out_after_effect", "times_out_before_effect", "drops_connection_after_effect"]
)
def test_an_upload_that_failed_goes_on_with_a_new_form(env: Environment, fault: str) -> None:
    env.world.pinterest.forms_good_once = True
    network, chosen = story_of("pinterest", "film")
    post = begin(env, network, chosen, network.connect(env.rt, env.world))
    getattr(env.world.pinterest.next("upload_media"), fault)()
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert env.transport.called.count("register_media") == env.transport.called.count("upload_media") == 2
