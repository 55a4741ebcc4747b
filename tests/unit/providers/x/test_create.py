"""The call that creates the post, and the meaning of each response."""

from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
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
    Unfit,
    Unknown,
    Wait,
)
from socialpub.providers.error_table import find_row
from socialpub.providers.responses import (
    AppRefused,
    AuthExpired,
    HttpResponse,
    NoAnswer,
    ProviderError,
    Throttled,
)
from socialpub.providers.x.client import ROWS, read_error
from tests.unit.providers.x.script import (
    ADAPTER,
    NOW,
    Script,
    answer,
    data,
    gif,
    image,
    invalid,
    job,
    problem,
    run,
    uploaded,
    video,
)

DUPLICATE = problem(403, "You are not allowed to create a Tweet with duplicate content.")
BY_RULES = [
    problem(403, "Forbidden", "https://api.x.com/2/problems/duplicate-rules"),
    problem(403, "This post breaks duplicate-rules."),
    problem(403, "Forbidden", reason="duplicate-rules"),
    answer(403, {"errors": [{"message": "Forbidden", "rule": "duplicate-rules"}]}),
]
BAD_MEDIA = "Your media IDs are invalid."


def test_a_text_is_one_call_and_becomes_a_post_with_its_address():
    script = Script(data(201, id="1900000000000000123", text="Hello https://t.co/abc"))
    outcome = run("create_post", script, "Hello")
    assert outcome == Published("1900000000000000123", "https://x.com/acme/status/1900000000000000123")
    assert script.asked == ["POST /2/tweets"]
    assert script.calls[0].json == {"text": "Hello"}
    assert script.calls[0].request["token"] == "AT"


def test_the_body_has_the_chosen_options_without_defaults():
    chosen = {
        "replySettings": "following",
        "madeWithAi": True,
        "paidPartnership": False,
        "inReplyToPostId": "19",
        "communityId": "7",
        "shareWithFollowers": True,
    }
    script = Script(data(201, id="1"))
    run("create_post", script, "Hi", image(0), image(1), memo=uploaded("11", "12"), options=chosen)
    assert script.calls[0].json == {
        "text": "Hi",
        "media": {"media_ids": ["11", "12"]},
        "reply_settings": "following",
        "made_with_ai": True,
        "reply": {"in_reply_to_tweet_id": "19"},
        "community_id": "7",
        "share_with_followers": True,
    }


def test_the_reply_setting_everyone_is_left_out():
    script = Script(data(201, id="1"))
    run("create_post", script, options={"replySettings": "everyone", "quotePostId": "5"})
    assert script.calls[0].json == {"text": "Hello", "quote_tweet_id": "5"}


def test_an_image_needs_no_text():
    script = Script(data(201, id="1"))
    run("create_post", script, "", image(), memo=uploaded("11"))
    assert script.calls[0].json == {"text": "", "media": {"media_ids": ["11"]}}, "an absent one is refused by some"


@pytest.mark.parametrize(
    "unusable",
    [
        answer(201),
        answer(201, b"<html>created</html>"),
        answer(200, {"errors": ["internal server error"]}),
        data(201, id=""),
        answer(500, {"errors": ["internal server error"]}),
        answer(502, b"<html>Bad gateway</html>"),
        problem(503, "Service NoAnswer"),
        answer(302),
        answer(408),
        NoAnswer("cut"),
    ],
)
def test_a_response_that_is_neither_post_nor_refusal_leaves_the_outcome_unknown(
    unusable,
):
    with pytest.raises(NoAnswer):
        run("create_post", Script(unusable))


