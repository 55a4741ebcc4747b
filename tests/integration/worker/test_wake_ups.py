"""The worker's threads, seen from outside."""

import threading
import time
from functools import partial

from socialpub.db.states import State
from socialpub.db.tables import delivery_rows
from socialpub.publishing.delivery import engine
from socialpub.runtime import Runtime
from socialpub.worker.process import NetworkThreads
from tests.support.appliance import accept, add_profile, state_of
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork


def test_every_wake_up_is_answered_however_they_meet(rt: Runtime, network: ScriptedNetwork, clock: HandClock) -> None:
    """No reconciler: only the wake-ups, rung after each acceptance, from many threads."""
    threads = NetworkThreads("x", 4, partial(engine.work, rt))

    class Bell:
        def ring(self, delivery_id: str) -> None:
            _, profile_id = delivery_rows.network_and_profile_of(rt.reader, delivery_id) or ("", "")
            threads.put(profile_id, delivery_id)

    rt.wakeup = Bell()
    profiles = [add_profile(rt, account_id=str(n)) for n in range(6)]
    made: list[str] = []

    def accepts(profile: str) -> None:
        made.extend(accept(rt, profile, body=f"{profile} {number}") for number in range(15))

    workers = [threading.Thread(target=accepts, args=(profile,)) for profile in profiles]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    until = time.monotonic() + 20
    while time.monotonic() < until and not all(state_of(rt, post).final for post in made):
        time.sleep(0.05)
    stuck = [post for post in made if state_of(rt, post) is not State.PUBLISHED]
    threads.stop()
    threads.join(time.monotonic() + 5)
    assert stuck == []
    assert len(network.effects) == 90
