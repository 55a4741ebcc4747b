"""Read-backs of a commit with faults, lagging lists and a deadline."""

from datetime import timedelta

import pytest

from socialpub.db.states import State
from tests.providers.grid import (
    BODY,
    PAGES,
    Call,
    Environment,
    Means,
    assert_the_outcome_is_true,
    begin,
    hours_or_a_day,
    played,
)
from tests.providers.networks import NETWORKS, story_of
from tests.providers.stories_tiktok import DIRECT, large_video
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain
from tests.support.select import select_all

TOLD_BY = [("x", "text"), ("tiktok", "video"), ("pinterest", "image")]
"""One story for each kind of read-back."""

MET = (
    "never left", "never leaves", "429 with a time", "429 without a time", "429 for ever", "401 once", "401 for ever",
    "400", "403", "404", "500 before", "503 three times", "503 for ever", "HTML before", "unreadable 2xx before",
    "unreadable 2xx three times", "time-out before", "time-out for ever", "cut before", "cut three times", *PAGES,
)  # fmt: skip
OWN = {
    "x": ("402", "402 in its other shape"),
    "tiktok": ("scope missing", "unknown publish_id", "the app's cap"),
    "pinterest": ("not approved", "missing scope", "not readable", "switched off"),
}
ANSWERED_IN_THE_END = (Means.PASSES, Means.OPEN, Means.OPEN_THRICE)
NO_ANSWER = {("pinterest", "not readable")}
"""This app may not read its own posts, so the outcome stays unknown."""
ASKED_IN_OTHER_WORDS = {("x", "400")}
"""X's list has two dialects. After a refusal, the other one is tried."""

ONE_FOR_EACH = ("429 with a time", "500 before", "503 three times", "400", "429 for ever", "time-out for ever")
"""One fault for each meaning."""

CELLS = [
    (network, story, fault, effect)
    for network, story in TOLD_BY
    for fault in (*MET, *OWN[network])
    for effect in ([True, False] if fault in ONE_FOR_EACH else [True])
]


@pytest.fixture
def give_up_after(request: pytest.FixtureRequest) -> timedelta:
    return hours_or_a_day(request)


def in_every_run(network: str, story: str, fault: str, effect: bool) -> bool:
    return network == "x" or fault in OWN[network] or (fault in ONE_FOR_EACH and effect)


@pytest.mark.parametrize(("network", "story", "fault", "effect"), played(CELLS, in_every_run))
def test_a_fault_during_the_read_back(env: Environment, network: str, story: str, fault: str, effect: bool) -> None:
    played, chosen = story_of(network, story)
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    verb = "times_out_after_effect" if effect else "times_out_before_effect"
    getattr(env.world.networks[network].next(chosen.commit), verb)()
    assert chosen.read_back_by is not None
    fault_met = played.fault(fault)
    fault_met.apply(env, network, Call.of(chosen.read_back_by))
    drain(env.rt, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    answered = fault_met.means in ANSWERED_IN_THE_END or (network, fault) in ASKED_IN_OTHER_WORDS
    answered = answered and (network, fault) not in NO_ANSWER
    assert state_of(env.rt, post) is (State.PUBLISHED if answered else State.UNCONFIRMED), message_of(env.rt, post)


@pytest.mark.parametrize("network", ["x", "pinterest"])
def test_two_equal_posts_each_find_their_own(env: Environment, network: str) -> None:
    played, chosen = story_of(*next(pair for pair in TOLD_BY if pair[0] == network))
    env.world.x.duplicate_window_seconds = 0
    profile = played.connect(env.rt, env.world)
    posts = [begin(env, played, chosen, profile) for _ in range(2)]
    env.world.networks[network].next(chosen.commit).times_out_after_effect().times(2)
    drain(env.rt, env.clock)
    assert [state_of(env.rt, post) for post in posts] == [State.PUBLISHED] * 2
    ids = [row[0] for row in select_all(env.rt.db, "SELECT provider_post_id FROM delivery")]
    assert sorted(ids) == sorted(played.made(env.world))
    assert len(set(ids)) == 2


@pytest.mark.parametrize("reason", ["internal", "photo_pull_failed", "spam_risk", "auth_removed"])
@pytest.mark.parametrize("story", ["video", "photos", "draft"])
def test_a_post_that_tiktok_reports_as_failed_was_not_posted(env: Environment, story: str, reason: str) -> None:
    played, chosen = story_of("tiktok", story)
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    env.world.tiktok.fate = reason
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.FAILED
    assert_the_outcome_is_true(env.rt, env.world, played, post)


@pytest.mark.parametrize("story", ["video", "photos", "photo draft"])
def test_tiktok_never_ends_its_processing_and_the_outcome_stays_unknown(env: Environment, story: str) -> None:
    played, chosen = story_of("tiktok", story)
    env.world.tiktok.fate = "never_ends"
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.UNCONFIRMED
    assert len(env.world.tiktok.tasks) == 1, "nothing was begun a second time"


@pytest.mark.parametrize("fate", ["fails", "never_ends"])
def test_no_pin_is_created_when_pinterest_cannot_process_the_video(env: Environment, fate: str) -> None:
    played, chosen = story_of("pinterest", "video")
    env.world.pinterest.processing = fate  # type: ignore[assignment]
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.FAILED
    assert_the_outcome_is_true(env.rt, env.world, played, post)


@pytest.mark.parametrize("effect", [True, False], ids=["it was made", "it was not"])
def test_photos_without_a_publish_id_are_never_polled(env: Environment, effect: bool) -> None:
    played, chosen = story_of("tiktok", "photos")
    post = begin(env, played, chosen, played.connect(env.rt, env.world))
    verb = "times_out_after_effect" if effect else "times_out_before_effect"
    getattr(env.world.tiktok.next("content_init"), verb)()
    drain(env.rt, env.clock)
    assert_the_outcome_is_true(env.rt, env.world, played, post)
    assert state_of(env.rt, post) is State.UNCONFIRMED
    assert env.world.tiktok.statuses("content_init") == [0]
    assert env.world.tiktok.statuses("status_fetch") == []


def test_a_video_in_real_chunks_arrives_whole_after_any_fault(env: Environment) -> None:
    env.world.tiktok.next("upload_chunk").skipping(1).times_out_after_effect()
    env.world.tiktok.next("upload_chunk").skipping(2).fails_with(503)
    env.world.tiktok.next("upload_chunk").skipping(1).drops_connection_after_effect()
    video = large_video(env.rt, env.samples, 64_000_001)
    profile = NETWORKS["tiktok"].connect(env.rt, env.world)
    post = accept(env.rt, profile, body=BODY, media=video, options={"tiktok": DIRECT})
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert_the_outcome_is_true(env.rt, env.world, NETWORKS["tiktok"], post)
    (task,) = env.world.tiktok.tasks.values()
    assert (task.chunk_count, task.chunk_size, task.received) == (6, 10_000_000, 64_000_001)
