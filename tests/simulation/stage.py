"""Where an episode plays: one world, the installation that works, and everything that happens to both."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx2

from socialpub.core.clock import parse
from socialpub.core.errors import Unavailable
from socialpub.core.settings.schema import PublishingSection
from socialpub.db import appliance_state
from socialpub.db.queries import profile_queue
from socialpub.providers.http import Http
from socialpub.publishing.delivery import engine
from tests.providers.grid import PATIENCE
from tests.simulation import drawn_faults, paths
from tests.simulation.drawn_faults import DrawnFaults
from tests.simulation.drawn_posts import DrawnPosts
from tests.simulation.drawn_world import draw_world
from tests.simulation.draws import Draws
from tests.simulation.figures import Figures
from tests.simulation.installation import DrawnBackup, Installation
from tests.simulation.judge import Testimony, Untrue, Watch, judge_outcomes
from tests.simulation.lives import Lives
from tests.simulation.operator_acts import OperatorActs
from tests.simulation.times import DrawnClock
from tests.support.drain import snapshot
from tests.support.sandbox_http import FaultTransport, ProcessKilled
from tests.support.select import select_value

HOUR = 3600.0
WEEK = 7 * 24 * HOUR
MOST_UNTOLD_SECONDS = 23 * HOUR
"""The maximum difference to the clock of a network without dates. The appliance assumes a day."""
MOST_ROUNDS = 3000


class Stage:
    """`http` leads to `transport`. `restores`: whether installations come back from backups here."""

    def __init__(
        self, draws: Draws, folder: Path, samples: Path, http: Http, figures: Figures, *, restores: bool
    ) -> None:
        self._draws, self.folder, self.figures = draws, folder, figures
        dice = draws.of("stage")
        self._machine, self._disk = draws.of("machine"), draws.of("disk")
        self.restores, self.calm = restores, False
        self.clock = DrawnClock()
        self.world = draw_world(draws.of("world"), self.clock, in_time=restores)
        self._calls = {network: draws.of(f"calls of {network}") for network in self.world.networks}
        self.transport = FaultTransport(self.world)
        self.disk_rate = dice.choice([0.0, 0.0, 0.0, 0.01, 0.05])
        self.at_work = self._disk_failed = self.in_a_call = False
        self.in_next_call: Callable[[], None] | None = None
        self.faults = DrawnFaults(draws, self.world, figures.faults)
        self.waited_for_equals: set[str] = set()
        self.kill_rate = dice.choice([0.0, 0.0, 0.01, 0.05])
        self.act_rate = dice.choice([0.02, 0.1, 0.3])
        self.jump_rate = dice.choice([0.0, 0.01, 0.05])
        self.mid_call_rate = dice.choice([0.0, 0.0, 0.02])
        self._ending = False
        self._http, self._publishing = http, _draw_publishing(dice)
        owner = draws.of("owner of the original")
        posts = DrawnPosts(owner, self.world, samples, equal_rate=dice.choice([0.1, 0.25, 0.25, 0.8]))
        if restores:
            posts.scheduled_rate, posts.most_hours = 0.5, 120.0
        self.ended: list[Testimony] = []
        """What the installations said that have ended, in their order."""
        self.living: list[Installation] = []
        (folder / "original").mkdir()
        self.here = self._installation("original", folder / "original", posts, Watch())
        """The one that works."""
        self.world.tiktok.fetch = lambda url: self.here.lives.fetch(url)
        self.transport.before_call, self.transport.after_call = self._before, self._after

    # --- installations -----------------------------------------------------------------------------------------------

    def open(self, name: str, folder: Path, backup: DrawnBackup) -> Installation:
        """The appliance that has come back in this folder."""
        of = backup.of.posts
        # What equals a post of the original is what a restored appliance could take for its own.
        posts = replace(
            of,
            dice=self._draws.of(f"owner of {name}"),
            ledger=backup.ledger.as_backed_up(),
            equal_rate=max(of.equal_rate, 0.5),
        )
        watch = backup.watch.as_backed_up()
        watch.off += timedelta(seconds=self.clock.set_seconds - backup.set_seconds)
        return self._installation(name, folder, posts, watch)

    def _installation(self, name: str, folder: Path, posts: DrawnPosts, watch: Watch) -> Installation:
        lives = Lives(folder, self.clock, self._http, self._publishing, self._ask_disk)
        done = self.figures.acts if not self.ended and not self.living else self.figures.while_paused
        acts = OperatorActs(posts.dice, self.world, posts, done)
        one = Installation(name, lives, posts, acts, watch)
        self.living.append(one)
        return one

    def take_over(self, installation: Installation) -> None:
        """From now on this one works."""
        self.here = installation

    def end(self, *, in_a_call: bool) -> None:
        """The machine of the one that works is lost, perhaps while a call is on its way."""
        if in_a_call:
            self._ending = True
            self.work()
            self._ending = False
        said = self.here.testimony()
        self.figures.limits += judge_outcomes(self.world, said, self.ended, settled=False)
        self.ended.append(said)
        self.living.remove(self.here)
        self.here.lives.end()

    def close(self) -> None:
        for installation in self.living:
            installation.lives.end()

    def public(self) -> frozenset[str]:
        """The ids of what everybody can see and any list shows."""
        ids = [post.id for post in (*self.world.x.posts, *self.world.pinterest.pins)]
        return frozenset([*ids, *(post.uri for post in self.world.bluesky.posts)])

    @property
    def longest_lag(self) -> float:
        return max(self.world.x.list_lag_seconds, self.world.pinterest.list_lag_seconds)

    # --- what the appliance does -------------------------------------------------------------------------------------

    def someone_waits(self) -> bool:
        reader = self.here.rt.db
        return bool(select_value(reader, "SELECT count(*) FROM delivery WHERE state IN ('queued', 'running')"))

    def live(self, seconds: float) -> None:
        """Time passes, with everything that it brings, whether or not something waits."""
        until = self.clock.passed_seconds + seconds
        while (left := until - self.clock.passed_seconds) > 0:
            self.work()
            self.trouble()
            self.pass_time(left)

    def rest(self, paused: Installation) -> None:
        """A worker of an appliance that was not resumed yet: it calls no network."""
        before, here = len(self.transport.called), self.here
        self.here = paused
        self.work()
        self.here = here
        if self.transport.called[before:]:
            raise Untrue(f"paused, and it calls {self.transport.called[before:]}")

    def work(self) -> None:
        """Run everything that is due, also through deaths, until nothing is due."""
        for _ in range(MOST_ROUNDS):
            rt = self.here.rt
            rt.db.follow_clock()  # as the reconciler does every second
            due = engine.list_due_queues(rt)
            before = snapshot(rt)
            self.at_work, self._disk_failed = True, False
            try:
                for _, profile_id in due:
                    engine.work(rt, profile_id)
            except ProcessKilled:
                if self._ending:
                    return
                self.die("killed in a call")
                continue
            except Unavailable:
                pass  # the next round tries again
            finally:
                self.at_work = self.in_a_call = False
            if self._disk_failed:
                self.clock.forward(1)
            elif not due or snapshot(rt) == before:
                self.here.watch.look(rt, self.clock.jumps)
                self.waited_for_equals |= paths.waiting_for_an_equal_one(rt)
                return
        raise Untrue("the queue does not come to rest")

    def die(self, how: str) -> None:
        self.figures.acts[how] += 1
        self.here.lives.die(asked_to_stop=self._machine.random() < 0.3)

    def _ask_disk(self) -> None:
        """Let a write fail sometimes."""
        if self.at_work and not self.calm and self._disk.random() < self.disk_rate:
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
        dice = self._calls[network]
        self.clock.forward(dice.choice([0.05, 0.3, 1, 4]))
        self.in_a_call = True
        self._interrupt(dice)
        kind = self.faults.draw(network, endpoint, self.clock.passed_seconds) if endpoint else None
        if kind == drawn_faults.UNREACHABLE:
            raise httpx2.ConnectError("no route to host", request=request)
        if kind in drawn_faults.TAKE_TIME:
            self.clock.forward(dice.choice([10, 60, 120]))

    def _after(self, request: httpx2.Request) -> None:
        if not self.calm:
            self._interrupt(self._calls[request.url.path.split("/")[1]])
            self.in_a_call = False

    def _interrupt(self, dice: random.Random) -> None:
        """The process dies, or somebody does something, while a call is on its way."""
        if self.in_next_call is not None and dice.random() < 0.5:
            act, self.in_next_call = self.in_next_call, None
            act()
        if dice.random() < (0.3 if self._ending else self.kill_rate):
            raise ProcessKilled
        if dice.random() < self.mid_call_rate:
            if dice.random() < 0.3:
                self.jump()
            else:
                self.here.acts.draw(self.here.rt, in_a_call=True)

    # --- what happens meanwhile --------------------------------------------------------------------------------------

    def trouble(self) -> None:
        dice = self._machine
        if dice.random() < self.act_rate:
            try:
                self.here.acts.draw(self.here.rt)
            except ProcessKilled:
                self.die("killed in a call")
        if dice.random() < self.act_rate / 3:
            self.faults.begin_spell(self.clock.passed_seconds)
        if dice.random() < self.kill_rate:
            self.die("killed between steps")
        if dice.random() < self.jump_rate:
            self.jump()
        elif dice.random() < self.jump_rate / 3:  # never both at once: the reconciler looks at the clock every second
            self.clock.switch_off(dice.choice([20, 600, dice.uniform(0, 10 * HOUR)]))
            self.die("machine restarted")

    def jump(self) -> None:
        """Somebody sets our clock."""
        size = self._machine.choice([20, 45, 600, HOUR, 12 * HOUR, WEEK])
        seconds = self._machine.choice([-1, 1]) * self._machine.uniform(size / 2, size)
        untold = (one for one in self.world.networks.values() if self.restores or not one.sends_date)
        if all(abs(one.clock_skew_seconds - seconds) < MOST_UNTOLD_SECONDS for one in untold):
            self.clock.jump(seconds)
            self.figures.acts["clock set"] += 1

    def pass_time(self, most: float | None = None) -> None:
        """Until what comes next; while all is not calm, sometimes less, sometimes more."""
        rt = self.here.rt
        now = self.clock.now()
        next_at = profile_queue.next_run_at(rt.db, rt.stamp(), rt.settings.publishing.max_lateness)
        idle = 300.0 if most is None else HOUR
        ahead = (parse(next_at) - now).total_seconds() + 0.001 if next_at else idle
        if appliance_state.paused_at(rt.db):
            ahead = max(ahead, self._machine.choice([60, 600, 6 * HOUR]))
        if not self.calm:
            late = ahead + self._machine.uniform(0, 100)
            ahead = self._machine.choice([ahead, ahead, ahead, late, min(ahead, 30.0)])
        self.clock.forward(ahead if most is None else min(ahead, most))

    def become_calm(self) -> None:
        self.calm = True
        self.faults.end()
        for network in self.world.networks.values():
            network.calm()
        self.here.acts.resume(self.here.rt)
        self.here.acts.connect_all(self.here.rt)


def _draw_publishing(dice: random.Random) -> PublishingSection:
    """What the operator configured."""
    gap = timedelta(seconds=dice.choice([0, 0, 0, 90, 900]))
    resend_after = dice.choice([timedelta(minutes=10)] * 5 + [None])
    return PublishingSection(give_up_after=PATIENCE, min_gap=gap, resend_after=resend_after)
