"""One episode: a fresh appliance and world, all that can go wrong, perhaps restores, then calm, then the judge."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from socialpub.providers.http import Http
from tests.providers.stories_tiktok import small_chunks
from tests.simulation import paths
from tests.simulation.draws import Draws
from tests.simulation.figures import Figures
from tests.simulation.judge import MADE, Untrue, judge_dates, judge_outcomes, judge_rows
from tests.simulation.restore_story import RestoreStory
from tests.simulation.stage import HOUR, Stage
from tests.support.select import select_all

CALM_SECONDS = 8 * 24 * HOUR


class Episode:
    """`http` leads to the transport of the stage."""

    def __init__(self, seed: int, number: int, folder: Path, samples: Path, http: Http, figures: Figures) -> None:
        draws = Draws(seed, number)
        self.dice = dice = draws.of("episode")
        random.seed(f"{seed}:{number}")  # the jitter of the engine's own pauses
        self.figures = figures
        restores = dice.random() < 0.6
        self.stage = Stage(draws, folder, samples, http, figures, restores=restores)
        self.story = RestoreStory(draws.of("restores"), self.stage, figures) if restores else None
        self.last_moment = dice.choice([1, 6, 40]) * HOUR

    def play(self) -> str:
        """Play the episode, and return its outcomes."""
        with small_chunks():
            try:
                self._play()
                return self.outcomes()
            finally:
                self.stage.close()

    def _play(self) -> None:
        stage = self.stage
        stage.here.posts.connect(stage.here.rt)
        for _ in range(self.dice.randrange(3, 14)):
            stage.clock.forward(self.dice.choice([0.01, 1, 60]))
            stage.here.posts.draw(stage.here.rt)
        if self.story is not None:
            self.story.play()
        began = stage.clock.passed_seconds
        while stage.clock.passed_seconds - began < self.last_moment and stage.someone_waits():
            stage.work()
            stage.trouble()
            stage.pass_time()
        stage.become_calm()
        began = stage.clock.passed_seconds
        while stage.someone_waits():
            if stage.clock.passed_seconds - began > CALM_SECONDS:
                raise Untrue("it does not settle")
            stage.work()
            stage.pass_time()
        self._note_figures()
        self.figures.limits += judge_outcomes(stage.world, stage.here.testimony(), stage.ended)
        judge_dates(stage.world, stage.clock)
        judge_rows(stage.here.rt, stage.world, is_restored=bool(stage.here.ledger.inherited))

    def outcomes(self) -> str:
        """Return as JSON what the networks have, and how the deliveries of the last installation ended.

        Two versions of the engine that play the same episode can be compared by this.
        """
        stage = self.stage
        said = stage.here.testimony().said
        posts = stage.here.ledger.accepted
        contents = dict.fromkeys((post.network, post.account_id, post.marker) for post in posts)
        users = {(one.network, one.account_id): one.username for one in stage.here.ledger.profiles}
        public = [
            [
                network,
                users[network, account_id],
                marker,
                sorted(MADE[network](stage.world, account_id, marker).values()),
            ]
            for network, account_id, marker in contents
        ]
        states = [[post.network, post.marker, said[post.id].state] for post in posts]
        return json.dumps({"public": sorted(public), "states": states})

    # --- what it was -------------------------------------------------------------------------------------------------

    def _note_figures(self) -> None:
        stage, figures = self.stage, self.figures
        rt, ledger = stage.here.rt, stage.here.ledger
        figures.episodes += 1
        figures.simulated_hours += stage.clock.passed_seconds / HOUR
        states: list[Any] = select_all(rt.db, "SELECT provider, state FROM delivery")
        figures.outcomes.update(Counter(f"{row['provider']} {row['state']}" for row in states))
        figures.paths.update(paths.met(rt))
        figures.paths[paths.EQUAL_CONTENT] += len(stage.waited_for_equals)
        if ledger.inherited:
            said = stage.here.testimony().said
            for post in ledger.accepted:
                whose = "its own" if ledger.is_ordinary(post) else "retried" if post.id != post.first else "inherited"
                found = said[post.id].stated.post_id in stage.here.public_before
                end = "found" if found else said[post.id].state.value
                figures.after_restores[f"{whose} {end}"] += 1