REFUSED: list[tuple[HttpResponse, str, float]] = [
    (invalid("Your Tweet text is too long. For more information on how Tweet length is determined…"), "Shorten", 0),
    (
        invalid(
            "You can only provide one of poll or quote_tweet_id or direct_message_deep_link or media or card_uri."
        ),
        "not both",
        0,
    ),
    (invalid("Request body must be a JSON object."), "bug in socialpub", 0),
    (invalid("Requests with bodies must have content-type of application/json."), "bug in socialpub", 0),
    (invalid("Request body is not valid JSON."), "bug in socialpub", 0),
    (invalid("The `reply.in_reply_to_tweet_id` query parameter value [x] is not valid"), "is not valid", 0),
    (DUPLICATE, "already has a post with this text", 0),
    (problem(403, "Posts are limited to a maximum of one cashtag."), "at most one cashtag", 0),
    (problem(403, "This user is not allowed to post a video longer than 2 minutes."), "Shorten the video", 0),
    (
        problem(403, "You can only reply to or quote posts where you are mentioned or are the author."),
        "Remove inReplyToPostId",
        0,
    ),
    (
        problem(
            403,
            "Reply to this conversation is not allowed because you have not been mentioned or otherwise engaged by the "
            "author of the post you are replying to.",
        ),
        "Remove inReplyToPostId",
        0,
    ),
    (problem(403, "The Tweet contains an invalid URL."), "Remove the link", 0),
    (problem(400, "The Tweet contains an invalid URL."), "Remove the link", 0),
    (problem(403, "You are not permitted to perform this action."), "text length", 0),
    (
        problem(
            403,
            "The user used for authentication is suspended",
            "https://api.twitter.com/2/problems/user-suspended",
        ),
        "Log in on x.com",
        24 * 3600,
    ),
    (answer(403, {"errors": [{"code": 64, "message": "Your account is suspended."}]}), "Log in on x.com", 24 * 3600),
    (answer(403, {"errors": [{"code": 326, "message": "To protect our users…"}]}), "Log in on x.com", 24 * 3600),
    (problem(403, "Your account is not permitted to access this feature"), "Try again later", 3600),
    (answer(403, {"errors": [{"code": 226, "message": "This request looks like it might be automated."}]}),
     "automated spam", 6 * 3600),
    (problem(403, "Something new"), "Something new", 0),
    (problem(404, "Not Found", "https://api.x.com/2/problems/resource-not-found"), "no longer exists", 0),
    (problem(413, "Payload Too Large"), "smaller media", 0),
    (problem(409, "Conflict", "https://api.x.com/2/problems/conflict"), "Conflict", 0),
]  # fmt: skip


@pytest.mark.parametrize(("refusal", "said", "rest_seconds"), REFUSED, ids=[said for _, said, _ in REFUSED])
def test_a_refusal_is_certain_and_names_the_remedy(refusal, said, rest_seconds):
    outcome = run("create_post", Script(refusal))
    assert isinstance(outcome, Refused)
    assert said in outcome.message
    assert outcome.rest_seconds == rest_seconds
    assert not outcome.reauth
    assert "html" not in outcome.message.lower()


DOCUMENTED: dict[int | str, tuple[int, str]] = {
    64: (403, "Your account is suspended and is not permitted to access this feature."),
    88: (429, "Rate limit exceeded."),
    185: (403, "User is over daily status update limit."),
    186: (403, "Tweet needs to be a bit shorter."),
    187: (403, "Status is a duplicate."),
    226: (403, "This request looks like it might be automated. To protect our users from spam and other malicious "
               "activity, we can't complete this action right now."),
    326: (403, "To protect our users from spam and other malicious activity, this account is temporarily locked."),
    344: (403, "You have reached your daily limit for sending Tweets and messages."),
    385: (403, "You attempted to reply to a Tweet that is deleted or not visible to you."),
    433: (403, "The original Tweet author restricted who can reply to this Tweet."),
    453: (403, "You currently have access to a subset of X API V2 endpoints and limited v1.1 endpoints only."),
    "client-forbidden": (403, "When authenticating requests to the Twitter API v2 endpoints, you must use keys and "
                              "tokens from a Twitter developer App that is attached to a Project."),
    "credits": (402, "Your enrolled account [15] does not have any credits to fulfill this request."),
    "credits-depleted": (403, "credits depleted"),
    "rate-limit-exceeded": (429, "Too Many Requests"),
    "unsupported-authentication": (403, "Authenticating with OAuth 2.0 Application-Only is forbidden."),
    "usage-capped": (429, "Usage cap exceeded: Monthly product cap"),
    "user-suspended": (403, "The user used for authentication is suspended"),
}  # fmt: skip
"""The sentences of X's response codes (developer.x.com, 2026-11) and of reported responses, by code."""
WITHOUT_A_SENTENCE = {
    "app-suspended", "client-not-enrolled", "creditsdepleted", "duplicate-rules", "official-client-forbidden",
    "usagecapexceeded",
}  # fmt: skip


