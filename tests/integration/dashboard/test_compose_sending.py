"""Sending the form of Compose: once is once, what is refused stays typed, and a forged form stores nothing."""

from datetime import timedelta
from pathlib import Path

import pytest

from socialpub.core.clock import stamp
from socialpub.db import appliance_state
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support.appliance import add_profile
from tests.support.dashboard_browser import Attachment, DashboardBrowser, Page, multipart
from tests.support.hand_clock import HandClock
from tests.support.rows import artifact
from tests.support.sandbox_http import connect_pinterest, connect_x


@pytest.fixture
def x(rt: Runtime, world: World) -> str:
    return connect_x(rt, world)


def posts(rt: Runtime) -> list[str]:
    return [row[0] for row in rt.reader.all("SELECT id FROM post ORDER BY id")]


def artifacts(rt: Runtime) -> int:
    return int(rt.reader.value("SELECT count(*) FROM artifact"))


# --- once ------------------------------------------------------------------------------------------------------------


def test_a_form_that_is_sent_twice_makes_one_post(owner: DashboardBrowser, rt: Runtime, x: str, tmp_path: Path) -> None:
    page = owner.open("/compose")
    form = page.form_of(page.button("Publish"))
    fields = owner.fields_of(form, page.button("Publish"))
    fields = [(name, "Once" if name == "body" else value) for name, value in fields if name != "media"]
    fields.append(("media", Attachment.of(media.jpeg(tmp_path / "a.jpg"))))
    first = owner.send(form, fields)
    (post_id,) = posts(rt)
    assert first.path == f"/posts/{post_id}"
    assert first.role("status") == "The post is accepted and is being published."
    owner.page = page
    again = owner.send(form, fields)
    assert (again.path, posts(rt)) == (f"/posts/{post_id}", [post_id])
    assert again.role("status") == "You already submitted this form. This is the post that it created."


def test_two_clicks_at_the_same_moment_make_one_post(owner: DashboardBrowser, rt: Runtime, x: str) -> None:
    page = owner.open("/compose")
    form = page.form_of(page.button("Publish"))
    fields = [(n, "Once" if n == "body" else v) for n, v in owner.fields_of(form, page.button("Publish"))]
    replies = owner.ask_together("POST", "/compose", *[multipart(fields)] * 3)
    (post_id,) = posts(rt)
    assert [reply.headers["location"].rpartition("/")[2] for reply in replies] == [post_id] * 3


def test_after_going_back_another_text_becomes_another_post_only_when_asked(
    owner: DashboardBrowser, rt: Runtime, x: str
) -> None:
    page = owner.open("/compose")
    owner.press("Publish", {"Text": "The first"})
    owner.page = page
    page = owner.press("Publish", {"Text": "The second"})
    assert (page.status, len(posts(rt))) == (409, 1)
    assert page.role("alert").startswith("You already submitted this form with different content.")
    assert page.field("Text").raw_text.strip() == "The second"
    owner.press("Publish")
    assert len(posts(rt)) == 2


# --- equal content of a form that was loaded again -------------------------------------------------------------------


def send(owner: DashboardBrowser, text: str, *files: Path) -> Page:
    """In a form of its own, as after Back in a browser without scripts."""
    owner.open("/compose")
    return owner.press("Publish", {"Text": text, **({"Media": list(files)} if files else {})})


def test_equal_content_of_another_form_is_published_only_when_asked(
    owner: DashboardBrowser, rt: Runtime, x: str, tmp_path: Path
) -> None:
    picture = media.jpeg(tmp_path / "a.jpg")
    send(owner, "Once", picture)
    (first,) = posts(rt)
    page = send(owner, "Once", picture)
    assert (page.status, posts(rt)) == (409, [first])
    assert page.role("alert").startswith("You already published this content in the last hour.")
    assert page.links()["Open the post"].endswith(f"/posts/{first}")
    page = owner.press("Publish")
    assert page.role("status") == "The post is accepted and is being published."
    assert len(posts(rt)) == 2
    assert send(owner, "Once", picture).status == 409
    assert send(owner, "Once").status == 200, "without the picture it is another post"


