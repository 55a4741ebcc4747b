"""X as X's own Python library sees it: the library calls over a socket and reads every response.

Its models are made from X's API document. Nothing may come back that they do not know.
"""

import base64
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import requests
from oauthlib.oauth2 import OAuth2Error
from pydantic import BaseModel
from xdk import Client
from xdk.media.models import (
    AppendUploadRequest,
    CreateMetadataRequest,
    FinalizeUploadResponse,
    InitializeUploadRequest,
    UploadRequest,
)
from xdk.posts.models import CreateRequest

from socialpub.sandbox import World
from socialpub.sandbox.x.network import XMedia
from tests.sandbox.clients import redirect_parameters
from tests.sandbox.files import MP4, PNG, base64_text
from tests.support.hand_clock import HandClock

CALLBACK = "http://127.0.0.1:8000/oauth/x/callback"
SCOPES = ["tweet.read", "tweet.write", "users.read", "media.write", "offline.access"]


@pytest.fixture
def stranger(world: World, server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """The library of an app without any consent."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # Without it the library renews no token over plain HTTP, which is all that a sandbox speaks.
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    world.x.add_app("studio", "pa:ss/word", [CALLBACK])
    client = Client(
        base_url=f"{server}/x",
        authorization_base_url=f"{server}/x/i",
        client_id="studio",
        client_secret="pa:ss/word",
        redirect_uri=CALLBACK,
        scope=SCOPES,
    )
    with client.session:
        yield client


@pytest.fixture
def client(stranger: Client) -> Client:
    """The same, allowed to act for the account `demo`."""
    stranger.fetch_token(consent(stranger.get_authorization_url(state="a b")))
    return stranger


def consent(url: str) -> str:
    """Give the account's consent in the page at the library's address. Return where the browser is sent back to."""
    answer = httpx2.post(url, data={"account": "demo", "decision": "allow"}, trust_env=False)
    redirect_parameters(answer)
    return answer.headers["location"]


def known(answer: BaseModel) -> Any:
    """The answer's `data`; nothing in it is beyond X's document."""
    assert list(beyond(answer)) == []
    return getattr(answer, "data", None)


def beyond(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from (f"{path}.{name}" for name in value.model_extra or {})
        for name in type(value).model_fields:
            yield from beyond(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from beyond(item, f"{path}[]")


def post(client: Client, text: str, **options: Any) -> Any:
    return known(client.posts.create(CreateRequest(text=text, **options)))


def refusal(error: pytest.ExceptionInfo[requests.HTTPError]) -> tuple[int, str]:
    body = error.value.response.json()
    return error.value.response.status_code, body["errors"][0]["message"] if "errors" in body else body["detail"]


# --- access ----------------------------------------------------------------------------------------------------------


def test_consent_with_a_proof_key_gives_the_library_a_pair_of_tokens(stranger: Client) -> None:
    url = stranger.get_authorization_url(state="a b")
    assert "scope=tweet.read+tweet.write+users.read+media.write+offline.access" in url
    location = consent(url)
    assert httpx2.URL(location).params["state"] == "a b"
    token = stranger.fetch_token(location)
    assert token["token_type"] == "bearer"
    assert token["expires_in"] == 7200
    assert token["scope"].split() == SCOPES
    assert not stranger.is_token_expired()


def test_the_library_renews_its_pair_and_the_old_one_is_spent(client: Client) -> None:
    old = dict(client.token)
    client.refresh_token()
    assert client.token["refresh_token"] != old["refresh_token"]
    assert client.access_token != old["access_token"]
    assert known(client.users.get_me()).username == "demo"
    client.oauth2_session.token = old
    with pytest.raises(OAuth2Error, match="Value passed for the token was invalid"):
        client.refresh_token()


def test_a_pair_that_has_run_out_is_renewed_within_the_next_call(client: Client, clock: HandClock) -> None:
    clock.forward(7201)
    client.token["expires_at"] = 0
    assert post(client, "Renewed on the way").text == "Renewed on the way"


# --- posts -----------------------------------------------------------------------------------------------------------


def test_a_post_is_made_and_found_in_the_timeline(client: Client, world: World) -> None:
    made = post(client, "See example.org", made_with_ai=True, reply_settings="following")
    assert [one.id for one in world.x.posts] == [made.id]

    account_id = world.x.existing_account("demo").id
    fields = ["created_at", "text", "entities", "note_post", "attachments", "reply_settings"]
    page = next(client.users.get_posts(account_id, max_results=5, exclude=["retweets"], post_fields=fields))
    (found,) = known(page)
    assert (found.id, found.text, found.reply_settings) == (made.id, made.text, "following")
    assert found.created_at == "2026-10-12T09:00:00.000Z"
    assert found.edit_history_post_ids == [made.id]


def test_the_library_walks_through_the_pages_of_a_timeline(client: Client, world: World) -> None:
    made = [post(client, f"Number {number}").id for number in range(7)]
    pages = list(client.users.get_posts(world.x.existing_account("demo").id, max_results=5))
    assert [len(known(page)) for page in pages] == [5, 2]
    assert [one.id for page in pages for one in page.data] == made[::-1]


# --- media -----------------------------------------------------------------------------------------------------------


def test_a_picture_in_one_call_gets_its_alt_text_and_is_posted(client: Client, world: World) -> None:
    picture = known(client.media.upload(UploadRequest(media=base64_text(PNG), media_category="tweet_image")))
    assert (picture.size, picture.media_key) == (len(PNG), f"3_{picture.id}")
    described = CreateMetadataRequest(id=picture.id, metadata={"alt_text": {"text": "A dot"}})
    assert known(client.media.create_metadata(described)).associated_metadata == {"alt_text": {"text": "A dot"}}
    post(client, "A dot", media={"media_ids": [picture.id]})
    assert [(one.id, one.alt_text) for one in world.x.posts[0].media] == [(picture.id, "A dot")]


def test_a_video_in_pieces_is_processed_and_posted(client: Client, world: World, clock: HandClock) -> None:
    video = in_pieces(client, world, MP4 * 3, pieces=3)
    assert finalize(client, video.id).processing_info.state == "pending"
    with pytest.raises(requests.HTTPError) as error:
        post(client, "Too early", media={"media_ids": [video.id]})
    assert refusal(error) == (400, "Your media IDs are invalid.")

    states = []
    for _ in range(2):
        clock.forward(1)
        shown = known(client.media.get_upload_status(video.id, command="STATUS"))
        states.append(shown.processing_info.state)
    assert states == ["in_progress", "succeeded"]
    post(client, "In time", media={"media_ids": [video.id]})
    assert [one.id for one in world.x.posts[0].media] == [video.id]


def test_the_library_ends_an_upload_without_a_body_and_x_wants_one(client: Client, world: World) -> None:
    """Since July 2026 X refuses what its own library sends here; the document shows no body at all."""
    video = in_pieces(client, world, MP4, pieces=1)
    with pytest.raises(requests.HTTPError) as error:
        client.media.finalize_upload(video.id)
    assert refusal(error) == (400, "Request body must be a JSON object.")
    assert not video.finalized
    assert finalize(client, video.id).id == video.id


def in_pieces(client: Client, world: World, data: bytes, pieces: int) -> XMedia:
    begun = InitializeUploadRequest(media_category="tweet_video", media_type="video/mp4", total_bytes=len(data))
    media_id = known(client.media.initialize_upload(begun)).id
    size = len(data) // pieces
    for index in range(pieces):
        piece = base64.b64encode(data[index * size : (index + 1) * size]).decode()
        taken = client.media.append_upload(media_id, AppendUploadRequest(media=piece, segment_index=index))
        assert known(taken).expires_at > 0
    return world.x.media[media_id]


def finalize(client: Client, media_id: str) -> Any:
    """As the library does it, with the body that X asks for."""
    url = f"{client.base_url}/2/media/upload/{media_id}/finalize"
    answer = client.session.post(url, json={})
    answer.raise_for_status()
    return known(FinalizeUploadResponse.model_validate(answer.json()))
