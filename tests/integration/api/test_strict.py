"""`POST /posts?strict=true`: what a network would refuse is not accepted (contract 1.17)."""

import json
from pathlib import Path
from typing import Any

import pytest

from socialpub.core.errors import FieldError
from socialpub.runtime import Runtime
from tests.integration.api.client import Client
from tests.samples import media
from tests.support.appliance import add_profile
from tests.support.scripted_network import ScriptedNetwork

TOO_LONG = FieldError(("post", "body"), "X allows this account 280 characters and counts 281 here.")


def count(rt: Runtime, table: str = "post") -> int:
    return int(rt.reader.value(f"SELECT count(*) FROM {table}"))


def test_a_post_that_a_network_would_refuse_is_told_as_validate_does(
    client: Client, rt: Runtime, three_networks: dict[str, ScriptedNetwork]
) -> None:
    profiles = [add_profile(rt, "x", "a"), add_profile(rt, "x", "b"), add_profile(rt, "tiktok", "c")]
    three_networks["x"].problems = [TOO_LONG]
    three_networks["tiktok"].problems = [FieldError(("media",), "TikTok needs media.")]
    body = {"post": {"body": "x"}, "profiles": profiles}
    checked = client.send("POST", "/posts/validate", body).data["deliveries"]
    problems = [problem for delivery in checked for problem in delivery["problems"]]
    reply = client.send("POST", "/posts?strict=true", body)
    assert reply.status == 400
    assert all(error in problems for error in reply.json()["errors"])
    assert reply.paths() == [["post", "body"], ["media"]]
    assert reply.json()["detail"].startswith(f"post.body: {TOO_LONG.message}")
    assert count(rt) == 0


def test_the_detail_names_an_option_once(
    client: Client, profile: str, three_networks: dict[str, ScriptedNetwork]
) -> None:
    message = "boardId is needed: a string of digits."
    three_networks["x"].problems = [FieldError(("providerOptions", "x", "boardId"), message)]
    reply = client.send("POST", "/posts?strict=true", {"post": {"body": "x"}, "profiles": [profile]})
    assert reply.json()["detail"] == f"providerOptions.x.{message}"
    assert [error["message"] for error in reply.json()["errors"]] == [message]


@pytest.mark.parametrize("query", ["", "?strict=false"])
def test_otherwise_it_is_accepted_and_fails_at_delivery(
    client: Client, rt: Runtime, profile: str, three_networks: dict[str, ScriptedNetwork], query: str
) -> None:
    three_networks["x"].problems = [TOO_LONG]
    assert client.send("POST", f"/posts{query}", {"post": {"body": "x"}, "profiles": [profile]}).status == 201


def test_a_post_that_all_would_take_is_accepted(client: Client, profile: str) -> None:
    assert client.send("POST", "/posts?strict=true", {"post": {"body": "x"}, "profiles": [profile]}).status == 201


@pytest.mark.parametrize("value", ["", "yes", "1", "TRUE"])
def test_strict_is_true_or_false(client: Client, profile: str, value: str) -> None:
    reply = client.send("POST", f"/posts?strict={value}", {"post": {"body": "x"}, "profiles": [profile]})
    assert (reply.status, reply.paths()) == (400, [["strict"]])


def test_what_was_refused_strictly_can_be_sent_again_under_the_same_key(
    client: Client, rt: Runtime, profile: str, three_networks: dict[str, ScriptedNetwork]
) -> None:
    body = {"post": {"body": "x"}, "profiles": [profile]}
    three_networks["x"].problems = [TOO_LONG]
    assert client.send("POST", "/posts?strict=true", body, idempotency_key="k").status == 400
    three_networks["x"].problems = []
    assert client.send("POST", "/posts?strict=true", body, idempotency_key="k").status == 201
    three_networks["x"].problems = [TOO_LONG]
    # What was accepted is answered again, whatever the network would say by now.
    assert client.send("POST", "/posts?strict=true", body, idempotency_key="k").status == 201
    assert count(rt) == 1


def test_files_of_a_form_are_judged_before_anything_is_kept(
    client: Client, rt: Runtime, profile: str, three_networks: dict[str, ScriptedNetwork], tmp_path: Path
) -> None:
    png = media.png(tmp_path / "a.png", 64, 48).read_bytes()
    seen: list[Any] = []

    def check(content: Any, _options: Any, _account: Any) -> list[FieldError]:
        seen.append(content.media)
        return [FieldError(("media", 0), "The picture is too small.")]

    three_networks["x"].check = check  # type: ignore[method-assign]
    payload = json.dumps({"post": {"body": "x"}, "profiles": [profile], "media": [{"fileField": "one", "alt": "A"}]})
    form = (
        b'--x\r\ncontent-disposition: form-data; name="payload"\r\n\r\n' + payload.encode() + b"\r\n--x\r\n"
        b'content-disposition: form-data; name="one"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n' + png
    ) + b"\r\n--x--\r\n"
    kind = "multipart/form-data; boundary=x"
    reply = client.send("POST", "/posts?strict=true", form, content_type=kind)
    assert (reply.status, reply.paths()) == (400, [["media", 0]])
    ((one,),) = seen
    assert (one.alt, one.mime_type, one.facts["width"], one.file_name) == ("A", "image/png", 64, "a.png")
    assert (count(rt), count(rt, "artifact")) == (0, 0)
    assert [path for path in rt.settings.media_dir.rglob("*") if path.is_file()] == []
    three_networks["x"].check = lambda *_: []  # type: ignore[method-assign]
    assert client.send("POST", "/posts?strict=true", form, content_type=kind).status == 201
