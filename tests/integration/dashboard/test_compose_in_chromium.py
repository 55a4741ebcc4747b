"""A post is composed in Chromium: uploads, drafts, checks and previews."""

import base64
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support import axe
from tests.support.appliance import accept
from tests.support.sandbox_http import artifact, connect_pinterest, connect_tiktok, connect_x
from tests.support.select import select_all, select_value

pytestmark = pytest.mark.chromium

BRING = """(target, [kind, files]) => {
    const data = new DataTransfer();
    for (const [name, type, text] of files) {
        const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
        data.items.add(new File([bytes], name, { type }));
    }
    const init = { bubbles: true, cancelable: true };
    const event = kind === "paste"
        ? new ClipboardEvent("paste", { ...init, clipboardData: data })
        : new DragEvent(kind, { ...init, dataTransfer: data });
    target.dispatchEvent(event);
}"""

LEAVE = "dispatchEvent(new Event('beforeunload', { cancelable: true }))"


@pytest.fixture
def networks(rt: Runtime, world: World) -> dict[str, str]:
    connect: dict[str, Callable[[Runtime, World], str]] = {
        "x": connect_x,
        "tiktok": connect_tiktok,
        "pinterest": connect_pinterest,
    }
    return {name: make(rt, world) for name, make in connect.items()}


@pytest.fixture
def page(page: Page, networks: dict[str, str]) -> Page:
    page.goto("/compose")
    return page


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    return [media.jpeg(tmp_path / f"{name}.jpg", 64, 48) for name in ("first", "second", "third")]


def tick(page: Page, network: str) -> None:
    page.locator(f'input[name="profiles"][data-provider="{network}"]').check()


def items(page: Page) -> Locator:
    return page.locator("#media-list > li[data-artifact]")


def order(page: Page) -> list[str]:
    return [text.partition(",")[0] for text in items(page).locator(".file").all_inner_texts()]


def bring(page: Page, kind: str, *files: Path, onto: str = "main") -> None:
    told = [[file.name, "image/jpeg", base64.b64encode(file.read_bytes()).decode()] for file in files]
    page.locator(onto).evaluate(BRING, [kind, told])


def test_chosen_dropped_and_pasted_files_are_uploaded_at_once_and_keep_their_order(page, rt, photos, complaints):
    tick(page, "x")
    page.get_by_label("Text", exact=True).fill("Three views")
    page.locator("#field-media").set_input_files([photos[0]])
    bring(page, "dragover", photos[1])
    expect(page.locator("body")).to_have_class("dropping")
    bring(page, "drop", photos[1])
    expect(page.locator("body")).not_to_have_class("dropping")
    bring(page, "paste", photos[2], onto="#field-body")
    expect(items(page)).to_have_count(3)
    assert order(page) == ["first.jpg", "second.jpg", "third.jpg"]
    assert items(page).first.locator("img").get_attribute("src", timeout=1000).startswith("blob:")  # type: ignore[union-attr]
    items(page).nth(1).get_by_label("Alt text").fill("The second view")
    expect(page.locator("#preview img")).to_have_count(3)
    expect(page.locator("#preview img").nth(1)).to_have_attribute("alt", "The second view")
    page.get_by_role("button", name="Publish", exact=True).click()
    page.wait_for_url("**/posts/*")
    rows = select_all(rt.db, "SELECT file_name, alt FROM media JOIN artifact a ON a.id = artifact_id ORDER BY position")
    assert [tuple(row) for row in rows] == [
        ("first.jpg", None), ("second.jpg", "The second view"), ("third.jpg", None),
    ]  # fmt: skip
    assert complaints == []


def test_an_upload_shows_its_progress_and_the_form_waits_for_it(page, rt, photos, complaints):
    held: list[Route] = []
    is_slow = True

    def hold(route: Route) -> None:
        held.append(route) if is_slow else route.continue_()

    page.route("**/storage/uploads/**", hold)
    tick(page, "x")
    page.get_by_label("Text", exact=True).fill("Soon")
    page.locator("#field-media").set_input_files(photos)
    expect(page.get_by_role("progressbar", name="Uploading first.jpg")).to_be_visible()
    page.wait_for_function("document.querySelectorAll('.upload').length === 3")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.locator("#compose-waiting")).to_have_text(
        "Uploads in progress: 3. The form is submitted when they are complete."
    )
    assert len(held) == 2, "two at a time"
    assert not page.evaluate(LEAVE), "the browser asks before it leaves"
    page.get_by_role("button", name="Abort third.jpg").click()
    expect(page.locator(".upload")).to_have_count(2)
    is_slow = False
    for route in held:
        route.continue_()
    page.wait_for_url("**/posts/*")
    assert select_value(rt.db, "SELECT count(*) FROM media") == 2
    assert complaints == []


