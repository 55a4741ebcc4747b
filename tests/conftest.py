"""What every test may ask for: a clock that moves by hand, and the sandbox with a way to break the connection to it."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers as generation

from socialpub.core import commands
from socialpub.core.secrets import redaction
from socialpub.providers.bluesky import record
from socialpub.providers.http import Http
from socialpub.sandbox import World
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import FaultTransport, http_over, sandbox

# The same few examples every time, and none fails because the machine is busy. `make endurance` loads the other
# profile. It draws more examples, and fresh ones. Its seed repeats them.
settings.register_profile("tests", max_examples=25, deadline=None, derandomize=True, database=None)
settings.register_profile("endurance", deadline=None, derandomize=False, database=None, print_blob=True)
settings.load_profile("tests")
# Hypothesis draws from the constants of every loaded module of the project. Without them, a test generates the same
# examples alone as together with other files.
generation._get_local_constants = generation.Constants


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import another part of the test files first in each process of a whole run. In a new checkout, each file is then
    compiled by one process, and the others load the result."""
    number, count = (os.environ.get(f"PYTEST_XDIST_WORKER{name}", "") for name in ("", "_COUNT"))
    if number and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        files = sorted(Path(__file__).parent.rglob("test_*.py"))
        for path in files[int(number.removeprefix("gw")) :: int(count)]:
            with suppress(Exception, pytest.skip.Exception):  # the collection reports it
                import_module(".".join(path.relative_to(session.config.rootpath).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Exempt all collected tests from garbage collection. Otherwise every collection walks all of them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _own_umask() -> Iterator[None]:
    """A command that is run within a test's process changes it for good."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def _own_secrets() -> Iterator[None]:
    """What one test's appliance holds for secrets is a word like any other to the next."""
    configured = dict(redaction._configured)
    yield
    redaction._in_use.set(())
    redaction._configured.clear()
    redaction._configured.update(configured)


@pytest.fixture(autouse=True)
def _own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs at a terminal whose PATH has `socialpub`, the one of these tests."""
    monkeypatch.setattr(commands, "_config", None)
    programs = Path(sys.executable).parent
    monkeypatch.setenv("PATH", os.pathsep.join((str(programs), os.environ["PATH"])))


@pytest.fixture(autouse=True)
def _own_record_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Bluesky key is the time and ten random bits. A clock that stands still would draw some key twice."""
    numbers = count()
    monkeypatch.setattr(record, "randbelow", lambda limit: next(numbers) % limit)


GRID = "tests/providers/test_grid"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The totals of the grid. Only this file is known to a run of several processes."""
    cells = Counter(
        (report.nodeid.removeprefix("tests/providers/").partition(".py")[0], outcome)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        if report.when == "call" and report.nodeid.startswith(GRID)
    )
    if cells:
        told = ", ".join(f"{name} {count} {outcome}" for (name, outcome), count in sorted(cells.items()))
        terminalreporter.write_line(f"provider grid: {sum(cells.values())} cells ({told})")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def world(clock: HandClock) -> World:
    return sandbox(clock)


@pytest.fixture
def transport(world: World) -> FaultTransport:
    return FaultTransport(world)


@pytest.fixture
def http(transport: FaultTransport) -> Iterator[Http]:
    http = http_over(transport)
    yield http
    http.close()