@pytest.mark.parametrize("code", DOCUMENTED)
def test_the_sentence_of_a_code_means_what_the_code_means(code):
    status, sentence = DOCUMENTED[code]
    kind = f"https://api.x.com/2/problems/{code}"
    coded = {"errors": [{"code": code, "message": ""}]} if isinstance(code, int) else {"type": kind, "title": "T"}
    by_code = find_row(ROWS, status, read_error(answer(status, {**coded, "status": status})))
    for body in ({"errors": [{"message": sentence}]}, {"title": "Forbidden", "detail": sentence, "status": status}):
        assert find_row(ROWS, status, read_error(answer(status, body))) is by_code is not None


def test_every_code_has_its_sentence_here():
    assert set(DOCUMENTED) | WITHOUT_A_SENTENCE == {code for row in ROWS for code in row.codes}


def test_only_a_missing_parent_lets_a_reply_wait():
    refused = {code: run("create_post", Script(answer(403, {"errors": [{"code": code}]}))) for code in (385, 433)}
    assert [isinstance(one, Refused) and one.parent_missing for one in refused.values()] == [True, False]


def test_a_token_of_the_wrong_kind_requires_a_new_consent():
    refusal = problem(
        403,
        "Authenticating with OAuth 2.0 Application-Only is forbidden for this endpoint.",
        "https://api.x.com/2/problems/unsupported-authentication",
    )
    outcome = run("create_post", Script(refusal))
    assert isinstance(outcome, Refused)
    assert outcome.reauth


def test_an_expired_token_is_refreshed():
    with pytest.raises(AuthExpired):
        run("create_post", Script(problem(401, "Unauthorized")))


CREDITS = "https://api.twitter.com/2/problems/credits"
APP_WIDE = [
    answer(402, {"account_id": 1500000000000000000, "title": "CreditsDepleted", "detail": "Your…", "type": CREDITS}),
    answer(402, {"detail": "credits depleted", "status": 402, "type": "https://api.x.com/2/problems/credits-depleted"}),
    problem(402, "Payment Required"),
    problem(403, "CreditsDepleted", CREDITS),
    problem(403, "No", "https://api.twitter.com/2/problems/client-forbidden", reason="client-not-enrolled"),
    answer(403, {"errors": [{"code": 453, "message": "You currently have access to a subset of X API"}]}),
    problem(403, "Suspended", "https://api.x.com/2/problems/app-suspended"),
    problem(429, "Usage cap exceeded: Monthly", "https://api.twitter.com/2/problems/usage-capped", period="Monthly"),
    answer(429, {"title": "UsageCapExceeded", "detail": "Usage cap exceeded: Monthly product cap"}),
]


@pytest.mark.parametrize("refusal", APP_WIDE)
def test_a_refusal_of_the_app_holds_the_network(refusal):
    with pytest.raises(AppRefused) as held:
        run("create_post", Script(refusal))
    assert held.value.code


