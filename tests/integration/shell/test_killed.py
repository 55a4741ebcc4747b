"""The real program, killed at the worst moments, started twice and without a usable output: the outcome counts."""

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from tests.samples import media
from tests.support.rows import post_ids
from tests.support.served import served

ROOT = Path(__file__).parents[3]
HEAVY = {"asyncio", "pydantic", "peewee", "starlette", "uvicorn", "huey", "cryptography", "PIL", "av", "jinja2", "rich"}
PROGRAM = """
import atexit, sys
from socialpub.cli.main import main
atexit.register(lambda: print("Modules:", *sys.modules, file=sys.stderr))
main()
"""

Start = Callable[..., "subprocess.Popen[str]"]


class KillingApp:
    """The application, which kills the command `victim` when its create call begins, or before its response."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.victim: subprocess.Popen[str] | None = None
        self.before_response = False

    def kill(self) -> None:
        if self.victim is not None:
            os.kill(self.victim.pid, signal.SIGKILL)
            self.victim.wait()
            self.victim = None

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        async def receive_from_the_dead() -> Any:
            if self.victim is None:
                return await receive()
            self.kill()
            return {"type": "http.disconnect"}

        async def send_to_the_dead(message: Any) -> None:
            self.kill()
            await send(message)

        is_create = scope["type"] == "http" and (scope["method"], scope["path"]) == ("POST", "/api/v1/posts")
        if is_create and self.before_response:
            await self.app(scope, receive, send_to_the_dead)
        else:
            await self.app(scope, receive_from_the_dead if is_create else receive, send)


@pytest.fixture
def app(rt: Runtime, profile: str) -> KillingApp:
    return KillingApp(create_app(rt))


@pytest.fixture
def start(rt: Runtime, app: KillingApp, tmp_path: Path) -> Iterator[Start]:
    """Start `socialpub post` with a key, without waiting."""
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    with served(app) as url:  # type: ignore[arg-type]
        environ |= {"SOCIALPUB_URL": url, "SOCIALPUB_KEY": rt.write(api_keys.create, "script")}

        def run(*words: str, command: str = "post --to x --no-wait --once", **more: Any) -> "subprocess.Popen[str]":
            once = ["day 1"] if command.endswith("--once") else []
            line = [sys.executable, "-c", PROGRAM, *command.split(), *once, *words]
            streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
            streams["env"] = environ | more.get("env", {})
            return subprocess.Popen(line, text=True, **streams)

        yield run


@pytest.mark.parametrize("before_response", [False, True])
def test_a_command_that_is_killed_while_it_sends_can_run_again(rt, app, start, tmp_path, before_response):
    file = str(media.png(tmp_path / "one.png"))
    app.before_response = before_response
    app.victim = killed = start("--media", file)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL and len(post_ids(rt)) == int(before_response)
    again = start("--media", file)
    shown, notes = again.communicate()
    [post_id] = post_ids(rt)
    assert (again.returncode, shown) == (0, f"{post_id}\nx: pending\n")
    assert ("--once day 1 was used before" in notes) == before_response


def test_a_command_that_starts_twice_at_once_makes_one_post_and_loads_nothing_of_the_appliance(rt, start):
    both = [start("Good morning") for _ in range(2)]
    ended = [one.communicate() for one in both]
    [post_id] = post_ids(rt)
    assert [one.returncode for one in both] == [0, 0]
    assert [shown for shown, _ in ended] == [f"{post_id}\nx: pending\n"] * 2
    loaded = ended[0][1].partition("Modules:")[2].split()
    assert {"click", "httpx2"} <= set(loaded)
    assert not {name.partition(".")[0] for name in loaded} & HEAVY


@contextmanager
def broken(how: str) -> Iterator[dict[str, Any]]:
    """The streams of a command whose output cannot be written."""
    if how == "closed pipe":
        reading, writing = os.pipe()
        os.close(reading)
        yield {"stdout": writing}
        os.close(writing)
    elif how == "closed":
        yield {"preexec_fn": lambda: os.close(1)}
    else:
        with Path("/dev/full").open("w") as full:
            yield {"stdout": full} | ({"stderr": full} if how == "both full" else {})


@pytest.mark.parametrize("more", [[], ["--json"]])
@pytest.mark.parametrize("how", ["full", "closed pipe", "closed", "both full"])
def test_an_output_that_cannot_be_written_changes_no_outcome_and_ends_no_thread(rt, start, tmp_path, how, more):
    (tmp_path / "thread.txt").write_text("One\n---\nTwo\n---\nThree")
    with broken(how) as streams:
        thread = start("--thread", str(tmp_path / "thread.txt"), *more, **streams)
        notes = thread.communicate()[1]
    assert thread.returncode == 0
    ids = post_ids(rt)
    assert len(ids) == 3
    if how in ("full", "closed pipe"):
        assert "Standard output cannot be written" in notes
        assert all(post_id in notes for post_id in ids), "what stdout does not take is on stderr"