def test_equal_content_is_asked_about_for_an_hour_and_while_it_may_be_out(
    owner: DashboardBrowser, rt: Runtime, x: str, clock: HandClock
) -> None:
    send(owner, "Good morning")
    clock.forward(3600)
    send(owner, "Good morning")
    assert len(posts(rt)) == 2
    rt.write(lambda _, tx: tx.execute("UPDATE delivery SET state = 'failed'"))
    rt.write(lambda _, tx: tx.execute("UPDATE post SET outcomes = 'f'"))
    send(owner, "Good morning")
    assert len(posts(rt)) == 3


def test_a_form_with_scripts_is_known_by_its_id_alone(owner: DashboardBrowser, rt: Runtime, x: str) -> None:
    for _ in range(2):
        owner.open("/compose")
        owner.press("Publish", {"Text": "Good morning", "#scripted": "yes"})
    assert len(posts(rt)) == 2


# --- what is refused -------------------------------------------------------------------------------------------------


def test_nothing_to_say_and_nobody_to_say_it_to(owner: DashboardBrowser, rt: Runtime, x: str) -> None:
    owner.open("/compose")
    page = owner.press("Publish", {"#profiles": []})
    assert page.status == 400
    assert "Choose at least one" in page.role("alert")
    assert "Write something, or add a picture or a video" in page.role("alert")


def test_a_time_that_is_none_and_a_zone_that_is_none_are_asked_for_again(
    owner: DashboardBrowser, rt: Runtime, x: str
) -> None:
    owner.open("/compose")
    page = owner.press("Check", {"Text": "Later", "#when": "at", "Time": "", "Zone": "Mars/Olympus"})
    assert page.status == 200, "it was only asked what is wrong"
    assert "Choose a date and a time" in page.role("alert")
    assert page.field("Zone").attributes["aria-invalid"] == "true"
    assert page.has_button("Schedule")


def test_what_only_some_networks_refuse_may_be_published_anyway(
    owner: DashboardBrowser, rt: Runtime, world: World, x: str
) -> None:
    pins = connect_pinterest(rt, world)
    owner.open("/compose")
    page = owner.press("Publish", {"Text": "Words alone", "#profiles": [x, pins]})
    assert (page.status, posts(rt)) == (400, [])
    assert "pinterest profile: " in page.role("alert")
    assert "x profile: no problems found" in page.text
    owner.press("Publish anyway")
    assert len(posts(rt)) == 1


def test_what_every_network_refuses_cannot_be_published(owner: DashboardBrowser, rt: Runtime, x: str) -> None:
    owner.open("/compose")
    page = owner.press("Publish", {"Text": "x" * 300})
    assert (page.status, page.has_button("Publish anyway")) == (400, False)
    page = owner.send(
        page.form_of(page.button("Publish")), [*owner.fields_of(page.root.all("form")[0]), ("do", "anyway")]
    )
    assert (page.status, posts(rt)) == (400, [])


def test_a_file_that_cannot_be_used_takes_nothing_else_away(
    owner: DashboardBrowser, rt: Runtime, x: str, tmp_path: Path
) -> None:
    owner.open("/compose")
    script = tmp_path / "script.html"
    script.write_text("<script>alert(1)</script>")
    large = tmp_path / "large.png"
    large.write_bytes(b"\x89PNG" + bytes(33 * 1024 * 1024))
    good = media.jpeg(tmp_path / "<b>good.jpg")
    page = owner.press("Publish", {"Text": "Kept", "Media": [script, large, good]})
    assert (page.status, posts(rt)) == (400, [])
    said = page.role("alert")
    assert "“script.html”: text/html is not accepted" in said
    assert "“large.png” may have at most 32 MiB" in said
    assert artifacts(rt) == 1
    assert "<b>good.jpg, " in page.text  # as text
    page = owner.press("Publish")
    assert len(posts(rt)) == 1


def test_media_that_is_gone_is_told_and_can_be_removed(owner: DashboardBrowser, rt: Runtime, x: str) -> None:
    gone = artifact(rt, file_name="gone.png", removed_at=rt.stamp())
    owner.open("/compose")
    page = owner.press("Check", {"Text": "With", "#artifact": [gone]})
    assert page.status == 200
    assert "Media 1 : Names an artifact whose bytes were removed" in page.role("alert")
    page = owner.press("Remove gone.png")
    assert (page.status, "gone.png" in page.text) == (200, False)
    assert page.field("Text").raw_text.strip() == "With"