TOO_MANY = {"title": "Too Many Requests", "detail": "Too Many Requests", "type": "about:blank", "status": 429}
SOON = str(int(NOW.timestamp()) + 300)
TOMORROW = str(int(NOW.timestamp()) + 40_000)
LONG_AGO = str(int(NOW.timestamp()) - 7200)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x_rate_limit_reset": SOON}, 300),
        ({"x_rate_limit_reset": str(int(NOW.timestamp()))}, 1),
        (
            {"x_rate_limit_reset": SOON, "x_user_limit_24hour_remaining": "0", "x_user_limit_24hour_reset": TOMORROW},
            40_000,
        ),
        (
            {"x_rate_limit_reset": SOON, "x_user_limit_24hour_remaining": "3", "x_user_limit_24hour_reset": TOMORROW},
            300,
        ),
        (
            {"x_rate_limit_reset": SOON, "x_app_limit_24hour_remaining": "0", "x_app_limit_24hour_reset": TOMORROW},
            40_000,
        ),
        ({"retry_after": "17"}, 17),
        ({"x_rate_limit_reset": LONG_AGO, "retry_after": "17"}, 17),
        ({"x_rate_limit_reset": LONG_AGO}, None),
        ({"x_rate_limit_reset": "soon"}, None),
        ({"x_rate_limit_reset": str(int(NOW.timestamp() * 1000) + 300_000)}, None),
        ({"x_rate_limit_reset": "4102444800"}, None),
        ({"x_rate_limit_reset": "1" + "0" * 40}, None),
        ({"retry_after": "999999999"}, None),
        ({"retry_after": "99999999999999"}, None),
        ({"retry_after": "-5"}, None),
        ({"retry_after": "Sat, 21 Nov 2026 12:02:00 GMT"}, 120),
        ({"retry_after": "Sat, 21 Nov 2026 11:00:00 GMT"}, None),
        ({"retry_after": "Sat, 99 Nov 2026 11:00:00 GMT"}, None),
        ({"x_rate_limit_reset": LONG_AGO, "retry_after": "Sat, 21 Nov 2026 12:02:00 GMT"}, 120),
        ({"x_user_limit_24hour_remaining": "0", "x_user_limit_24hour_reset": "1", "x_rate_limit_reset": SOON}, 300),
        ({}, None),
    ],
)
def test_a_rate_limit_waits_until_the_reset_that_x_names(headers, seconds):
    with pytest.raises(Throttled) as limited:
        run("create_post", Script(answer(429, TOO_MANY, **headers)))
    assert limited.value.retry_after_seconds == seconds


@pytest.mark.parametrize("hours", [-30, -1, 1, 30])
def test_a_reset_is_compared_with_the_clock_of_its_response(hours):
    there = NOW + timedelta(hours=hours)
    reset, date = str(int(there.timestamp()) + 300), format_datetime(there, usegmt=True)
    for headers in ({"x_rate_limit_reset": reset}, {"retry_after": format_datetime(there + timedelta(seconds=300))}):
        with pytest.raises(Throttled) as limited:
            run("create_post", Script(answer(429, TOO_MANY, date=date, **headers)))
        assert limited.value.retry_after_seconds == 300


def test_the_old_form_of_a_rate_limit_also_counts():
    with pytest.raises(Throttled):
        run("create_post", Script(answer(400, {"errors": [{"code": 88, "message": "Rate limit exceeded"}]})))


def test_an_account_that_reached_its_posts_per_day_waits_for_hours():
    refusal = answer(403, {"errors": [{"code": 344, "message": "daily limit"}]}, x_rate_limit_reset=SOON)
    with pytest.raises(Throttled) as limited:
        run("create_post", Script(refusal))
    assert limited.value.retry_after_seconds == 3 * 3600


@pytest.mark.parametrize("refusal", [DUPLICATE, *BY_RULES])
def test_a_duplicate_after_an_unknown_outcome_is_probably_our_own_post(refusal):
    assert isinstance(run("create_post", Script(refusal), unknown_before=True), Unknown)
    first = run("create_post", Script(refusal))
    assert isinstance(first, Refused)
    assert "already has" in first.message


