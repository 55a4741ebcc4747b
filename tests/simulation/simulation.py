"""Episodes one after the other, with one client for all of them."""

import faulthandler
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import httpx2

from tests.simulation.episode import Episode
from tests.simulation.figures import Figures
from tests.simulation.fitted import FittedOnce
from tests.support.sandbox_http import FaultTransport, http_over

STUCK_SECONDS = 120.0
"""A longer episode hangs."""


class CurrentTransport(httpx2.AsyncBaseTransport):
    """Leads to the sandbox of the episode that is played."""

    transport: FaultTransport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self.transport.handle_async_request(request)


class Simulation:
    """Making a client, and media, takes longer than an episode: they are kept."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed, self.figures = folder, seed, Figures()
        self.samples = folder / "samples"
        self.samples.mkdir()
        self._fitted = FittedOnce(self.samples)
        self._current = CurrentTransport()
        self._http = http_over(self._current)

    def play(self, number: int) -> str:
        """Play one episode and return its outcomes. What it shows to be wrong is raised, with how to repeat it."""
        folder = self.folder / "episode"
        folder.mkdir()
        try:
            episode = Episode(self.seed, number, folder, self.samples, self._http, self.figures)
            self._current.transport = episode.stage.transport
            # No episode survives the machine, and `os.sync` waits for everything that others write.
            with self._fitted.in_use(), mock.patch.object(os, "sync"):
                return episode.play()
        except Exception as error:
            error.add_note(f"episode {number} of seed {self.seed}; repeat it: {repeat(self.seed, number)}")
            raise
        finally:
            shutil.rmtree(folder)

    def play_for(
        self,
        seconds: float,
        first: int,
        failed: Callable[[int, Exception], None],
        ended: Callable[[int, str], None] = lambda number, outcomes: None,
    ) -> None:
        """Play episodes from this number on for some seconds. Report every failure and continue."""
        until, number = time.monotonic() + seconds, first
        while time.monotonic() < until:
            faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
            try:
                ended(number, self.play(number))
            except Exception as error:
                failed(number, error)
            number += 1
        faulthandler.cancel_dump_traceback_later()

    def close(self) -> None:
        self._http.close()


def memory_folder() -> str | None:
    """A folder in memory, where there is one: no episode needs its disk afterwards."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def repeat(seed: int, number: int) -> str:
    return f"make simulate SEED={seed} EPISODE={number}"
