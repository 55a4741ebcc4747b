"""The owner's image as the cover of a video."""

from functools import partial
from typing import Any

import pytest

from socialpub.core.errors import InvalidRequest
from socialpub.db.states import State
from socialpub.publishing.posts import drafts, posts
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from tests.providers.grid import BODY, Environment, assert_the_outcome_is_true
from tests.providers.networks import story_of
from tests.providers.sample_artifacts import sample_artifact
from tests.providers.stories_pinterest import image, video
from tests.samples import media
from tests.support.appliance import OWNER, accept, message_of, state_of
from tests.support.drain import drain
from tests.support.select import select_value

UNKNOWN = "01a12f57-1a80-7074-9d08-074dfc0027ba"


def cover(env: Environment) -> str:
    return sample_artifact(env.rt, env.samples / "cover.webp", "image/webp", partial(media.webp, width=640, height=960))


def draft(env: Environment, cover_id: str, *, make: Any = video, **options: Any) -> Draft:
    network, _ = story_of("pinterest", "video")
    profile = select_value(env.rt.db, "SELECT id FROM profile") or network.connect(env.rt, env.world)
    chosen = {**network.options(env.world, "demo"), "coverArtifactId": cover_id, **options}
    return Draft(BODY, None, (str(profile),), make(env.rt, env.samples), {"pinterest": chosen})


def problems(env: Environment, given: Draft) -> list[tuple[tuple[str | int, ...], str]]:
    (checked,) = drafts.check_draft(env.rt, env.rt.db, given, OWNER)
    return [(problem.path, problem.message) for problem in checked.problems]


def test_a_video_pin_has_the_owners_cover_in_an_accepted_type(env: Environment) -> None:
    given = draft(env, cover(env))
    assert problems(env, given) == []
    post = env.rt.write(posts.create, given, OWNER)
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    assert_the_outcome_is_true(env.rt, env.world, story_of("pinterest", "video")[0], post)
    (pin,) = env.world.pinterest.pins
    assert (pin.kind, pin.key_frame_seconds) == ("video", None)
    assert [(one.mime_type, one.width, one.height) for one in pin.pictures] == [("image/png", 640, 960)]
    assert env.transport.called[:2] == ["read_board", "register_media"]


def test_the_second_call_after_a_lost_response_also_contains_the_cover(env: Environment) -> None:
    post = env.rt.write(posts.create, draft(env, cover(env)), OWNER)
    env.world.pinterest.next("create_pin").times_out_before_effect()
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.PUBLISHED, message_of(env.rt, post)
    (pin,) = env.world.pinterest.pins
    assert len(pin.pictures) == 1


def test_a_cover_that_is_no_verified_artifact_is_refused_at_its_field(env: Environment) -> None:
    for given in (draft(env, UNKNOWN), draft(env, "none of ours")):
        with pytest.raises(InvalidRequest) as caught:
            env.rt.write(posts.create, given, OWNER)
        assert [error.path for error in caught.value.errors] == [("providerOptions", "pinterest", "coverArtifactId")]
        with pytest.raises(InvalidRequest):
            problems(env, given)
    known = draft(env, cover(env))
    later = Draft(BODY, env.clock.now().replace(year=2027), known.profiles, known.media, known.options)
    post = env.rt.write(posts.create, later, OWNER)
    change = Draft.change(options={"pinterest": {"cover_artifact_id": UNKNOWN}})
    with pytest.raises(InvalidRequest) as caught:
        env.rt.write(posts.edit, post, change, OWNER)
    assert [error.path for error in caught.value.errors] == [("providerOptions", "pinterest", "cover_artifact_id")]


def test_a_cover_that_pinterest_refuses_is_an_error_of_its_field(env: Environment) -> None:
    path = ("providerOptions", "pinterest", "coverArtifactId")
    moving = video(env.rt, env.samples)[0].artifact_id
    assert [found for found, _ in problems(env, draft(env, moving))] == [path]
    both = draft(env, cover(env), coverImageKeyFrameTime=3)
    ((found, message),) = problems(env, both)
    assert found == path
    assert "not both" in message
    post = env.rt.write(posts.create, both, OWNER)
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.FAILED
    assert env.world.pinterest.pins == []


def test_a_cover_for_an_image_pin_is_only_a_note(env: Environment) -> None:
    given = draft(env, cover(env), make=image)
    (checked,) = drafts.check_draft(env.rt, env.rt.db, given, OWNER)
    assert (checked.problems, len(checked.notes)) == ([], 1)


def test_a_missing_cover_fails_the_delivery_with_a_message(env: Environment) -> None:
    given = draft(env, cover(env))
    env.rt.write(
        lambda rt, tx: tx.execute_sql("UPDATE profile SET options = ?", (f'{{"coverArtifactId": "{UNKNOWN}"}}',))
    )
    board = {"pinterest": {"boardId": (given.options or {})["pinterest"]["boardId"]}}
    stored = Draft(BODY, None, given.profiles, given.media, board)
    assert len(problems(env, stored)) == 1
    post = accept(
        env.rt, *given.profiles, media=tuple(DraftMedia(one.artifact_id) for one in given.media), options=board
    )
    drain(env.rt, env.clock)
    assert state_of(env.rt, post) is State.FAILED
    assert "Upload the image again" in message_of(env.rt, post)
