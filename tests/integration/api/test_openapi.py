"""The document says what is true: every endpoint is in it, every example in it is valid (contract 1.12)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from socialpub.web.openapi.document import endpoints
from socialpub.web.routes import routes
from tests.integration.api.client import Client, document

DOCUMENT = document()


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, value
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from walk(inner, f"{path}/{name}")


EXAMPLES = [
    (path, media)
    for path, media in walk(DOCUMENT["paths"])
    if isinstance(media, dict) and {"schema", "example"} <= media.keys()
]


def test_it_needs_no_key_and_names_its_version(client: Client) -> None:
    reply = client.send("GET", "/openapi-docs", key=None)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == DOCUMENT
    assert reply.json()["openapi"].startswith("3.1.")
    assert reply.json()["info"]["version"] == "1.0.0"


def test_every_endpoint_of_the_api_and_of_storage_is_described() -> None:
    known = {
        (path, method.lower())
        for path, method, _ in endpoints(routes())
        if path.startswith(("/api/", "/storage/")) and path != "/api/v1/openapi-docs"
    }
    described = {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert described == known


def test_every_operation_tells_how_it_fails() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for method, one in methods.items():
            statuses = set(one["responses"])
            assert {"500", "503", "405"} <= statuses
            if path.startswith("/api"):
                assert {"401", "429"} <= statuses, path
            if method != "get" and path.startswith("/api") and not path.endswith("validate"):
                assert "403" in statuses
            if "{" in path and path.startswith("/api"):
                assert "404" in statuses
            for answer in one["responses"].values():
                assert "X-Request-Id" in answer["headers"]


@pytest.mark.parametrize(("path", "media"), EXAMPLES, ids=[path for path, _ in EXAMPLES])
def test_examples_are_valid(path: str, media: Any) -> None:
    if "multipart" in path:
        media = {"schema": media["schema"]["properties"]["payload"], "example": media["example"]["payload"]}
    schema = {**media["schema"], "components": DOCUMENT["components"]}
    Draft202012Validator(schema, format_checker=FormatChecker()).validate(media["example"])


def test_schemas_are_schemas_and_every_reference_leads_somewhere() -> None:
    for name, schema in DOCUMENT["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        assert "__" not in name
    for path, reference in walk(DOCUMENT):
        if path.endswith("/$ref"):
            target = DOCUMENT
            for part in reference.removeprefix("#/").split("/"):
                target = target[part]


def test_a_request_that_the_document_refuses_is_refused_and_the_other_way_round(client: Client, profile: str) -> None:
    def valid(body: Any) -> bool:
        schema = {"$ref": "#/components/schemas/PostDraft", "components": DOCUMENT["components"]}
        return Draft202012Validator(schema, format_checker=FormatChecker()).is_valid(body)

    for post, fine in (
        ({"body": "x"}, True),
        ({"body": ""}, False),
        ({"body": " "}, False),
        ({"body": None}, False),
        ({}, False),
        ({"body": "x", "more": 1}, False),
        ({"body": "x" * 5001}, False),
    ):
        body = {"post": post, "profiles": [profile]}
        assert valid(body) is fine
        assert (client.send("POST", "/posts", body).status == 201) is fine


def test_a_browser_gets_a_page_that_asks_nobody_else(client: Client) -> None:
    reply = client.ask("GET", "/api/v1/openapi-docs", headers={"accept": "text/html"})
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    page = reply.body.decode()
    for path in DOCUMENT["paths"]:
        assert path in page
    assert "<script" not in page
    assert "src=" not in page
    assert "<link" not in page
    assert "default-src 'none'" in reply.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8"),
        ("text/html, application/json", "text/html; charset=utf-8"),
        ("application/json, text/html;q=0.5", "application/json"),
        ("text/html;q=0, application/json", "application/json"),
        ("*/*", "application/json"),
    ],
)
def test_whoever_wants_json_more_than_a_page_gets_it(client: Client, accept: str, kind: str) -> None:
    reply = client.ask("GET", "/api/v1/openapi-docs", headers={"accept": accept})
    assert (reply.status, reply.headers["content-type"]) == (200, kind)


def test_every_link_within_the_page_leads_somewhere(client: Client) -> None:
    page = client.ask("GET", "/api/v1/openapi-docs", headers={"accept": "text/html"}).body.decode()
    targets = set(re.findall(r'id="([^"]*)"', page))
    links = set(re.findall(r'href="#([^"]*)"', page))
    assert links
    assert links <= targets
    assert not [one for one in targets if " " in one]