def test_a_refusal_that_quotes_our_own_words_about_duplicates_is_none():
    quoting = answer(403, {"errors": [{"parameters": "duplicate-rules", "value": "duplicate-rules", "message": "No"}]})
    assert isinstance(run("create_post", Script(quoting), unknown_before=True), Refused)


def test_fresh_invalid_media_wait_once_then_are_sent_again_once_then_fail():
    media = image()
    back: dict[str, int] = {}
    first = run(
        "create_post", Script(invalid(BAD_MEDIA)), "Hi", media, memo=uploaded("1", ready_seconds_ago=3), back=back
    )
    assert isinstance(first, Wait)
    assert 3 <= first.seconds <= 5

    second = run("create_post", Script(invalid(BAD_MEDIA)), "Hi", media, memo=first.memo, seconds=4, back=back)
    assert isinstance(second, Again)
    assert second.step == "upload:0"

    upload = Script(data(id="2", expires_after_secs=86400))
    done = run("upload:0", upload, "Hi", media, memo=second.memo, seconds=5)
    assert upload.over
    third = run("create_post", Script(invalid(BAD_MEDIA)), "Hi", media, memo=memo_of(done), seconds=6, back=back)
    assert isinstance(third, Refused)
    assert "uploaded the media 2 times" in third.message


def test_old_invalid_media_are_sent_again_once_and_created_at_most_three_times():
    media = video()
    back: dict[str, int] = {}
    first = run(
        "create_post", Script(invalid(BAD_MEDIA)), "Hi", media, memo=uploaded("1", ready_seconds_ago=30), back=back
    )
    assert isinstance(first, Again)
    assert first.step == "init:0"
    again = {**first.memo, **uploaded("2", ready_seconds_ago=0)}
    second = run("create_post", Script(invalid(BAD_MEDIA)), "Hi", media, memo=again, seconds=1, back=back)
    assert isinstance(second, Wait)
    third = run("create_post", Script(invalid(BAD_MEDIA)), "Hi", media, memo=second.memo, seconds=5, back=back)
    assert isinstance(third, Refused)


@pytest.mark.parametrize(
    ("sent", "limit"),
    [
        (("image/png", 2_700_000), 2_000_000),
        (("image/jpeg", 4_000_000), 2_000_000),
        (("image/jpeg", 120_000), 90_000),
        (("image/webp", 50_000), 2_000_000),
    ],
)
def test_the_second_upload_of_a_refused_image_is_another_file(sent, limit):
    asked: list[ImageLimits] = []

    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        asked.append(limits)
        if limits.types == ("image/jpeg",):
            return replace(media, mime_type="image/jpeg", size_bytes=limits.max_bytes)
        return replace(media, mime_type=sent[0], size_bytes=sent[1])

    media = image(mime_type=sent[0], size_bytes=sent[1])
    done = run("upload:0", Script(data(id="1")), "Hi", media, fit=fit)
    again = run("create_post", Script(invalid(BAD_MEDIA)), "Hi", media, memo=memo_of(done), seconds=30, back={})
    too_large = run("upload:0", Script(answer(413)), "Hi", media, memo=memo_of(again), fit=fit)
    if limit == 2_000_000:
        done = run("upload:0", Script(data(id="2")), "Hi", media, memo=memo_of(too_large), fit=fit)
        assert (asked[2].types, asked[2].max_bytes) == (("image/jpeg",), 1_000_000)
    assert (asked[1].types, asked[1].max_bytes) == (("image/jpeg",), limit)


def test_a_refused_image_that_cannot_be_smaller_is_sent_as_it_is():
    def fit(media: MediaFile, limits: ImageLimits) -> MediaFile:
        if limits.max_bytes < 600:
            raise Unfit("too small")
        return replace(media, size_bytes=600)

    memo = {"media": {"0": {"as_jpeg": True, "max_bytes": 450}}}
    assert isinstance(run("upload:0", Script(data(id="2")), "Hi", image(), memo=memo, fit=fit), Done)


