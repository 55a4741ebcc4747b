"""`socialpub post`: a script publishes, and reports the outcome."""

import json
from collections.abc import Callable

import httpx2
import pytest

from socialpub.accounts import api_keys
from socialpub.core.errors import FieldError
from socialpub.providers.base import Wait
from socialpub.providers.responses import Rejected
from socialpub.runtime import Runtime
from tests.integration.shell.conftest import busy, lost, refused
from tests.samples import media
from tests.support.rows import post_ids, read_post
from tests.support.scripted_network import ScriptedNetwork
from tests.support.select import select_value


def api_key_id(rt: Runtime) -> str:
    return str(select_value(rt.db, "SELECT id FROM api_key"))


def test_a_post_is_published_and_reported(shell, rt):
    result = shell("post", "Hello", "--to", "x")
    [post_id] = post_ids(rt)
    assert (result.exit_code, result.stdout) == (0, f"{post_id}\nx: published https://x.example/1\n")
    assert result.stderr == ""


def test_files_get_their_alt_texts_by_position(shell, rt, tmp_path):
    first, second = media.png(tmp_path / "one.dat"), media.jpeg(tmp_path / "zwei ü.jpg")
    assert shell("post", "--to", "x", "--media", str(first), "--alt", "One", "--media", str(second)).exit_code == 0
    shown = read_post(rt, post_ids(rt)[0])["media"]
    assert [(one["contentType"], one.get("alt")) for one in shown] == [("image/png", "One"), ("image/jpeg", None)]


def test_a_url_and_a_file_are_media_of_one_post(shell, rt, tmp_path):
    """A URL of the appliance itself needs no other server."""
    file = str(media.png(tmp_path / "one.png"))
    first = json.loads(shell("post", "--to", "x", "--media", file, "--json").stdout)["data"]["media"][0]
    for sources in ([first["url"]], [first["url"], file]):
        words = [word for source in sources for word in ("--media", source)]
        result = shell("post", "--to", "x", *words, "--alt", "Again", "--once", f"{len(words)}")
        assert result.exit_code == 0, result.stderr
        shown = read_post(rt, post_ids(rt)[-1])["media"]
        assert (shown[0]["artifactId"], shown[0]["alt"], len(shown)) == (first["artifactId"], "Again", len(sources))
    refused = shell("post", "--to", "x", "--media", "http://127.0.0.1:9/a.png")
    assert refused.exit_code == 4 and "media[0].url" in refused.stderr


def test_the_text_comes_from_stdin_and_the_table_decides_the_type_of_an_option(shell, rt):
    options = ("madeWithAi=true", "replySettings=following", "inReplyToPostId=1234")
    result = shell("post", "-", "--to", "x", *(f"--option=x.{one}" for one in options), stdin="From a pipe: ü\n")
    assert result.exit_code == 0
    shown = read_post(rt, post_ids(rt)[0])
    given = {"madeWithAi": True, "replySettings": "following", "inReplyToPostId": "1234"}
    assert (shown["body"], shown["deliveries"][0]["providerOptions"]) == ("From a pipe: ü", given)


def refuse(network: ScriptedNetwork) -> None:
    network.results["create_post"] = [Rejected("It is too long.")]


def delay(network: ScriptedNetwork) -> None:
    network.results["create_post"] = [Wait(3600.0, "X is processing the video.")]


@pytest.mark.parametrize(
    ("faults", "exit_code", "line"),
    [
        ({"x": refuse}, 1, "x: failed: "),
        ({"x": delay, "pinterest": refuse}, 5, "x: waiting: "),
        ({"x": delay}, 5, "x: waiting: "),
    ],
)
def test_the_exit_code_names_the_most_important_outcome(shell, three_networks, faults, exit_code, line):
    for name, fault in faults.items():
        fault(three_networks[name])
    result = shell("post", "a", "--to", "x", "--to", "home")
    assert result.exit_code == exit_code and f"\n{line}" in result.stdout


def test_without_waiting_an_accepted_post_is_a_success(shell, three_networks):
    refuse(three_networks["x"])
    for arguments in (["--no-wait"], ["--wait", "0"]):
        result = shell("post", "a", "--to", "x", *arguments)
        assert result.exit_code == 0 and result.stdout.endswith("\nx: pending\n")


