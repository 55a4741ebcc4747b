"""A post on Bluesky: its key and record stay the same after a call, and a repeated call cannot create a second post."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from socialpub.providers.base import (
    Again,
    Done,
    ImageLimits,
    Kind,
    MediaFile,
    Memo,
    Outcome,
    Published,
    Refused,
    Unknown,
    Wait,
)
from socialpub.providers.bluesky.record import cid_of, new_key
from socialpub.providers.responses import AuthExpired, HttpResponse, NoAnswer, NotSent, Throttled
from tests.support.scripted_calls import NOW, answer
from tests.unit.providers.bluesky.script import ADAPTER, DID, Script, blob, image, job, refusal, run, stored, video

PUT, APPLY = "POST com.atproto.repo.putRecord", "POST com.atproto.repo.applyWrites"
GET, UPLOAD = "GET com.atproto.repo.getRecord", "POST com.atproto.repo.uploadBlob"
OTHERS = {"cid": "another", "value": {"text": "Other"}}
ABSENT = refusal(400, "RecordNotFound")
CRASHED = refusal(500, "InternalServerError")
BLOB_GONE = refusal(400, "BlobNotFound", "Could not find blob: bafkrei")
TOO_BIG = refusal(400, "InvalidRequest", "Invalid app.bsky.feed.post record: blob too big (maximum 1000000, got 2)")


def built(text: str = "Hello", *media: MediaFile, script: Script | None = None, **more: Any) -> Memo:
    memo = {"blobs": {str(one.position): {"blob": blob(), "width": 1200, "height": 675} for one in media}}
    outcome = run("record", script or Script(), text, *media, memo=memo, **more)
    assert isinstance(outcome, Done)
    return outcome.memo


def post_in(memo: Memo) -> dict[str, Any]:
    found: dict[str, Any] = memo["record"]["post"]
    return found


def written(memo: Memo) -> HttpResponse:
    uri = f"at://{DID}/app.bsky.feed.post/{memo['record']['key']}"
    if memo["record"]["gate"]:
        return answer(200, {"commit": {}, "results": [{"uri": uri, "cid": "bafy"}, {"uri": "at://gate"}]})
    return answer(200, {"uri": uri, "cid": memo["record"]["cid"], "validationStatus": "valid"})


def is_ours(outcome: Outcome, memo: Memo) -> bool:
    key = memo["record"]["key"]
    url = f"https://site.test/profile/{DID}/post/{key}"
    return outcome == Published(f"at://{DID}/app.bsky.feed.post/{key}", url)


# --- the record ------------------------------------------------------------------------------------------------------


def test_a_plan_ends_with_one_repeatable_commit():
    steps = ADAPTER.plan(job(Script(), "Hi", image(0), image(1)).content, {})
    assert [step.name for step in steps] == ["upload:0", "upload:1", "record", "publish"]
    assert [step.kind for step in steps] == [*[Kind.PREPARE] * 3, Kind.REPEATABLE]


def test_a_record_has_no_empty_fields_and_the_time_of_the_first_attempt():
    assert post_in(built("Hello \n")) == {
        "$type": "app.bsky.feed.post",
        "text": "Hello",
        "createdAt": "2026-11-21T12:00:00.000Z",
    }


def test_the_options_are_in_the_record():
    post = post_in(built(options={"languages": ["de", "en"], "contentLabels": ["nudity"]}))
    assert post["langs"] == ["de", "en"]
    assert post["labels"] == {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "nudity"}]}


def test_a_mention_of_a_known_handle_is_a_facet_and_of_an_unknown_one_is_text():
    script = Script(answer(200, {"did": "did:plc:bob"}), refusal(400, "HandleNotFound"))
    memo = built("Hi @bob.test and @gone.test", script=script)
    (facet,) = post_in(memo)["facets"]
    assert facet["features"] == [{"$type": "app.bsky.richtext.facet#mention", "did": "did:plc:bob"}]
    assert [call.params for call in script.calls] == [{"handle": "bob.test"}, {"handle": "gone.test"}]
    assert all("token" not in call.request for call in script.calls)


def test_a_mention_is_looked_up_three_times_and_others_once():
    text, bob, ann = "Hi @bob.test @ann.test", answer(502, b"<html>"), answer(200, {"did": "did:plc:ann"})
    first = run("record", Script(bob, ann), text)
    assert isinstance(first, Wait)
    second = run("record", Script(NoAnswer("timed out")), text, memo=first.memo)
    assert isinstance(second, Wait)
    third = run("record", Script(answer(200, {"did": "not a DID"})), text, memo=second.memo)
    assert isinstance(third, Done)
    (facet,) = post_in(third.memo)["facets"]
    assert facet["features"][0]["did"] == "did:plc:ann"
    assert third.memo["notes"] == [
        "The mention @bob.test is plain text, because the account's server could not look it up."
    ]


def test_a_lookup_waits_as_long_as_its_server_says_but_five_minutes_at_most():
    for retry_after, seconds in (("20", 20.0), ("86400", 300.0)):
        limited = refusal(429, "RateLimitExceeded", retry_after=retry_after)
        outcome = run("record", Script(limited), "Hi @bob.test")
        assert isinstance(outcome, Wait)
        assert outcome.seconds == seconds


def test_a_lookup_does_not_give_up_when_the_post_cannot_leave_either():
    with pytest.raises(NotSent):
        run("record", Script(NotSent("no route")), "Hi @bob.test", memo={"tries": {"The mention @bob.test": 2}})


def test_images_have_their_alt_text_and_the_size_that_was_uploaded():
    embed = post_in(built("Two", image(0, "A cat"), image(1)))["embed"]
    assert embed["$type"] == "app.bsky.embed.images"
    assert [one["alt"] for one in embed["images"]] == ["A cat", ""]
    assert embed["images"][0]["image"] == blob()
    assert embed["images"][0]["aspectRatio"] == {"width": 1200, "height": 675}


def test_a_video_and_a_card_have_their_own_embeds():
    embed = post_in(built("Clip", video()))["embed"]
    assert (embed["$type"], embed["video"], embed["alt"]) == ("app.bsky.embed.video", blob(), "A trip")
    card = {"uri": "https://example.com", "title": "Example", "description": "", "thumb": blob()}
    outcome = run("record", Script(), "https://example.com", memo={"card": card})
    assert isinstance(outcome, Done)
    assert post_in(outcome.memo)["embed"] == {"$type": "app.bsky.embed.external", "external": card}


PARENT = f"at://{DID}/app.bsky.feed.post/3n2zc7qpcsx2l"
ROOT = {"uri": f"at://{DID}/app.bsky.feed.post/3n2zc7qpcsaaa", "cid": "bafyroot"}
REPLY = {"replyToPostId": "p", "replyTo": PARENT}


@pytest.mark.parametrize(
    ("value", "root"),
    [
        ({}, {"uri": PARENT, "cid": "bafyparent"}),
        ({"reply": {"root": ROOT, "parent": {}}}, ROOT),
        ({"reply": {"root": "broken"}}, {"uri": PARENT, "cid": "bafyparent"}),
    ],
)
def test_a_reply_names_its_parent_and_the_root_of_the_thread(value, root):
    script = Script(answer(200, {"uri": PARENT, "cid": "bafyparent", "value": value}))
    memo = built(options={**REPLY, "replyControl": "nobody"}, script=script)
    assert post_in(memo)["reply"] == {"root": root, "parent": {"uri": PARENT, "cid": "bafyparent"}}
    assert memo["record"]["gate"] is None, "only the first post of a thread limits its replies"
    assert script.calls[0].params["rkey"] == "3n2zc7qpcsx2l"


def test_a_reply_without_its_parent_is_refused_and_an_unclear_answer_is_not_a_refusal():
    outcome = run("record", Script(ABSENT), options=REPLY)
    assert isinstance(outcome, Refused)
    assert outcome.parent_missing
    for unclear in (refusal(400, "InvalidRequest", "Could not locate record"), answer(404, b"<html>"), CRASHED):
        with pytest.raises(NoAnswer):
            run("record", Script(unclear), options=REPLY)


def test_keys_are_thirteen_characters_that_sort_by_time():
    keys = [new_key(NOW + timedelta(milliseconds=number)) for number in range(100)]
    assert keys == sorted(keys)
    assert {len(key) for key in keys} == {13}
    assert all(key[0] in "234567abcdefghij" for key in keys)


def test_the_cid_is_the_one_that_the_server_computes():
    # Recorded from a PDS 0.5.35.
    record = {
        "$type": "app.bsky.feed.post",
        "text": "Grüße 👨‍👩‍👧",
        "createdAt": "2026-11-23T23:35:09.892Z",
        "langs": ["de"],
        "embed": {
            "$type": "app.bsky.embed.images",
            "images": [
                {
                    "image": {
                        "$type": "blob",
                        "ref": {"$link": "bafkreig5kl4qpdlluxeppsknvke6ctdpriophthwie4x6h4nytuq4a66b4"},
                        "mimeType": "image/jpeg",
                        "size": 8229,
                    },
                    "alt": "x" * 300,
                    "aspectRatio": {"width": 80000, "height": 600},
                }
            ],
        },
    }
    assert cid_of(record) == "bafyreieuoi4alghb2lvzvp76zh2ouzcskgte2tsrhlog2otjicirc5wxii"
    reordered = dict(reversed(record.items()))
    assert cid_of(reordered) == cid_of(record)


# --- uploads ---------------------------------------------------------------------------------------------------------


def test_an_upload_sends_the_bytes_with_their_type_and_keeps_the_blob_as_it_is():
    odd = {**blob(), "extra": 1}
    script = Script(answer(200, {"blob": odd}))
    outcome = run("upload:0", script, "Hi", image())
    assert isinstance(outcome, Done)
    assert outcome.memo["blobs"]["0"] == {"blob": odd, "width": 1200, "height": 675}
    assert script.asked == [UPLOAD]
    assert script.calls[0].request["headers"] == {"content-type": "image/jpeg"}
    assert script.calls[0].request["content"].length == 120_000
    assert run("upload:0", Script(), "Hi", image(), memo=outcome.memo) == outcome


def test_an_image_is_fitted_and_its_new_size_counts():
    asked: list[ImageLimits] = []

    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        asked.append(limits)
        return replace(media, mime_type="image/webp", size_bytes=9, facts={"width": 30, "height": 40})

    script = Script(answer(200, {"blob": blob()}))
    outcome = run("upload:0", script, "Hi", image(), fit=fit)
    assert isinstance(outcome, Done)
    assert (asked[0].max_bytes, asked[0].max_width, asked[0].max_height) == (2_000_000, 4000, 4000)
    assert (outcome.memo["blobs"]["0"]["width"], outcome.memo["blobs"]["0"]["height"]) == (30, 40)
    assert script.calls[0].request["headers"] == {"content-type": "image/webp"}


def test_a_video_is_sent_as_it_is():
    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        raise AssertionError("a video is not fitted")

    assert isinstance(run("upload:0", Script(answer(200, {"blob": blob()})), "", video(), fit=fit), Done)


@pytest.mark.parametrize("reply", [refusal(413, "PayloadTooLarge"), answer(413, b"<html>")])
def test_an_image_that_the_server_finds_too_large_is_made_smaller_once(reply):
    back: dict[str, int] = {}
    first = run("upload:0", Script(reply), "Hi", image(), back=back)
    assert isinstance(first, Again)
    assert isinstance(run("upload:0", Script(reply), "Hi", image(), memo=first.memo, back=back), Refused)
    assert isinstance(run("upload:0", Script(reply), "Hi", video()), Refused)


@pytest.mark.parametrize("reply", [answer(200, b"<html>"), answer(200, {"blob": {}}), answer(200, {"blob": "x"})])
def test_an_upload_without_a_blob_is_no_answer(reply):
    with pytest.raises(NoAnswer):
        run("upload:0", Script(reply), "Hi", image())


# --- the commit ------------------------------------------------------------------------------------------------------


def test_one_record_is_put_only_where_nothing_is():
    memo = built()
    script = Script(written(memo))
    assert is_ours(run("publish", script, memo=memo), memo)
    assert script.asked == [PUT]
    assert script.calls[0].json == {
        "repo": DID,
        "collection": "app.bsky.feed.post",
        "rkey": memo["record"]["key"],
        "record": memo["record"]["post"],
        "swapRecord": None,
        "validate": True,
    }


@pytest.mark.parametrize(
    ("control", "rules"),
    [("followers", ["followerRule"]), ("following", ["followingRule"]), ("mentioned", ["mentionRule"]), ("nobody", [])],
)
def test_reply_control_is_a_second_record_with_the_same_key(control, rules):
    memo = built(options={"replyControl": control})
    script = Script(written(memo))
    assert is_ours(run("publish", script, memo=memo), memo)
    assert script.asked == [APPLY]
    post, gate = script.calls[0].json["writes"]
    assert post["rkey"] == gate["rkey"] == memo["record"]["key"]
    assert gate["value"]["post"] == f"at://{DID}/app.bsky.feed.post/{post['rkey']}"
    assert gate["value"]["allow"] == [{"$type": f"app.bsky.feed.threadgate#{rule}"} for rule in rules]


@pytest.mark.parametrize("control", [None, "everyone"])
def test_everyone_may_reply_without_a_second_record(control):
    assert built(options={"replyControl": control} if control else {})["record"]["gate"] is None


@pytest.mark.parametrize("before", [False, True])
def test_a_failed_call_is_followed_by_a_query_for_the_record(before):
    memo = built(options={"replyControl": "nobody"})
    script = Script(CRASHED, stored(memo))
    assert is_ours(run("publish", script, memo=memo, unknown_before=before), memo)
    assert script.asked == [APPLY, GET]
    assert "token" not in script.calls[1].request


@pytest.mark.parametrize(
    "look",
    [
        ABSENT,
        refusal(400, "InvalidRequest", "Could not locate record"),
        CRASHED,
        answer(200, b"<html>"),
        answer(200, {"cid": "another"}),
        NoAnswer("lost"),
    ],
)
def test_a_record_that_is_not_found_is_unknown(look):
    memo = built()
    for failed in (CRASHED, answer(502, b"<html>")):
        outcome = run("publish", Script(failed, look), memo=memo, unknown_before=True)
        assert isinstance(outcome, Unknown)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (NoAnswer("lost"), NoAnswer),
        (answer(404, b"<html>"), NoAnswer),
        (refusal(400, "ExpiredToken", "Token has expired"), AuthExpired),
        (refusal(401, "AuthenticationRequired"), AuthExpired),
        (refusal(429, "RateLimitExceeded"), Throttled),
        (refusal(401, "AccountDeactivated"), Throttled),
    ],
)
def test_a_call_that_says_nothing_about_the_post_is_raised(reply, kind):
    for before in (False, True):
        with pytest.raises(kind):
            run("publish", Script(reply), memo=built(), unknown_before=before)


@pytest.mark.parametrize("page", [answer(200, b"<html>"), answer(204), answer(200, {}), answer(200, {"uri": "at://x"})])
def test_a_success_that_does_not_name_the_record_is_checked(page):
    memo = built()
    assert isinstance(run("publish", Script(page, ABSENT), memo=memo), Unknown)
    assert is_ours(run("publish", Script(page, stored(memo)), memo=memo), memo)


def test_a_record_that_the_server_stores_in_another_form_is_ours():
    memo = built()
    assert is_ours(run("publish", Script(CRASHED, stored(memo, cid="another")), memo=memo), memo)


def test_a_rate_limit_waits_for_the_reset_on_the_clock_of_the_server():
    limited = refusal(
        429, "RateLimitExceeded", date="Sat, 21 Nov 2026 13:00:00 GMT", ratelimit_reset="1795266090", retry_after="5"
    )
    with pytest.raises(Throttled) as throttled:
        run("publish", Script(limited), memo=built())
    assert throttled.value.retry_after_seconds == 90


def test_a_record_that_was_never_sent_is_built_again_when_it_is_old():
    memo = built()
    assert is_ours(run("publish", Script(written(memo)), memo=memo, seconds=120), memo)
    outcome = run("publish", Script(), memo=memo, seconds=121)
    assert isinstance(outcome, Again)
    assert (outcome.step, outcome.memo) == ("record", {"blobs": {}})
    later = run("record", Script(), memo=outcome.memo, seconds=121)
    assert isinstance(later, Done)
    assert later.memo["record"]["key"] > memo["record"]["key"]
    assert later.memo["record"]["post"]["createdAt"] == "2026-11-21T12:02:01.000Z"


@pytest.mark.parametrize("set_by", [-86_400.0, 86_400.0])
def test_a_record_that_was_never_sent_is_built_again_when_the_clock_was_set(set_by):
    outcome = run("publish", Script(), memo=built(), wall_now=NOW + timedelta(seconds=set_by))
    assert isinstance(outcome, Again)


def test_a_record_that_may_have_been_sent_never_changes():
    memo = built()
    script = Script(written(memo))
    assert is_ours(run("publish", script, memo=memo, seconds=86_400, unknown_before=True), memo)
    assert script.calls[0].json["record"] == memo["record"]["post"]


def test_a_refusal_of_a_repeated_call_is_checked_with_the_record():
    memo = built()
    refused = refusal(400, "InvalidRequest", "Invalid")
    assert is_ours(run("publish", Script(refused, stored(memo)), memo=memo, unknown_before=True), memo)
    assert isinstance(run("publish", Script(refused, ABSENT), memo=memo, unknown_before=True), Refused)
    assert isinstance(run("publish", Script(refused), memo=memo), Refused)


def test_a_taken_key_is_ours_or_leads_to_another_key():
    memo, taken = built(), refusal(400, "InvalidSwap", "Record was at bafy")
    assert is_ours(run("publish", Script(taken, stored(memo)), memo=memo), memo)
    outcome = run("publish", Script(taken, stored(memo, **OTHERS)), memo=memo)
    assert isinstance(outcome, Again)
    assert outcome.step == "record"
    again = run("publish", Script(taken, stored(memo, **OTHERS)), memo=memo, unknown_before=True)
    assert isinstance(again, Refused)


def test_media_that_the_server_removed_are_uploaded_again_with_a_new_record():
    memo = built("Hi", image())
    outcome = run("publish", Script(BLOB_GONE), "Hi", image(), memo=memo)
    assert isinstance(outcome, Again)
    assert (outcome.step, outcome.memo) == ("upload:0", {})
    back = {outcome.cause: 2}
    assert isinstance(run("publish", Script(BLOB_GONE), "Hi", image(), memo=memo, back=back), Refused)


def test_media_removed_after_an_unknown_outcome_are_uploaded_again_with_the_same_record():
    memo = built("Hi", image())
    script = Script(BLOB_GONE, ABSENT, answer(200, {"blob": blob()}), written(memo))
    assert is_ours(run("publish", script, "Hi", image(), memo=memo, unknown_before=True), memo)
    assert script.asked == [PUT, GET, UPLOAD, PUT]
    assert script.calls[0].json == script.calls[3].json
    other = Script(BLOB_GONE, ABSENT, answer(200, {"blob": blob("b")}))
    assert isinstance(run("publish", other, "Hi", image(), memo=memo, unknown_before=True), Refused)


def test_an_older_server_gets_smaller_images_and_a_new_record():
    memo = built("Hi", image())
    outcome = run("publish", Script(TOO_BIG), "Hi", image(), memo=memo)
    assert isinstance(outcome, Again)
    assert (outcome.step, outcome.memo) == ("upload:0", {"max_bytes": 1_000_000})
    small = {**memo, "max_bytes": 1_000_000}
    assert isinstance(run("publish", Script(TOO_BIG), "Hi", image(), memo=small), Refused)
    assert isinstance(run("publish", Script(TOO_BIG, ABSENT), "Hi", image(), memo=memo, unknown_before=True), Refused)


@pytest.mark.parametrize(
    ("reply", "check"),
    [
        (refusal(401, "AccountTakedown"), lambda no: no.rest_seconds == 86_400 and not no.content),
        (refusal(403, "AccountNotFound"), lambda no: no.reauth),
        (
            refusal(400, "InvalidRequest", "grapheme too big"),
            lambda no: no.content and "grapheme too big" in no.message,
        ),
    ],
)
def test_the_state_of_the_account_is_told_apart_from_the_post(reply, check):
    outcome = run("publish", Script(reply), memo=built())
    assert isinstance(outcome, Refused)
    assert check(outcome)