@pytest.mark.parametrize(
    ("media", "advice", "too_long"),
    [
        (image(), "Save the image again as a JPEG", False),
        (gif(), "Save the GIF again", False),
        (video(), "H.264", False),
        (video(duration_seconds=141.0, video_codec="h264"), "Shorten the video", True),
    ],
)
def test_the_advice_about_refused_media_fits_the_file(media, advice, too_long):
    memo = {**uploaded("1"), "creates": 2}
    outcome = run("create_post", Script(invalid(BAD_MEDIA)), "Hi", media, memo=memo)
    assert isinstance(outcome, Refused)
    said = ["Save the image again as a JPEG", "Save the GIF again", "H.264", "Shorten the video"]
    assert [one for one in said if one in outcome.message] == [advice]
    assert outcome.too_long == too_long


TOO_LONG = [
    "This user is not allowed to post a video longer than 2 minutes.",
    "Duration too long, maximum:30000, actual:33878 (MediaId: snf:1)",
    "Duration 2.minutes+29.seconds+350.milliseconds exceeds max duration of 2.minutes+20.seconds",
]


@pytest.mark.parametrize("message", TOO_LONG)
@pytest.mark.parametrize("step", ["create_post", "init:0", "finalize:0", "await:0", "processing"])
def test_a_refused_duration_is_about_the_duration_wherever_x_reports_it(step, message):
    memo = uploaded("1")
    if step != "create_post":
        memo["media"]["0"] = {} if step == "init:0" else {**memo["media"]["0"], "ready_at": None}
    error = {"code": 3, "name": "UnsupportedMedia", "message": message}
    refusal = data(id="1", processing_info={"state": "failed", "error": error})
    answered = refusal if step == "processing" else invalid(message)
    outcome = run("await:0" if step == "processing" else step, Script(answered), "Hi", video(), memo=memo)
    assert isinstance(outcome, Refused)
    assert outcome.too_long
    assert "Shorten the video" in outcome.message
    assert "H.264" not in outcome.message


def test_media_that_expired_while_the_post_waited_are_sent_again_before_anything_is_created():
    script = Script()
    outcome = run("create_post", script, "Hi", image(0), image(1), memo=uploaded("1", "2"), seconds=24 * 3600)
    assert isinstance(outcome, Again)
    assert outcome.step == "upload:0"
    assert script.calls == []


def test_the_attempt_has_the_request_id_and_the_code():
    asked = job(Script(answer(403, {"errors": [{"code": 64, "message": "no"}]}, x_transaction_id="abc")))
    ADAPTER.run("create_post", asked)
    assert asked.trace.request_id == "abc"
    assert asked.trace.code == "64"


def test_no_token_of_an_answer_reaches_a_message():
    secret = "QmFzZTY0" * 12
    outcome = run("create_post", Script(problem(403, f"bad token {secret} given")))
    assert isinstance(outcome, Refused)
    assert secret not in outcome.message


@pytest.mark.parametrize(
    ("media", "names"),
    [
        ((), ["create_post"]),
        ((image(),), ["upload:0", "create_post"]),
        ((image(0, alt="A bike"), image(1)), ["upload:0", "alt:0", "upload:1", "create_post"]),
        ((gif(),), ["init:0", "append:0", "finalize:0", "await:0", "create_post"]),
        ((gif(frames=1),), ["upload:0", "create_post"]),
        ((video(),), ["init:0", "append:0", "finalize:0", "await:0", "create_post"]),
    ],
)
def test_a_plan_prepares_every_file_and_commits_once(media, names):
    plan = ADAPTER.plan(Content("Hello", media), {})
    assert [step.name for step in plan] == names
    assert [step.name for step in plan if step.kind is Kind.COMMIT] == ["create_post"]
    assert {step.kind for step in plan if step.name.startswith("await")} <= {Kind.POLL}


def memo_of(outcome: Any) -> dict[str, Any]:
    assert not isinstance(outcome, ProviderError | Refused)
    memo = outcome.memo
    assert isinstance(memo, dict)
    return memo
