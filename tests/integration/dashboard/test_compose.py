"""A post is composed: checked, corrected and accepted once."""

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import pytest

from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.appliance import accept, add_profile, status_of
from tests.support.drain import drain
from tests.support.rows import artifact as imagined
from tests.support.rows import post_ids
from tests.support.sandbox_http import artifact, connect_pinterest, connect_x
from tests.support.select import select_all, select_value
from tests.support.tab import Attachment, Page, Tab, multipart


def test_without_a_profile_compose_links_to_the_profiles(owner):
    page = owner.open("/compose")
    assert "No profile is connected yet" in page.text
    assert page.links()["Connect a profile"].endswith("/profiles")


def test_a_post_with_images_is_checked_and_published_unchanged(owner, rt, world, clock, tmp_path, x):
    owner.open("/compose")
    files = [media.jpeg(tmp_path / "first.jpg"), media.jpeg(tmp_path / "second.jpg", width=64)]
    page = owner.press("Check", {"Text": "Two\npictures", "Media": files})
    assert (page.status, page.role("status")) == (200, "x profile: no problems found.")
    assert page.field("Text").raw_text == "\nTwo\npictures"
    page = owner.press("Move down first.jpg", {"Alt text": "The first one"})
    names = [one.text.partition(",")[0] for one in page.root.all("small") if one.attributes.get("class") == "file"]
    assert names[:2] == ["second.jpg", "first.jpg"]
    owner.press("Publish")
    (post_id,) = post_ids(rt)
    drain(rt, clock)
    assert status_of(rt, post_id) == "settled"
    (shown,) = world.x.posts
    assert shown.text == "Two\npictures"
    assert [one.alt_text for one in shown.media] == [None, "The first one"]


def test_errors_appear_at_their_fields_and_the_input_stays(owner, rt, world, tmp_path):
    x, pins = connect_x(rt, world), connect_pinterest(rt, world)
    owner.open("/compose")
    no_image = tmp_path / "notes.png"
    no_image.write_bytes(b"these are words")
    page = owner.press(
        "Publish",
        {
            "Text": "Kept",
            "#profiles": [x, pins],
            "#when": "at",
            "Time": "2020-01-01T10:00",
            "Title": "A title",
            "Media": [media.jpeg(tmp_path / "good.jpg"), no_image],
        },
    )
    assert page.status == 400
    assert "Time : Must be in the future" in page.role("alert")
    assert "notes.png" in page.role("alert")
    assert page.links()["Time"].endswith("#field-time")
    assert page.field("Time").attributes["aria-invalid"] == "true"
    assert page.field("Text").raw_text.strip() == "Kept"
    assert page.field("Title").attributes["value"] == "A title"
    assert [one.attributes["value"] for one in page.boxes("profiles") if "checked" in one.attributes] == [x, pins]
    assert "good.jpg" in page.text
    assert post_ids(rt) == []


def artifacts(rt: Runtime) -> int:
    return int(select_value(rt.db, "SELECT count(*) FROM artifact"))


def test_a_form_that_is_submitted_twice_creates_one_post(owner, rt, x, tmp_path):
    page = owner.open("/compose")
    form = page.form_of(page.button("Publish"))
    fields = owner.fields_of(form, page.button("Publish"))
    fields = [(name, "Once" if name == "body" else value) for name, value in fields if name != "media"]
    fields.append(("media", Attachment.of(media.jpeg(tmp_path / "a.jpg"))))
    first = owner.send(form, fields)
    (post_id,) = post_ids(rt)
    assert first.path == f"/posts/{post_id}"
    assert first.role("status") == "The post is accepted and is being published."
    owner.page = page
    again = owner.send(form, fields)
    assert (again.path, post_ids(rt)) == (f"/posts/{post_id}", [post_id])
    assert again.role("status") == "You already submitted this form. This is the post that it created."


def test_simultaneous_clicks_create_one_post(owner, rt, x):
    page = owner.open("/compose")
    form = page.form_of(page.button("Publish"))
    fields = [(n, "Once" if n == "body" else v) for n, v in owner.fields_of(form, page.button("Publish"))]
    replies = owner.ask_together("POST", "/compose", *[multipart(fields)] * 3)
    (post_id,) = post_ids(rt)
    assert [reply.headers["location"].rpartition("/")[2] for reply in replies] == [post_id] * 3


