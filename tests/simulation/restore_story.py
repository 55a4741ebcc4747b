"""Restores in an episode: backups at drawn moments, an original that continues, and the restored data.

The original may continue beside the restored appliance until the resume. Two appliances that publish side by side are
the owner's mistake and are left out. A resume before the lists show the original's last posts is left out also.
"""

import random
from pathlib import Path

from socialpub.core.settings.loader import Settings
from socialpub.db import upgrade, upgrade_backups
from socialpub.db.connection import open_file
from socialpub.ops.backup import create, restore
from socialpub.publishing.delivery import resume
from tests.simulation.drawn_faults import MAKE_PUBLIC
from tests.simulation.figures import Figures
from tests.simulation.installation import DrawnBackup, Installation, Way
from tests.simulation.stage import Stage
from tests.support.appliance import settings_in
from tests.support.select import select_all

HOUR = 3600.0
DAY = 24 * HOUR
COMMITS = MAKE_PUBLIC | {"upload_chunk"}
"""The calls that can make something public."""


class RestoreStory:
    def __init__(self, dice: random.Random, stage: Stage, figures: Figures) -> None:
        self._dice, self._stage, self._figures = dice, stage, figures
        self._backups: list[DrawnBackup] = []
        self._restores = 0

    def play(self) -> None:
        """Mostly one restore, sometimes several."""
        dice, stage = self._dice, self._stage
        for _ in range(dice.choice([1, 1, 2, 2, 3])):
            if dice.random() < 0.3:
                self._fail()
            stage.live(dice.choice([0, 60, HOUR, 12 * HOUR]))
            if not self._backups or dice.random() < 0.7:
                self._back_up()
            self._decide(dice.choice([0, 0, 1, 1, 3]))
            stage.live(dice.choice([0, 30, 600, 600, 2 * HOUR, DAY]))
            self._go_back()
            self._decide(dice.choice([0, 1, 2, 4]))
            if dice.random() < 0.15:
                stage.clock.switch_off(dice.choice([HOUR, 30 * HOUR, 3 * DAY]))
                stage.die("machine restarted")

    def _decide(self, times: int) -> None:
        """The owner is at work with the one that publishes."""
        for _ in range(times):
            self._decide_once(self._stage.here)
            self._stage.live(self._dice.choice([1, 60, 600, HOUR]))

    def _decide_once(self, owners: Installation) -> None:
        acts = owners.acts
        (acts.decide_about_subject if self._dice.random() < 0.5 else acts.decide)(owners.rt)

    def _fail(self) -> None:
        """A post is refused: what failed before a backup can be tried again in two installations."""
        world, here = self._stage.world, self._stage.here
        world.x.next("create_post").fails_with(403)
        world.pinterest.next("create_pin").fails_with(403)
        world.tiktok.next("creator_info").fails_with(403)
        here.posts.draw(here.rt)

    # --- backups -----------------------------------------------------------------------------------------------------

    def _back_up(self) -> None:
        dice, here = self._dice, self._stage.here
        self._draw_subject(here)
        here.rt.db.follow_clock()  # as the reconciler does every second
        if dice.random() < 0.3:
            self._upgrade(here)
        elif dice.random() < 0.5:
            self._note("backup between calls")
            self._write(here)
        else:

            def in_a_call() -> None:
                here.rt.db.follow_clock()
                self._write(here)

            self._stage.in_next_call = in_a_call
            self._stage.work()
            waited, self._stage.in_next_call = self._stage.in_next_call, None
            self._note("backup between calls" if waited else "backup in a call")
            if waited:
                waited()

    def _draw_subject(self, of: Installation) -> None:
        """A post that waits for its time, or that failed: a backup takes both along."""
        which = "p.status = 'scheduled'" if self._dice.random() < 0.6 else "d.state = 'failed'"
        rows = select_all(of.rt.db, f"SELECT p.id FROM post p JOIN delivery d ON d.post_id = p.id WHERE {which}")
        ids = {row["id"] for row in rows}
        found = [post.id for post in of.ledger.accepted if post.id in ids]
        of.ledger.subject = self._dice.choice(found) if found else ""

    def _write(self, of: Installation, commits: int | None = None) -> None:
        """`commits`: of the backup that a paused appliance came from, which has sent nothing since."""
        path = self._stage.folder / f"backup-{len(self._backups)}"
        create.write_backup(of.rt, path, with_secret=True)
        self._keep(path, Way.RESTORE, of, commits)

    def _keep(self, path: Path, way: Way, of: Installation, commits: int | None = None) -> None:
        commits = self._commits() if commits is None else commits
        ledger, watch = of.ledger.as_backed_up(), of.watch.as_backed_up()
        self._backups.append(DrawnBackup(path, way, ledger, watch, commits, self._stage.clock.set_seconds, of))

    def _upgrade(self, of: Installation) -> None:
        """A new version starts, and the database is copied before it is brought up to date."""
        self._note("backup before an upgrade")
        database = of.rt.settings.database_file

        def copy() -> None:
            with open_file(database, "rw") as connection:
                schema = max(upgrade.list_applied(connection))
                made = upgrade_backups.create(connection, database, of.rt.secrets, schema, self._stage.clock.now())
            # Under its own name, the next upgrade of the same shape would forget it.
            kept = made.path.rename(made.path.with_name(f"kept-{len(self._backups)}"))
            self._keep(kept, Way.ROLLBACK, of)

        of.lives.die(asked_to_stop=True, before_the_next=copy)

    def _commits(self) -> int:
        """A call that is on its way when a backup is made reaches its network afterwards."""
        on_its_way = self._stage.in_a_call
        return sum(endpoint in COMMITS for endpoint in self._stage.transport.called) - on_its_way

    # --- what comes back ---------------------------------------------------------------------------------------------

    def _go_back(self) -> None:
        dice, stage, former = self._dice, self._stage, self._stage.here
        chosen = self._choose(former)
        self._restores += 1
        if chosen.way is Way.ROLLBACK:
            back = self._roll_back(former, chosen)
        else:
            beside = dice.random() < 0.3
            if not beside:
                stage.end(in_a_call=dice.random() < 0.5)
                self._wait()
            back = self._restore(chosen)
            if beside:
                self._note("original beside the restored one")
        self._own_acts(back, former)
        if former in stage.living:
            stage.end(in_a_call=dice.random() < 0.5)
        stage.clock.forward(stage.longest_lag + 1)
        stage.take_over(back)
        if dice.random() < 0.15 and chosen.way is Way.RESTORE:
            self._note("backup of a paused one")
            self._write(back, chosen.commits)
        self._resume(back, chosen)

    def _choose(self, former: Installation) -> DrawnBackup:
        """Mostly the newest; an upgrade's copy only for the data folder that it was made in."""
        own = [
            one for one in self._backups
            if one.way is Way.RESTORE or one.of.rt.settings.data_dir == former.rt.settings.data_dir
        ]  # fmt: skip
        if not own:
            self._write(former)
            own = self._backups[-1:]
        chosen = own[-1] if self._dice.random() < 0.75 else self._dice.choice(own)
        self._note(f"{chosen.way}" if not self._restores else f"{chosen.way}, not the first")
        if chosen is not self._backups[-1]:
            self._note("of an earlier backup")
        return chosen

    def _restore(self, chosen: DrawnBackup) -> Installation:
        folder = self._stage.folder / f"restored-{self._restores}"
        folder.mkdir()
        restore.restore(chosen.path, Settings(data_dir=folder / "data"), self._stage.clock)
        return self._stage.open(f"restored {self._restores}", folder, chosen)

    def _roll_back(self, former: Installation, chosen: DrawnBackup) -> Installation:
        self._stage.end(in_a_call=self._dice.random() < 0.5)
        self._wait()
        folder = former.lives.folder
        assert restore.restore(chosen.path, settings_in(folder), self._stage.clock).rollback is not None
        return self._stage.open(f"rolled back {self._restores}", folder, chosen)

    def _wait(self) -> None:
        """Somebody notices, and finds the backup."""
        if self._dice.random() < 0.3:
            self._stage.clock.switch_off(self._dice.choice([0, 60, HOUR]))  # another machine
        self._stage.clock.forward(self._dice.choice([60, 600, 600, HOUR, 10 * HOUR, 30 * HOUR]))

    def _own_acts(self, back: Installation, former: Installation) -> None:
        """What its owner does to it while it is paused; meanwhile the original may still work."""
        dice, stage = self._dice, self._stage
        for _ in range(dice.choice([0, 1, 2, 3, 5, 8])):
            if dice.random() < 0.6:
                self._decide_once(back)
            seconds = dice.choice([1, 60, 60, 600, 600, HOUR, 6 * HOUR])
            if former in stage.living:
                stage.live(seconds)
            else:
                stage.clock.forward(seconds)
            stage.rest(back)
        if former not in stage.living and dice.random() < 0.15:
            stage.clock.forward(dice.choice([DAY, 3 * DAY]))

    def _resume(self, back: Installation, chosen: DrawnBackup) -> None:
        sent = self._commits() - chosen.commits
        nothing = not sent and self._dice.random() < 0.6
        self._note("resume --nothing-was-sent" if nothing else "resume")
        if self._dice.random() < 0.7:
            back.acts.connect_all(back.rt)
        back.acts.done = self._figures.acts
        back.clock_was_set = chosen.of.clock_was_set or self._stage.clock.set_seconds > chosen.set_seconds
        back.public_before = self._stage.public()
        back.rt.write(resume.resume, nothing_was_sent=nothing)

    def _note(self, what: str) -> None:
        self._figures.restores[what] += 1
