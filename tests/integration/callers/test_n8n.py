"""`socialpub config --flow n8n`: every request of the workflow is one that the API describes.

n8n itself is not a part of the tests. The manual's page about development says how the workflow was run there.
"""

import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from socialpub.cli.main import main
from socialpub.core.settings.schema import PublishingSection
from tests.integration.api.client import assert_valid, document

Node = dict[str, Any]
EXPRESSION = re.compile(r"\{\{.*?\}\}")


@pytest.fixture
def flow() -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(CliRunner().invoke(main, ["config", "--flow", "n8n"]).stdout)
    return shown


@pytest.fixture
def nodes(flow: dict[str, Any]) -> dict[str, Node]:
    return {node["name"]: node for node in flow["nodes"]}


def requests(nodes: dict[str, Node]) -> dict[str, dict[str, Any]]:
    return {name: node["parameters"] for name, node in nodes.items() if node["type"] == "n8n-nodes-base.httpRequest"}


def pairs(parameters: dict[str, Any], kind: str) -> dict[str, str]:
    return {one["name"]: one["value"] for one in parameters.get(kind, {}).get("parameters", ())}


def test_every_request_is_one_of_the_api(nodes):
    paths = document()["paths"]
    for name, parameters in requests(nodes).items():
        path = re.sub(EXPRESSION, "{postId}", re.sub(r"^=\{\{.*?\.url \}\}", "", parameters["url"]))
        operation = paths[urlsplit(path).path][parameters["method"].lower()]
        known = {one["name"] for one in operation.get("parameters", ()) if "name" in one}
        assert pairs(parameters, "queryParameters").keys() <= known, name


def test_the_body_of_a_post_has_the_shape_of_the_api(nodes):
    body = nodes["Publish"]["parameters"]["jsonBody"].removeprefix("=")
    assert_valid(json.loads(EXPRESSION.sub('"019ac5d3-0a10-7c52-8a3b-0d5c86f1b402"', body)), "PostDraft")
    assert pairs(nodes["Publish"]["parameters"], "headerParameters").keys() == {"Idempotency-Key"}


def test_every_request_waits_longer_than_the_appliance_and_is_repeated(nodes):
    for name in requests(nodes):
        assert nodes[name]["retryOnFail"] and nodes[name]["credentials"]["httpBearerAuth"]["name"] == "socialpub"
    wait = nodes["Wait for the outcome"]["parameters"]
    seconds = int(pairs(wait, "queryParameters")["wait"])
    assert wait["options"]["timeout"] > seconds * 1000
    *_, rounds = nodes["Still pending?"]["parameters"]["conditions"]["conditions"]
    # A read-back of an unknown outcome and the second call take longer than `resend_after`.
    assert rounds["rightValue"] * seconds > 1.5 * PublishingSection().resend_after.total_seconds()