def test_a_failed_upload_shows_the_reason_and_can_be_retried(page, photos, tmp_path):
    words = tmp_path / "words.png"
    words.write_bytes(b"these are words")
    page.locator("#field-media").set_input_files([words])
    expect(page.locator(".upload .wrong")).to_contain_text("The content of the file is text/plain")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_role("alert").first).to_contain_text("Failed uploads: 1.")
    page.get_by_role("button", name="Remove words.png").click()

    page.route("**/storage/uploads/**", lambda route: route.abort())
    page.locator("#field-media").set_input_files([photos[0]])
    expect(page.locator(".upload .wrong")).to_have_text("The connection was interrupted. Try again.")
    page.unroute("**/storage/uploads/**")
    page.get_by_role("button", name="Try again first.jpg").click()
    expect(items(page)).to_have_count(1)
    expect(page.locator(".upload")).to_have_count(0)


def test_the_order_changes_by_keyboard_and_by_dragging(page, photos, complaints):
    page.locator("#field-media").set_input_files(photos)
    expect(items(page)).to_have_count(3)
    button = page.get_by_role("button", name="Move down first.jpg")
    button.focus()
    page.keyboard.press("Enter")
    assert order(page) == ["second.jpg", "first.jpg", "third.jpg"]
    expect(button).to_be_focused()
    expect(page.locator("#compose-said")).to_have_text("first.jpg is now number 2 of 3.")
    page.keyboard.press("Enter")
    assert order(page) == ["second.jpg", "third.jpg", "first.jpg"]
    expect(button).to_be_disabled()
    expect(page.get_by_role("button", name="Move up first.jpg")).to_be_focused()

    page.locator("li .thumbnail").nth(2).drag_to(page.locator("li .thumbnail").nth(0), target_position={"x": 9, "y": 9})
    assert order(page) == ["first.jpg", "second.jpg", "third.jpg"]
    page.get_by_role("button", name="Remove second.jpg").click()
    assert order(page) == ["first.jpg", "third.jpg"]
    assert page.evaluate(LEAVE)
    expect(page.get_by_role("button", name="Remove third.jpg")).to_be_focused()
    assert complaints == []


def test_counters_problems_and_previews_follow_what_is_typed(page, complaints):
    expect(page.locator("#options-pinterest")).to_be_hidden()
    tick(page, "x")
    tick(page, "pinterest")
    expect(page.locator("#options-pinterest")).to_be_visible()
    expect(page.locator("#options-tiktok")).to_be_hidden()
    text = page.get_by_label("Text", exact=True)
    text.fill("<b>Read</b> https://example.com/a/rather/long/path")
    expect(page.locator("#counters li").first).to_contain_text("X 35 of 280")
    expect(page.locator("#preview .x .text")).to_have_text("<b>Read</b> example.com/a/rather/long/…")
    assert page.locator("#preview b", has_text="Read").count() == 0, "what is typed is text"
    assert page.locator("#preview a").count() == 0
    text.fill("漢" * 141)
    expect(page.locator("#counters li").first).to_contain_text("282 of 280 – 2 too many")
    expect(page.locator("#found")).to_contain_text("Shorten the text by 2")
    expect(page.locator("#compose-said")).to_contain_text("Problems: ")
    page.locator('input[name="profiles"]').evaluate_all("boxes => boxes.forEach((box) => box.checked && box.click())")
    expect(page.locator("#counters li")).to_have_count(0)
    expect(page.locator("#found")).to_be_empty()
    assert complaints == []


def test_a_draft_survives_a_closed_tab_and_ends_when_it_is_accepted(page, context, rt, photos, complaints):
    tick(page, "x")
    page.get_by_label("Text", exact=True).fill("Half a thought")
    page.locator("#field-media").set_input_files(photos[:2])
    expect(items(page)).to_have_count(2)
    items(page).first.get_by_label("Alt text").fill("A view")
    address = page.url
    page.close()
    kept = select_value(rt.db, "SELECT id FROM artifact WHERE file_name = 'second.jpg'")
    rt.db.write(lambda tx: tx.execute_sql("DELETE FROM artifact WHERE id = ?", (kept,)))

    page = context.new_page()
    page.goto(address)
    expect(page.locator("#compose-draft")).to_contain_text("is restored. Files no longer available: 1. Add them again.")
    assert page.get_by_label("Text", exact=True).input_value() == "Half a thought"
    expect(page.locator('input[data-provider="x"]')).to_be_checked()
    expect(items(page).first.get_by_label("Alt text")).to_have_value("A view")
    stored = page.evaluate("JSON.stringify(localStorage)")
    assert page.locator('input[name="csrf"]').first.input_value() not in stored

    page.get_by_role("button", name="Publish", exact=True).click()
    page.wait_for_url("**/posts/*")
    page.goto(address)
    expect(page.locator("#compose-draft")).to_be_hidden()
    assert page.get_by_label("Text", exact=True).input_value() == ""
    assert [said for said in complaints if "400" not in said] == [], "no request for a removed file"


