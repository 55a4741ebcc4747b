"""A wait that no network can have meant, named when idle tokens are renewed."""

from socialpub.accounts import token_upkeep
from socialpub.providers.errors import Throttled
from socialpub.runtime import Runtime
from tests.support.appliance import add_profile
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork

DAY = 86400.0


def test_a_wait_of_decades_does_not_end_the_renewal_of_idle_tokens(
    rt: Runtime, network: ScriptedNetwork, clock: HandClock
) -> None:
    add_profile(rt)
    clock.forward(40 * DAY)
    network.oauth.answers = [Throttled("slow down", retry_after_seconds=1.7e9)]  # a moment in seconds, not a span
    token_upkeep.keep_alive(rt, ())
    assert network.oauth.refreshes == ["refresh-0"]
    clock.forward(3 * DAY)
    token_upkeep.keep_alive(rt, ())
    assert network.oauth.refreshes == ["refresh-0", "refresh-0"]
