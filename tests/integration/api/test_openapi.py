"""The OpenAPI document is complete, its examples are valid, and generators understand it (contract 1.12)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from socialpub.publishing.posts import posts
from socialpub.web.openapi.document import endpoints
from socialpub.web.routes import API
from tests.integration.api.client import document
from tests.samples import media
from tests.support import curl_line
from tests.support.appliance import accept, add_profile

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


def test_the_document_needs_no_key_and_has_a_version(client):
    reply = client.send("GET", "/openapi-docs", key=None)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == DOCUMENT
    assert reply.json()["openapi"].startswith("3.1.")
    assert reply.json()["info"]["version"] == "1.0.0"


def test_every_endpoint_of_the_api_is_described_and_nothing_else():
    known = {(path, method.lower()) for path, method, _ in endpoints(API)}
    described = {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert described == known


def test_importers_accept_the_lengths_and_types():
    """Some agents cut descriptions after 300 characters, and refuse lists of types."""
    for path, value in walk(DOCUMENT):
        if isinstance(value, dict):
            if isinstance(words := value.get("description"), str) and path != "/info":
                assert len(words) <= 300, path
            if isinstance(types := value.get("type"), list):
                assert len(types) == 2 and types[1] == "null", path


def test_no_schema_is_a_union():
    """With a union beside `properties`, generated clients lose all fields."""
    found = [path for path, _ in walk(DOCUMENT) if path.rpartition("/")[2] in ("anyOf", "oneOf", "allOf", "not")]
    assert not found


def undescribed() -> Iterator[str]:
    """Yield every place without a description."""
    components = DOCUMENT["components"]
    for name, schema in components["schemas"].items():
        yield from [] if schema.get("description") else [name]
        for field, one in schema.get("properties", {}).items():
            yield from [] if one.get("description") else [f"{name}.{field}"]
    for name, header in components["headers"].items():
        yield from [] if header.get("description") else [name]
    for path, methods in DOCUMENT["paths"].items():
        for method, one in methods.items():
            parts = {"": one, "body": one.get("requestBody", {"description": "none"})}
            parts |= {parameter["name"]: parameter for parameter in one["parameters"]} | one["responses"]
            yield from (f"{method} {path} {name}" for name, part in parts.items() if not part.get("description"))
    for one in (DOCUMENT["info"], *DOCUMENT["tags"], *DOCUMENT["servers"], *components["securitySchemes"].values()):
        yield from [] if one.get("description") else [str(one)]


def test_everything_has_a_description():
    assert list(undescribed()) == []


def enumerations(value: Any, around: str = "") -> Iterator[tuple[list[Any], str]]:
    """Yield every enumeration with its description, or the description of its list or header."""
    if isinstance(value, dict):
        words = value.get("description", around)
        if isinstance(value.get("enum"), list):
            yield value["enum"], words
        around = words if isinstance(words, str) else around
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from enumerations(inner, around)


def test_every_value_of_an_enumeration_is_explained():
    found = list(enumerations(DOCUMENT))
    assert len(found) > 10
    for values, words in found:
        assert [value for value in values if f"`{value}`" not in words] == []


def test_every_operation_describes_its_problems():
    for path, methods in DOCUMENT["paths"].items():
        for method, one in methods.items():
            statuses = set(one["responses"])
            assert {"401", "405", "429", "431", "500", "503"} <= statuses
            if method != "get" and not path.endswith("validate"):
                assert "403" in statuses
            if "{" in path:
                assert "404" in statuses
            for answer in one["responses"].values():
                assert "X-Request-Id" in answer["headers"]


@pytest.mark.parametrize(("path", "media"), EXAMPLES, ids=[path for path, _ in EXAMPLES])
def test_examples_are_valid(path, media):
    schema = {**media["schema"], "components": DOCUMENT["components"]}
    Draft202012Validator(schema, format_checker=FormatChecker()).validate(media["example"])


def test_schemas_are_valid_and_references_resolve():
    for name, schema in DOCUMENT["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        assert "__" not in name
    for path, reference in walk(DOCUMENT):
        if path.endswith("/$ref"):
            target = DOCUMENT
            for part in reference.removeprefix("#/").split("/"):
                target = target[part]


def test_the_page_without_script_loads_nothing(client):
    reply = client.ask("GET", "/api/v1/openapi-docs?format=page")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    page = reply.body.decode()
    for path in DOCUMENT["paths"]:
        assert path in page
    assert page.index("Create a post") < page.index("List posts")
    assert 'href="?format=json"' in page
    browser = {"accept": "text/html"}
    assert client.ask("GET", "/api/v1/openapi-docs?format=json", headers=browser).json()["openapi"]
    assert "<script" not in page
    assert "src=" not in page
    assert "<link" not in page
    assert "default-src 'none'" in reply.headers["content-security-policy"]


def test_a_browser_gets_a_page_that_loads_only_from_the_appliance(client):
    reply = client.ask("GET", "/api/v1/openapi-docs", headers={"accept": "text/html"})
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    page = reply.body.decode()
    policy = dict(one.split(" ", 1) for one in reply.headers["content-security-policy"].split("; "))
    assert policy.pop("default-src") == policy.pop("base-uri") == policy.pop("form-action") == "'none'"
    assert policy.pop("frame-ancestors") == "'none'"
    assert policy.pop("script-src") == policy.pop("connect-src") == "'self'"
    assert policy.pop("img-src") == "'self' data:"
    assert policy.pop("style-src-attr") == "'unsafe-inline'"
    found = re.fullmatch("'self' 'nonce-([A-Za-z0-9_-]{22})'", policy.pop("style-src-elem"))
    assert found is not None
    assert policy == {}
    assert set(re.findall('nonce="([^"]*)"', page)) == {found[1]}

    loaded = re.findall('(?:src|<link rel="stylesheet" href)="([^"]*)"', page)
    assert len(loaded) == 3
    assert all(re.fullmatch(r"\.\./\.\./static/[\w./-]+", one) for one in loaded), "relative to this page, all ours"
    assert all(client.ask("GET", one.removeprefix("../..")).status == 200 for one in loaded)
    assert not re.search(r"<script[^>]*>[^<]", page), "the page has no inline script"
    assert not re.search(r"<[^>]* on[a-z]+=", page)


def test_every_response_has_a_new_nonce(client):
    replies = [client.ask("GET", "/api/v1/openapi-docs", headers={"accept": "text/html"}) for _ in range(2)]
    first, second = (reply.headers["content-security-policy"] for reply in replies)
    assert first != second
    assert {reply.headers["cache-control"] for reply in replies} == {"no-store"}


@pytest.mark.parametrize("query", ["", "?format=page"])
def test_every_link_within_the_page_has_a_target(client, query):
    page = client.ask("GET", f"/api/v1/openapi-docs{query}", headers={"accept": "text/html"}).body.decode()
    targets = set(re.findall(r'id="([^"]*)"', page))
    links = set(re.findall(r'href="#([^"]*)"', page))
    assert links
    assert links <= targets
    assert not [one for one in targets if " " in one]


# --- code samples (contract 1.12) ------------------------------------------------------------------------------------


FILE = "frost.jpg"
UPLOAD_URL = "http://127.0.0.1:8000/storage/uploads/1?expires=1&signature=1"

OPERATIONS = {
    one["operationId"]: (method, path, one)
    for path, methods in document()["paths"].items()
    for method, one in methods.items()
}


def test_every_operation_has_a_code_sample():
    for _, _, one in OPERATIONS.values():
        assert [sample["lang"] for sample in one["x-codeSamples"]] == ["Shell"] * len(one["x-codeSamples"])
        assert one["x-codeSamples"]


def example(name: str, status: str) -> Any:
    return OPERATIONS[name][2]["responses"][status]["content"]["application/json"]["example"]["data"]


def test_the_code_samples_work(client, rt, tmp_path):
    """Run the code samples in order, with ids of this appliance."""
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
    uploaded = run("completeUpload")
    assert uploaded["sizeBytes"] == size
    source = OPERATIONS["importUpload"][2]["requestBody"]["content"]["application/json"]["example"]
    known[source["url"]] = uploaded["url"]
    assert run("importUpload")["artifactId"] == uploaded["artifactId"]
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
    assert run("getChoices")["profileId"] == profile
    assert len(run("listLogs")) == 3
    known[example("getPost", "200")["id"]] = failed = accept(rt, profile)
    rt.write(posts.stop, failed)
    assert run("retryPost")["status"] == "pending"
    run("disconnectProfile")
    lines = {(name, number) for name, (_, _, one) in OPERATIONS.items() for number in range(len(one["x-codeSamples"]))}
    assert set(done) == lines


def test_the_first_post_of_the_introduction_works(client, rt, tmp_path):
    add_profile(rt)
    fenced = re.findall(r"```sh\n(.*?)```", document()["info"]["description"], re.DOTALL)
    lines = [line for block in fenced for line in re.split(r"\n(?=curl)", block.strip())]
    told: list[Any] = []
    for line in lines:
        for name, found in zip(("PROFILE_ID", "POST_ID"), told, strict=False):
            line = line.replace(name, found["id"])
        # No worker publishes here, so the wait would only take time.
        read = curl_line.read(line.replace("?wait=30", ""), {"KEY": client.key})
        reply = client.ask(*read.request(tmp_path))
        assert reply.status < 300, reply.body
        told.append(reply.data[0] if isinstance(reply.data, list) else reply.data)
    assert len(told) == 3
    assert told[1] == told[2]
