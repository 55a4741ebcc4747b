"""`socialpub post --thread` and `--reply-to`: posts that answer each other (contract 10.5.5)."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from socialpub.core.errors import FieldError
from socialpub.providers.base import CannotTell, Unknown, Wait
from socialpub.providers.responses import Rejected
from socialpub.runtime import Runtime
from tests.integration.shell.conftest import lost
from tests.samples import media
from tests.support.rows import post_ids, read_post


@pytest.fixture
def thread(tmp_path: Path) -> str:
    file = tmp_path / "thread.txt"
    file.write_bytes("One\r\n---\r\nTwo: ü\n\nin two paragraphs\n---  \n\nThree\n".encode())
    return str(file)


def parents(rt: Runtime) -> list[str | None]:
    return [read_post(rt, one)["deliveries"][0]["providerOptions"].get("replyToPostId") for one in post_ids(rt)]


def test_each_part_replies_to_the_part_before_it(shell, rt, three_networks, thread, tmp_path):
    file = str(media.png(tmp_path / "one.png"))
    options = ("--option", "x.quotePostId=12", "--option", "x.replySettings=following")
    result = shell("post", "--thread", thread, "--to", "x", "--media", file, *options)
    first, second, third = post_ids(rt)
    lines = [f"{post}\nx: published https://x.example/{number}\n" for number, post in enumerate(post_ids(rt), 1)]
    assert (result.exit_code, result.stdout, result.stderr) == (0, "".join(lines), "")
    assert three_networks["x"].effects == ["One", "Two: ü\n\nin two paragraphs", "Three"]
    assert parents(rt) == [None, first, second]
    assert [len(read_post(rt, one)["media"]) for one in (first, second, third)] == [1, 0, 0]
    # An option of one post belongs to the first part.
    assert read_post(rt, third)["deliveries"][0]["providerOptions"] == {
        "replySettings": "following",
        "replyToPostId": second,
    }


@pytest.mark.parametrize(
    ("results", "exit_code"),
    [
        ({"create_post": [Rejected("It is too long.")]}, 1),
        ({"create_post": [Unknown("The connection broke.")], "recover": [CannotTell("Check the account.")] * 30}, 3),
    ],
)
def test_a_failed_part_ends_the_thread_with_its_exit_code(
    shell,
    rt,
    wire,
    clock,
    three_networks,
    thread,
    results,
    exit_code,
):
    network, wire.clock = three_networks["x"], clock
    network.results = {
        **results,
        "create_post": [lambda job: network.publish(job.content.text), *results["create_post"]],
    }
    result = shell("post", "--thread", thread, "--to", "x", "--json")
    assert result.exit_code == exit_code and "The thread ends with part 2 of 3." in result.stderr
    shown = [json.loads(line)["data"] for line in result.stdout.splitlines()]
    assert [one["deliveries"][0]["status"] for one in shown] == ["published", "failed"]
    assert len(post_ids(rt)) == 2 and network.effects == ["One"]


def test_a_part_that_a_network_would_refuse_stops_the_thread_before_its_first_part(shell, rt, three_networks, thread):
    three_networks["x"].problems = [FieldError(("post", "body"), "X allows 280 characters. This text has 281.")]
    result = shell("post", "--thread", thread, "--to", "x")
    assert result.exit_code == 4 and "Part 2 of 3: X allows 280 characters" in result.stderr and post_ids(rt) == []


def test_a_part_without_an_outcome_does_not_hold_the_thread_back(shell, rt, three_networks, thread):
    three_networks["x"].results["create_post"] = [Wait(3600.0, "X is processing the image.")]
    result = shell("post", "--thread", thread, "--to", "x")
    assert result.exit_code == 5 and len(post_ids(rt)) == 3
    assert "x: waiting: X is processing the image." in result.stdout
    assert f"x: waits for the post {post_ids(rt)[1]}, to which this post replies." in result.stdout


def test_once_continues_a_thread_that_was_killed(shell, rt, wire, thread):
    def die(_: Callable[[], httpx2.Response]) -> httpx2.Response:
        raise SystemExit(137)

    wire.faults["POST /posts"] = [lambda ask: ask(), die]
    assert shell("post", "--thread", thread, "--to", "x", "--once", "t").exit_code == 137
    assert len(post_ids(rt)) == 1
    wire.faults["POST /posts"] = [lost]
    assert shell("post", "--thread", thread, "--to", "x", "--once", "t").exit_code == 0
    assert parents(rt) == [None, *post_ids(rt)[:2]]
    sent = [request.headers["idempotency-key"] for request in wire.requests if request.url.path.endswith("/posts")]
    assert sent == ["t/1", "t/2", "t/1", "t/1", "t/2", "t/3"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--thread=FILE", "--to=home"], "--thread: pinterest:Home cannot get replies"),
        (["a", "--reply-to=1", "--to=x", "--to=home"], "--reply-to: pinterest:Home cannot get replies"),
        (["a", "--thread=FILE", "--to=x"], "Give TEXT or --thread, not both."),
        (["--thread=none.txt", "--to=x"], "--thread none.txt: No such file"),
        (["--thread=-", "--to=x"], "part 2 of 2 is empty"),
        (["--thread=FILE", "--to=x", f"--once={'k' * 254}"], "1 to 253"),
        (["a", "--to=x", "--reply-to=1", "--option=x.replyToPostId=2"], "--reply-to and --option x.replyToPostId"),
    ],
)
def test_a_thread_that_the_shell_refuses_is_wrong_usage(shell, rt, thread, arguments, message):
    result = shell("post", *(one.replace("FILE", thread) for one in arguments), stdin="One\n---\n")
    assert result.exit_code == 2 and message in result.stderr and post_ids(rt) == []
