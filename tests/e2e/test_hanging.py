"""What hangs holds only itself: a network that answers nothing, a command suspended with a lock in its hand."""

import logging
from pathlib import Path

import pytest
from click.testing import CliRunner

from socialpub.cli.main import main
from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import PLENTY, Installation
from tests.e2e.processes import until
from tests.samples import media

PROFILES = 20
WORKERS = 8


def connected(installation: Installation, names: list[str]) -> list[str]:
    """Return the profiles of these people on X, imported in this process: a process for each takes far longer."""
    root = logging.getLogger()
    handlers, level, own_level = root.handlers[:], root.level, logging.getLogger("socialpub").level
    profiles = []
    for name in names:
        command = ["--config", str(installation.config), "admin", "import-profile", "x"]
        done = CliRunner().invoke(main, command, input=installation.x.grant(name), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        profiles.append(done.stdout.strip())
    # The log of a command goes to a stream that ends with it.
    root.handlers[:], root.level = handlers, level
    logging.getLogger("socialpub").setLevel(own_level)
    return profiles


def test_twenty_profiles_of_a_network_that_hangs_leave_a_pin_on_time(
    make_installation: MakeInstallation, tmp_path: Path
) -> None:
    installation = make_installation(pace=0)
    installation.sandbox()
    people = connected(installation, [f"p{number}" for number in range(PROFILES)])
    installation.start("serve")
    caller = installation.caller()
    picture = caller.upload(media.jpeg(tmp_path / "a.jpg").read_bytes(), "a.jpg", "image/jpeg")
    options = {"pinterest": {"boardId": installation.board_id}}
    for endpoint in ("create_post", "list_posts"):
        installation.x.script(endpoint, "times_out_before_effect", times=PLENTY)
    hanging = caller.publish("Hello, all", *people)
    until(lambda: installation.x.held() == WORKERS, "all threads of X hang, and a burst had all of them")
    for number in range(3):
        pin = caller.publish(f"Pin {number}", installation.profile_on["pinterest"], media=(picture,), options=options)
        assert caller.delivery(pin)["status"] == "published"
    assert installation.x.held() == WORKERS, "not one of them had ended before"
    assert caller.ask("GET", "/readyz").status_code == 200
    assert {delivery["status"] for delivery in caller.post(hanging)["deliveries"]} == {"pending"}


@pytest.mark.endurance
def test_a_suspended_command_with_a_token_lock_delays_its_profile_queue_until_it_ends(
    installation: Installation,
) -> None:
    installation.start("serve")
    caller, profile = installation.caller(), installation.profiles[0]
    installation.x.script("token", "times_out_before_effect")
    command = installation._begin("refresh", "--config", str(installation.config), "admin", "refresh-profile", profile)
    until(lambda: installation.x.held() == 1, "the command waits for the answer to its refresh")
    command.suspend()
    installation.x.script("create_post", "unauthorized")
    post = caller.publish("Behind a suspended command", profile)
    until(lambda: caller.attempts(post), "the profile queue also needs the token")
    assert "a command that hangs" in caller.attempts(post)[-1]["message"]
    assert command.running, "it is still suspended"
    command.go_on()
    command.wait()
    assert caller.delivery(post)["status"] == "published"
