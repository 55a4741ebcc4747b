"""Steps that kill their worker, seen by several processes."""

import pytest

from socialpub.db.states import State
from socialpub.providers.base import Kind
from tests.support.appliance import accept, add_profile, open_appliance, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import ProcessKilled
from tests.support.scripted_network import ScriptedNetwork


def die(rt):
    rt.process._lock.release()
    rt.db.close()


class Deadly(ScriptedNetwork):
    def __init__(self):
        super().__init__(("upload", Kind.PREPARE), ("create_post", Kind.COMMIT))
        self.where = "upload"

    def run(self, step, job):
        if step == self.where and job.content.text == "poison":
            self.asked.append(step)
            raise ProcessKilled
        return super().run(step, job)

    def check(self, content, options, account):
        if self.where == "check" and content.text == "poison":
            self.asked.append("check")
            raise ProcessKilled
        return []


def lives(folder, network, clock, *, seen_by_another=False):
    deaths = 0
    for _ in range(12):
        rt = open_appliance(folder, clock, providers={"x": network})
        try:
            drain(rt, clock)
            return deaths, rt
        except ProcessKilled:
            deaths += 1
            die(rt)
            if seen_by_another:
                other = open_appliance(folder, clock, providers={"x": network})
                other.process.is_alive(rt.process.name)  # as a look at the lane, or at a key of idempotency, does
                other.close()
    raise AssertionError(f"it died {deaths} times")


def test_a_check_that_kills_its_worker_ends_its_delivery_too(tmp_path, clock):
    network = Deadly()
    network.where = "check"
    rt = open_appliance(tmp_path, clock, providers={"x": network})
    profile = add_profile(rt)
    post = accept(rt, profile, body="poison")
    rt.close()
    deaths, rt = lives(tmp_path, network, clock)
    assert (deaths, state_of(rt, post)) == (3, State.FAILED)
    rt.close()


def test_a_death_that_another_process_saw_first_is_counted(tmp_path, clock):
    network = Deadly()
    rt = open_appliance(tmp_path, clock, providers={"x": network})
    profile = add_profile(rt)
    post = accept(rt, profile, body="poison")
    rt.close()
    deaths, rt = lives(tmp_path, network, clock, seen_by_another=True)
    assert (deaths, state_of(rt, post)) == (3, State.FAILED)
    rt.close()


@pytest.mark.parametrize("named", ["../../outside", "/{folder}/outside", "../outside", "", "."])
def test_a_row_that_names_no_process_touches_no_file(tmp_path, clock, named):
    """Whoever can write rows names no file of the machine by one."""
    network = ScriptedNetwork(("create_post", Kind.COMMIT))
    rt = open_appliance(tmp_path, clock, providers={"x": network})
    owner = named.replace("{folder}", str(tmp_path))
    places = [rt.process.folder / f"{owner}.lock", tmp_path / "outside.lock"]
    for place in places:
        place.write_bytes(b"somebody's own")
    post = accept(rt, add_profile(rt))
    rt.db.write(lambda tx: tx.execute("UPDATE delivery SET state = 'running', owner = ?", (owner,)))
    drain(rt)
    assert state_of(rt, post) is State.PUBLISHED
    assert [place.read_bytes() for place in places] == [b"somebody's own"] * 2
    assert not list(tmp_path.rglob("*.died"))
    rt.close()
