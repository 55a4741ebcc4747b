"""A program that uses the generated Python client: upload an image, publish it, wait for the outcome.

It runs in the environment of the generator, beside the generated package `client`. It prints the ids of its posts.
"""

import io
import sys
from pathlib import Path
from uuid import UUID

import httpx
from client import AuthenticatedClient
from client.api.posts import create_post, get_post, list_posts, validate_post
from client.api.profiles import list_profiles
from client.api.uploads import complete_upload, reserve_upload
from client.models import (
    ArtifactAnswer,
    CompleteRequest,
    Delivery,
    DeliveryStatus,
    FormDraft,
    FormMediaItem,
    MediaReference,
    PinterestOptions,
    Post,
    PostAnswer,
    PostContent,
    PostDraft,
    PostForm,
    PostsAnswer,
    PostStatus,
    Problem,
    Profile,
    ProfilesAnswer,
    Provider,
    ProviderOptions,
    ReservationAnswer,
    UploadRequest,
    ValidationAnswer,
    XOptions,
    XOptionsReplySettings,
)
from client.types import File, Unset

WAIT_SECONDS = 60


def profile_on(client: AuthenticatedClient, provider: Provider) -> Profile:
    answer = list_profiles.sync(client=client)
    assert isinstance(answer, ProfilesAnswer), answer
    return next(one for one in answer.data if one.provider is provider)


def upload(client: AuthenticatedClient, picture: bytes) -> UUID:
    reserved = reserve_upload.sync(
        client=client, body=UploadRequest(file_name="sunset.jpg", mime_type="image/jpeg", file_size=len(picture))
    )
    assert isinstance(reserved, ReservationAnswer), reserved
    headers = reserved.data.required_headers.to_dict()
    httpx.put(reserved.data.upload_url, content=picture, headers=headers, trust_env=False).raise_for_status()
    done = complete_upload.sync(client=client, body=CompleteRequest(artifact_id=reserved.data.artifact_id))
    assert isinstance(done, ArtifactAnswer), done
    assert done.data.size_bytes == len(picture)
    return done.data.artifact_id


def settled(client: AuthenticatedClient, answer: PostAnswer | Problem | None) -> Post:
    assert isinstance(answer, PostAnswer), answer
    found = get_post.sync(post_id=answer.data.id, client=client, wait=WAIT_SECONDS)
    assert isinstance(found, PostAnswer), found
    assert found.data.status is PostStatus.SETTLED, found
    return found.data


def published(post: Post) -> list[Delivery]:
    for delivery in post.deliveries:
        assert delivery.status is DeliveryStatus.PUBLISHED, delivery
        assert not isinstance(delivery.url, Unset)
    return post.deliveries


def main(url: str, key: str, board_id: str, picture: bytes) -> list[UUID]:
    timeout = httpx.Timeout(WAIT_SECONDS + 30)
    with AuthenticatedClient(base_url=url, token=key, timeout=timeout, httpx_args={"trust_env": False}) as client:
        return publish(client, board_id, picture)


def publish(client: AuthenticatedClient, board_id: str, picture: bytes) -> list[UUID]:
    x, pinterest = profile_on(client, Provider.X), profile_on(client, Provider.PINTEREST)
    draft = PostDraft(
        post=PostContent(body="Published by a generated client"),
        profiles=[x.id, pinterest.id],
        media=[MediaReference(artifact_id=upload(client, picture), alt="The sun sets behind a lake")],
        provider_options=ProviderOptions(
            x=XOptions(reply_settings=XOptionsReplySettings.FOLLOWING),
            pinterest=PinterestOptions(board_id=board_id, title="Sunset"),
        ),
    )
    checked = validate_post.sync(client=client, body=draft)
    assert isinstance(checked, ValidationAnswer), checked
    assert checked.data.valid, checked
    first = settled(client, create_post.sync(client=client, body=draft, idempotency_key="sunset"))
    assert len(published(first)) == 2

    form = PostForm(
        payload=FormDraft(
            post=PostContent(body="With the picture in the same request"),
            profiles=[x.id],
            media=[FormMediaItem(file_field="sunset")],
        )
    )
    form["sunset"] = File(io.BytesIO(picture), file_name="sunset.jpg", mime_type="image/jpeg")
    second = settled(client, create_post.sync(client=client, body=form))
    published(second)

    page = list_posts.sync(client=client, status=PostStatus.SETTLED, providers=[Provider.X], page=0)
    assert isinstance(page, PostsAnswer), page
    assert [post.id for post in page.data] == [second.id, first.id]
    refused = get_post.sync(post_id=UUID(int=0), client=client)
    assert isinstance(refused, Problem), refused
    assert refused.code == "notFound"
    return [first.id, second.id]


if __name__ == "__main__":
    url, key, board_id, picture = sys.argv[1:]
    print(*main(url, key, board_id, Path(picture).read_bytes()))