def test_a_scheduled_post_is_reported_with_its_time_and_offset(shell, rt):
    result = shell("post", "a", "--to", "x", "--at", "2099-01-01T01:00:00+01:00")
    assert result.exit_code == 0 and "2099-01-01T01:00:00+01:00" in result.stderr
    assert result.stdout == f"{post_ids(rt)[0]}\nx: scheduled for 2099-01-01T00:00:00.000Z\n"


def test_a_key_with_limits_gets_their_reasons(shell, rt, monkeypatch):
    key = rt.write(api_keys.create, "agent", posts_per_day=1, approval=True)
    monkeypatch.setenv("SOCIALPUB_KEY", key)
    held = shell("post", "a", "--to", "x")
    [post_id] = post_ids(rt)
    assert held.exit_code == 5 and held.stdout.startswith(f"{post_id}\nx: waits for the owner's approval: http")
    full = shell("post", "b", "--to", "x")
    assert full.exit_code == 4 and "Trying again" not in full.stderr and post_ids(rt) == [post_id]


# --- refusals --------------------------------------------------------------------------------------------------------


def test_a_post_that_a_network_would_refuse_is_accepted_only_on_request(shell, rt, three_networks):
    three_networks["x"].problems = [FieldError(("post", "body"), "X allows 280 characters. This text has 281.")]
    refused = shell("post", "a", "--to", "x")
    assert refused.exit_code == 4 and "X allows 280 characters" in refused.stderr and post_ids(rt) == []
    assert shell("post", "a", "--to", "x", "--no-strict").exit_code == 1 and len(post_ids(rt)) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give TEXT, --media or both."),
        ([""], "Give TEXT, --media or both."),
        (["a", "--alt", "b"], "1 --alt, 0 --media"),
        (["a", "--media", "none.png"], "--media none.png: this file does not exist."),
        (["a", "--media", "."], "--media .: this is not a file."),
        (["a", "--at", "tomorrow"], "--at needs a time"),
        (["a", "--option", "replySettings=a"], "NETWORK.KEY=VALUE"),
        (["a", "--once", ""], "--once needs a key"),
        (["a", "--wait", "-1"], "--wait"),
        (["-", "--no-wait"], "stdin is not UTF-8"),
    ],
)
def test_what_the_shell_refuses_by_itself_is_wrong_usage(offline_shell, arguments, message):
    result = offline_shell("post", "--to", "x", *arguments, stdin=b"\xff")
    assert result.exit_code == 2 and message in result.stderr


# --- repeats ---------------------------------------------------------------------------------------------------------


def test_once_accepts_a_post_once_and_reports_the_replay(shell, rt, tmp_path):
    file = media.png(tmp_path / "one.png")
    first, second = (
        shell("post", "Good morning", "--to", "x", "--media", str(file), "--once", "day 1") for _ in range(2)
    )
    assert first.stdout == second.stdout and len(post_ids(rt)) == 1 and second.exit_code == 0
    assert "--once day 1 was used before" in second.stderr and first.stderr == ""
    other = shell("post", "Good night", "--to", "x", "--once", "day 1")
    assert other.exit_code == 4 and "used for a different request" in other.stderr and len(post_ids(rt)) == 1


@pytest.mark.parametrize(
    ("faults", "waited"), [([lost], [1]), ([refused, lost, busy], [1, 2, 7]), ([busy, busy], [7, 7])]
)
def test_the_own_repeats_never_make_a_second_post(shell, rt, wire, pauses, faults, waited):
    wire.faults["POST /posts"] = faults
    result = shell("post", "a", "--to", "x")
    assert result.exit_code == 0 and len(post_ids(rt)) == 1 and pauses == waited
    assert "Trying again in" in result.stderr
    keys = {request.headers["idempotency-key"] for request in wire.requests if request.method == "POST"}
    assert len(keys) == 1


def test_files_are_sent_again_from_their_beginning(shell, rt, wire, tmp_path):
    wire.faults["POST /posts"] = [lost]
    assert shell("post", "--to", "x", "--media", str(media.png(tmp_path / "one.png"))).exit_code == 0
    assert len(post_ids(rt)) == 1


