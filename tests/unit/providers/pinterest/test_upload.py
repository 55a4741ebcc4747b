"""Uploads of videos to Pinterest: allowed hosts, and retries after a failure."""

from pathlib import Path
from typing import Any

import pytest

from socialpub.providers.base import Again, Done, Held, Refused, Wait
from socialpub.providers.bodies import FilePart
from socialpub.providers.pinterest import upload
from socialpub.providers.responses import AppRefused, AuthExpired, HttpResponse, NoAnswer, Throttled
from tests.support.scripted_calls import NOW
from tests.unit.providers.pinterest.script import (
    MEDIA,
    SECTION_OF_THE_CONFIGURATION,
    STORAGE,
    Script,
    answer,
    error,
    job,
    run,
    video,
)

FIELDS = {
    "x-amz-signature": "9f86d081",
    "x-amz-security-token": "IQoJ-secret",
    "key": f"uploads/11/aa/{MEDIA}",
    "Content-Type": "multipart/form-data",
}
REGISTERED = {"media_id": MEDIA, "media_type": "video", "upload_url": STORAGE, "upload_parameters": FIELDS}
FORM = answer(201, REGISTERED)
STORAGE_SAYS = b"<?xml version='1.0'?><Error><Code>%s</Code><Message>no</Message></Error>"


def sent(polls: int = 0, seconds_ago: float = 0.0) -> dict[str, Any]:
    return {"video": {"id": MEDIA, "uploaded_at": NOW.timestamp() - seconds_ago, "polls": polls}}


def status(word: str) -> HttpResponse:
    return answer(200, {"media_id": MEDIA, "media_type": "video", "status": word})


def test_a_video_is_registered_and_sent_in_one_step_and_its_form_is_never_stored():
    script = Script(FORM, answer(204))
    outcome = run("upload", script, video())
    assert script.asked == ["POST /media", f"POST {STORAGE}"]
    assert script.calls[0].json == {"media_type": "video"}
    assert outcome == Done(sent())


@pytest.mark.parametrize(
    "wrong",
    [
        {"media_id": "no digits"},
        {"upload_url": None},
        {"upload_parameters": {"key": 5}},
        {"upload_parameters": {"file": "x"}},
        {"upload_parameters": []},
    ],
)
def test_a_registration_that_cannot_be_read_is_no_answer(wrong):
    with pytest.raises(NoAnswer):
        run("upload", Script(answer(201, {**REGISTERED, **wrong})), video())


def test_a_host_that_the_owner_did_not_allow_holds_all_uploads_and_fails_no_post():
    outcome = run(
        "upload", Script(answer(201, {**REGISTERED, "upload_url": "https://evil.example/?k=secret"})), video()
    )
    assert isinstance(outcome, Held)
    assert (outcome.code, outcome.this_step) == ("upload_host", True)
    assert "evil.example" in outcome.reason
    assert "upload_hosts in [providers.pinterest]" in outcome.reason
    assert "secret" not in outcome.reason


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401, 2), AuthExpired),
        (error(401, 3, "Consumer type is not supported"), AppRefused),
        (error(429, 8), Throttled),
        (error(500, 0), NoAnswer),
        (answer(403, b"<html>"), NoAnswer),
        (answer(401, b""), NoAnswer),
        (answer(429, {"message": "Too many requests"}), NoAnswer),
    ],
)
def test_the_registration_reads_errors_as_every_step_does(reply, kind):
    with pytest.raises(kind):
        run("upload", Script(reply), video())


PRODUCTION = SECTION_OF_THE_CONFIGURATION


def test_the_form_is_copied_and_the_file_comes_last_straight_from_the_disk():
    script = Script(FORM, answer(204, x_amz_request_id="S3RID"))
    conversation = job(script, video(size_bytes=150_000_000))
    outcome = upload.upload_video(conversation, PRODUCTION)
    _, call = script.calls
    assert (call.method, call.path) == ("POST", STORAGE)
    parts = call.request["multipart"]
    assert list(parts) == [*FIELDS, "file"]
    assert {name: parts[name] for name in FIELDS} == FIELDS
    assert parts["file"] == FilePart(Path("/media/video"), 0, 150_000_000, "video.mp4", "video/mp4")
    # The form is signed. A token would leak to the storage.
    assert set(call.request) == {"multipart"}
    assert conversation.trace.request_id == "S3RID"
    assert outcome == Done(sent())


def test_the_owners_file_name_is_not_sent():
    script = Script(FORM, answer(204))
    run("upload", script, video(mime_type="video/quicktime"))
    assert script.calls[1].request["multipart"]["file"].filename == "video.mov"