# --- beginnings ------------------------------------------------------------------------------------------------------


def test_it_begins_with_a_time_of_the_calendar(owner: DashboardBrowser, rt: Runtime, x: str) -> None:
    owner.cookies["socialpub_zone"] = "Europe%2FBerlin"
    at = (rt.now() + timedelta(days=2)).strftime("%Y-%m-%dT10:00")
    page = owner.open(f"/compose?at={at}")
    assert page.field("Time").attributes["value"] == at
    assert page.field("Zone").all("option")[0].text == "Europe/Berlin"
    page = owner.press("Schedule", {"Text": "In two days"})
    assert "10:00 C" in page.role("status")  # CET or CEST
    stored = rt.reader.value("SELECT scheduled_at FROM post")
    assert stored[11:16] in ("08:00", "09:00")


def test_it_begins_with_what_another_post_says(owner: DashboardBrowser, rt: Runtime, x: str, tmp_path: Path) -> None:
    owner.open("/compose")
    owner.press("Check", {"Media": [media.jpeg(tmp_path / "a.jpg")]})
    owner.press("Publish", {"Text": "Said before", "Alt text": "A picture", "Who may reply": "following"})
    page = owner.open(f"/compose?from={posts(rt)[0]}")
    assert page.field("Text").raw_text.strip() == "Said before"
    assert page.field("Alt text").attributes["value"] == "A picture"
    assert [o.attributes["value"] for o in page.field("Who may reply").all("option") if "selected" in o.attributes] == [
        "following"
    ]
    owner.press("Publish")
    assert len(posts(rt)) == 2


def test_profiles_that_need_their_owner_and_a_pause_are_told(owner: DashboardBrowser, rt: Runtime) -> None:
    add_profile(rt, status="reauthRequired", reason="The token was refused.")
    rt.write(_pause)
    page = owner.open("/compose")
    assert "must be reconnected posts wait until then" in page.text
    assert "Publishing is paused" in page.text


def _pause(rt: Runtime, tx: object) -> None:
    appliance_state.put(tx, "paused_at", stamp(rt.now()))  # type: ignore[arg-type]


# --- forged ----------------------------------------------------------------------------------------------------------


def test_a_forged_form_is_refused_before_a_byte_of_its_files_is_stored(
    owner: DashboardBrowser, rt: Runtime, x: str, tmp_path: Path
) -> None:
    owner.open("/compose")
    token = next(v for n, v in owner.fields_of(owner.page.root.all("form")[0]) if n == "csrf")
    picture = ("media", Attachment.of(media.jpeg(tmp_path / "a.jpg")))
    forged = {
        "no token": [("body", "x"), picture],
        "another token": [("csrf", "0" * 80), picture],
        "the token behind the files": [picture, ("csrf", str(token))],
    }
    for what, fields in forged.items():
        body, content_type = multipart(fields)
        reply = owner.ask("POST", "/compose", body, {"content-type": content_type})
        assert (reply.status, b"Nothing was done" in reply.body or reply.body[:2] == b"\x1f\x8b") == (403, True), what
    body, content_type = multipart([("csrf", str(token)), picture])
    headers = {"content-type": content_type, "origin": "https://evil.example"}
    assert owner.ask("POST", "/compose", body, headers).status == 403
    assert (artifacts(rt), posts(rt)) == (0, [])
    assert not [path for path in rt.settings.media_dir.rglob("*") if path.is_file()]


def test_whoever_is_not_signed_in_sends_no_file(
    stranger: DashboardBrowser, owner: DashboardBrowser, rt: Runtime, x: str, tmp_path: Path, clock: HandClock
) -> None:
    body, content_type = multipart([("media", Attachment.of(media.jpeg(tmp_path / "a.jpg")))])
    reply = stranger.ask("POST", "/compose", body + bytes(3 << 20), {"content-type": content_type})
    assert (reply.status, reply.headers["location"].endswith("login")) == (303, True)
    assert artifacts(rt) == 0
