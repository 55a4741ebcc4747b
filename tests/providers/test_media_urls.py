"""`validate` does not fetch files at URLs, and reports only problems that no file could avoid (contract 10.2.2)."""

from typing import Any

import pytest

from socialpub.publishing.posts import drafts
from socialpub.publishing.posts.drafts import CheckedDelivery, Draft, DraftMedia
from tests.providers.grid import BODY, Environment
from tests.providers.networks import story_of
from tests.support.appliance import OWNER

URL = DraftMedia("", url="https://photos.example/a")
NOTE = "This check does not fetch media[0].url. The file is checked when you create the post."


def check(env: Environment, network: str, *media: DraftMedia, text: str = BODY, **options: Any) -> CheckedDelivery:
    kind, _ = story_of(network, "video")
    profile = kind.connect(env.rt, env.world)
    given = {**kind.options(env.world, "demo"), **options}
    draft = Draft(text, None, (profile,), media, {network: given})
    (checked,) = drafts.check_draft(env.rt, env.rt.db, draft, OWNER)
    return checked


@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("x", {}),
        ("tiktok", {"privacyLevel": "SELF_ONLY"}),
        ("tiktok", {"privacyLevel": "SELF_ONLY", "videoCoverTimestampMs": 1000}),
        ("tiktok", {"privacyLevel": "SELF_ONLY", "title": "Only for photos"}),
        ("pinterest", {}),
        ("pinterest", {"coverImageKeyFrameTime": 1}),
    ],
)
def test_an_unknown_file_is_not_a_problem(env: Environment, network: str, options: dict[str, Any]) -> None:
    checked = check(env, network, URL, **options)
    assert checked.problems == []
    assert NOTE in checked.notes


def test_problems_that_no_file_avoids_are_reported(env: Environment) -> None:
    found = check(env, "x", DraftMedia("", "a" * 1001, url=URL.url), text="a" * 300)
    assert {problem.path for problem in found.problems} == {("post", "body"), ("media", 0, "alt")}
