"""What the sandbox refuses: strangers, duplicates, and callers who have reached a limit of the network."""

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from socialpub.sandbox.tiktok.tasks import PUBLIC
from tests.sandbox.clients import (
    PinterestClient,
    TikTokClient,
    XClient,
    error_code,
    message,
    refusal,
    sign_in_to_bluesky,
    xrpc_error,
)
from tests.support.hand_clock import HandClock

SOURCE = {"source": "FILE_UPLOAD", "video_size": 9, "chunk_size": 9, "total_chunk_count": 1}


@pytest.mark.parametrize("header", [{}, {"authorization": "Bearer stranger"}, {"authorization": "Basic x"}])
def test_a_missing_or_unknown_token_is_401(web: TestClient, header: dict[str, str]) -> None:
    assert web.get("/x/2/users/me", headers=header).status_code == 401


def test_every_response_reports_the_window(x: XClient, clock: HandClock) -> None:
    first = x.post("one")
    clock.forward(10)
    second = x.post("one")
    reset = str(int(clock.now().timestamp()) + 890)
    for answer, left in ((first, "99"), (second, "98")):
        assert answer.headers["x-rate-limit-limit"] == "100"
        assert answer.headers["x-rate-limit-remaining"] == left
        assert answer.headers["x-rate-limit-reset"] == reset
    assert second.status_code == 403, "a refusal counts too"
    assert x.web.get("/x/2/users/me").headers["x-rate-limit-limit"] == "75", "without a token too"


def test_a_full_window_is_429_until_it_ends(world: World, x: XClient, clock: HandClock) -> None:
    world.x.limits["POST /2/tweets"] = 2
    assert [x.post(f"n{number}").status_code for number in range(3)] == [201, 201, 429]
    clock.forward(899)
    assert x.post("still").status_code == 429
    clock.forward(1)
    assert x.post("again").status_code == 201
    assert len(world.x.posts) == 3


def test_the_same_text_is_a_duplicate_until_the_window_ends(
    world: World, web: TestClient, x: XClient, clock: HandClock
) -> None:
    x.post("again")
    assert message(x.post("again")) == "You are not allowed to create a Tweet with duplicate content."
    assert XClient(web, world, "studio").post("again").status_code == 201, "another account may"
    world.x.duplicate_window_seconds = 60
    clock.forward(60)
    assert x.post("again").status_code == 201


def test_a_day_has_fifteen_posts(world: World, tiktok: TikTokClient, clock: HandClock) -> None:
    world.tiktok.limits["video_init"] = 100
    for _ in range(15):
        assert error_code(tiktok.begin()) == "ok"
    assert error_code(tiktok.begin()) == "spam_risk_too_many_posts"
    assert error_code(tiktok.creator()) == "spam_risk_too_many_posts"
    clock.forward(86399)
    world.tiktok.access_seconds = 10**6
    tiktok.token = world.tiktok.grant("demo")["accessToken"]
    assert error_code(tiktok.begin()) == "spam_risk_too_many_posts"
    clock.forward(1)
    assert error_code(tiktok.begin()) == "ok"


def test_six_inits_fit_into_a_sliding_minute(tiktok: TikTokClient, clock: HandClock) -> None:
    for _ in range(6):
        assert error_code(tiktok.begin()) == "ok"
        clock.forward(5)
    assert (tiktok.begin().status_code, error_code(tiktok.begin())) == (429, "rate_limit_exceeded")
    clock.forward(30)
    assert error_code(tiktok.begin()) == "ok"
    assert error_code(tiktok.begin()) == "rate_limit_exceeded"


def test_a_privacy_level_must_be_one_of_the_users_own(world: World, tiktok: TikTokClient) -> None:
    assert error_code(tiktok.begin(privacy_level="FOLLOWER_OF_CREATOR")) == "privacy_level_option_mismatch"
    no_choice = {"post_info": {"title": "a"}, "source_info": SOURCE}
    assert error_code(tiktok.ask("/post/publish/video/init/", no_choice)) == "privacy_level_option_mismatch"
    world.tiktok.change_account("demo", private=True)
    assert error_code(tiktok.begin(privacy_level=PUBLIC)) == "privacy_level_option_mismatch"


def test_writes_and_reads_have_windows_of_their_own(world: World, pinterest: PinterestClient, clock: HandClock) -> None:
    world.pinterest.limits["org_write"] = 2
    first = pinterest.pin()
    assert first.headers["x-ratelimit-limit"] == "2, 2;w=60"
    assert (first.headers["x-ratelimit-remaining"], first.headers["x-ratelimit-reset"]) == ("1", "60")
    clock.forward(20)
    pinterest.pin()
    limited = pinterest.pin()
    assert refusal(limited) == (429, 8)
    assert (limited.headers["x-ratelimit-remaining"], limited.headers["x-ratelimit-reset"]) == ("0", "40")
    assert limited.headers["x-pinterest-rid"]
    assert pinterest.call("GET", "/boards").status_code == 200
    clock.forward(40)
    assert pinterest.pin().status_code == 201
    assert world.pinterest.category_counts == {"org_write": 4, "org_read": 1}


def test_thirty_sign_ins_in_five_minutes_are_accepted(web: TestClient, clock: HandClock, world: World) -> None:
    for _ in range(30):
        assert sign_in_to_bluesky(web, password="wrong").status_code == 401
    limited = sign_in_to_bluesky(web)
    assert xrpc_error(limited) == (429, "RateLimitExceeded")
    assert (limited.headers["ratelimit-remaining"], limited.headers["ratelimit-policy"]) == ("0", "30;w=300")
    reset = int(limited.headers["ratelimit-reset"])
    assert int(limited.headers["retry-after"]) == reset - int(world.bluesky.timestamp()) == 300
    assert sign_in_to_bluesky(web, "studio.test", "stud-iost-udio-stud").status_code == 200, "another account"
    clock.forward(300)
    assert sign_in_to_bluesky(web).status_code == 200
