"""The document's curl lines: each is the call that it stands beside, and does what it says (contract 1.12)."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from socialpub.publishing.posts import posts
from socialpub.runtime import Runtime
from tests.integration.api.client import Client, document, errors
from tests.samples import media
from tests.support import curl_line
from tests.support.appliance import accept, add_profile

FILE = "frost.jpg"
UPLOAD_URL = "http://127.0.0.1:8000/storage/uploads/1?expires=1&signature=1"
VARIABLES = {"KEY": "spk_a_b", "UPLOAD_URL": UPLOAD_URL}

OPERATIONS = {
    one["operationId"]: (method, path, one)
    for path, methods in document()["paths"].items()
    for method, one in methods.items()
}


def of_api() -> Iterator[Any]:
    """Every line that goes to the API, with its operation; others go to an address that an answer told."""
    for name, (_, _, one) in OPERATIONS.items():
        for sample in one["x-codeSamples"]:
            if "$UPLOAD_URL" not in sample["source"]:
                yield pytest.param(name, sample["source"], id=f"{name}: {sample['label']}")


def example_ids(path: str) -> str:
    return re.sub(r"{\w+}", "[0-9a-f-]{36}", path)


def test_every_operation_has_its_line() -> None:
    for _, _, one in OPERATIONS.values():
        assert [sample["lang"] for sample in one["x-codeSamples"]] == ["Shell"] * len(one["x-codeSamples"])
        assert one["x-codeSamples"]


@pytest.mark.parametrize(("name", "source"), list(of_api()))
def test_a_line_is_the_call_that_it_stands_beside(name: str, source: str) -> None:
    method, path, operation = OPERATIONS[name]
    line = curl_line.read(source, VARIABLES)
    assert line.method == method.upper()
    assert re.fullmatch(f"http://127.0.0.1:8000{example_ids(path)}", line.url.partition("?")[0])
    assert line.headers["authorization"] == "Bearer spk_a_b"
    for query in filter(None, line.url.partition("?")[2].split("&")):
        assert query.partition("=")[0] in {one["name"] for one in operation["parameters"] if one["in"] == "query"}
    if line.parts:
        parts = dict(line.parts)
        payload = json.loads(parts.pop("payload"))
        assert not errors(payload, "FormDraft")
        assert {item["fileField"] for item in payload["media"]} == set(parts)
    elif "requestBody" in operation:
        content = operation["requestBody"]["content"][line.headers["content-type"]]
        assert line.data is not None
        assert not errors(json.loads(line.data), content["schema"]["$ref"].rpartition("/")[2])
    else:
        assert line.data is None


@pytest.mark.parametrize(("name", "source"), list(of_api()))
def test_a_shell_reads_a_line_as_these_tests_do(name: str, source: str) -> None:
    shown = source.replace("curl ", "printf '%s\\0' ", 1)
    told = subprocess.run(["/bin/sh", "-c", shown], env={"KEY": "spk_a_b"}, capture_output=True, text=True, check=True)
    words = [word.replace("$KEY", "spk_a_b") for word in shlex.split(source.replace("\\\n", " "))]
    assert told.stdout.split("\0")[:-1] == words[1:]


def example(name: str, status: str) -> Any:
    return OPERATIONS[name][2]["responses"][status]["content"]["application/json"]["example"]["data"]


def test_the_lines_do_what_they_say(client: Client, rt: Runtime, tmp_path: Path) -> None:
    """One after the other, with this appliance's own ids in place of those of the examples."""
    size = media.jpeg(tmp_path / FILE).stat().st_size
    declared = OPERATIONS["reserveUpload"][2]["requestBody"]["content"]["application/json"]["example"]["fileSize"]
    profile = add_profile(rt)
    known = {example("getProfile", "200")["id"]: profile, str(declared): str(size)}
    variables = {"KEY": client.key}
    done = []

    def run(name: str, number: int = 0) -> Any:
        source = OPERATIONS[name][2]["x-codeSamples"][number]["source"]
        for old, new in known.items():
            source = source.replace(old, new)
        reply = client.ask(*curl_line.read(source, variables).request(tmp_path))
        assert reply.status < 300, (name, reply.body)
        done.append((name, number))
        return reply.data if reply.body else None

    reservation = run("reserveUpload")
    variables["UPLOAD_URL"] = reservation["uploadUrl"]
    assert run("reserveUpload", 1) is None
    known[example("completeUpload", "200")["artifactId"]] = reservation["artifactId"]
    assert run("completeUpload")["sizeBytes"] == size
    assert run("validatePost")["valid"]
    with_a_form = run("createPost", 1)
    post = run("createPost")
    assert [len(one["media"]) for one in (with_a_form, post)] == [1, 1]
    known[example("getPost", "200")["id"]] = post["id"]
    assert [one["id"] for one in run("listPosts")] == [post["id"], with_a_form["id"]]
    assert run("updatePost")["scheduledAt"].startswith("2036-11-23")
    assert run("listAttempts") == []
    assert run("cancelPost")["status"] == "canceled"
    assert run("getPost")["id"] == post["id"]
    assert run("listProfiles") == [run("getProfile")]
    assert len(run("listLogs")) == 3
    known[example("getPost", "200")["id"]] = failed = accept(rt, profile)
    rt.write(posts.stop, failed)
    assert run("retryPost")["status"] == "pending"
    run("disconnectProfile")
    lines = {(name, number) for name, (_, _, one) in OPERATIONS.items() for number in range(len(one["x-codeSamples"]))}
    assert set(done) == lines


def test_the_first_post_of_the_introduction_is_one(client: Client, rt: Runtime, tmp_path: Path) -> None:
    add_profile(rt)
    fenced = re.findall(r"```sh\n(.*?)```", document()["info"]["description"], re.DOTALL)
    lines = [line for block in fenced for line in re.split(r"\n(?=curl)", block.strip())]
    told: list[Any] = []
    for line in lines:
        for name, found in zip(("PROFILE_ID", "POST_ID"), told, strict=False):
            line = line.replace(name, found["id"])
        # Nobody publishes here, so the wait would only be waited out.
        read = curl_line.read(line.replace("?wait=30", ""), {"KEY": client.key})
        reply = client.ask(*read.request(tmp_path))
        assert reply.status < 300, reply.body
        told.append(reply.data[0] if isinstance(reply.data, list) else reply.data)
    assert len(told) == 3
    assert told[1] == told[2]
