"""What is stored on the server: texts with their facets, images, videos."""

from pathlib import Path

import pytest
from PIL import Image

from socialpub.accounts import upkeep
from socialpub.db.states import State
from tests.bluesky.stories import PUT, UPLOAD, Story
from tests.samples import media

FAMILY = "👨‍👩‍👧"


@pytest.mark.parametrize("text", ["a" * 301, "👨‍👩‍👧‍👦" * 121], ids=["301 letters", "121 families"])
def test_a_text_that_is_too_long_is_refused_before_any_call(story: Story, text: str) -> None:
    assert story.profile
    story.front.calls.clear()
    post = story.publish(text)
    assert story.outcome(post) == (State.FAILED, None)
    assert story.front.calls == []


@pytest.mark.parametrize("text", ["🇩🇪" * 300, "👨‍👩‍👧‍👦" * 120, "e\u0301" * 300, "\u0928\u093f" * 300])
def test_a_text_of_the_greatest_length_is_published(story: Story, text: str) -> None:
    story.assert_published_once(story.publish(text))
    assert story.texts() == [text]


def test_facets_mark_exactly_their_words_behind_emoji(story: Story) -> None:
    bob = story.server.add_account("bob")
    text = f"{FAMILY} https://example.com #täg @missing.test @{bob.handle}."
    story.assert_published_once(story.publish(text, options={"linkCard": False}))
    (record,) = story.records()
    assert record.value["text"] == text
    data = text.encode()
    marked = {
        data[one["index"]["byteStart"] : one["index"]["byteEnd"]].decode(): one["features"][0]
        for one in record.value["facets"]
    }
    kind = "app.bsky.richtext.facet#"
    assert marked == {
        "https://example.com": {"$type": f"{kind}link", "uri": "https://example.com"},
        "#täg": {"$type": f"{kind}tag", "tag": "täg"},
        f"@{bob.handle}": {"$type": f"{kind}mention", "did": bob.did},
    }


def test_languages_and_labels_are_stored(story: Story) -> None:
    options = {"languages": ["de", "pt-BR"], "contentLabels": ["nudity"]}
    story.assert_published_once(story.publish("Hallo", options=options))
    (record,) = story.records()
    assert record.value["langs"] == ["de", "pt-BR"]
    assert record.value["labels"]["values"] == [{"val": "nudity"}]


ALLOWED = {"followers": ["followerRule"], "following": ["followingRule"], "mentioned": ["mentionRule"], "nobody": []}


@pytest.mark.parametrize("control", ALLOWED)
def test_reply_control_is_stored_beside_the_post(story: Story, control: str) -> None:
    story.assert_published_once(story.publish("Hello", options={"replyControl": control}))
    (post,), (gate,) = story.records(), story.server.records(story.account, "app.bsky.feed.threadgate")
    assert gate.value["post"] == post.uri
    assert gate.uri.rpartition("/")[2] == post.uri.rpartition("/")[2]
    assert [rule["$type"].rpartition("#")[2] for rule in gate.value["allow"]] == ALLOWED[control]


def test_four_images_keep_their_order_alt_texts_and_shapes_but_not_their_place(story: Story, tmp_path: Path) -> None:
    sizes = [(640, 480), (480, 640), (800, 200), (300, 300)]
    images = [
        story.media(media.jpeg(tmp_path / f"{index}.jpg", *size, orientation=6), "image/jpeg", f"alt {index}")
        for index, size in enumerate(sizes)
    ]
    story.assert_published_once(story.publish("Images", media=images))
    (record,) = story.records()
    shown = record.value["embed"]["images"]
    assert [one["alt"] for one in shown] == ["alt 0", "alt 1", "alt 2", "alt 3"]
    for one, (width, height) in zip(shown, sizes, strict=True):
        assert one["aspectRatio"] == {"width": width, "height": height}, "after the rotation"
        stored = tmp_path / "stored"
        stored.write_bytes(story.server.blob(story.account, one["image"]["ref"]["$link"]))
        with Image.open(stored) as image:
            assert image.size == (width, height)
            assert 0x8825 not in image.getexif(), "the place of the photo"


@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_an_image_over_the_limit_is_fitted(story: Story, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"large.{kind}"
    getattr(media, kind)(path, 2400, 1800, noise=True)
    assert path.stat().st_size > 2_000_000
    story.assert_published_once(story.publish("Large", media=[story.media(path, f"image/{kind}")]))
    (record,) = story.records()
    assert record.value["embed"]["images"][0]["image"]["size"] <= 2_000_000


def test_five_images_are_refused_before_any_call(story: Story, tmp_path: Path) -> None:
    image = story.media(media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    assert story.profile
    story.front.calls.clear()
    post = story.publish("Five", media=[image] * 5)
    assert story.outcome(post) == (State.FAILED, None)
    assert story.front.calls == []


def test_a_file_whose_post_was_deleted_is_uploaded_again(story: Story, tmp_path: Path) -> None:
    image = story.media(media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    first = story.publish("First", media=[image])
    story.server.delete_record(story.account, story.records()[0])
    second = story.publish("Second", media=[image])
    story.assert_published_once(second)
    assert story.outcome(first)[0] is State.PUBLISHED


def test_a_file_that_is_gone_before_the_commit_is_uploaded_again(story: Story, tmp_path: Path) -> None:
    """The same bytes belong to an earlier post, which its owner deletes between the upload and the commit."""
    image = story.media(media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    story.publish("First", media=[image])
    story.front.calls.clear()
    (record,) = story.records()

    def delete_first(exchange) -> None:
        story.server.delete_record(story.account, record)
        exchange.send(exchange.forward())

    story.front.next(PUT, delete_first)
    second = story.publish("Second", media=[image])
    story.assert_published_once(second)
    assert [call.status for call in story.front.calls_of(PUT)] == [400, 200]
    assert len(story.front.calls_of(UPLOAD)) == 2


def test_a_video_is_stored_as_it_is_once_the_email_address_is_confirmed(story: Story, tmp_path: Path) -> None:
    path = media.video_mp4(tmp_path / "a.mp4", seconds=2)
    refused = story.publish("Video", media=[story.media(path, "video/mp4")])
    assert "The email address of this account is not confirmed" in story.message(refused)
    story.server.confirm_email(story.account)
    upkeep.fetch_account_data(story.rt, story.profile)
    story.assert_published_once(story.publish("Video", media=[story.media(path, "video/mp4", "A test")]))
    (record,) = story.records()
    embed = record.value["embed"]
    assert (embed["$type"], embed["alt"]) == ("app.bsky.embed.video", "A test")
    assert story.server.blob(story.account, embed["video"]["ref"]["$link"]) == path.read_bytes()
