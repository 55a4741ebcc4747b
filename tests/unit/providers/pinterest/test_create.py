"""The call that creates a pin: its body, and the meaning of each response."""

from dataclasses import replace
from typing import Any

import pytest

from socialpub.providers.base import (
    Again,
    Content,
    Done,
    ImageLimits,
    Kind,
    MediaFile,
    Published,
    Refused,
    Step,
    Unfit,
    Unknown,
    Wait,
)
from socialpub.providers.responses import AppRefused, AuthExpired, NoAnswer, Throttled
from tests.unit.providers.pinterest.script import (
    ADAPTER,
    BOARD,
    MEDIA,
    PIN,
    SECTION,
    Script,
    answer,
    error,
    image,
    run,
    video,
)

MADE = answer(201, {"id": PIN, "created_at": "2026-11-21T12:00:01"}, x_pinterest_rid="rid1")
READY = {"video": {"id": MEDIA, "uploaded_at": 1.0, "polls": 1, "ready": True}}


def test_an_image_is_fitted_before_the_call_that_creates_the_pin(tmp_path):
    steps = ADAPTER.plan(Content("", (image(tmp_path),)), {})
    assert steps == [Step("board", Kind.PREPARE), Step("fit", Kind.PREPARE), Step("create_pin", Kind.COMMIT)]


def test_a_video_is_uploaded_and_processed_before_the_call_that_creates_the_pin():
    assert ADAPTER.plan(Content("", (video(),)), {}) == [
        Step("board", Kind.PREPARE),
        Step("upload", Kind.PREPARE),
        Step("await_processing", Kind.POLL),
        Step("create_pin", Kind.COMMIT),
    ]


def test_an_unknown_step_publishes_nothing(tmp_path):
    with pytest.raises(KeyError):
        run("craete_pin", Script(), image(tmp_path))


def test_a_pin_contains_its_texts_and_the_image(tmp_path):
    script = Script(MADE)
    outcome = run(
        "create_pin",
        script,
        image(tmp_path, data=b"\xff\xd8\xfb\xff", alt="Blue lighthouse"),
        text="Two colour print.",
        boardSectionId=SECTION,
        title="Poster no. 4",
        link="https://studio.example/4",
        dominantColor="#6E7874",
        aiDisclosures=["AI_MODIFIED", "SYNTHETIC_PERFORMER"],
    )
    assert outcome == Published(PIN, f"https://www.pinterest.com/pin/{PIN}/")
    assert script.asked == ["POST /pins"]
    assert script.calls[0].json == {
        "board_id": BOARD,
        "board_section_id": SECTION,
        "title": "Poster no. 4",
        "description": "Two colour print.",
        "alt_text": "Blue lighthouse",
        "link": "https://studio.example/4",
        "dominant_color": "#6E7874",
        "ai_disclosures": {"values": ["AI_MODIFIED", "SYNTHETIC_PERFORMER"]},
        "media_source": {"source_type": "image_base64", "content_type": "image/jpeg", "data": "/9j7/w=="},
    }
    assert script.calls[0].request["token"] == "pina_1"


def test_empty_fields_are_left_out(tmp_path):
    script = Script(MADE)
    run("create_pin", script, image(tmp_path), text=" \n")
    assert set(script.calls[0].json) == {"board_id", "media_source"}


def test_several_images_are_one_pin_with_the_first_alt_text(tmp_path):
    script = Script(MADE)
    media = [image(tmp_path, 0), image(tmp_path, 1, alt="Two"), image(tmp_path, 2, alt="Three")]
    run("create_pin", script, *media)
    body = script.calls[0].json
    assert body["alt_text"] == "Two"
    assert body["media_source"]["source_type"] == "multiple_image_base64"
    assert [set(item) for item in body["media_source"]["items"]] == [{"content_type", "data"}] * 3


@pytest.mark.parametrize(("options", "seconds"), [({}, 0), ({"coverImageKeyFrameTime": 7}, 7)])
def test_the_cover_of_a_video_is_its_first_frame_unless_another_is_chosen(options, seconds):
    script = Script(MADE)
    run("create_pin", script, video(), memo=READY, **options)
    assert script.calls[0].json["media_source"] == {
        "source_type": "video_id",
        "media_id": MEDIA,
        "cover_image_key_frame_time": seconds,
    }


