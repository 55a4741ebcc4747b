"""The worker's threads, seen from outside."""

import threading
import time

from socialpub.db.states import State
from socialpub.worker.tasks import NetworkQueue
from tests.support.appliance import accept, add_profile, state_of
from tests.support.queue_threads import DirectWakeup, answering


def test_every_wake_up_is_answered_however_they_meet(rt, network, clock):
    """No reconciler: only the wake-ups, sent after each acceptance, from many threads."""
    queue = NetworkQueue(rt, "x")
    rt.wakeup = DirectWakeup(rt, queue)
    profiles = [add_profile(rt, account_id=str(n)) for n in range(6)]
    made = []

    def accepts(profile):
        made.extend(accept(rt, profile, body=f"{profile} {number}") for number in range(15))

    with answering(queue, 4):
        workers = [threading.Thread(target=accepts, args=(profile,)) for profile in profiles]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        until = time.monotonic() + 20
        while time.monotonic() < until and not all(state_of(rt, post).final for post in made):
            time.sleep(0.05)
    stuck = [post for post in made if state_of(rt, post) is not State.PUBLISHED]
    assert stuck == []
    assert len(network.effects) == 90
