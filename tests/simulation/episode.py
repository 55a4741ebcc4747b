"""One episode: a fresh appliance and world, everything that can go wrong, then calm, then the judge."""

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from socialpub.core.clock import parse
from socialpub.core.errors import Unavailable
from socialpub.core.settings.sections import PublishingSection
from socialpub.db import appliance_state
from socialpub.providers.http import Http
from socialpub.publishing import engine, scheduling
from tests.providers.grid import PATIENCE
from tests.providers.stories_tiktok import small_chunks
from tests.simulation import drawn_faults, paths
from tests.simulation.drawn_faults import DrawnFaults
from tests.simulation.drawn_posts import DrawnPosts
from tests.simulation.drawn_world import draw_world
from tests.simulation.figures import Figures
from tests.simulation.judge import Untrue, Watch, judge_outcomes
from tests.simulation.lives import Lives
from tests.simulation.operator_acts import OperatorActs
from tests.simulation.times import DrawnClock
from tests.support.drain import snapshot
from tests.support.sandbox_http import FaultTransport, ProcessKilled

HOUR = 3600.0
WEEK = 7 * 24 * HOUR
MOST_UNTOLD_SECONDS = 23 * HOUR
"""How far our clock may be from that of a network which never tells its time: it is given a day."""
MOST_ROUNDS = 3000
CALM_SECONDS = 8 * 24 * HOUR


