"""`POST /posts/{postId}/retry` never publishes twice (contract 1.18)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from socialpub.accounts import profiles
from socialpub.db.models import ArtifactRow, ProfileRow
from socialpub.db.states import State
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from tests.integration.api.client import Client
from tests.support.appliance import accept, add_profile, end_deliveries
from tests.support.rows import artifact
from tests.support.select import select_value


def retried(client: Client, post: str, body: Any = None, **headers: str) -> Any:
    reply = client.send("POST", f"/posts/{post}/retry", body, **headers)
    assert reply.status == 201, reply.body
    assert reply.headers["location"].endswith(f"/api/v1/posts/{reply.data['id']}")
    return reply.data


def shown(post: Any) -> Sequence[tuple[str, str]]:
    return [(delivery["profileId"], delivery["status"]) for delivery in post["deliveries"]]


@pytest.fixture
def two(rt: Runtime) -> tuple[str, str]:
    return add_profile(rt, "x", "a"), add_profile(rt, "pinterest", "b")


def test_only_failed_deliveries_are_retried_with_the_same_content(client, rt, two):
    x, pinterest = two
    media = (DraftMedia(artifact(rt), "A cat"), DraftMedia(artifact(rt)))
    post = accept(rt, x, pinterest, body="Hello", media=media, options={"pinterest": {"boardId": "5"}})
    end_deliveries(rt, post, State.PUBLISHED, State.FAILED)
    # Options stored later do not change the applied options.
    rt.db.write(lambda tx: tx.update(ProfileRow, pinterest, options={"boardId": "6", "title": "New"}))
    new = retried(client, post)
    assert new["id"] != post
    assert (new["status"], new["body"], shown(new)) == ("pending", "Hello", [(pinterest, "pending")])
    assert [item.get("alt") for item in new["media"]] == ["A cat", None]
    assert [item["artifactId"] for item in new["media"]] == [item.artifact_id for item in media]
    assert new["deliveries"][0]["providerOptions"] == {"boardId": "5"}


def test_a_retry_of_a_scheduled_post_is_published_now(client, rt, profile):
    post = accept(rt, profile, at=rt.now() + timedelta(hours=1))
    rt.db.write(lambda tx: tx.execute_sql("UPDATE post SET status = 'pending'"))
    end_deliveries(rt, post, State.FAILED)
    new = retried(client, post)
    assert "scheduledAt" not in new
    assert "scheduledAt" not in new["deliveries"][0]


def test_unknown_outcomes_are_retried_only_with_include_unknown(client, rt, two):
    x, pinterest = two
    post = accept(rt, x, pinterest)
    end_deliveries(rt, post, State.UNCONFIRMED, State.FAILED)
    assert shown(retried(client, post)) == [(pinterest, "pending")]
    reply = client.send("POST", f"/posts/{post}/retry")
    assert (reply.status, reply.json()["code"]) == (409, "conflict")
    assert shown(retried(client, post, {"includeUnknown": True})) == [(x, "pending")]


def test_a_conflict_names_include_unknown_if_only_unknown_outcomes_exist(client, rt, profile):
    post = accept(rt, profile)
    end_deliveries(rt, post, State.UNCONFIRMED)
    reply = client.send("POST", f"/posts/{post}/retry", {"includeUnknown": False})
    assert reply.status == 409
    assert "includeUnknown" in reply.json()["detail"]


def test_a_retry_of_a_post_without_failures_is_a_conflict(client, rt, profile):
    pending, published = accept(rt, profile), accept(rt, profile)
    scheduled = accept(rt, profile, at=rt.now() + timedelta(hours=1))
    canceled = accept(rt, profile, at=rt.now() + timedelta(hours=1))
    client.send("POST", f"/posts/{canceled}/cancel")
    end_deliveries(rt, published, State.PUBLISHED)
    for post in (pending, published, scheduled, canceled):
        assert client.send("POST", f"/posts/{post}/retry").status == 409


# --- nothing is posted twice -----------------------------------------------------------------------------------------


def test_a_second_retry_creates_no_second_post(client, rt, profile):
    post = accept(rt, profile)
    end_deliveries(rt, post, State.FAILED)
    new = retried(client, post)
    again = client.send("POST", f"/posts/{post}/retry")
    assert again.status == 409
    assert new["id"] in again.json()["detail"]
    end_deliveries(rt, new["id"], State.PUBLISHED)
    again = client.send("POST", f"/posts/{post}/retry", {"includeUnknown": True})
    assert again.status == 409
    assert "A later post has published" in again.json()["detail"]


def test_a_failed_retry_can_be_retried_from_either_post_but_only_once(client, rt, profile):
    first = accept(rt, profile)
    end_deliveries(rt, first, State.FAILED)
    second = retried(client, first)["id"]
    end_deliveries(rt, second, State.FAILED)
    third = retried(client, first)["id"]
    assert client.send("POST", f"/posts/{second}/retry").status == 409
    end_deliveries(rt, third, State.FAILED)
    fourth = retried(client, third)["id"]
    end_deliveries(rt, fourth, State.UNCONFIRMED)
    for post in (first, second, third, fourth):
        assert client.send("POST", f"/posts/{post}/retry").status == 409
    retried(client, second, {"includeUnknown": True})


def test_an_idempotency_key_replays_the_first_response(client, rt, profile):
    post = accept(rt, profile)
    end_deliveries(rt, post, State.FAILED)
    new = retried(client, post, idempotency_key="once")
    replayed = client.send("POST", f"/posts/{post}/retry", idempotency_key="once")
    assert (replayed.status, replayed.headers["idempotency-replayed"]) == (201, "true")
    assert replayed.data == new
    other = client.send("POST", f"/posts/{post}/retry", {"includeUnknown": True}, idempotency_key="once")
    assert other.status == 409
    assert select_value(rt.db, "SELECT count(*) FROM post") == 2


# --- obstacles -------------------------------------------------------------------------------------------------------


def test_a_retry_names_a_disconnected_profile(client, rt, two):
    post = accept(rt, *two)
    end_deliveries(rt, post, State.FAILED, State.FAILED)
    rt.write(profiles.disconnect, two[1])
    reply = client.send("POST", f"/posts/{post}/retry")
    assert (reply.status, reply.paths()) == (400, [["profiles"]])
    assert "pinterest “pinterest profile”" in reply.json()["detail"]
    assert select_value(rt.db, "SELECT count(*) FROM post") == 1


def test_a_retry_names_removed_media(client, rt, profile):
    kept, removed = artifact(rt), artifact(rt)
    post = accept(rt, profile, media=(DraftMedia(kept), DraftMedia(removed)))
    end_deliveries(rt, post, State.FAILED)
    rt.db.write(lambda tx: tx.update(ArtifactRow, removed, removed_at=tx.stamp))
    reply = client.send("POST", f"/posts/{post}/retry")
    assert (reply.status, reply.paths()) == (400, [["media", 1, "artifactId"]])


@pytest.mark.parametrize(
    ("body", "paths"),
    [({"includeUnknown": "true"}, [["includeUnknown"]]), ({"all": True}, [["all"]]), ([], [[]]), (b"{", [[]])],
)
def test_the_body_of_a_retry_is_strict(client, rt, profile, body, paths):
    post = accept(rt, profile)
    end_deliveries(rt, post, State.FAILED)
    reply = client.send("POST", f"/posts/{post}/retry", body)
    assert (reply.status, reply.paths()) == (400, paths)


def test_only_an_empty_body_needs_no_content_type(client, rt, profile):
    post = accept(rt, profile)
    end_deliveries(rt, post, State.FAILED)
    wrong = client.send("POST", f"/posts/{post}/retry", b"{}", content_type="text/plain")
    assert wrong.status == 415
    assert (
        client.send("POST", f"/posts/{post}/retry", b"", content_type="application/x-www-form-urlencoded").status == 201
    )
