"""Records and blobs of the sandbox's Bluesky server, compared with what the real server answers."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.clients import BLUESKY_CREATED_AT, POST, BlueskyClient, xrpc_error
from tests.sandbox.files import MP4, PNG
from tests.stand_ins.bluesky_cid import cid_of_record
from tests.support.hand_clock import HandClock

GATE = "app.bsky.feed.threadgate"
FAMILY = "👨‍👩‍👧‍👦"
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


@pytest.mark.parametrize("key", ["", "1", "self", "Z2w2w2w2w2w2w", "3n2w2w2w2w2w1", "3n2w2w2w2w2w22"])
def test_a_key_of_another_form_is_refused(bluesky: BlueskyClient, key: str) -> None:
    body = {"repo": bluesky.account.did, "collection": POST, "rkey": key, "record": bluesky.record()}
    refused = bluesky.procedure("repo.putRecord", body)
    assert xrpc_error(refused) == (400, "InvalidRequest")
    assert "Invalid record key" in refused.json()["message"]


def test_only_the_own_repository_can_be_written(world: World, bluesky: BlueskyClient) -> None:
    other = world.bluesky.existing_account("studio")
    assert xrpc_error(bluesky.put(bluesky.record(), repo=other.did)) == (401, "AuthenticationRequired")
    assert xrpc_error(bluesky.put(bluesky.record(), repo="nobody.test")) == (403, "AccountNotFound")
    assert bluesky.put(bluesky.record(), repo="demo.test").status_code == 200
    world.bluesky.change_account("demo", handle="renamed.test")
    assert xrpc_error(bluesky.put(bluesky.record(), repo="demo.test")) == (403, "AccountNotFound")


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


def test_the_edges_of_several_writes(bluesky: BlueskyClient) -> None:
    key = bluesky.key()
    twice = writes(bluesky, (POST, key, bluesky.record()), (POST, key, bluesky.record()))
    assert xrpc_error(bluesky.procedure("repo.applyWrites", twice))[0] == 500
    nothing = {"$type": "com.atproto.repo.applyWrites#delete", "collection": POST, "rkey": key}
    body = {"repo": bluesky.account.did, "writes": [nothing]}
    assert xrpc_error(bluesky.procedure("repo.applyWrites", body))[0] == 500
    untyped = {"repo": bluesky.account.did, "writes": [{"collection": POST, "value": bluesky.record()}]}
    assert xrpc_error(bluesky.procedure("repo.applyWrites", untyped))[0] == 400
    empty = bluesky.procedure("repo.applyWrites", {"repo": bluesky.account.did, "writes": []})
    assert "commit" in empty.json()


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


@pytest.mark.parametrize("status", ["deactivated", "takendown", "deleted"])
def test_a_server_that_does_not_show_an_account_says_nothing_about_its_posts(
    world: World, bluesky: BlueskyClient, status: Any
) -> None:
    key = bluesky.key()
    bluesky.put(bluesky.record(), key)
    world.bluesky.change_account("demo", status=status)
    shown = bluesky.get(key)
    assert (*xrpc_error(shown), shown.json()["message"]) == (400, "InvalidRequest", "Could not locate record")


def test_the_profile_shows_name_and_picture(bluesky: BlueskyClient) -> None:
    profile = bluesky.look("repo.getRecord", repo="demo.test", collection="app.bsky.actor.profile", rkey="self").json()
    assert profile["value"]["displayName"] == "Demo"
    cid = profile["value"]["avatar"]["ref"]["$link"]
    picture = bluesky.look("sync.getBlob", did=bluesky.account.did, cid=cid)
    assert (picture.headers["content-type"], len(picture.content)) == (
        "image/png",
        profile["value"]["avatar"]["size"],
    )


# --- what a record may contain ----------------------------------------------------------------------------------------

LINK = {"$type": "app.bsky.richtext.facet#link", "uri": "https://example.com"}


def facet(feature: dict[str, Any], begin: Any = 0, end: Any = 5) -> dict[str, Any]:
    return {"facets": [{"index": {"byteStart": begin, "byteEnd": end}, "features": [feature]}]}


def external(**fields: Any) -> dict[str, Any]:
    card = {"uri": "https://example.com", "title": "", "description": ""} | fields
    return {"embed": {"$type": "app.bsky.embed.external", "external": card}}


ACCEPTED: dict[str, dict[str, Any]] = {
    "300 graphemes": {"text": "x" * 300},
    "120 families": {"text": FAMILY * 120},
    "300 flags": {"text": "🇩🇪" * 300},
    "nothing": {"text": ""},
    "an unknown field": {"mood": "good"},
    "three languages": {"langs": ["de", "pt-BR", "en"]},
    "a zone": {"createdAt": "2026-11-22T16:50:23+01:00"},
    "offsets beyond the end": facet(LINK, 90, 80),
    "javascript": facet({**LINK, "uri": "javascript:alert(1)"}),
    "letters of any script": facet({**LINK, "uri": "https://exämple.com/ü"}),
    "a label": {"labels": {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "sexual"}]}},
    "an empty list of images": {"embed": {"$type": "app.bsky.embed.images", "images": []}},
    "an unknown embed": {"embed": {"$type": "app.bsky.embed.hologram"}},
    "a card": external(),
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "301 graphemes": ({"text": "x" * 301}, "$.record.text"),
    "121 families": ({"text": FAMILY * 121}, "$.record.text"),
    "a number as text": ({"text": 1}, "$.record.text"),
    "a fraction": ({"weight": 1.5}, "$.record.weight"),
    "null": ({"langs": None}, "$.record.langs"),
    "four languages": ({"langs": ["de", "en", "fr", "it"]}, "$.record.langs"),
    "the name of a language": ({"langs": ["english language"]}, "$.record.langs[0]"),
    "no zone": ({"createdAt": "2026-11-22T16:50:23"}, "$.record.createdAt"),
    "minus zero": ({"createdAt": "2026-11-22T16:50:23-00:00"}, "$.record.createdAt"),
    "a blank": ({"createdAt": "2026-11-22 16:50:23Z"}, "$.record.createdAt"),
    "a date": ({"createdAt": "2026-11-22"}, "$.record.createdAt"),
    "a handle as DID": (
        facet({"$type": "app.bsky.richtext.facet#mention", "did": "demo.test"}),
        "$.record.facets[0].features[0].did",
    ),
    "a URL without a scheme": (facet({**LINK, "uri": "example.com"}), "$.record.facets[0].features[0].uri"),
    "a URL with a blank": (facet({**LINK, "uri": "https://a b"}), "$.record.facets[0].features[0].uri"),
    "a long tag": (
        facet({"$type": "app.bsky.richtext.facet#tag", "tag": "x" * 65}),
        "$.record.facets[0].features[0].tag",
    ),
    "a negative offset": (facet(LINK, -1), "$.record.facets[0].index.byteStart"),
    "labels without a type": ({"labels": {"values": []}}, "$.record.labels"),
    "an embed without a type": ({"embed": {"images": []}}, "$.record.embed"),
    "a card without a title": (
        {"embed": {"$type": "app.bsky.embed.external", "external": {"uri": "https://a.test"}}},
        "$.record.embed.external",
    ),
    "a reply without a cid": (
        {"reply": {"root": {"uri": "at://did:plc:a/app.bsky.feed.post/3n2w2w2w2w222"}}},
        "$.record.reply.root",
    ),
}


@pytest.mark.parametrize("fields", ACCEPTED.values(), ids=ACCEPTED)
def test_what_the_server_accepts(bluesky: BlueskyClient, fields: dict[str, Any]) -> None:
    answer = bluesky.put(bluesky.record() | fields, validate=True)
    assert answer.status_code == 200, answer.text
    assert answer.json()["cid"] == cid_of_record(bluesky.record() | fields)


@pytest.mark.parametrize(("fields", "path"), REFUSED.values(), ids=REFUSED)
def test_what_the_server_refuses_names_the_field(bluesky: BlueskyClient, fields: dict[str, Any], path: str) -> None:
    answer = bluesky.put(bluesky.record() | fields)
    assert xrpc_error(answer) == (400, "InvalidRequest")
    assert answer.json()["message"].startswith("Invalid app.bsky.feed.post record: ")
    assert answer.json()["message"].endswith(f" at {path}")


def test_bodies_of_another_kind_are_refused(bluesky: BlueskyClient) -> None:
    large = bluesky.put(bluesky.record(note="x" * 1_000_000))
    assert xrpc_error(large) == (413, "PayloadTooLargeError")
    assert xrpc_error(bluesky.procedure("repo.putRecord", {"repo": "demo.test"})) == (400, "InvalidRequest")
    assert xrpc_error(bluesky.procedure("repo.putRecord", content=b"{}")) == (400, "InvalidRequest")
    other = bluesky.put({**bluesky.record(), "$type": "app.bsky.feed.like"})
    assert xrpc_error(other) == (400, "InvalidRequest")
    body = {"repo": "demo.test", "collection": "com.example.thing", "rkey": bluesky.key(), "record": {}}
    assert bluesky.procedure("repo.putRecord", body).json()["validationStatus"] == "unknown"
    assert xrpc_error(bluesky.procedure("repo.putRecord", body | {"validate": True})) == (400, "InvalidRequest")


# --- blobs ------------------------------------------------------------------------------------------------------------


def images(*blobs: dict[str, Any], **fields: Any) -> dict[str, Any]:
    listed = [{"image": blob, "alt": "A", "aspectRatio": {"width": 1, "height": 1}, **fields} for blob in blobs]
    return {"$type": "app.bsky.embed.images", "images": listed}


def test_four_images_fit_into_a_post_and_five_do_not(world: World, bluesky: BlueskyClient) -> None:
    blob = bluesky.upload()
    assert blob == bluesky.upload(), "the same bytes give the same blob"
    assert bluesky.post(embed=images(*[blob] * 4)).status_code == 200
    assert "array too big" in bluesky.post(embed=images(*[blob] * 5)).json()["message"]
    assert (
        "at $.record.embed.images[0].aspectRatio.width"
        in (bluesky.post(embed=images(blob, aspectRatio={"width": 0, "height": 1})).json()["message"])
    )
    stored = bluesky.look("sync.getBlob", did=bluesky.account.did, cid=blob["ref"]["$link"])
    assert (stored.content, stored.headers["content-type"]) == (PNG, "image/png")


def test_the_type_of_a_blob_comes_from_its_bytes(bluesky: BlueskyClient) -> None:
    assert bluesky.upload(PNG, "image/jpeg")["mimeType"] == "image/png"
    assert bluesky.upload(MP4, "application/octet-stream")["mimeType"] == "video/mp4"
    assert bluesky.upload(b"ten bytes.", "image/png")["mimeType"] == "image/png", "it does not decode"


def test_an_image_over_the_limit_is_uploaded_but_not_posted(world: World, bluesky: BlueskyClient) -> None:
    blob = bluesky.upload(PNG + b"\0" * (2_000_001 - len(PNG)))
    refused = bluesky.post(embed=images(blob))
    assert "blob too big (maximum 2000000, got 2000001)" in refused.json()["message"]
    world.bluesky.blob_limit = 100
    too_large = bluesky.procedure("repo.uploadBlob", content=b"x" * 101, headers={"content-type": "image/png"})
    assert xrpc_error(too_large) == (413, "PayloadTooLarge")


def test_a_video_is_posted_as_mp4_only(bluesky: BlueskyClient) -> None:
    def video(blob: dict[str, Any]) -> dict[str, Any]:
        return {"$type": "app.bsky.embed.video", "video": blob, "alt": "A", "aspectRatio": {"width": 16, "height": 9}}

    assert bluesky.post(embed=video(bluesky.upload(MP4, "video/mp4"))).status_code == 200
    quick_time = bluesky.upload(MP4[:8] + b"qt  " + MP4[12:], "video/quicktime")
    assert 'expected a blob of type "video/mp4"' in bluesky.post(embed=video(quick_time)).json()["message"]


def test_a_blob_object_is_compared_with_the_stored_blob(world: World, bluesky: BlueskyClient) -> None:
    blob = bluesky.upload()
    assert xrpc_error(bluesky.post(embed=images(blob | {"size": 1}))) == (400, "InvalidSize")
    assert xrpc_error(bluesky.post(embed=images(blob | {"mimeType": "image/jpeg"}))) == (400, "InvalidMimeType")
    studio = BlueskyClient(bluesky.web, world, "studio")
    assert xrpc_error(studio.post(embed=images(blob))) == (400, "BlobNotFound"), "another account's"


def test_a_blob_goes_with_the_last_record_that_names_it(world: World, bluesky: BlueskyClient) -> None:
    blob = bluesky.upload()
    first, second = (bluesky.post(str(n), embed=images(blob)).json()["uri"] for n in range(2))
    world.bluesky.delete(first)
    assert bluesky.post("third", embed=images(blob)).status_code == 200
    world.bluesky.delete(second)
    world.bluesky.delete(world.bluesky.posts[0].uri)
    assert xrpc_error(bluesky.post(embed=images(blob))) == (400, "BlobNotFound")
    assert bluesky.upload() == blob
    assert bluesky.post(embed=images(blob)).status_code == 200


def test_a_blob_that_no_record_names_is_removed_later(world: World, bluesky: BlueskyClient, clock: HandClock) -> None:
    lost, kept = bluesky.upload(), bluesky.upload(PNG + b"\0")
    assert bluesky.post(embed=images(kept)).status_code == 200
    clock.forward(world.bluesky.blob_seconds)
    bluesky = BlueskyClient(bluesky.web, world)
    late = bluesky.put(bluesky.record(embed=images(lost)), "3n3w2w2w2w2w2")
    assert xrpc_error(late) == (400, "BlobNotFound")
    assert bluesky.look("sync.getBlob", did=bluesky.account.did, cid=kept["ref"]["$link"]).status_code == 200


def test_uploads_that_the_server_cannot_read(bluesky: BlueskyClient, web: TestClient) -> None:
    compressed = {"content-type": "image/png", "content-encoding": "gzip"}
    assert xrpc_error(bluesky.procedure("repo.uploadBlob", content=PNG, headers=compressed))[0] == 500
    malformed = {"authorization": "Bearer nonsense", "content-type": "image/png"}
    answer = web.post("/bluesky/xrpc/com.atproto.repo.uploadBlob", content=PNG, headers=malformed)
    assert answer.status_code == 500, "not 400, as for other calls"
