"""The line of each delivery, and the result of a post."""

from typing import Any

import pytest

from socialpub.core.post_summary import Result, judge, summarize

UNKNOWN = "Outcome unknown: the connection broke. Check https://x.example/acme."


def delivery(status: str, provider: str = "x", **more: Any) -> dict[str, Any]:
    return {
        "provider": provider, "profileName": "Acme", "profileId": provider,
        "status": status, "providerOptions": {}, **more,
    }  # fmt: skip


def post(*deliveries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "1", "status": "pending", "deliveries": list(deliveries), **more}


def attempt(outcome: str, message: str, **more: Any) -> dict[str, Any]:
    return {"profileId": "x", "outcome": outcome, "message": message, **more}


PUBLISHED, PENDING, CANCELED = delivery("published"), delivery("pending"), delivery("canceled")
FAILED, LOST = delivery("failed", errorMessage="X refused it."), delivery("failed", errorMessage=UNKNOWN)


@pytest.mark.parametrize(
    ("deliveries", "result"),
    [
        ([PUBLISHED], Result.PUBLISHED),
        ([PUBLISHED, FAILED], Result.FAILED),
        ([CANCELED], Result.FAILED),
        ([FAILED, PENDING, PUBLISHED], Result.PENDING),
        ([FAILED, PENDING, PUBLISHED, LOST], Result.UNKNOWN),
    ],
)
def test_an_unknown_outcome_counts_before_an_open_delivery_and_that_before_a_failed_one(deliveries, result):
    assert judge(post(*deliveries)) is result
    assert judge(post(*reversed(deliveries))) is result


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        (delivery("published", url="https://x.example/1"), "x: published https://x.example/1"),
        (PUBLISHED, "x: published"),
        (FAILED, "x: failed: X refused it."),
        (delivery("failed", errorMessage="Two\nlines"), "x: failed: Two lines"),
        (LOST, f"x: {UNKNOWN}"),
        (PENDING, "x: pending"),
        (CANCELED, "x: canceled"),
    ],
)
def test_each_delivery_has_one_line(shown, line):
    assert summarize(post(shown)) == [line]


def test_a_draft_is_not_shown_as_public():
    draft = delivery("published", "tiktok", providerOptions={"mode": "draft"})
    [line] = summarize(post(draft))
    assert line.startswith("tiktok: published as a draft: ")
    assert summarize(post({**draft, "providerPostId": "7"})) == ["tiktok: published"]


def test_two_accounts_of_a_network_have_their_labels():
    shown = post(delivery("pending"), delivery("pending", profileName="Shop"), delivery("pending", "tiktok"))
    assert summarize(shown) == ["x Acme: pending", "x Shop: pending", "tiktok: pending"]


@pytest.mark.parametrize(
    ("last", "line"),
    [
        (attempt("held", "Waits for the owner's approval: https://a.example/posts/1", nextAt="2026-11-22T11:30:00Z"),
         "x: waits for the owner's approval: https://a.example/posts/1"),
        (attempt("retrying", "X answered 503.", nextAt="2026-11-21T11:30:00.000Z"),
         "x: retrying: X answered 503. Next try: 2026-11-21T11:30:00.000Z"),
        (attempt("waiting", "The step continues."), "x: waiting: The step continues."),
        (attempt("done", ""), "x: scheduled for 2026-11-21T11:30:00.000Z"),
    ],
)  # fmt: skip
def test_the_last_attempt_says_what_a_delivery_waits_for(last, line):
    shown = post(PENDING, status="scheduled", scheduledAt="2026-11-21T11:30:00.000Z")
    other = {**attempt("held", "Another account."), "profileId": "tiktok"}
    assert summarize(shown, [attempt("held", "An earlier attempt."), last, other]) == [line]
