"""A body in another form than X's (a page, nothing, a gateway's JSON) is no answer."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from socialpub.providers.auth import Account
from socialpub.providers.base import Again, Refused, Wait
from socialpub.providers.http import Http
from socialpub.providers.responses import NoAnswer
from socialpub.providers.x.client import read_error
from tests.unit.providers.x.script import ADAPTER, NOW, Script, answer, data, image, job, problem, run, uploaded, video

STATUSES = (302, 400, 401, 402, 403, 404, 407, 408, 409, 413, 421, 425, 429, 431, 451, 500, 502, 503, 520)
FOREIGN: dict[str, Any] = {
    "nothing": None,
    "a page": b"<!doctype html><title>Attention Required! | Cloudflare</title>",
    "words": b"upstream connect error",
    "an empty object": {},
    "a list": [],
    "a gateway": {"message": "Forbidden"},
    "a framework": {"detail": "Not Found"},
    "an error of another kind": {"error": "Unauthorized"},
    "an error that is an object": {"error": {"code": 401, "message": "no"}},
    "errors that are none": {"errors": []},
    "a CDN's problem": {
        "type": "https://developers.cloudflare.com/support/troubleshooting/error-1015/",
        "title": "Error 1015: You are being rate limited",
        "status": 429,
        "detail": "The site owner has blocked you.",
    },
}
VIDEO = video(size_bytes=10)
OPENED = {"media": {"0": {**uploaded("77")["media"]["0"], "ready_at": None, "segment": 0, "chunk_bytes": 1 << 20}}}


def read_back(script: Script) -> Any:
    return ADAPTER.recover(job(script, since=lambda: NOW))


CALLS: dict[str, Callable[[Script], Any]] = {
    "the post": lambda script: run("create_post", script),
    "the beginning of an upload": lambda script: run("init:0", script, "Hi", VIDEO),
    "the end of an upload": lambda script: run("finalize:0", script, "Hi", VIDEO, memo=OPENED),
    "the question after the processing": lambda script: run("await:0", script, "Hi", VIDEO, memo=OPENED),
    "the read-back": read_back,
    "the account": lambda script: ADAPTER.auth.identify(cast(Http, script), Account(""), "AT"),
    "a refresh": lambda script: ADAPTER.auth.refresh(cast(Http, script), Account(""), "RT"),
    "an exchange": lambda script: ADAPTER.auth.exchange(cast(Http, script), "c", "http://a/b", "v" * 43),
    "a revocation": lambda script: ADAPTER.auth.revoke(cast(Http, script), Account(""), "AT", None),
}


@pytest.mark.parametrize("body", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_foreign_body_is_no_answer_with_any_status(call, body):
    for status in STATUSES:
        with pytest.raises(NoAnswer):
            call(Script(answer(status, body, x_rate_limit_reset="1", retry_after="5")))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_page_instead_of_a_success_is_no_answer(call):
    with pytest.raises(NoAnswer):
        call(Script(answer(200, FOREIGN["a page"])))


@pytest.mark.parametrize("body", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 503])
def test_a_segment_and_an_image_are_sent_again_after_a_foreign_body(status, body):
    for step, media, memo in (("append:0", VIDEO, OPENED), ("upload:0", image(), None)):
        with pytest.raises(NoAnswer):
            run(step, Script(answer(status, body)), "Hi", media, memo=memo)


@pytest.mark.parametrize("status", [413, 431])
@pytest.mark.parametrize("body", [None, b"<html>413 Request Entity Too Large</html>"])
def test_the_edge_refuses_large_files_without_a_message(status, body):
    media = video(size_bytes=3_000_000)
    smaller = run("append:0", Script(answer(status, body)), "Hi", media, memo=OPENED)
    assert isinstance(smaller, Again)
    assert smaller.step == "init:0"
    assert smaller.memo["media"]["0"]["chunk_bytes"] == 1 << 19
    assert isinstance(run("upload:0", Script(answer(status, body)), "Hi", image()), Again)


UNRECOGNIZED = "media type unrecognized."
OLD_FORM = {"request": "/2/media/upload", "error": UNRECOGNIZED}
OF_X = [
    answer(400, OLD_FORM),
    answer(400, {"error": UNRECOGNIZED}, x_transaction_id="a1"),
    answer(400, UNRECOGNIZED.encode(), x_transaction_id="a1", content_type="text/plain; charset=utf-8"),
    answer(400, f'"{UNRECOGNIZED}"'.encode(), x_transaction_id="a1"),
]


@pytest.mark.parametrize("own", OF_X)
def test_xs_old_form_and_xs_own_headers_are_recognized(own):
    assert read_error(own).own_form
    back: dict[str, int] = {}
    outcome: Any = Again("", {}, "", "")
    for _ in range(5):
        if isinstance(outcome, Again):
            outcome = run("finalize:0", Script(own), "Hi", VIDEO, memo=OPENED, back=back)
    assert isinstance(outcome, Refused)
    assert UNRECOGNIZED in outcome.message
    assert "MP4" in outcome.message


def test_a_page_or_nothing_with_xs_own_headers_is_no_answer():
    for body in (b"", b"<html>", b"\n<!DOCTYPE html>"):
        assert not read_error(answer(403, body, x_transaction_id="a1")).own_form
    assert not read_error(answer(403, {"request": "GET /", "error": "blocked"})).own_form


def test_an_alt_text_that_met_a_page_is_tried_again():
    for status in (200, 401, 403):
        media = image(alt="A bike")
        outcome = run("alt:0", Script(answer(status, b"<html>")), "Hi", media, memo=uploaded("11"))
        assert isinstance(outcome, Wait)


@pytest.mark.parametrize(
    "own",
    [
        problem(403, "Forbidden"),
        answer(403, {"title": "Forbidden", "detail": "No", "type": None}),
        answer(403, {"detail": "No", "status": 403}),
        answer(
            402, {"account_id": 1, "title": "CreditsDepleted", "detail": "No", "type": "https://api.x.com/2/problems/a"}
        ),
        answer(400, {"errors": [{"parameters": {"a": ["1"]}, "message": "Bad"}], "title": "Invalid Request"}),
        answer(403, {"errors": [{"code": 88, "message": "Rate limit exceeded"}]}),
        answer(403, {"code": 453, "message": "No"}),
        answer(500, {"errors": ["internal server error"]}),
        answer(400, {"error": "invalid_request", "error_description": "Bad"}),
    ],
)
def test_xs_own_shapes_are_known(own):
    assert read_error(own).own_form


def test_a_status_without_data_is_no_finished_video():
    for body in ({}, {"meta": {}}, {"data": []}):
        for step in ("await:0", "finalize:0"):
            with pytest.raises(NoAnswer):
                run(step, Script(answer(200, body)), "Hi", VIDEO, memo=OPENED)
    assert isinstance(run("await:0", Script(data(id="77")), "Hi", VIDEO, memo=OPENED), Wait)