def test_after_going_back_another_text_becomes_another_post_only_when_asked(owner, rt, x):
    page = owner.open("/compose")
    owner.press("Publish", {"Text": "The first"})
    owner.page = page
    page = owner.press("Publish", {"Text": "The second"})
    assert (page.status, len(post_ids(rt))) == (409, 1)
    assert page.role("alert").startswith("You already submitted this form with different content.")
    assert page.field("Text").raw_text.strip() == "The second"
    owner.press("Publish")
    assert len(post_ids(rt)) == 2


def send(owner: Tab, text: str, *files: Path) -> Page:
    """Send a new form, as after Back in a browser without scripts."""
    owner.open("/compose")
    return owner.press("Publish", {"Text": text, **({"Media": list(files)} if files else {})})


def test_equal_content_of_another_form_needs_a_second_press(owner, rt, x, tmp_path):
    picture = media.jpeg(tmp_path / "a.jpg")
    send(owner, "Once", picture)
    (first,) = post_ids(rt)
    page = send(owner, "Once", picture)
    assert (page.status, post_ids(rt)) == (409, [first])
    assert page.role("alert").startswith("You already published this content in the last hour.")
    assert page.links()["Open the post"].endswith(f"/posts/{first}")
    page = owner.press("Publish")
    assert page.role("status") == "The post is accepted and is being published."
    assert len(post_ids(rt)) == 2
    assert send(owner, "Once", picture).status == 409
    assert send(owner, "Once").status == 200, "without the picture it is another post"


def test_equal_content_is_asked_about_for_an_hour(owner, rt, x, clock):
    send(owner, "Good morning")
    clock.forward(3600)
    send(owner, "Good morning")
    assert len(post_ids(rt)) == 2
    rt.write(lambda _, tx: tx.execute_sql("UPDATE delivery SET state = 'failed'"))
    rt.write(lambda _, tx: tx.execute_sql("UPDATE post SET outcomes = 'f'"))
    send(owner, "Good morning")
    assert len(post_ids(rt)) == 3


def test_a_form_with_scripts_is_known_by_its_id_alone(owner, rt, x):
    for _ in range(2):
        owner.press("Publish", {"Text": "Good morning", "#scripted": "yes"}, on="/compose")
    assert len(post_ids(rt)) == 2


def test_an_empty_form_needs_a_profile_and_content(owner, x):
    page = owner.press("Publish", {"#profiles": []}, on="/compose")
    assert page.status == 400
    assert "Choose at least one" in page.role("alert")
    assert "Write a text, or add an image or a video" in page.role("alert")


def test_an_invalid_time_and_an_invalid_zone_are_errors(owner, x):
    page = owner.press("Check", {"Text": "Later", "#when": "at", "Time": "", "Zone": "Mars/Olympus"}, on="/compose")
    assert page.status == 200, "it was only asked what is wrong"
    assert "Choose a date and a time" in page.role("alert")
    assert page.field("Zone").attributes["aria-invalid"] == "true"
    assert page.has_button("Schedule")


def test_a_post_that_some_networks_refuse_can_be_published_anyway(owner, rt, x, pins):
    page = owner.press("Publish", {"Text": "Words alone", "#profiles": [x, pins]}, on="/compose")
    assert (page.status, post_ids(rt)) == (400, [])
    assert "pinterest profile: " in page.role("alert")
    assert "x profile: no problems found" in page.text
    owner.press("Publish anyway")
    assert len(post_ids(rt)) == 1


def test_a_post_that_every_network_refuses_cannot_be_published(owner, rt, x):
    page = owner.press("Publish", {"Text": "x" * 300}, on="/compose")
    assert (page.status, page.has_button("Publish anyway")) == (400, False)
    page = owner.send(
        page.form_of(page.button("Publish")), [*owner.fields_of(page.root.all("form")[0]), ("do", "anyway")]
    )
    assert (page.status, post_ids(rt)) == (400, [])


def test_an_unusable_file_does_not_affect_other_files(owner, rt, x, tmp_path):
    owner.open("/compose")
    script = tmp_path / "script.html"
    script.write_text("<script>alert(1)</script>")
    large = tmp_path / "large.png"
    large.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(33 * 1024 * 1024))
    good = media.jpeg(tmp_path / "<b>good.jpg")
    page = owner.press("Publish", {"Text": "Kept", "Media": [script, large, good]})
    assert (page.status, post_ids(rt)) == (400, [])
    said = page.role("alert")
    assert "“script.html”: The content of the file is text/html." in said
    assert "“large.png”: The file has " in said and "Images may have at most 32 MiB" in said
    assert artifacts(rt) == 1
    assert "<b>good.jpg, " in page.text  # as text
    page = owner.press("Publish")
    assert len(post_ids(rt)) == 1