def test_a_repeat_waits_for_the_first_run_with_the_same_key(shell, rt, wire, pauses):
    """The first run was killed while the appliance worked on its request."""
    running = wire.client.app.state.running_keys
    running.add((api_key_id(rt), "day 1"))

    def finish(ask: Callable[[], httpx2.Response]) -> httpx2.Response:
        response = ask()
        running.clear()
        return response

    wire.faults["POST /posts"] = [finish]
    result = shell("post", "a", "--to", "x", "--once", "day 1")
    assert result.exit_code == 0 and pauses == [1] and len(post_ids(rt)) == 1


def test_an_appliance_that_cannot_be_reached_accepts_nothing(offline_shell, pauses):
    result = offline_shell("post", "a", "--to", "x")
    assert result.exit_code == 4 and "the connection was refused" in result.stderr and pauses == [1, 2, 4, 8]


def test_a_lost_response_that_no_repeat_recovers_is_an_unknown_outcome(shell, rt, wire):
    wire.faults["POST /posts"] = [lost, refused, refused, refused, refused]
    result = shell("post", "a", "--to", "x")
    assert result.exit_code == 3 and "The post may be accepted." in result.stderr and len(post_ids(rt)) == 1


def test_a_long_wait_that_the_appliance_asks_for_ends_the_command(shell, rt, wire, pauses):
    def full(_: object) -> httpx2.Response:
        problem = {"detail": "This key may publish 5 posts a day.", "status": 429}
        return httpx2.Response(429, headers={"retry-after": "40000"}, json=problem)

    wire.faults["POST /posts"] = [full]
    result = shell("post", "a", "--to", "x")
    assert result.exit_code == 4 and "5 posts a day" in result.stderr and pauses == [] == post_ids(rt)


# --- waiting ---------------------------------------------------------------------------------------------------------


def test_the_wait_survives_a_restart_of_the_appliance(shell, rt, wire):
    def fail_twice(ask: Callable[[], httpx2.Response]) -> httpx2.Response:
        response = ask()
        wire.faults[f"GET /posts/{post_ids(rt)[0]}"] = [refused, busy]
        return response

    wire.faults["POST /posts"] = [fail_twice]
    assert shell("post", "a", "--to", "x").exit_code == 0


def test_the_wait_ends_at_its_time(shell, wire):
    wire.works = False
    result = shell("post", "a", "--to", "x", "--wait", "130")
    assert result.exit_code == 5 and result.stdout.endswith("\nx: pending\n")
    waits = [request.url.params.get("wait") for request in wire.requests]
    assert list(filter(None, waits)) == ["60", "60", "40", "10"]


def test_a_key_that_is_revoked_during_the_wait_does_not_turn_the_post_into_a_refused_one(shell, rt, wire):
    def revoke(ask: Callable[[], httpx2.Response]) -> httpx2.Response:
        response = ask()
        rt.write(api_keys.revoke, api_key_id(rt))
        return response

    wire.faults["POST /posts"] = [revoke]
    result = shell("post", "a", "--to", "x")
    assert result.exit_code == 5 and result.stdout == f"{post_ids(rt)[0]}\nx: pending\n"
    assert "The post is accepted, but its outcome cannot be read" in result.stderr


def test_ctrl_c_before_the_response_says_that_the_post_may_be_accepted(shell, wire):
    def interrupt(_: object) -> httpx2.Response:
        raise KeyboardInterrupt

    wire.faults["POST /posts"] = [interrupt]
    result = shell("post", "a", "--to", "x")
    assert result.exit_code == 130 and result.stdout == ""
    assert "Accepted: nothing." in result.stderr and "may also be accepted. `socialpub status`" in result.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_names_what_was_accepted(shell, rt, wire, as_json):
    def interrupt(_: object) -> httpx2.Response:
        raise KeyboardInterrupt

    def accept(ask: Callable[[], httpx2.Response]) -> httpx2.Response:
        response = ask()
        wire.faults[f"GET /posts/{post_ids(rt)[0]}"] = [interrupt]
        return response

    wire.faults["POST /posts"] = [accept]
    result = shell("post", "a", "--to", "x", *(["--json"] if as_json else []))
    [post_id] = post_ids(rt)
    assert result.exit_code == 130 and post_id in result.stdout and f"Accepted: {post_id}." in result.stderr