class Episode:
    """`http` leads to the transport that `reach` is given."""

    def __init__(self, seed: int, number: int, folder: Path, samples: Path, http: Http, figures: Figures) -> None:
        self.dice = dice = random.Random(f"{seed}:{number}")
        random.seed(dice.random())  # the jitter of the engine's own pauses
        self.figures, self.calm = figures, False
        self.clock = DrawnClock()
        self.world = draw_world(dice, self.clock)
        self.transport = FaultTransport(self.world)
        self.disk_rate = dice.choice([0.0, 0.0, 0.0, 0.01, 0.05])
        self.at_work = self._disk_failed = False
        self.lives = Lives(folder, self.clock, http, _draw_publishing(dice), self._ask_disk)
        self.world.tiktok.fetch = self.world.pinterest.fetch = self.lives.fetch
        self.faults = DrawnFaults(dice, self.world, figures.faults)
        self.posts = DrawnPosts(dice, self.world, samples, equal_rate=dice.choice([0.1, 0.25, 0.25, 0.8]))
        self.acts = OperatorActs(dice, self.world, self.posts, figures.acts)
        self.watch = Watch()
        self.waited_for_equals: set[str] = set()
        self.kill_rate = dice.choice([0.0, 0.0, 0.01, 0.05])
        self.act_rate = dice.choice([0.02, 0.1, 0.3])
        self.jump_rate = dice.choice([0.0, 0.01, 0.05])
        self.mid_call_rate = dice.choice([0.0, 0.0, 0.02])
        self.last_moment = dice.choice([1, 6, 40]) * HOUR

    def play(self) -> None:
        with small_chunks():
            try:
                self._play()
            finally:
                self.lives.close()

    def _play(self) -> None:
        self.posts.connect(self.lives.rt)
        for _ in range(self.dice.randrange(3, 14)):
            self.clock.forward(self.dice.choice([0.01, 1, 60]))
            self.posts.draw(self.lives.rt)
        self.transport.before_call, self.transport.after_call = self._before, self._after
        began = self.clock.passed_seconds
        while self.clock.passed_seconds - began < self.last_moment and self._someone_waits():
            self._work()
            self._trouble()
            self._pass_time()
        self._become_calm()
        began = self.clock.passed_seconds
        while self._someone_waits():
            if self.clock.passed_seconds - began > CALM_SECONDS:
                raise Untrue("it does not settle")
            self._work()
            self._pass_time()
        self._note_figures()
        judge_outcomes(self.lives.rt, self.world, self.posts.accepted)

    def _someone_waits(self) -> bool:
        return bool(self.lives.rt.reader.value("SELECT count(*) FROM delivery WHERE state IN ('queued', 'running')"))

    # --- what the appliance does -------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Everything that is due, whoever dies of it; at the end nothing lies silent."""
        for _ in range(MOST_ROUNDS):
            rt = self.lives.rt
            rt.db.look_at_clock()  # as the reconciler does every second
            due = scheduling.due_lanes(rt.reader, rt.stamp(), rt.process)
            before = snapshot(rt)
            self.at_work, self._disk_failed = True, False
            try:
                for delivery_id in due:
                    engine.work(rt, delivery_id)
            except ProcessKilled:
                self._die("killed in a call")
                continue
            except Unavailable:
                pass  # the next round tries again
            finally:
                self.at_work = False
            if self._disk_failed:
                self.clock.forward(1)
            elif not due or snapshot(rt) == before:
                self.watch.look(rt, self.clock.jumps)
                self.waited_for_equals |= paths.waiting_for_an_equal_one(rt)
                return
        raise Untrue("the queue does not come to rest")

    def _die(self, how: str) -> None:
        self.figures.acts[how] += 1
        self.lives.die(asked_to_stop=self.dice.random() < 0.3)

    def _ask_disk(self) -> None:
        """The disk takes nothing, now and then."""
        if self.at_work and not self.calm and self.dice.random() < self.disk_rate:
            self.figures.acts["a write failed"] += 1
            self._disk_failed = True
            raise Unavailable("The disk is full.")

    # --- what happens to a call --------------------------------------------------------------------------------------

    def _before(self, request: httpx2.Request) -> None:
        network = request.url.path.split("/")[1]
        endpoint = self.transport.called[-1]
        self.figures.calls[network] += 1
        if self.calm:
            self.clock.forward(0.1)
            return
        self.clock.forward(self.dice.choice([0.05, 0.3, 1, 4]))
        self._interrupt(request)
        kind = self.faults.draw(network, endpoint, self.clock.passed_seconds) if endpoint else None
        if kind == drawn_faults.UNREACHABLE:
            raise httpx2.ConnectError("no route to host", request=request)
        if kind in drawn_faults.TAKE_TIME:
            self.clock.forward(self.dice.choice([10, 60, 120]))

    def _after(self, request: httpx2.Request) -> None:
        if not self.calm:
            self._interrupt(request)

    def _interrupt(self, request: httpx2.Request) -> None:
        """The process dies, or somebody does something, while a call is on its way."""
        if self.dice.random() < self.kill_rate:
            raise ProcessKilled
        if self.dice.random() < self.mid_call_rate:
            if self.dice.random() < 0.3:
                self._jump()
            else:
                self.acts.draw(self.lives.rt, in_a_call=True)

    # --- what happens meanwhile --------------------------------------------------------------------------------------

    def _trouble(self) -> None:
        dice = self.dice
        if dice.random() < self.act_rate:
            try:
                self.acts.draw(self.lives.rt)
            except ProcessKilled:
                self._die("killed in a call")
        if dice.random() < self.act_rate / 3:
            self.faults.begin_spell(self.clock.passed_seconds)
        if dice.random() < self.kill_rate:
            self._die("killed between steps")
        if dice.random() < self.jump_rate:
            self._jump()
        if dice.random() < self.jump_rate / 3:
            self.clock.switch_off(dice.choice([20, 600, dice.uniform(0, 10 * HOUR)]))
            self._die("machine began anew")

    def _jump(self) -> None:
        """Somebody sets our clock."""
        size = self.dice.choice([20, 45, 600, HOUR, 12 * HOUR, WEEK])
        seconds = self.dice.choice([-1, 1]) * self.dice.uniform(size / 2, size)
        untold = (one for one in self.world.networks.values() if not one.sends_date)
        if all(abs(one.clock_skew_seconds - seconds) < MOST_UNTOLD_SECONDS for one in untold):
            self.clock.jump(seconds)
            self.figures.acts["clock set"] += 1

    def _pass_time(self) -> None:
        """Until what comes next; while all is not calm, sometimes less, sometimes more."""
        rt = self.lives.rt
        now = self.clock.now()
        probe_at = rt.reader.value("SELECT min(probe_at) FROM hold WHERE probe_at > ?", (rt.stamp(),))
        nexts = [at for at in (scheduling.next_run_at(rt.reader, rt.stamp()), probe_at) if at]
        ahead = min(((parse(at) - now).total_seconds() + 0.001 for at in nexts), default=300.0)
        if appliance_state.paused_at(rt.reader):
            ahead = max(ahead, self.dice.choice([60, 600, 6 * HOUR]))
        if not self.calm:
            ahead = self.dice.choice([ahead, ahead, ahead, ahead + self.dice.uniform(0, 100), min(ahead, 30.0)])
        self.clock.forward(ahead)

    def _become_calm(self) -> None:
        self.calm = True
        self.faults.end()
        for network in self.world.networks.values():
            network.calm()
        self.acts.resume(self.lives.rt)
        self.acts.connect_all(self.lives.rt)

    # --- what it was -------------------------------------------------------------------------------------------------

    def _note_figures(self) -> None:
        rt, figures = self.lives.rt, self.figures
        figures.episodes += 1
        figures.simulated_hours += self.clock.passed_seconds / HOUR
        states: list[Any] = rt.reader.all("SELECT provider, state FROM delivery")
        figures.outcomes.update(Counter(f"{row['provider']} {row['state']}" for row in states))
        figures.paths.update(paths.met(rt))
        figures.paths[paths.EQUAL_CONTENT] += len(self.waited_for_equals)


def _draw_publishing(dice: random.Random) -> PublishingSection:
    """What the operator configured."""
    gap = timedelta(seconds=dice.choice([0, 0, 0, 90, 900]))
    resend_after = dice.choice([timedelta(minutes=10)] * 5 + [None])
    return PublishingSection(give_up_after=PATIENCE, min_gap=gap, resend_after=resend_after)