def test_a_cover_image_is_fitted_before_the_video_is_sent_and_is_part_of_the_pin(tmp_path):
    cover = image(tmp_path, data=b"\xff\xd8\xfb\xff")
    options = {"coverArtifactId": "a1"}
    names = [step.name for step in ADAPTER.plan(Content("", (video(),), {"a1": cover}), options)]
    assert names == ["board", "fit", "upload", "await_processing", "create_pin"]
    asked: list[ImageLimits] = []

    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        assert media is cover
        asked.append(limits)
        return media

    fitted = run("fit", Script(), video(), files={"a1": cover}, fit=fit, **options)
    assert isinstance(fitted, Done)
    assert [(limits.types, limits.max_bytes) for limits in asked] == [(("image/jpeg", "image/png"), 10_000_000)]
    script = Script(MADE)
    run("create_pin", script, video(), memo={**fitted.memo, **READY}, files={"a1": cover}, fit=fit, **options)
    assert script.calls[0].json["media_source"] == {
        "source_type": "video_id",
        "media_id": MEDIA,
        "cover_image_content_type": "image/jpeg",
        "cover_image_data": "/9j7/w==",
    }
    too_large = run("create_pin", Script(error(413, 413)), video(), memo=READY, files={"a1": cover}, **options)
    assert isinstance(too_large, Again)
    assert (too_large.step, too_large.memo["max_bytes"]) == ("fit", 5_000_000)
    with pytest.raises(Unfit, match="cover image a1 is missing"):
        run("create_pin", Script(), video(), memo=READY, **options)


def test_a_video_that_is_not_ready_never_becomes_a_pin():
    outcome = run("create_pin", Script(), video(), memo={"video": {"id": MEDIA, "uploaded_at": 1.0, "polls": 0}})
    assert isinstance(outcome, Again)
    assert (outcome.step, outcome.memo["video"]) == ("upload", None)


def test_the_request_id_is_kept_for_pinterests_support(tmp_path):
    from tests.unit.providers.pinterest.script import job

    conversation = job(Script(MADE), image(tmp_path))
    ADAPTER.run("create_pin", conversation)
    assert (conversation.trace.request_id, conversation.trace.code) == ("rid1", None)
    conversation = job(Script(error(404, 40)), image(tmp_path))
    ADAPTER.run("create_pin", conversation)
    assert conversation.trace.code == "40"


def test_one_image_may_have_ten_megabytes_and_each_of_several_two(tmp_path):
    asked: list[ImageLimits] = []

    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        asked.append(limits)
        return media

    run("fit", Script(), image(tmp_path), fit=fit)
    run("fit", Script(), image(tmp_path), image(tmp_path, 1), fit=fit)
    assert [limits.max_bytes for limits in asked] == [10_000_000, 2_000_000, 2_000_000]
    assert all(limits.types == ("image/jpeg", "image/png") for limits in asked)