def test_a_day_from_the_calendar_overrides_a_draft(page):
    page.get_by_label("Text", exact=True).fill("On some day")
    page.get_by_label("At a time").check()
    page.get_by_label("Time", exact=True).fill("2026-12-24T09:00")
    page.goto(f"{page.url}?at=2026-12-31T18:00")
    expect(page.locator("#compose-draft")).to_be_visible()
    assert page.get_by_label("Text", exact=True).input_value() == "On some day"
    assert page.get_by_label("Time", exact=True).input_value() == "2026-12-31T18:00"


def test_an_edit_has_its_own_draft(page, rt, networks, photos, clock):
    first, second = (DraftMedia(artifact(rt, photo, "image/jpeg"), photo.stem) for photo in photos[:2])
    post = accept(rt, networks["x"], body="As it was", media=(first, second), at=clock.now() + timedelta(days=2))
    page.goto(f"/posts/{post}/edit")
    expect(page.locator("#compose-draft")).to_be_hidden()
    page.get_by_label("Text", exact=True).fill("As it will be")
    page.get_by_role("button", name="Move down first.jpg").click()
    items(page).nth(1).get_by_label("Alt text").fill("Another view")
    page.reload()
    expect(page.locator("#compose-draft")).to_be_visible()
    assert page.get_by_label("Text", exact=True).input_value() == "As it will be"
    assert order(page) == ["second.jpg", "first.jpg"]
    assert items(page).nth(1).get_by_label("Alt text").input_value() == "Another view"
    page.get_by_role("button", name="Discard draft").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value("As it was")
    assert order(page) == ["first.jpg", "second.jpg"]


def test_a_draft_ends_with_discard_and_with_sign_out(page, photos):
    text = page.get_by_label("Text", exact=True)
    text.fill("Not this")
    page.reload()
    expect(text).to_have_value("Not this")
    page.get_by_role("button", name="Discard draft").click()
    expect(text).to_have_value("")
    page.reload()
    expect(page.locator("#compose-draft")).to_be_hidden()
    text.fill("Nor this")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login*")
    assert page.evaluate("localStorage.length") == 0


def test_the_input_survives_the_end_of_the_session(page, rt):
    tick(page, "x")
    rt.db.write(lambda tx: tx.execute_sql("DELETE FROM session"))
    page.get_by_label("Text", exact=True).fill("Still here")
    expect(page.locator("#compose-unchecked")).to_contain_text("You are signed out.")
    expect(page.get_by_label("Text", exact=True)).to_have_value("Still here")


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.endurance), 390])
def test_compose_fits_the_screen_and_is_accessible(page, photos, width):
    page.set_viewport_size({"width": width, "height": 844})
    for network in ("x", "tiktok", "pinterest"):
        tick(page, network)
    page.get_by_label("Text", exact=True).fill("A view of the harbour " * 30)
    page.locator("#field-media").set_input_files(photos)
    expect(items(page)).to_have_count(3)
    expect(page.locator("#preview section")).to_have_count(3)
    expect(page.locator("#counters li.wrong")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe.violations(page) == []


def test_on_a_phone_publish_and_check_stay_visible_and_the_preview_comes_before_the_options(page):
    page.set_viewport_size({"width": 390, "height": 844})
    for network in ("x", "tiktok", "pinterest"):
        tick(page, network)
    page.get_by_label("Text", exact=True).fill("Small batches")
    expect(page.locator("#preview .preview")).to_have_count(3)
    middle = page.locator("#options-x")
    for place in (0, middle.bounding_box()["y"], 10**6):  # type: ignore[index]
        page.mouse.wheel(0, place)
        for name in ("Publish", "Check"):
            expect(page.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)
    tops = [page.locator(one).bounding_box()["y"] for one in ("#when", "#preview", "#options-x")]  # type: ignore[index]
    assert tops == sorted(tops)
    cards = [one.bounding_box() for one in page.locator("#preview .preview").all()]
    assert len({card["y"] for card in cards if card}) == 1, "one row, which is swiped"
    page.get_by_label("Link", exact=True).focus()
    bar, field = page.locator(".bar").bounding_box(), page.get_by_label("Link", exact=True).bounding_box()
    assert bar is not None
    assert field is not None
    assert field["y"] + field["height"] <= bar["y"], "what has the focus is not behind the bar"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
