"""Records and blobs of the sandbox's Bluesky server, compared with what the real server answers."""

from typing import Any

import pytest

from socialpub.sandbox import World
from tests.sandbox.clients import BLUESKY_CREATED_AT, POST, BlueskyClient, xrpc_error
from tests.sandbox.files import PNG
from tests.stand_ins.bluesky_cid import cid_of_record
from tests.support.hand_clock import HandClock

GATE = "app.bsky.feed.threadgate"
CIDS = {
    "text": "bafyreiagfl2qx3j2akmevh5u2wnvknegbr7dgbqfjl672xx4gogbsyb6bq",
    "image": "bafyreibzopnlcx2k5fczapuyk77swt35ik54aekmphp7xzqy5yrbycmsea",
    "plain": "bafyreiaxp5bv35y2qzuswirbx77xg2b6rcz7idqvklvggioez2jfijkt5y",
}


# --- putRecord --------------------------------------------------------------------------------------------------------


def test_the_same_call_again_writes_nothing(world: World, bluesky: BlueskyClient) -> None:
    record, key = bluesky.record("Once"), bluesky.key()
    first, second = bluesky.put(record, key), bluesky.put(record, key)
    assert (first.status_code, second.status_code) == (200, 200)
    assert set(first.json()) == {"uri", "cid", "commit", "validationStatus"}
    assert second.json() == {name: value for name, value in first.json().items() if name != "commit"}
    assert first.json()["uri"] == f"at://{bluesky.account.did}/{POST}/{key}"
    assert world.bluesky.created == [first.json()["uri"]]


def test_another_record_under_the_same_key_is_an_invalid_swap(world: World, bluesky: BlueskyClient) -> None:
    key = bluesky.key()
    cid = bluesky.put(bluesky.record("One"), key).json()["cid"]
    refused = bluesky.put(bluesky.record("Two"), key)
    assert xrpc_error(refused) == (400, "InvalidSwap")
    assert refused.json()["message"] == f"Record was at {cid}"
    assert [post.text for post in world.bluesky.posts] == ["One"]
    overwriting = {"repo": bluesky.account.did, "collection": POST, "rkey": key, "record": bluesky.record("Three")}
    assert bluesky.procedure("repo.putRecord", overwriting).status_code == 200, "without swapRecord it overwrites"
    assert [post.text for post in world.bluesky.posts] == ["Three"]


def test_a_deleted_post_comes_back_with_the_same_call(world: World, bluesky: BlueskyClient) -> None:
    record, key = bluesky.record(), bluesky.key()
    uri = bluesky.put(record, key).json()["uri"]
    gone = {"repo": bluesky.account.did, "collection": POST, "rkey": key}
    assert "commit" in bluesky.procedure("repo.deleteRecord", gone).json()
    assert bluesky.procedure("repo.deleteRecord", gone).json() == {}, "repeatable"
    assert xrpc_error(bluesky.get(key)) == (400, "RecordNotFound")
    assert "commit" in bluesky.put(record, key).json()
    assert world.bluesky.created == [uri, uri]


def test_a_post_that_was_taken_down_is_not_found_but_its_key_is_taken(world: World, bluesky: BlueskyClient) -> None:
    record, key = bluesky.record(), bluesky.key()
    uri = bluesky.put(record, key).json()["uri"]
    world.bluesky.take_down(uri)
    assert xrpc_error(bluesky.get(key)) == (400, "RecordNotFound")
    assert bluesky.look("repo.listRecords", repo=bluesky.account.did, collection=POST).json()["records"] == []
    assert "commit" not in bluesky.put(record, key).json()
    again = {"repo": bluesky.account.did, "collection": POST, "rkey": key, "record": record}
    assert xrpc_error(bluesky.procedure("repo.createRecord", again)) == (500, "InternalServerError")
    assert world.bluesky.created == [uri]


def test_a_record_has_the_content_id_of_the_real_server() -> None:
    post = {"$type": POST, "text": "Grüße 👨‍👩‍👧", "createdAt": "2026-11-22T16:50:23.000Z"}
    assert cid_of_record(post) == CIDS["text"]
    blob = {
        "$type": "blob",
        "ref": {"$link": "bafkreiawqcamru7r3otftn4h2qhangy23eakh6d7ck5rytq2a3qpgqajl4"},
        "mimeType": "image/jpeg",
        "size": 653,
    }
    images = [{"image": blob, "alt": "", "aspectRatio": {"width": 40000, "height": 3}}]
    assert cid_of_record(post | {"embed": {"$type": "app.bsky.embed.images", "images": images}}) == CIDS["image"]
    assert cid_of_record({"a": [None, True, False, -1, -300, 2**40], "bb": {}}) == CIDS["plain"]
    with pytest.raises(ValueError, match="float"):
        cid_of_record({"a": 1.5})


