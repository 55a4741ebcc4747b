"""The sandbox's Pinterest, held against Pinterest's own OpenAPI document."""

from functools import cache
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.pinterest.pins import CarouselSource, ImageSource, NewPin, VideoSource
from tests.sandbox.files import base64_text, picture
from tests.sandbox.pinterest_client import PinterestClient
from tests.support.provider_documents import document


@cache
def official() -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load(document("openapi", "pinterest.yaml").read_text(), Loader=loader)
    _mend(loaded)
    return loaded


def _mend(part: Any) -> None:
    """OpenAPI 3.0 to JSON Schema; what is nullable beside `allOf` may be null."""
    if isinstance(part, list):
        for item in part:
            _mend(item)
    if isinstance(part, dict):
        if part.pop("nullable", False) is True:
            if isinstance(part.get("type"), str):
                part["type"] = [part["type"], "null"]
            elif "allOf" in part:
                part["anyOf"] = [{"allOf": part.pop("allOf")}, {"type": "null"}]
        for item in part.values():
            _mend(item)


def operation(method: str, path: str) -> Any:
    return official()["paths"][path][method.lower()]


def assert_fits(schema: Any, data: Any) -> None:
    jsonschema.Draft4Validator({"components": official()["components"], **schema}).validate(data)


def check(answer: Response, method: str, path: str) -> Response:
    answers = operation(method, path)["responses"]
    declared = answers.get(str(answer.status_code)) or answers["default"]
    if "content" in declared:
        assert_fits(declared["content"]["application/json"]["schema"], answer.json())
    else:
        assert answer.content == b""
    return answer


@pytest.fixture(autouse=True)
def settings(world: World) -> None:
    world.pinterest.probes_video = False
    world.pinterest.processing_ticks = 1


def test_pins_are_as_the_document_says(world: World, pinterest: PinterestClient) -> None:
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
    request = operation("post", "/pins")["requestBody"]["content"]["application/json"]["schema"]
    world.record = True
    for body in bodies:
        made = check(
            pinterest.pin(body, title="A", description="B", alt_text="C", link="https://a.test"), "post", "/pins"
        )
        assert made.status_code == 201
        assert_fits(request, world.requests[-1].json)
    check(pinterest.call("GET", f"/boards/{pinterest.board_id}/pins"), "get", "/boards/{board_id}/pins")


def test_boards_the_account_and_films_are_as_the_document_says(pinterest: PinterestClient) -> None:
    check(pinterest.call("GET", "/user_account"), "get", "/user_account")
    check(pinterest.call("GET", "/boards"), "get", "/boards")
    made = check(pinterest.call("POST", "/boards", json={"name": "New"}), "post", "/boards").json()
    check(pinterest.call("GET", f"/boards/{made['id']}"), "get", "/boards/{board_id}")
    path = f"/boards/{made['id']}/sections"
    check(pinterest.call("POST", path, json={"name": "Part"}), "post", "/boards/{board_id}/sections")
    check(pinterest.call("GET", path), "get", "/boards/{board_id}/sections")
    registered = check(pinterest.call("POST", "/media", json={"media_type": "video"}), "post", "/media").json()
    fields = official()["components"]["schemas"]["MediaUploadParameters"]["properties"]
    assert set(registered["upload_parameters"]) == set(fields)
    assert pinterest.upload(registered).status_code == 204
    for _ in range(3):
        check(pinterest.call("GET", f"/media/{registered['media_id']}"), "get", "/media/{media_id}")


def test_refusals_and_tokens_are_as_the_document_says(
    world: World, web: TestClient, pinterest: PinterestClient
) -> None:
    for name in world.pinterest.refusals:
        world.pinterest.next("create_pin").refuses(name)
        check(pinterest.pin(), "post", "/pins")
    check(pinterest.pin(board_id="x"), "post", "/pins")
    check(pinterest.call("GET", "/boards/9/pins"), "get", "/boards/{board_id}/pins")
    refresh_token = world.pinterest.grant("demo")["refreshToken"]
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    check(web.post("/pinterest/v5/oauth/token", data=form, auth=("app", "secret")), "post", "/oauth/token")
    check(web.post("/pinterest/v5/oauth/token", data=form, auth=("app", "secret")), "post", "/oauth/token")


def test_the_body_of_a_pin_has_fields_of_the_document() -> None:
    schemas = official()["components"]["schemas"]
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
