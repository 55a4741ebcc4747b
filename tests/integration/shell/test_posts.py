"""`socialpub status`, `cancel`, `retry` and `profiles`."""

import json

import pytest

from socialpub.providers.responses import Rejected
from tests.integration.shell.conftest import Shell, lost
from tests.support.rows import post_ids

NO_POST = "019a0000-0000-7000-8000-000000000000"


@pytest.fixture
def planned(shell: Shell) -> str:
    """A scheduled post."""
    return shell("post", "later", "--to", "x", "--at", "2099-01-01T00:00:00Z").stdout.split()[0]


def test_a_post_can_be_canceled_once(shell, planned):
    assert shell("status", planned).stdout == f"{planned}\nx: scheduled for 2099-01-01T00:00:00.000Z\n"
    assert shell("cancel", planned).stdout == f"{planned}\nx: canceled\n"
    refused = shell("cancel", planned)
    assert refused.exit_code == 4 and refused.stdout == ""
    assert json.loads(shell("status", planned, "--json").stdout)["data"]["status"] == "canceled"


def test_a_retry_publishes_what_failed_and_reports_it(shell, rt, wire, three_networks):
    three_networks["x"].results["create_post"] = [Rejected("No.")]
    failed = shell("post", "now", "--to", "x").stdout.split()[0]
    assert shell("status", failed).exit_code == 0
    wire.faults[f"POST /posts/{failed}/retry"] = [lost]
    again = shell("retry", failed)
    assert (again.exit_code, again.stdout) == (0, f"{post_ids(rt)[1]}\nx: published https://x.example/1\n")
    assert len(post_ids(rt)) == 2
    nothing = shell("retry", failed, "--json")
    assert nothing.exit_code == 4 and nothing.stdout == ""


def test_the_newest_posts_are_listed(shell, rt, planned):
    for number in range(10):
        shell("post", str(number), "--to", "x", "--no-wait")
    listed = shell("status")
    assert listed.exit_code == 0 and planned not in listed.stdout
    assert [line.split()[0] for line in listed.stdout.splitlines()[2:]] == post_ids(rt)[:0:-1]
    assert len(json.loads(shell("status", "--json").stdout)["data"]) == 10


@pytest.mark.parametrize("command", ["status", "cancel", "retry"])
@pytest.mark.parametrize("post_id", [NO_POST, "../../healthz"])
def test_an_unknown_post_is_refused(shell, command, post_id):
    result = shell(command, post_id)
    assert result.exit_code == 4 and result.stderr.startswith("Error: ") and result.stdout == ""


def test_the_accounts_are_shown_as_references(shell, accounts):
    shown = shell("profiles").stdout
    assert "x:Acme" in shown and "@AcmeCorp" in shown and accounts["home"] in shown
    assert [one["id"] for one in json.loads(shell("profiles", "--json").stdout)["data"]] == list(accounts.values())