def test_removed_media_is_an_error_and_can_be_taken_out_of_the_form(owner, rt, x):
    gone = imagined(rt, file_name="gone.png", removed_at=rt.stamp())
    page = owner.press("Check", {"Text": "With", "#artifact": [gone]}, on="/compose")
    assert page.status == 200
    assert "Media 1 : Refers to an artifact whose bytes were removed" in page.role("alert")
    page = owner.press("Remove gone.png")
    assert (page.status, "gone.png" in page.text) == (200, False)
    assert page.field("Text").raw_text.strip() == "With"


def test_a_copy_starts_with_the_content_of_the_other_post(owner, rt, x, tmp_path):
    owner.press("Check", {"Media": [media.jpeg(tmp_path / "a.jpg")]}, on="/compose")
    owner.press("Publish", {"Text": "Said before", "Alt text": "A picture", "Who may reply": "following"})
    page = owner.open(f"/compose?from={post_ids(rt)[0]}")
    assert page.field("Text").raw_text.strip() == "Said before"
    assert page.field("Alt text").attributes["value"] == "A picture"
    assert page.chosen("Who may reply") == ["People the author follows"]
    owner.press("Publish")
    assert len(post_ids(rt)) == 2


def test_compose_shows_profiles_to_reconnect_and_a_pause(owner, rt):
    add_profile(rt, status="reauthRequired", reason="The token was refused.")
    rt.write(resume.pause)
    page = owner.open("/compose")
    assert "must be reconnected posts wait until then" in page.text
    assert "Publishing has been paused" in page.text


def test_without_a_session_no_file_is_stored(stranger, owner, rt, x, tmp_path):
    body, content_type = multipart([("media", Attachment.of(media.jpeg(tmp_path / "a.jpg")))])
    reply = stranger.ask("POST", "/compose", body + bytes(3 << 20), {"content-type": content_type})
    assert (reply.status, reply.headers["location"].endswith("login")) == (303, True)
    assert artifacts(rt) == 0


@pytest.fixture(autouse=True)
def berlin(owner: Tab) -> None:
    owner.cookies["socialpub_zone"] = "Europe%2FBerlin"


def times_of_posts(rt: Runtime) -> list[str | None]:
    return [row[0] for row in select_all(rt.db, "SELECT scheduled_at FROM post ORDER BY id")]


def test_a_time_beside_now_is_a_problem_of_the_field_when(owner, rt, x):
    page = owner.press("Publish", {"Text": "At Christmas", "Time": "2026-12-24T18:00"}, on="/compose")
    assert (page.status, times_of_posts(rt)) == (400, [])
    problem = "A time is set, but “Now” is chosen. Choose “At a time” or clear the field “Time”."
    assert f"When : {problem}" in page.role("alert")
    group = page.by_id("when")
    said = page.by_id(group.attributes["aria-describedby"])
    assert said.text == problem
    assert page.field("Time").attributes["value"] == "2026-12-24T18:00"

    owner.press("Publish", {"#when": "at"})
    assert times_of_posts(rt) == ["2026-12-24T17:00:00.000Z"]


def test_now_with_an_emptied_time_publishes_at_once(owner, rt, x):
    owner.press("Schedule", {"Text": "Earlier", "#when": "now", "Time": ""}, on="/compose?at=2026-12-24T18:00")
    assert times_of_posts(rt) == [None]


def test_the_result_shows_the_time_in_the_zone_of_the_form(owner, rt, x):
    owner.open("/compose")
    fields = {"Text": "In Tokyo", "#when": "at", "Time": "2026-12-24T18:00", "Zone": "Asia/Tokyo"}
    page = owner.press("Publish", fields)
    assert page.role("status") == "The post is scheduled for 24 Dec 2026, 18:00 JST."
    assert times_of_posts(rt) == ["2026-12-24T09:00:00.000Z"]


SKIPPED = "The clocks skip 02:30 on 28 Mar 2027 in Europe/Berlin. The next valid time is 03:00 CEST."
TWICE = (
    "The clocks show 02:30 on 25 Oct 2026 in Europe/Berlin twice: at 02:30 CEST (UTC+2) and at 02:30 CET (UTC+1). "
    "Choose one of them."
)