# --- several records --------------------------------------------------------------------------------------------------


def writes(bluesky: BlueskyClient, *records: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    listed = [
        {"$type": "com.atproto.repo.applyWrites#create", "collection": collection, "rkey": rkey, "value": value}
        for collection, rkey, value in records
    ]
    return {"repo": bluesky.account.did, "writes": listed, "validate": True}


def gate(bluesky: BlueskyClient, key: str, allow: list[Any]) -> dict[str, Any]:
    uri = f"at://{bluesky.account.did}/{POST}/{key}"
    return {"$type": GATE, "post": uri, "allow": allow, "createdAt": BLUESKY_CREATED_AT}


def test_several_writes_happen_together_or_not_at_all(world: World, bluesky: BlueskyClient) -> None:
    key = bluesky.key()
    body = writes(bluesky, (POST, key, bluesky.record()), (GATE, key, gate(bluesky, key, [])))
    done = bluesky.procedure("repo.applyWrites", body).json()
    assert [one["uri"].rpartition("/")[0].rpartition("/")[2] for one in done["results"]] == [POST, GATE]
    assert done["results"][0]["$type"] == "com.atproto.repo.applyWrites#createResult"
    assert bluesky.get(key).json()["cid"] == done["results"][0]["cid"]
    repeated = bluesky.procedure("repo.applyWrites", body)
    assert xrpc_error(repeated) == (500, "InternalServerError"), "the repeat of a call that took effect"
    good, taken = bluesky.key(), (POST, key, bluesky.record("Other"))
    half = writes(bluesky, (POST, good, bluesky.record()), taken)
    assert xrpc_error(bluesky.procedure("repo.applyWrites", half)) == (500, "InternalServerError")
    long = writes(bluesky, (POST, good, bluesky.record()), (POST, bluesky.key(), bluesky.record("x" * 301)))
    assert xrpc_error(bluesky.procedure("repo.applyWrites", long)) == (400, "InvalidRequest")
    assert len(world.bluesky.posts) == 1


# --- lookups ----------------------------------------------------------------------------------------------------------


def test_records_are_read_without_a_token(bluesky: BlueskyClient) -> None:
    keys = [bluesky.key() for _ in range(3)]
    for key in keys:
        bluesky.put(bluesky.record(key), key)
    shown = bluesky.get(keys[0]).json()
    assert (shown["value"], set(shown)) == (bluesky.record(keys[0]), {"uri", "cid", "value"})
    listing = {"repo": bluesky.account.did, "collection": POST}
    first = bluesky.look("repo.listRecords", limit=2, **listing).json()
    assert [one["value"]["text"] for one in first["records"]] == [keys[2], keys[1]]
    rest = bluesky.look("repo.listRecords", cursor=first["cursor"], **listing).json()
    assert [one["value"]["text"] for one in rest["records"]] == [keys[0]]
    turned = bluesky.look("repo.listRecords", reverse="true", **listing).json()
    assert [one["value"]["text"] for one in turned["records"]] == keys
    assert xrpc_error(bluesky.look("repo.listRecords", limit=101, **listing))[0] == 400


def test_the_profile_shows_name_and_picture(bluesky: BlueskyClient) -> None:
    profile = bluesky.look("repo.getRecord", repo="demo.test", collection="app.bsky.actor.profile", rkey="self").json()
    assert profile["value"]["displayName"] == "Demo"
    cid = profile["value"]["avatar"]["ref"]["$link"]
    picture = bluesky.look("sync.getBlob", did=bluesky.account.did, cid=cid)
    assert (picture.headers["content-type"], len(picture.content)) == (
        "image/png",
        profile["value"]["avatar"]["size"],
    )


# --- blobs ------------------------------------------------------------------------------------------------------------


def images(*blobs: dict[str, Any], **fields: Any) -> dict[str, Any]:
    listed = [{"image": blob, "alt": "A", "aspectRatio": {"width": 1, "height": 1}, **fields} for blob in blobs]
    return {"$type": "app.bsky.embed.images", "images": listed}


def test_a_blob_that_no_record_names_is_removed_later(world: World, bluesky: BlueskyClient, clock: HandClock) -> None:
    lost, kept = bluesky.upload(), bluesky.upload(PNG + b"\0")
    assert bluesky.post(embed=images(kept)).status_code == 200
    clock.forward(world.bluesky.blob_seconds)
    bluesky = BlueskyClient(bluesky.web, world)
    late = bluesky.put(bluesky.record(embed=images(lost)), "3n3w2w2w2w2w2")
    assert xrpc_error(late) == (400, "BlobNotFound")
    assert bluesky.look("sync.getBlob", did=bluesky.account.did, cid=kept["ref"]["$link"]).status_code == 200