def test_all_images_of_a_pin_get_the_size_of_the_smallest(tmp_path):
    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        width = min(1000 if media.position == 0 else 700, limits.max_width or 1000)
        return replace(media, facts={"width": width, "height": width * 3 // 2})

    media = [image(tmp_path, 0), image(tmp_path, 1)]
    outcome = run("fit", Script(), *media, fit=fit)
    assert outcome == Done({"fit": {"max_width": 700, "max_height": 1050}})
    asked: list[ImageLimits] = []
    assert isinstance(outcome, Done)
    script = Script(MADE)
    run("create_pin", script, *media, memo=outcome.memo, fit=lambda item, limits: asked.append(limits) or item)
    assert {(limits.max_width, limits.max_height) for limits in asked} == {(700, 1050)}


def test_images_that_cannot_get_one_size_are_refused_before_the_commit(tmp_path):
    sizes = iter(range(1000, 0, -1))

    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        width = next(sizes)
        return replace(media, facts={"width": width, "height": width})

    with pytest.raises(Unfit, match="one size"):
        run("fit", Script(), image(tmp_path), image(tmp_path, 1), fit=fit)


def test_images_that_pinterest_finds_too_large_are_sent_smaller_at_most_twice(tmp_path):
    memo: dict[str, Any] = {}
    back: dict[str, int] = {}
    for allowed in (5_000_000, 2_500_000):
        outcome = run("create_pin", Script(error(413, 413)), image(tmp_path), memo=memo, back=back)
        assert isinstance(outcome, Again)
        assert (outcome.step, outcome.memo["max_bytes"]) == ("fit", allowed)
        memo = outcome.memo
    script = Script(error(413, 413))
    assert isinstance(run("create_pin", script, image(tmp_path), memo=memo, back=back), Refused)


@pytest.mark.parametrize("reply", [answer(413, b"<html>"), answer(413, b"")])
def test_a_foreign_413_leaves_the_outcome_unknown_and_the_second_call_is_smaller(tmp_path, reply):
    fitted = {"fit": {"max_width": 700, "max_height": 1050}}
    outcome = run("create_pin", Script(reply), image(tmp_path), memo=fitted)
    assert isinstance(outcome, Unknown)
    assert outcome.memo is not None
    # The second call waits until the images are fitted again.
    again = run("create_pin", Script(), image(tmp_path), memo=outcome.memo)
    assert isinstance(again, Again)
    assert again.step == "fit"
    asked: list[ImageLimits] = []
    fit = run("fit", Script(), image(tmp_path), memo=again.memo, fit=lambda item, limits: asked.append(limits) or item)
    assert [(limits.max_bytes, limits.max_width) for limits in asked] == [(5_000_000, None)]
    assert isinstance(fit, Done)
    assert isinstance(run("create_pin", Script(MADE), image(tmp_path), memo=fit.memo), Published)


@pytest.mark.parametrize(
    "reply",
    [
        error(400, 2787, "Something went wrong on our end."),
        error(500, 0),
        error(502, 0),
        error(504, 0),
        answer(500, b"<html>"),
        answer(503, b""),
        answer(408, b""),
        answer(302, b""),
        answer(400, b"<html>"),
        answer(401, b"<html>"),
        answer(403, b""),
        answer(404, b"Not Found"),
        answer(407, b"<html>"),
        answer(409, b""),
        answer(429, b"<html>"),
        answer(403, {"message": "Forbidden"}),
        answer(403, {"code": 403}),
        answer(403, {"code": "403", "message": "Forbidden"}),
        answer(403, {"code": True, "message": "Forbidden"}),
        answer(403, [{"code": 403, "message": "Forbidden"}]),
        answer(201, b"<html>"),
        answer(201, {}),
        answer(201, {"id": ""}),
        answer(200, {"id": "a pin"}),
        NoAnswer("time-out"),
    ],
)
def test_a_response_that_is_neither_pin_nor_refusal_leaves_the_outcome_unknown(tmp_path, reply):
    with pytest.raises(NoAnswer):
        run("create_pin", Script(reply), image(tmp_path))


@pytest.mark.parametrize(
    ("status", "code", "said", "says"),
    [
        (400, 1, "'Summer prints' does not match '^\\d+$'", "list-boards"),
        (400, 1, "'board_id' 'Summer' must match the pattern: ^\\d+$", "list-boards"),
        (400, 1, "Entered URL is invalid.", "another link"),
        (400, 1, "'x' is too long", "Check the texts"),
        (400, 400, "Invalid parameters", "Check the texts"),
        (401, 7, "Not authorized", "may not use"),
        (403, 29, "You are not permitted to access that resource.", "belongs to another account"),
        (403, 403, "PINNER_DATA_ACCESS_DENIED", "business account"),
        (403, 233, "Image is too small", "larger image"),
        (403, 235, "Image is broken", "Save the image again"),
        (403, 2625, "Disapproved", "pinterest.com"),
        (403, 2626, "Under review", "reviewing"),
        (403, 403, "Not authorized", "Check the account"),
        (404, 40, "Board not found.", "list-boards"),
        (404, 2031, "Board section not found.", "boardSectionId"),
        (404, 50, "Pin not found.", "no longer exists"),
        (404, 404, "Not found.", "no longer exists"),
        (405, 5, "Method not allowed.", "Report it"),
        (418, 77, "Something new.", "Something new"),
    ],
)
def test_a_refusal_says_what_to_change(tmp_path, status, code, said, says):
    outcome = run("create_pin", Script(error(status, code, said)), image(tmp_path))
    assert isinstance(outcome, Refused)
    assert says in outcome.message
    assert outcome.code == str(code)
    assert (outcome.reauth, outcome.rest_seconds) == (False, 0.0)


@pytest.mark.parametrize(
    ("status", "code", "said"), [(401, 3, "Missing scope pins:write"), (403, 3, "Your token lacks: pins:write")]
)
def test_a_missing_permission_is_named_and_wants_a_new_consent(tmp_path, status, code, said):
    outcome = run("create_pin", Script(error(status, code, said)), image(tmp_path))
    assert isinstance(outcome, Refused)
    assert outcome.reauth
    assert "pins:write" in outcome.message


def test_a_token_that_is_not_accepted_is_refreshed(tmp_path):
    with pytest.raises(AuthExpired):
        run("create_pin", Script(error(401, 2, "Authentication failed.")), image(tmp_path))


@pytest.mark.parametrize(
    ("status", "code", "said", "says"),
    [
        (401, 3, "Application consumer type is not supported", "developers.pinterest.com"),
        (403, 29, "Apps with Trial access may not create Pins in production.", "https://api-sandbox.pinterest.com/v5"),
    ],
)
def test_a_refusal_of_the_app_holds_the_network_and_not_the_account(tmp_path, status, code, said, says):
    with pytest.raises(AppRefused) as caught:
        run("create_pin", Script(error(status, code, said)), image(tmp_path))
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"x_ratelimit_reset": "42"}, 42),
        ({"x_ratelimit_reset": "67150"}, 67150),
        ({"x_ratelimit_reset": "7, 7;w=60"}, 7),
        ({"x_ratelimit_reset": "0"}, 0),
        ({"x_ratelimit_reset": "soon"}, None),
        ({"retry_after": "90", "x_ratelimit_reset": "30"}, 90),
        ({"retry_after": "10", "x_ratelimit_reset": "30"}, 30),
        ({"retry_after": "Sat, 21 Nov 2026 12:01:30 GMT", "date": "Sat, 21 Nov 2026 12:00:00 GMT"}, 90),
        ({"retry_after": "Sat, 21 Nov 2026 11:00:00 GMT", "date": "Sat, 21 Nov 2026 12:00:00 GMT"}, -3600),
        ({"retry_after": "Sat, 21 Nov 2026 12:01:30 GMT"}, None),
        ({"retry_after": "Someday, 99 Nov"}, None),
    ],
)
def test_a_wait_that_is_named_is_never_shortened(tmp_path, headers, seconds):
    with pytest.raises(Throttled) as caught:
        run("create_pin", Script(error(429, 8, "Slow down.", **headers)), image(tmp_path))
    assert caught.value.retry_after_seconds == seconds
    # The engine uses the step's name, so that the next pin also waits.
    assert ("Trial" in caught.value.message) == ((seconds or 0) > 3600)


