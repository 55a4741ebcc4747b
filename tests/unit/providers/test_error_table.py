"""Error tables: the matching row and its action."""

from datetime import datetime

import pytest

from socialpub.providers.base import Refused
from socialpub.providers.error_table import Action, ErrorBody, ErrorRow, ErrorTable, as_outcome, find_row
from socialpub.providers.responses import (
    AppRefused,
    AuthExpired,
    HttpResponse,
    NoAnswer,
    Reason,
    Throttled,
    read_words,
)

BODY = ErrorBody("It is spam.", "7", {7, "spam"}, ("it is spam.",), "rid-1")


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        (ErrorRow(), True),
        (ErrorRow(statuses={400, 403}), True),
        (ErrorRow(statuses={404}), False),
        (ErrorRow(codes={7}), True),
        (ErrorRow(codes={"7"}), False),
        (ErrorRow(codes={"spam", 8}), True),
        (ErrorRow(wordings=("spam",)), True),
        (ErrorRow(wordings=("ham",)), False),
        (ErrorRow(statuses={404}, codes={7}), False),
        (ErrorRow(codes={8}, wordings=("spam",)), True),
        (ErrorRow(codes={8}, wordings=("spam",), both=True), False),
        (ErrorRow(codes={7}, wordings=("spam",), both=True), True),
    ],
)
def test_a_row_fits_by_status_and_by_one_of_its_marks_or_both(row, fits):
    assert row.fits(403, BODY) is fits


def test_the_first_row_that_fits_decides():
    rows = (ErrorRow("a", {404}), ErrorRow("b", codes={7}), ErrorRow("c"))
    assert find_row(rows, 403, BODY) is rows[1]
    assert find_row(rows[:1], 403, BODY) is None


def table(row: ErrorRow) -> ErrorTable:
    def named(response: HttpResponse, body: ErrorBody, now: datetime | None) -> float | None:
        return 30.0

    return ErrorTable("Net", (row,), ErrorRow("Unlisted."), lambda _: BODY, named, lambda row, *_: row.advice)


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (Action.NO_ANSWER, NoAnswer),
        (Action.REFRESH, AuthExpired),
        (Action.HOLD_APP, AppRefused),
        (Action.WAIT, Throttled),
    ],
)
def test_each_action_other_than_a_refusal_raises_its_error(action, kind):
    errors = table(ErrorRow("Wait.", action=action))
    with pytest.raises(kind) as caught:
        errors.classify(HttpResponse(400))
    assert (caught.value.message, caught.value.code, caught.value.request_id) == ("Wait.", "7", "rid-1")


@pytest.mark.parametrize(("own", "seconds"), [(None, 30.0), (5.0, 5.0)])
def test_a_row_may_name_its_own_wait(own, seconds):
    errors = table(ErrorRow(action=Action.WAIT, wait_seconds=own))
    with pytest.raises(Throttled) as caught:
        errors.classify(HttpResponse(429))
    assert caught.value.retry_after_seconds == seconds


def test_a_rejection_is_the_end_of_a_post_or_of_a_call():
    row = ErrorRow("Connect again.", action=Action.RECONNECT, reason=Reason.GONE, rest_seconds=60.0)
    rejection = table(row).classify(HttpResponse(403))
    assert (rejection.message, rejection.reason, rejection.request_id) == ("Connect again.", Reason.GONE, "rid-1")
    assert (rejection.status, rejection.reauth, rejection.code) == (403, True, "7")
    assert as_outcome(rejection) == Refused("Connect again.", "7", reauth=True, rest_seconds=60.0)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"media type unrecognized.", "media type unrecognized."),
        (b'\xef\xbb\xbf {"a":\r\n 1}', '{"a": 1}'),
        (b"no \x00\x1b[31m\xe2\x80\xae\xff way", "no [31m \ufffd way"),
        (b"<?xml version='1.0'?><Error>No</Error>", "<?xml version='1.0'?><Error>No</Error>"),
        (b"x y" * 500, "x y" * 33 + "…"),
        (b"Bearer " + b"a" * 60 + b" is wrong", "Bearer **** is wrong"),
        *((body, None) for body in (b"", b" \r\n\t", b"\x00", b"<html>", b"\n <!-- a --><h1>No", b"<center>502")),
        (b"<?xml version='1.0'?><!DOCTYPE html><html>", None),
    ],
)
def test_the_words_of_any_body_but_a_page_are_quoted(body, words):
    assert read_words(HttpResponse(400, {}, body)) == words
    assert read_words(HttpResponse(400, {"content-type": "Text/HTML"}, body)) is None


def test_a_refusal_without_a_row_uses_the_unlisted_row():
    rejection = table(ErrorRow(statuses={404})).classify(HttpResponse(418))
    assert (rejection.message, rejection.status, rejection.reauth) == ("Unlisted.", 418, False)


def test_only_a_refusal_of_the_post_itself_concerns_its_content():
    refused = table(ErrorRow("Shorten it.")).classify(HttpResponse(400))
    assert (as_outcome(refused).content, refused.content) == (True, True)
    account = table(ErrorRow("The account is suspended.", content=False)).classify(HttpResponse(403))
    assert (as_outcome(account).content, account.content) == (False, False)
    assert not table(ErrorRow("Connect again.", action=Action.RECONNECT)).classify(HttpResponse(403)).content
