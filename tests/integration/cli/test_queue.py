"""Pause and resume."""

from socialpub.db import appliance_state
from socialpub.runtime import Runtime
from tests.integration.cli.conftest import Terminal
from tests.support.appliance import accept
from tests.support.drain import drain


def test_nothing_starts_between_pause_and_resume(terminal: Terminal, rt: Runtime) -> None:
    profile = terminal.connect()
    assert terminal("admin", "pause").exit_code == 0
    accept(rt, profile)
    drain(rt, terminal.clock)
    assert terminal.world.x.posts == []
    again = terminal("admin", "pause")
    assert again.exit_code == 0
    assert "already" in again.stderr
    assert terminal("admin", "resume").exit_code == 0
    drain(rt, terminal.clock)
    assert len(terminal.world.x.posts) == 1


def test_resume_says_how_many_posts_are_too_late(terminal: Terminal, rt: Runtime) -> None:
    profile = terminal.connect()
    terminal("admin", "pause")
    for body in ("one", "two"):
        accept(rt, profile, body=body)
    terminal.clock.forward(25 * 3600)
    accept(rt, profile, body="three")
    resumed = terminal("admin", "resume")
    assert "2 posts are more than 24h late" in resumed.stderr
    drain(rt, terminal.clock)
    assert [post.text for post in terminal.world.x.posts] == ["three"]


def test_resume_without_a_pause_is_no_failure(terminal: Terminal, rt: Runtime) -> None:
    resumed = terminal("admin", "resume")
    assert resumed.exit_code == 0
    assert "not paused" in resumed.stderr
    assert appliance_state.paused_at(rt.reader) is None
