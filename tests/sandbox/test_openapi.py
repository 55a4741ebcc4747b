"""The sandbox's answers, checked against the OpenAPI documents of X and Pinterest."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from httpx2 import Response

from socialpub.sandbox import World
from tests.sandbox.clients import XClient
from tests.sandbox.files import MP4, PNG, base64_text, picture
from tests.stand_ins import x as api
from tests.stand_ins.pinterest import CarouselSource, ImageSource, NewPin, VideoSource
from tests.stand_ins.x import MediaReferences, NewPost, ReplyTarget
from tests.support.provider_documents import document

PINTEREST = "pinterest.yaml"


@cache
def official(name: str) -> dict[str, Any]:
    written = document("openapi", name).read_text()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load(written, Loader=loader) if name == PINTEREST else json.loads(written)
    _turn_into_json_schema(loaded)
    return loaded


def _turn_into_json_schema(part: Any) -> None:
    """Change OpenAPI 3.0 in place. A schema requires no member that it does not know (2.166 of X has some)."""
    if isinstance(part, list):
        for item in part:
            _turn_into_json_schema(item)
    if isinstance(part, dict):
        if part.pop("nullable", False) is True:
            if isinstance(part.get("type"), str):
                part["type"] = [part["type"], "null"]
            elif "allOf" in part:
                part["anyOf"] = [{"allOf": part.pop("allOf")}, {"type": "null"}]
        if isinstance(part.get("required"), list) and isinstance(part.get("properties"), dict):
            part["required"] = [name for name in part["required"] if name in part["properties"]]
        for item in part.values():
            _turn_into_json_schema(item)


def assert_fits(name: str, schema: Any, data: Any) -> None:
    checked = {"components": official(name)["components"], **schema}
    jsonschema.Draft4Validator(checked, format_checker=jsonschema.FormatChecker()).validate(data)


def assert_official(name: str, answer: Response, method: str, path: str) -> Response:
    answers = official(name)["paths"][path][method]["responses"]
    declared = answers.get(str(answer.status_code)) or answers.get("default")
    assert declared is not None, answer.text
    if "content" in declared:
        assert_fits(name, declared["content"]["application/json"]["schema"], answer.json())
    else:
        assert answer.content == b""
    return answer


# --- X ---------------------------------------------------------------------------------------------------------------

X_DOCUMENTS = {"new": "x.json", "old": "x-2.166.json"}
Check = Callable[[Response, str, str], Response]


@pytest.fixture(params=["new", "old"])
def dialect(request: pytest.FixtureRequest, world: World) -> str:
    world.x.dialect = request.param
    return world.x.dialect


@pytest.fixture
def check(dialect: str) -> Check:
    return lambda answer, method, path: assert_official(X_DOCUMENTS[dialect], answer, method, path)


def test_posts_are_as_the_document_says(world, dialect, check, web):
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


def test_uploads_are_as_the_document_says(world, check, x):
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


def test_the_account_is_as_the_document_says(check, x):
    fields = "id,name,username,profile_image_url,verified,verified_type,subscription_type,protected,public_metrics"
    check(x.call("GET", "/2/users/me"), "get", "/2/users/me")
    check(x.call("GET", "/2/users/me", params={"user.fields": fields}), "get", "/2/users/me")


def test_a_refused_request_names_a_problem_type_of_its_own_document(dialect, x):
    whole = official(X_DOCUMENTS[dialect])
    known = whole["components"]["schemas"]["Problem"]["discriminator"]["mapping"]
    assert x.post(shoe=1).json()["type"] in known
    assert x.call("GET", "/2/users/1/tweets").json()["errors"][0]["type"] in known


def test_the_fields_that_may_be_asked_for_are_those_of_the_documents():
    for name, parameter, held in (
        ("x.json", "PostFieldsParameter", api.POST_FIELDS["new"]),
        ("x.json", "UserFieldsParameter", api.USER_FIELDS),
        ("x-2.166.json", "TweetFieldsParameter", api.POST_FIELDS["old"]),
        ("x-2.166.json", "UserFieldsParameter", api.USER_FIELDS),
        ("x.json", "PostExpansionsParameter", api.EXPANSIONS["new"]),
        ("x-2.166.json", "TweetExpansionsParameter", api.EXPANSIONS["old"]),
    ):
        assert held <= set(official(name)["components"]["parameters"][parameter]["schema"]["items"]["enum"])


def test_the_body_of_a_post_has_fields_of_the_document():
    schemas = official("x.json")["components"]["schemas"]
    for name, shape in {"Request": NewPost, "Media": MediaReferences, "Reply": ReplyTarget}.items():
        assert set(shape.model_fields) <= set(schemas[f"CreatePosts{name}"]["properties"])


# --- Pinterest --------------------------------------------------------------------------------------------------------


def check_pinterest(answer: Response, method: str, path: str) -> Response:
    return assert_official(PINTEREST, answer, method, path)


@pytest.fixture(autouse=True)
def settings(world: World) -> None:
    world.pinterest.probes_video = False
    world.pinterest.processing_ticks = 1


def test_pins_are_as_the_document_says(world, pinterest):
    item = {"content_type": "image/jpeg", "data": base64_text(picture()), "title": "One", "link": "https://a.test"}
    bodies: list[Any] = [
        {"source_type": "image_base64", "content_type": "image/jpeg", "data": base64_text(picture())},
        {"source_type": "multiple_image_base64", "items": [item, item]},
    ]
    media_id = pinterest.video()
    while pinterest.look(media_id) != "succeeded":
        pass
    cover = {"cover_image_content_type": "image/jpeg", "cover_image_data": base64_text(picture())}
    bodies.append({"source_type": "video_id", "media_id": media_id, **cover})
    bodies.append({"source_type": "video_id", "media_id": media_id, "cover_image_key_frame_time": 1})
    request = official(PINTEREST)["paths"]["/pins"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    world.record = True
    for body in bodies:
        made = check_pinterest(
            pinterest.pin(body, title="A", description="B", alt_text="C", link="https://a.test"), "post", "/pins"
        )
        assert made.status_code == 201
        assert_fits(PINTEREST, request, world.requests[-1].json)
    check_pinterest(pinterest.call("GET", f"/boards/{pinterest.board_id}/pins"), "get", "/boards/{board_id}/pins")


def test_boards_the_account_and_videos_match_the_document(pinterest):
    check_pinterest(pinterest.call("GET", "/user_account"), "get", "/user_account")
    check_pinterest(pinterest.call("GET", "/boards"), "get", "/boards")
    made = check_pinterest(pinterest.call("POST", "/boards", json={"name": "New"}), "post", "/boards").json()
    check_pinterest(pinterest.call("GET", f"/boards/{made['id']}"), "get", "/boards/{board_id}")
    path = f"/boards/{made['id']}/sections"
    check_pinterest(pinterest.call("POST", path, json={"name": "Part"}), "post", "/boards/{board_id}/sections")
    check_pinterest(pinterest.call("GET", path), "get", "/boards/{board_id}/sections")
    registered = check_pinterest(
        pinterest.call("POST", "/media", json={"media_type": "video"}), "post", "/media"
    ).json()
    fields = official(PINTEREST)["components"]["schemas"]["MediaUploadParameters"]["properties"]
    assert set(registered["upload_parameters"]) == set(fields)
    assert pinterest.upload(registered).status_code == 204
    for _ in range(3):
        check_pinterest(pinterest.call("GET", f"/media/{registered['media_id']}"), "get", "/media/{media_id}")


def test_refusals_and_tokens_are_as_the_document_says(world, web, pinterest):
    for name in world.pinterest.errors:
        world.pinterest.next("create_pin").refuses(name)
        check_pinterest(pinterest.pin(), "post", "/pins")
    check_pinterest(pinterest.pin(board_id="x"), "post", "/pins")
    check_pinterest(pinterest.call("GET", "/boards/9/pins"), "get", "/boards/{board_id}/pins")
    refresh_token = world.pinterest.grant("demo")["refreshToken"]
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    check_pinterest(web.post("/pinterest/v5/oauth/token", data=form, auth=("app", "secret")), "post", "/oauth/token")
    check_pinterest(web.post("/pinterest/v5/oauth/token", data=form, auth=("app", "secret")), "post", "/oauth/token")


def test_the_body_of_a_pin_has_fields_of_the_document():
    schemas = official(PINTEREST)["components"]["schemas"]
    since_5_28 = {"ai_disclosures"}
    assert set(NewPin.model_fields) - since_5_28 <= set(schemas["PinCreate"]["properties"])
    mapping = schemas["PinMediaSource"]["discriminator"]["mapping"]
    for kind, shape in (
        ("image_base64", ImageSource),
        ("multiple_image_base64", CarouselSource),
        ("video_id", VideoSource),
    ):
        known = schemas[mapping[kind].rpartition("/")[2]]
        assert set(shape.model_fields) <= set(known["properties"]), kind
        assert {name for name, field in shape.model_fields.items() if field.is_required()} == set(known["required"])
