"""TikTok's choices in Chromium: exclusions, and the common choices of several accounts."""

import pytest
from playwright.sync_api import Page, expect

from socialpub.db.models import ProfileRow
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support import axe
from tests.support.sandbox_http import connect_tiktok, connect_x

pytestmark = pytest.mark.chromium

HINT = "Branded content visibility cannot be set to private."


@pytest.fixture
def page(page: Page, rt: Runtime, world: World) -> Page:
    """The form, with two accounts of TikTok (`demo` is public, `studio` private) and one of X."""
    for name in ("demo", "studio"):
        profile = connect_tiktok(rt, world, name)
        rt.db.write(lambda tx, profile=profile, name=name: tx.update(ProfileRow, profile, name=name))
    connect_x(rt, world)
    rt.settings.providers.tiktok.__dict__["audited"] = True
    page.goto("/compose")
    return page


def levels(page: Page) -> list[str]:
    found: list[str] = page.get_by_label("Who can see it").evaluate(
        "select => [...select.options].filter(one => one.value && !one.disabled).map(one => one.value)"
    )
    return found


def test_the_choices_are_those_of_the_ticked_accounts(page):
    page.get_by_label("x profile").check()
    expect(page.get_by_role("group", name="TikTok")).to_be_hidden()
    expect(page.locator("#tiktok-consent")).to_be_hidden()
    page.get_by_label("demo", exact=True).check()
    assert levels(page) == ["PUBLIC_TO_EVERYONE", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"]
    expect(page.get_by_text("Posting to Demo @demo")).to_be_visible()
    expect(page.get_by_text("Posting to Studio")).to_be_hidden()
    expect(page.get_by_label("Allow duets")).to_be_enabled()
    page.get_by_label("Who can see it").select_option("PUBLIC_TO_EVERYONE")
    page.get_by_label("Allow duets").check()

    page.get_by_label("studio", exact=True).check()
    assert levels(page) == ["MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"]
    expect(page.get_by_label("Who can see it")).to_have_value("")  # nothing else takes its place

    page.get_by_label("demo", exact=True).uncheck()
    assert levels(page) == ["FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"]
    expect(page.get_by_label("Allow duets")).to_be_disabled()
    expect(page.get_by_label("Allow duets")).not_to_be_checked()
    expect(page.get_by_text("The account's settings on TikTok turn duets off.")).to_be_visible()


def test_commercial_content_shows_its_label_its_policy_and_what_it_excludes(page):
    page.get_by_label("demo", exact=True).check()
    consent, branded = page.locator("#tiktok-consent"), page.get_by_label("Branded content", exact=True)
    expect(consent).to_have_text("By posting, you agree to TikTok's Music Usage Confirmation.", use_inner_text=True)
    expect(branded).to_be_hidden()
    page.get_by_label("Disclose commercial content").check()
    said = page.locator("#options-tiktok-label")
    expect(said).to_have_text("You need to indicate if your content promotes yourself, a third party, or both.")
    page.get_by_label("Your brand").check()
    expect(said).to_have_text("Your post will be labeled “Promotional content”.")
    branded.check()
    expect(said).to_have_text("Your post will be labeled “Paid partnership”.")
    expect(consent).to_have_text(
        "By posting, you agree to TikTok's Branded Content Policy and Music Usage Confirmation.", use_inner_text=True
    )
    assert levels(page) == ["PUBLIC_TO_EVERYONE", "MUTUAL_FOLLOW_FRIENDS"]
    assert page.locator('#options-tiktok-privacyLevel option[value="SELF_ONLY"]').get_attribute("title") == HINT
    expect(page.get_by_text(HINT)).to_be_visible()

    branded.uncheck()
    page.get_by_label("Who can see it").select_option("SELF_ONLY")
    expect(branded).to_be_disabled()
    assert axe.violations(page) == []

    page.get_by_label("Disclose commercial content").uncheck()
    expect(page.get_by_label("Your brand")).not_to_be_checked()
    page.get_by_label("How to post").select_option("draft")
    expect(page.get_by_label("Who can see it")).to_be_hidden()


def test_images_of_the_preview_load_from_every_form(page, tmp_path):
    page.get_by_label("x profile").check()
    page.locator("#field-media").set_input_files(media.jpeg(tmp_path / "a.jpg"))
    expect(page.locator("#preview .picture img")).to_have_count(1)
    page.get_by_label("At a time").check()
    page.locator("#field-time").fill("2027-01-05T10:00")
    page.get_by_role("button", name="Schedule").click()
    page.get_by_role("link", name="Edit").click()
    with page.expect_response("**/compose/check"):
        page.get_by_label("Text", exact=True).fill("With words")
    expect(page.locator("#preview")).to_contain_text("With words")
    picture = page.locator("#preview .picture img")
    assert picture.evaluate("async (image) => { await image.decode(); return image.naturalWidth; }") > 0


def test_the_caption_of_a_draft_is_copied_from_the_posts_page(page, tmp_path):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_label("demo", exact=True).check()
    page.get_by_label("How to post").select_option("draft")
    page.get_by_label("Text", exact=True).fill("Evening light\n#sunset")
    page.locator("#field-media").set_input_files(media.video_mp4(tmp_path / "a.mp4", width=640, height=360, rate=30))
    page.get_by_role("button", name="Publish").click()
    page.get_by_role("button", name="Copy caption").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "Evening light\n#sunset"
    assert axe.violations(page) == []
