"""TikTok's form follows its sharing guidelines: the owner makes each choice."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.appliance import accept, state_of
from tests.support.drain import drain
from tests.support.sandbox_http import artifact, connect_tiktok
from tests.support.select import select_value
from tests.support.tab import Element, Page

NOT_PRIVATE = "Branded content visibility cannot be set to private."


@pytest.fixture
def video(tmp_path: Path) -> Path:
    return media.video_mp4(tmp_path / "evening.mp4", seconds=1.0, width=640, height=360, rate=30)


@pytest.fixture(autouse=True)
def audited(rt: Runtime) -> None:
    """TikTok has audited the app."""
    rt.settings.providers.tiktok.__dict__["audited"] = True


@pytest.fixture
def unaudited(rt: Runtime, audited: None) -> None:
    """TikTok has not audited the app, which is the usual case."""
    rt.settings.providers.tiktok.__dict__["audited"] = False


def levels(page: Page) -> list[tuple[str, str]]:
    options = page.field("Who can see it").all("option")
    return [(one.attributes.get("value", one.text), one.text) for one in options]


def is_ticked(page: Page, label: str) -> bool:
    return "checked" in page.field(label).attributes


def consent(page: Page) -> list[str]:
    """Return the visible lines of the consent text."""
    line = page.by_id("tiktok-consent")
    shown = [one for one in line.all("span") if "data-branded" in one.attributes and "hidden" not in one.attributes]
    return [one.text for one in shown]


def accepted(rt: Runtime) -> int:
    return int(select_value(rt.db, "SELECT count(*) FROM post"))


def test_each_new_form_asks_tiktok_for_the_choices_of_the_account(owner, world, tiktok):
    page = owner.open("/compose")
    assert "Posting to Demo @demo" in page.text
    assert "Videos of at most 600 seconds" in page.text
    account = world.tiktok.existing_account("demo")
    account.private, account.display_name, account.max_duration = True, "Demo at night", 60
    page = owner.open("/compose")
    assert "Posting to Demo at night @demo" in page.text
    assert "Videos of at most 60 seconds" in page.text
    assert [value for value, _ in levels(page)][1:] == ["FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"]


def test_no_choice_is_preselected(owner, tiktok):
    page = owner.open("/compose")
    assert levels(page) == [
        ("", "Choose who can see it"),
        ("PUBLIC_TO_EVERYONE", "Everyone"),
        ("MUTUAL_FOLLOW_FRIENDS", "Friends (you follow each other)"),
        ("SELF_ONLY", "Only me"),
    ]
    assert page.chosen("Who can see it") == []
    for label in (
        "Allow comments",
        "Allow duets",
        "Allow stitches",
        "Disclose commercial content",
        "Your brand",
        "Branded content",
    ):
        assert not is_ticked(page, label), label


def test_a_stored_privacy_level_does_not_preselect_the_level(owner, rt, tiktok):
    rt.write(_store, tiktok, {"privacyLevel": "PUBLIC_TO_EVERYONE", "disableComment": "false"})
    page = owner.open("/compose")
    assert page.chosen("Who can see it") == []
    assert not is_ticked(page, "Allow comments")


def _store(rt: Runtime, tx: Any, profile_id: str, given: dict[str, str]) -> None:
    from socialpub.accounts import profiles

    profiles.set_options(rt, tx, profile_id, given)


def test_interactions_that_the_account_turns_off_are_disabled_with_the_reason(owner, rt, world):
    world.tiktok.add_account("quiet", "Quiet", private=True, comment_disabled=True)
    connect_tiktok(rt, world, "quiet")
    page = owner.open("/compose")
    for label, what in (("Allow comments", "comments"), ("Allow duets", "duets"), ("Allow stitches", "stitches")):
        assert "disabled" in page.field(label).attributes, label
        assert f"The account's settings on TikTok turn {what} off." in page.text


def test_photos_show_comments_only(owner, tiktok, tmp_path):
    owner.open("/compose")
    page = owner.press("Check", {"Media": [media.jpeg(tmp_path / "a.jpg")], "Who can see it": "SELF_ONLY"})
    assert (page.status, "disableDuet" in page.text) == (200, False)
    assert not is_hidden(page.field("Allow comments"))
    assert is_hidden(page.field("Allow duets"))
    assert is_hidden(page.field("Allow stitches"))


def is_hidden(element: Element) -> bool:
    at: Element | None = element
    while at is not None:
        if "hidden" in at.attributes:
            return True
        at = at.parent
    return False


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("spam_risk_too_many_posts", "Try again tomorrow"),
        ("spam_risk_user_banned_from_posting", "TikTok has banned this account from posting"),
        ("reached_active_user_cap", "Try again tomorrow"),
    ],
)
def test_a_posting_limit_or_a_ban_stops_the_post(owner, rt, world, tiktok, video, code, said):
    world.tiktok.next("creator_info").refuses(code)
    page = owner.open("/compose")
    assert "Posting is stopped." in page.text
    assert said in page.text
    page = owner.press("Publish", {"Media": [video], "#options.tiktok.privacyLevel": "SELF_ONLY"})
    assert page.status == 400
    assert said in page.role("alert")
    assert not page.has_button("Publish anyway")
    assert accepted(rt) == 0


def test_without_an_answer_of_tiktok_only_a_draft_can_be_sent(owner, rt, world, tiktok, video):
    world.tiktok.next("creator_info").fails_with(503)
    page = owner.open("/compose")
    assert "you can only send drafts to it" in page.text
    page = owner.press("Publish", {"Media": [video], "#options.tiktok.privacyLevel": "SELF_ONLY"})
    assert (page.status, accepted(rt)) == (400, 0)
    assert "TikTok did not return" in page.role("alert")
    owner.press("Publish", {"How to post": "draft"})
    assert accepted(rt) == 1


EVERYONE = {"Who can see it": "PUBLIC_TO_EVERYONE"}
COMMERCIAL = {"Disclose commercial content": True}
INDICATE = "You need to indicate if your content promotes yourself, a third party, or both."


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({}, "TikTok does not allow a default"),
        ({"Who can see it": "FOLLOWER_OF_CREATOR"}, "TikTok does not currently offer this choice"),
        (EVERYONE | COMMERCIAL, INDICATE),
        (EVERYONE | {"Your brand": True}, "Turn this on"),
        ({"Who can see it": "SELF_ONLY", "Branded content": True} | COMMERCIAL, NOT_PRIVATE),
    ],
)
def test_a_direct_post_needs_explicit_and_possible_choices(owner, rt, x, tiktok, video, choices, said):
    assert NOT_PRIVATE in owner.open("/compose").text
    page = owner.press("Publish", {"Text": "Evening", "Media": [video], "#profiles": [tiktok], **choices})
    assert (page.status, accepted(rt), page.has_button("Publish anyway")) == (400, 0, False)
    assert said in page.role("alert")
    if "Who can see it" not in choices:
        assert page.field("Who can see it").attributes["aria-invalid"] == "true"


def test_the_consent_text_precedes_the_button(owner, tiktok, video):
    page = owner.open("/compose")
    (line,) = consent(page)
    assert line.startswith("By posting, you agree to TikTok's Music Usage Confirmation")
    assert page.html.index('id="tiktok-consent"') < page.html.index(">Publish</button>")
    links = page.links()
    assert links["Music Usage Confirmation"] == "https://www.tiktok.com/legal/page/global/music-usage-confirmation/en"
    assert links["Branded Content Policy"] == "https://www.tiktok.com/legal/page/global/bc-policy/en"
    choices = {"Disclose commercial content": True, "Branded content": True}
    page = owner.press("Check", {"Media": [video], "Who can see it": "PUBLIC_TO_EVERYONE", **choices})
    assert consent(page) == ["By posting, you agree to TikTok's Branded Content Policy and Music Usage Confirmation ."]


def test_the_post_has_exactly_the_chosen_options(owner, rt, world, clock, tiktok, video):
    page = owner.open("/compose")
    assert "socialpub does not add a watermark or text" in page.text
    assert "TikTok may need a few minutes" in page.text
    ticks = {"Allow comments": True, "Disclose commercial content": True, "Your brand": True}
    owner.press("Check", {"Text": "Preset", "Media": [video], "Who can see it": "SELF_ONLY", **ticks})
    owner.press("Publish", {"Text": "Evening light #demo"})
    drain(rt, clock)
    (post,) = world.tiktok.posts
    assert (post.title, post.privacy) == ("Evening light #demo", "SELF_ONLY")
    assert [post.options[key] for key in ("disable_comment", "disable_duet", "disable_stitch")] == [False, True, True]
    assert (post.options["brand_organic_toggle"], post.options["brand_content_toggle"]) == (True, False)
    (uploaded,) = post.media
    assert uploaded.size == video.stat().st_size


def test_a_draft_needs_none_of_the_choices(owner, rt, clock, tiktok, video):
    page = owner.press("Check", {"Media": [video], "How to post": "draft"}, on="/compose")
    assert page.status == 200
    assert "A draft is not public" in page.text
    owner.press("Publish")
    drain(rt, clock)
    assert state_of(rt, select_value(rt.db, "SELECT id FROM post")).api_status == "published"


SENT_TO_THE_APP, PUBLISHED = "Send to the TikTok app", "Publish directly"


def modes(page: Page) -> list[str]:
    return [one.text for one in page.field("How to post").all("option")]


def test_drafts_are_offered_first_until_the_app_is_audited(owner, rt, world, tiktok, video, unaudited):
    page = owner.open("/compose")
    assert modes(page) == [SENT_TO_THE_APP, PUBLISHED]
    assert page.chosen("How to post") == [SENT_TO_THE_APP]
    assert "A direct post must be “Only me” (SELF_ONLY)" in page.text
    assert "Only for posts that are published directly." in page.text
    assert [value for value, _ in levels(page)] == ["", "SELF_ONLY"]
    owner.press("Publish", {"Text": "Evening", "Media": [video]})
    drain(rt)
    assert [task.direct for task in world.tiktok.tasks.values()] == [False]
    assert owner.page.has_button("Copy caption")
    assert "TikTok does not accept a caption with a video draft" in owner.page.text


def test_copy_caption_appears_only_for_a_video_draft(owner, rt, tiktok, video, tmp_path):
    clip = DraftMedia(artifact(rt, video, "video/mp4"))
    photo = DraftMedia(artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg"))
    sent, direct = {"mode": "draft"}, {"privacyLevel": "SELF_ONLY"}
    for options, item, body in ((direct, clip, "Evening"), (sent, photo, "Evening"), (sent, clip, None)):
        post = accept(rt, tiktok, body=body, media=(item,), options={"tiktok": options})
        assert not owner.open(f"/posts/{post}").has_button("Copy caption"), options


def test_an_audited_app_publishes_first_and_says_nothing_about_limits(owner, tiktok):
    page = owner.open("/compose")
    assert modes(page) == [PUBLISHED, SENT_TO_THE_APP]
    assert page.chosen("How to post") == [PUBLISHED]
    assert "SELF_ONLY" not in page.text


def test_the_mode_of_the_profile_or_of_the_post_overrides_the_default(owner, rt, clock, tiktok, video, unaudited):
    rt.write(_store, tiktok, {"mode": "direct"})
    assert owner.open("/compose").chosen("How to post") == [PUBLISHED]
    rt.write(_store, tiktok, {"mode": ""})
    assert owner.open("/compose").chosen("How to post") == [SENT_TO_THE_APP]
    at = clock.now() + timedelta(hours=1)
    by_api = accept(rt, tiktok, at=at, options={"tiktok": {"privacyLevel": "SELF_ONLY"}})
    assert owner.open(f"/posts/{by_api}/edit").chosen("How to post") == [PUBLISHED], "accepted without a mode"
    direct = accept(rt, tiktok, at=at, options={"tiktok": {"mode": "direct", "privacyLevel": "SELF_ONLY"}})
    page = owner.open(f"/compose?from={direct}")
    assert page.chosen("How to post") == [PUBLISHED]
    assert page.chosen("Who can see it") == [], "the owner must choose it"