def test_a_function_that_is_switched_off_created_nothing_and_is_retried(tmp_path):
    with pytest.raises(Throttled):
        run("create_pin", Script(error(503, 4197, "Ramped down")), image(tmp_path))


@pytest.mark.parametrize("where", ["message", "message_detail"])
def test_spam_ends_the_post_and_pauses_the_account_for_hours(tmp_path, where):
    body = {"code": 8, "message": "Blocked", where: "This looks like SPAM to us"}
    outcome = run("create_pin", Script(answer(429, body, x_ratelimit_reset="5")), image(tmp_path))
    assert isinstance(outcome, Refused)
    assert outcome.rest_seconds >= 3600


def test_two_writes_on_one_board_take_turns_with_growing_pauses(tmp_path):
    memo: dict[str, Any] = {}
    pauses = []
    for _ in range(3):
        outcome = run("create_pin", Script(error(409, 409, "No exclusive access")), image(tmp_path), memo=memo)
        assert isinstance(outcome, Wait)
        pauses.append(outcome.seconds)
        memo = outcome.memo
    assert pauses == [3, 6, 12]


def test_a_video_that_pinterest_lost_is_sent_again_once():
    back: dict[str, int] = {}
    outcome = run("create_pin", Script(error(404, 404, "Media upload not found")), video(), memo=READY, back=back)
    assert isinstance(outcome, Again)
    assert (outcome.step, outcome.limit) == ("upload", 1)
    memo = {**outcome.memo, **READY}
    assert isinstance(run("create_pin", Script(error(404, 404)), video(), memo=memo, back=back), Refused)
    assert isinstance(run("create_pin", Script(error(404, 40)), video(), memo=READY), Refused)


def test_neither_a_quoted_image_nor_a_quoted_token_reaches_a_message(tmp_path):
    said = f"{{'data': '{'QUFB' * 40}', 'token': 'pina_{'A' * 60}'}} is wrong"
    outcome = run("create_pin", Script(error(400, 1, said)), image(tmp_path))
    assert isinstance(outcome, Refused)
    assert "****" in outcome.message
    assert "QUFB" not in outcome.message
    assert "pina_" not in outcome.message
