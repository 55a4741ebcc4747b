"""One run: connect, load, interrupt, calm down, and reach the verdict."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx2

from tests.chaos.accounts import ChaosAccounts
from tests.chaos.callers import ChaosCaller
from tests.chaos.interruptions import Interruptions
from tests.chaos.promises import Promises
from tests.chaos.samples import ChaosSamples
from tests.chaos.verdict import Verdict
from tests.e2e.installation import Installation

FAULTS = 0.08
"""The share of calls to a network that meets a fault."""
LAG_SECONDS = 30
"""How late the accounts' own lists show a post: the first looks after an unknown outcome do not find it."""
FATES = {"tiktok": ("spam_risk_text", "internal", "file_format_check_failed"), "pinterest": ("fails",)}
OPEN_AT_MOST = 250
"""Callers wait beyond that, so that posts are on their way during the whole run."""
SETTLED_WITHIN_SECONDS = 300.0
UNCHANGED_SECONDS = 20.0
"""Then the open deliveries wait for an hour or two, for example for an unknown upload. The clock skips these waits."""


@dataclass
class ChaosRun:
    """`deliveries` many, or a few more: the last posts that callers were making count as well, and it goes on until it
    has `met_enough`."""

    installation: Installation
    seed: int
    deliveries: int
    callers: int = 8
    more_accounts: bool = True
    every_seconds: tuple[float, float] = (1.0, 4.0)
    met_enough: Callable[["ChaosRun"], bool] = lambda _: True
    say: Callable[[str], None] = lambda _: None
    promises: Promises = field(default_factory=Promises)
    interruptions: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def play(self) -> Verdict:
        """With the sandbox running, and nothing else."""
        dice = random.Random(self.seed)
        accounts = ChaosAccounts(self.installation)
        accounts.connect(more=self.more_accounts)
        interruptions = Interruptions(self.installation, dice, self.every_seconds)
        self.interruptions = interruptions.done
        samples = ChaosSamples(self.installation.folder, self.installation.fresh_caller())
        self.begin_faults(FAULTS)
        began = time.monotonic()
        callers = [
            ChaosCaller(self.installation, accounts, samples, self.promises, number, self.seed, self._more)
            for number in range(self.callers)
        ]
        interruptions.start()
        for caller in callers:
            caller.start()
        self._accompany(callers, interruptions, accounts, dice)
        self._settle(interruptions, accounts)
        self.seconds = time.monotonic() - began
        verdict = Verdict(self.installation, self.installation.fresh_caller(), accounts.by_profile(), self.promises)
        verdict.reach()
        verdict.outcomes["accounts reconnected"] = accounts.reconnected
        return verdict

    def begin_faults(self, rate: float) -> None:
        for network in self.installation.networks:
            self.installation.control(network).tell("chaos", seed=self.seed, rate=rate)
        self.installation.x.tell("settings", list_lag_seconds=LAG_SECONDS)
        self.installation.pinterest.tell("settings", list_lag_seconds=LAG_SECONDS)

    def _more(self) -> bool:
        """Asked by a caller before its next post; it waits here while enough are on their way."""
        while self._open > OPEN_AT_MOST and not self._over:
            time.sleep(0.05)
        return not self._over and (self.promises.deliveries() < self.deliveries or not self.met_enough(self))

    _open: int = 0
    _over: bool = False

    def _accompany(
        self,
        callers: list[ChaosCaller],
        interruptions: Interruptions,
        accounts: ChaosAccounts,
        dice: random.Random,
    ) -> None:
        """Until the callers have made their posts; what one of them could not understand ends the run."""
        beat = 0
        try:
            while any(caller.is_alive() for caller in callers):
                time.sleep(0.3)
                beat += 1
                self._open = self._count_open()
                if beat % 10 == 0:
                    network = dice.choice(list(FATES))
                    self.installation.control(network).tell("fates", fate=dice.choice(FATES[network]))
                if beat % 60 == 0:
                    accounts.reconnect_refused()
                    self.say(f"{self.promises.deliveries()} deliveries accepted, {self._open} posts open")
                for thread in (*callers, interruptions):
                    if thread.error is not None:
                        raise thread.error
        finally:
            self._over = True

    def _count_open(self) -> int:
        try:
            answer = self.installation.caller().ask("GET", "/api/v1/posts?status=pending&perPage=1")
            return int(answer.json()["pagination"]["total"]) if answer.status_code == 200 else self._open
        except httpx2.TransportError:
            return self._open  # killed just then

    def _settle(self, interruptions: Interruptions, accounts: ChaosAccounts) -> None:
        """Stop the faults and the kills, and wait until every delivery has ended."""
        self.say(f"{self.promises.deliveries()} deliveries accepted; no more faults, no more kills")
        interruptions.end()
        for network in self.installation.networks:
            self.installation.control(network).calm()
        self.wait_until_settled(accounts)

    def wait_until_settled(self, accounts: ChaosAccounts) -> None:
        """What is not settled by then is left to the verdict."""
        give_up_at = time.monotonic() + SETTLED_WITHIN_SECONDS
        caller = self.installation.fresh_caller()
        before, changed_at = [0], time.monotonic()
        while time.monotonic() < give_up_at:
            accounts.reconnect_refused()
            counted = [
                caller.ask("GET", f"/api/v1/posts?status={status}&perPage=1").json()["pagination"]["total"]
                for status in ("pending", "scheduled")
            ]
            if not any(counted):
                return
            self._open = sum(counted)
            if counted != before:
                before, changed_at = counted, time.monotonic()
            elif time.monotonic() - changed_at > UNCHANGED_SECONDS:
                self.installation.forward(3600)
                changed_at = time.monotonic()
            time.sleep(0.5)