def test_a_video_that_was_sent_is_not_sent_again():
    assert run("upload", Script(), video(), memo=sent()) == Done(sent())


@pytest.mark.parametrize(
    "reply",
    [
        NoAnswer("cut"),
        answer(503, STORAGE_SAYS % b"SlowDown"),
        answer(307, b""),
        answer(413, b"<html>"),
        answer(403, b"<html>"),
        answer(400, b""),
        answer(403, {"code": 403, "message": "No."}),
        answer(200, b"<html>"),
    ],
)
def test_an_upload_that_broke_off_begins_with_a_new_registration_and_growing_pauses(
    reply,
):
    memo: dict[str, Any] = {}
    back: dict[str, int] = {}
    pauses = []
    for _ in range(9):
        outcome = run("upload", Script(FORM, reply), video(), memo=memo, back=back)
        assert isinstance(outcome, Again)
        assert outcome.step == "upload"
        pauses.append(outcome.seconds)
        memo = outcome.memo
    assert pauses == [5, 10, 20, 40, 80, 160, 320, 640, 900]


def test_a_form_that_the_storage_refuses_is_replaced_three_times():
    memo: dict[str, Any] = {}
    back: dict[str, int] = {}
    refusal = answer(403, STORAGE_SAYS % b"AccessDenied")
    for _ in range(3):
        outcome = run("upload", Script(FORM, refusal), video(), memo=memo, back=back)
        assert isinstance(outcome, Again)
        memo = outcome.memo
    outcome = run("upload", Script(FORM, refusal), video(), memo=memo, back=back)
    assert isinstance(outcome, Refused)
    assert "AccessDenied" in outcome.message


def test_a_video_that_the_storage_finds_too_large_is_refused_with_its_size():
    outcome = run("upload", Script(FORM, answer(400, STORAGE_SAYS % b"EntityTooLarge")), video())
    assert isinstance(outcome, Refused)
    assert "2500000" in outcome.message


def test_a_video_is_waited_for_with_the_pauses_of_pinterests_own_sample():
    memo = sent()
    pauses = []
    for word in ("registered", "processing", "processing", "a new word", "processing", "processing"):
        script = Script(status(word))
        outcome = run("await_processing", script, video(), memo=memo)
        assert script.asked == [f"GET /media/{MEDIA}"]
        assert isinstance(outcome, Wait)
        pauses.append(outcome.seconds)
        memo = outcome.memo
    assert pauses == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize(("waited", "pause"), [(30, 10), (599, 10), (601, 60), (3601, 300), (100_000, 300)])
def test_long_waits_ask_seldom_because_a_trial_app_has_a_thousand_reads_a_day(waited, pause):
    outcome = run("await_processing", Script(status("processing")), video(), memo=sent(9, waited))
    assert isinstance(outcome, Wait)
    assert outcome.seconds == pause


def test_a_video_that_succeeded_goes_on_and_is_not_asked_for_again():
    outcome = run("await_processing", Script(status("succeeded")), video(), memo=sent())
    assert isinstance(outcome, Done)
    assert run("await_processing", Script(), video(), memo=outcome.memo) == outcome


def test_a_failed_video_is_sent_again_once_and_then_refused():
    back: dict[str, int] = {}
    outcome = run("await_processing", Script(status("failed")), video(), memo=sent(), back=back)
    assert isinstance(outcome, Again)
    assert (outcome.step, outcome.limit) == ("upload", 1)
    outcome = run("await_processing", Script(status("failed")), video(), memo={**outcome.memo, **sent()}, back=back)
    assert isinstance(outcome, Refused)
    assert "H.264" in outcome.message


def test_a_video_unknown_to_pinterest_is_sent_again_once():
    back: dict[str, int] = {}
    outcome = run("await_processing", Script(error(404, 404, "Not found")), video(), memo=sent(), back=back)
    assert isinstance(outcome, Again)
    memo = {**outcome.memo, **sent()}
    assert isinstance(run("await_processing", Script(error(404, 404)), video(), memo=memo, back=back), Refused)


@pytest.mark.parametrize(
    "reply",
    [error(500, 0), answer(200, b"<html>"), answer(200, {}), answer(404, b"<html>"), answer(404, b""), NoAnswer("cut")],
)
def test_an_error_of_the_poll_is_no_verdict_on_the_video(reply):
    with pytest.raises(NoAnswer):
        run("await_processing", Script(reply), video(), memo=sent())


def test_a_poll_without_a_video_goes_back_to_the_upload():
    for memo in ({}, {"video": None}):
        outcome = run("await_processing", Script(), video(), memo=memo)
        assert isinstance(outcome, Again)
        assert outcome.step == "upload"
