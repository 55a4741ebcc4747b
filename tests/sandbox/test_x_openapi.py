"""The sandbox's answers, held against X's own OpenAPI documents."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.x import api
from socialpub.sandbox.x.api import MediaReferences, NewPost, ReplyTarget
from tests.sandbox.files import MP4, PNG
from tests.sandbox.x_client import XClient
from tests.support.provider_documents import document


@cache
def official(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(document("openapi", name).read_text())
    _mend(loaded)
    return loaded


def _mend(part: Any) -> None:
    """OpenAPI 3.0 to JSON Schema, without demands for members that the same schema does not know (2.166 has some)."""
    if isinstance(part, list):
        for item in part:
            _mend(item)
    if isinstance(part, dict):
        if part.pop("nullable", False) is True and isinstance(part.get("type"), str):
            part["type"] = [part["type"], "null"]
        if isinstance(part.get("required"), list) and isinstance(part.get("properties"), dict):
            part["required"] = [name for name in part["required"] if name in part["properties"]]
        for item in part.values():
            _mend(item)


def assert_official(dialect: str, answer: Response, method: str, path: str) -> None:
    whole = official("x.json" if dialect == "new" else "x-2.166.json")
    answers = whole["paths"][path][method.lower()]["responses"]
    assert str(answer.status_code) in answers, answer.text
    schema = answers[str(answer.status_code)]["content"]["application/json"]["schema"]
    checked = {"components": whole["components"], **schema}
    jsonschema.Draft4Validator(checked, format_checker=jsonschema.FormatChecker()).validate(answer.json())


@pytest.fixture(params=["new", "old"])
def dialect(request: pytest.FixtureRequest, world: World) -> str:
    world.x.dialect = request.param
    return world.x.dialect


@pytest.fixture
def check(dialect: str) -> Callable[[Response, str, str], None]:
    return lambda answer, method, path: assert_official(dialect, answer, method, path)


def test_posts_are_as_the_document_says(
    world: World, dialect: str, check: Callable[[Response, str, str], None], web: TestClient
) -> None:
    studio = XClient(web, world, "studio")
    fields = {"post.fields": "created_at,text,entities,attachments,conversation_id,paid_partnership,note_post"}
    fields["expansions"] = "referenced_posts"
    if dialect == "old":
        fields = {"tweet.fields": "created_at,text,entities,attachments,author_id,referenced_tweets,note_tweet"}
    empty = studio.posts(**fields)
    check(empty, "get", "/2/users/{id}/tweets")
    made = studio.post("#one @demo $ACME example.com", media={"media_ids": [studio.upload()]}, paid_partnership=True)
    check(made, "post", "/2/tweets")
    made_id = made.json()["data"]["id"]
    check(studio.post("long example.com " * 30, reply={"in_reply_to_tweet_id": made_id}), "post", "/2/tweets")
    listed = studio.posts(**fields)
    assert len(listed.json()["data"]) == 2
    check(listed, "get", "/2/users/{id}/tweets")


def test_uploads_are_as_the_document_says(
    world: World, check: Callable[[Response, str, str], None], x: XClient
) -> None:
    one_shot = x.call(
        "POST", "/2/media/upload", data={"media_category": "tweet_image"}, files={"media": ("a.png", PNG, "image/png")}
    )
    check(one_shot, "post", "/2/media/upload")
    body = {"media_type": "video/mp4", "total_bytes": len(MP4), "media_category": "tweet_video"}
    begun = x.call("POST", "/2/media/upload/initialize", json=body)
    check(begun, "post", "/2/media/upload/initialize")
    media_id = begun.json()["data"]["id"]
    check(x.append(media_id, 0, MP4), "post", "/2/media/upload/{id}/append")
    check(x.finalize(media_id), "post", "/2/media/upload/{id}/finalize")
    for _ in range(3):
        check(x.look(media_id), "get", "/2/media/upload")
    alt = {"id": media_id, "metadata": {"alt_text": {"text": "words"}}}
    check(x.call("POST", "/2/media/metadata", json=alt), "post", "/2/media/metadata")


def test_the_account_is_as_the_document_says(check: Callable[[Response, str, str], None], x: XClient) -> None:
    fields = "id,name,username,profile_image_url,verified,verified_type,subscription_type,protected,public_metrics"
    check(x.call("GET", "/2/users/me"), "get", "/2/users/me")
    check(x.call("GET", "/2/users/me", params={"user.fields": fields}), "get", "/2/users/me")


def test_a_refused_request_names_a_problem_type_of_its_own_document(dialect: str, x: XClient) -> None:
    whole = official("x.json" if dialect == "new" else "x-2.166.json")
    known = whole["components"]["schemas"]["Problem"]["discriminator"]["mapping"]
    assert x.post(shoe=1).json()["type"] in known
    assert x.call("GET", "/2/users/1/tweets").json()["errors"][0]["type"] in known


def test_the_fields_that_may_be_asked_for_are_those_of_the_documents() -> None:
    for name, parameter, held in (
        ("x.json", "PostFieldsParameter", api.POST_FIELDS["new"]),
        ("x.json", "UserFieldsParameter", api.USER_FIELDS),
        ("x-2.166.json", "TweetFieldsParameter", api.POST_FIELDS["old"]),
        ("x-2.166.json", "UserFieldsParameter", api.USER_FIELDS),
        ("x.json", "PostExpansionsParameter", api.EXPANSIONS["new"]),
        ("x-2.166.json", "TweetExpansionsParameter", api.EXPANSIONS["old"]),
    ):
        assert held <= set(official(name)["components"]["parameters"][parameter]["schema"]["items"]["enum"])


def test_the_body_of_a_post_has_fields_of_the_document() -> None:
    schemas = official("x.json")["components"]["schemas"]
    for name, shape in {"Request": NewPost, "Media": MediaReferences, "Reply": ReplyTarget}.items():
        assert set(shape.model_fields) <= set(schemas[f"CreatePosts{name}"]["properties"])