@pytest.mark.parametrize(
    ("time", "problem", "answer", "said", "at"),
    [
        ("2027-03-28T02:30", SKIPPED, {"Time": "2027-03-28T03:00"}, "28 Mar 2027, 03:00 CEST", "2027-03-28T01:00"),
        ("2026-10-25T02:30", TWICE, {"#which": "first"}, "25 Oct 2026, 02:30 CEST", "2026-10-25T00:30"),
        ("2026-10-25T02:30", TWICE, {"#which": "second"}, "25 Oct 2026, 02:30 CET", "2026-10-25T01:30"),
    ],
)
def test_a_time_that_the_clocks_skip_or_show_twice_is_a_problem_of_its_field(
    owner, rt, x, time, problem, answer, said, at
):
    page = owner.press("Publish", {"Text": "Odd", "#when": "at", "Time": time}, on="/compose")
    assert (page.status, times_of_posts(rt)) == (400, [])
    assert f"Time : {problem}" in page.role("alert")
    assert page.field("Time").attributes["aria-invalid"] == "true"
    page = owner.press("Schedule", answer)
    assert page.role("status") == f"The post is scheduled for {said}."
    assert times_of_posts(rt) == [f"{at}:00.000Z"]


def test_an_edit_shows_which_of_two_equal_times_the_post_has(owner, rt, x):
    post_id = accept(rt, x, body="Twice", at=datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
    page = owner.open(f"/posts/{post_id}/edit")
    assert "checked" in page.field("Second: 02:30 CET (UTC+1)").attributes
    owner.press("Save", {"Text": "Two times"})
    assert times_of_posts(rt) == ["2026-10-25T01:30:00.000Z"]
    page = owner.press("Save", {"#which": "first"}, on=f"/posts/{post_id}/edit")
    assert page.role("status") == "The post is changed."
    assert times_of_posts(rt) == ["2026-10-25T00:30:00.000Z"]


UNKNOWN = "01a12f57-1a80-7074-9d08-074dfc0027ba"


def check(owner: Tab, *fields: tuple[str, str]) -> Page:
    body = urlencode([("csrf", owner.open("/compose").token), ("when", "now"), *fields]).encode()
    return Page(owner.ask("POST", "/compose/check", body), "http://testserver/compose/check")


def part(page: Page, name: str) -> str:
    return page.by_id(name).text


def test_each_network_counts_and_previews_the_post(owner, rt, world, tmp_path):
    x, pins = connect_x(rt, world), connect_pinterest(rt, world)
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    page = check(
        owner,
        ("body", "<i>漢字</i> https://example.com/"),
        ("profiles", x),
        ("profiles", pins),
        ("artifact", photo),
        (f"alt.{photo}", 'Two "signs"'),
        ("options.pinterest.title", "T" * 101),
    )
    assert (
        part(page, "counters")
        == "X 35 of 280 Pinterest, description 30 of 800 Pinterest, title 101 of 100 – 1 too many"
    )
    assert "<i>漢字</i> example.com/" in part(page, "preview")
    assert [one.attributes["alt"] for one in page.root.all("img")] == ['Two "signs"'] * 2
    assert not [one for one in page.root.all("a") if not one.attributes["href"].startswith("#")]
    said = part(page, "found")
    assert "Board" in said
    assert "Title" in said
    assert "boardId" not in said


def test_the_live_check_shows_errors_of_the_form_and_the_preview(owner, x):
    page = check(
        owner, ("body", "Hello"), ("profiles", x), ("profiles", UNKNOWN), ("artifact", UNKNOWN), ("when", "at")
    )
    said = part(page, "found")
    assert "choose a date and a time" in said.lower()
    assert "Profile : No longer exists. Choose another profile." in said
    assert "Media 1 : Is no longer available. Remove it and add the file again." in said
    assert part(page, "counters") == "X 5 of 280"


def test_a_reply_names_a_post_to_the_same_profile(owner, rt, x):
    other = add_profile(rt, account_id="other", name="Other", username="other")
    elsewhere, first = accept(rt, other), accept(rt, x)
    label = "Reply to your post (id in socialpub)"
    owner.open("/compose")
    page = owner.press("Publish", {"x profile": True, "Text": "2/2", label: elsewhere})
    assert page.status == 400
    assert f"{label} : Has no delivery to the profile" in page.role("alert")
    page = owner.press("Publish", {label: first})
    assert any(url.endswith(f"/posts/{first}") for url in page.links().values())
