"""The overview shows alerts by urgency, then upcoming and published posts."""

from datetime import timedelta

from socialpub.accounts.api_keys import OWNER
from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.states import State
from socialpub.db.tables import delivery_rows, waits
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.web.dashboard import overview
from tests.samples import media
from tests.support.appliance import accept, add_profile, end_unsent
from tests.support.drain import drain
from tests.support.sandbox_http import artifact, connect_tiktok, connect_x
from tests.support.tab import Page

MARKUP = "<img src=x onerror=alert(1)>"


def end(rt: Runtime, post: str, state: State, message: str) -> None:
    def fail(_rt: Runtime, tx: Database) -> None:
        for delivery in delivery_rows.list_open_of_post(tx, post):
            end_unsent(rt, tx, delivery, state, message)

    rt.write(fail)


def needs(page: Page) -> list[str]:
    """Return the headings of the alerts in order."""
    return [one.text.partition(": ")[2] for one in page.root.all("h3")]


def refresh(page: Page) -> str:
    return page.by_id("live").attributes.get("hx-trigger", "")


def test_a_new_installation_shows_its_first_steps(owner, rt, world, clock):
    page = owner.open("/")
    assert "First steps" in page.text
    assert "Connect an account" in page.links()
    assert "Make a backup" not in page.text
    profile = connect_x(rt, world)
    page = owner.open("/")
    assert "Done: Connect an account" in page.text
    assert page.links()["Compose"].endswith("/compose")
    accept(rt, profile)
    drain(rt, clock)
    assert "First steps" not in owner.open("/").text


def test_without_alerts_the_overview_shows_one_sentence(owner, rt, clock, well, x):
    out, ahead = (
        accept(rt, x, body="This is out"),
        accept(rt, x, body=MARKUP, at=rt.now() + timedelta(days=2)),
    )
    drain(rt, clock, within=3600)
    well()
    page = owner.open("/")
    assert "All is well. No action is needed." in page.text
    assert page.links()["This is out"].endswith(f"/posts/{out}")
    assert page.links()[MARKUP].endswith(f"/posts/{ahead}")
    assert "View on X: This is out" in page.links()
    assert "in 2 days · X" in page.text
    assert (page.root.all("img"), refresh(page)) == ([], "")


def test_alerts_are_listed_by_urgency(owner, rt, clock):
    dead = add_profile(rt, name="Dead", status="reauthRequired", reason=f"Withdrawn {MARKUP}.")
    soon = rt.stamp()[:8] + "14T00:00:00.000Z"
    add_profile(rt, account_id="b", name="Lapsing", tokens=("a", None), expires_at=soon)
    fine = add_profile(rt, account_id="c", name="Fine")
    failed, unknown = accept(rt, fine, body=f"Refused {MARKUP}"), accept(rt, fine, body="Cut off")
    end(rt, unknown, State.UNCONFIRMED, "Outcome unknown: the connection broke. Look at the account.")
    clock.forward(60)
    end(rt, failed, State.FAILED, f"No {MARKUP}")
    rt.db.write(lambda tx: waits.hold(tx, "tiktok", waits.PUBLISHING, f"The app is not approved {MARKUP}", None))
    rt.write(resume.pause)
    page = owner.open("/")
    assert needs(page) == [
        "Publishing is paused",
        "The worker has never run.",
        "Reconnect “Dead”",
        "TikTok refuses this app",
        "Check the account: a post to “Fine” may be public",
        "A post to “Fine” failed",
        "“Lapsing” needs you soon",
        "Make a backup",
    ]
    assert page.root.all("img") == []
    assert page.text.count(MARKUP) >= 4
    assert page.links()["Post again: Cut off"].endswith(f"/posts/{unknown}/again")
    assert page.links()[f"Refused {MARKUP}"].endswith(f"/posts/{failed}")
    assert page.has_button("Reconnect Dead")
    assert page.links()["X profile “Dead”"].endswith(f"/profiles/{dead}")
    assert page.has_button("Download backup")
    assert "now" in owner.press("Try TikTok now").role("status")
    assert owner.press("Resume", on="/").heading == "Resume publishing?"
    owner.press("Resume")
    assert "Publishing is paused" not in owner.open("/").text


def test_many_failures_are_counted_and_the_newest_shown(owner, rt, profile):
    for number in range(8):
        end(rt, accept(rt, profile, body=f"Number {number}"), State.FAILED, "No.")
    page = owner.open("/")
    assert needs(page).count("A post to “x profile” failed") == 5
    assert "3 more in the last 7 days" in page.text


def test_the_overview_refreshes_itself_while_a_post_is_in_progress(owner, rt, clock, x):
    accept(rt, x, body="Now")
    assert refresh(owner.open("/")) == "every 3s"
    drain(rt, clock)
    assert refresh(owner.open("/")) == ""
    accept(rt, x, body="In a while", at=rt.now() + timedelta(minutes=30))
    assert refresh(owner.open("/")) == "every 30s"
    rt.write(resume.pause)
    assert refresh(owner.open("/")) == ""


def entries(page: Page, heading: str) -> list[str]:
    (section,) = [one for one in page.root.all("section") if one.all("h2") and one.all("h2")[0].text == heading]
    found = section.of_class("entries")[-1]
    return [one.text for one in found.children if not isinstance(one, str)]


def test_published_holds_only_what_was_published_with_one_state_per_network(owner, rt, world, clock, tmp_path):
    gone, x = add_profile(rt, "tiktok", account_id="gone"), connect_x(rt, world)
    photo = artifact(rt, media.jpeg(tmp_path / "sea.jpg"), "image/jpeg")
    accept(rt, x, gone, body="Partly", media=(DraftMedia(photo),))
    end(rt, accept(rt, gone, body="Refused"), State.FAILED, "No.")
    rt.write(posts.cancel, accept(rt, x, body="Canceled", at=rt.now() + timedelta(hours=1)), OWNER)
    rt.db.write(lambda tx: tx.update(ProfileRow, gone, status="disconnected"))
    drain(rt, clock)
    page = owner.open("/")
    (shown,) = entries(page, "Published")
    assert shown.startswith("Partly")
    assert shown.endswith("X Published View")
    (thumbnail,) = page.root.all("img")
    assert thumbnail.attributes["src"].endswith(f"artifacts/{photo}/thumbnail")


def test_a_draft_that_arrived_is_in_the_app_and_not_published(owner, rt, world, clock, tmp_path):
    tiktok, x = connect_tiktok(rt, world), connect_x(rt, world)
    video = artifact(rt, media.video_mp4(tmp_path / "a.mp4", seconds=1, width=640, height=360, rate=30), "video/mp4")
    options = {"tiktok": {"mode": "draft"}}
    draft = accept(rt, tiktok, body="Evening", media=(DraftMedia(video),), options=options)
    both = accept(rt, x, tiktok, body="Night", media=(DraftMedia(video),), options=options)
    drain(rt, clock, within=3600)
    page = owner.open("/")
    assert [one.split()[0] for one in entries(page, "Published")] == ["Night"]
    assert entries(page, "Published")[0].endswith("X Published View")
    assert "socialpub cannot see whether you posted them" in page.text
    assert page.links()["Copy caption: Evening"].endswith(f"/posts/{draft}#caption")
    page = owner.open(f"/posts/{draft}")
    assert "State In the TikTok app" in page.text
    assert "Sent to the app" in page.text
    assert "makes it public" not in page.text
    assert "Published" not in page.text
    assert "State Partly in the TikTok app" in owner.open(f"/posts/{both}").text
    assert owner.open("/posts").text.count("In the TikTok app") == 2
    results = [row.all("span")[0].text for row in owner.open("/log").root.all("tbody")[0].all("tr")]
    assert sorted(results) == ["In the TikTok app", "In the TikTok app", "Published"]
    calendar = owner.open("/calendar").text
    assert "→ In the TikTok app Evening" in calendar
    assert "→ Partly in the TikTok app Night" in calendar
    clock.forward(8 * 86400)
    assert "Copy caption: Evening" not in owner.open("/").links()


def test_a_series_in_next_is_folded(owner, rt, profile):
    hour = timedelta(hours=1)
    accept(rt, profile, body="The first of all", at=rt.now() + hour)
    for number in range(12):
        accept(rt, profile, body=f"Tip {number + 1} of 12: how to fold linen", at=rt.now() + timedelta(days=number + 2))
    for number in range(5):
        accept(rt, profile, body="abcde"[number] * 9, at=rt.now() + timedelta(days=20, minutes=number))
    page = owner.open("/")
    found = entries(page, "Next")
    assert len(found) == 3
    assert "and 11 more" in found[1]
    assert found[1].startswith("◷ Tip 1 of 12")
    assert "and 4 more" in found[2]
    assert "All 18 that are to come" not in page.text, "all of them are on the page"
    assert [len(one.all("li")) for one in page.root.all("details")] == [11, 4]


def test_what_is_published_next_and_what_was_published(rt, x, clock):
    for number in range(12):
        accept(rt, x, body=f"sent {number}")
        drain(rt, clock)
        clock.forward(1)
    later = [accept(rt, x, at=rt.now() + timedelta(hours=hours)) for hours in range(12, 0, -1)]
    canceled = accept(rt, x, body="canceled", at=rt.now() + timedelta(minutes=1))
    rt.write(posts.cancel, canceled, OWNER)
    rt.write(resume.pause)
    waiting = accept(rt, x, body="waiting")
    flow = overview.read_flow(rt)
    assert [post.id for post in flow.upcoming] == later[::-1]
    assert flow.scheduled_count == 12
    assert ([post.id for post in flow.pending], flow.pending_count) == ([waiting], 1)
    assert [(entry.type, entry.text) for entry in flow.published] == [
        ("published", f"sent {number}") for number in range(11, -1, -1)
    ]
    clock.forward(2 * 3600)
    assert overview.read_flow(rt).upcoming[0].id == later[-1], "it is due, and waits for the end of the pause"


def add_named(rt: Runtime, *accounts: tuple[str, str, str | None]) -> None:
    for number, (provider, name, username) in enumerate(accounts):
        add_profile(rt, provider, account_id=f"account-{number}", name=name, username=username)


def names_of(page: Page, field_name: str) -> list[str]:
    around = [box.within("label") for box in page.boxes(field_name)]
    assert all(around)
    return [one.text for one in around if one is not None]


def test_in_the_composer_a_unique_label_stays_and_others_name_network_and_handle(owner, rt):
    add_named(rt, ("x", "Demo", "one"), ("x", "demo", "two"), ("tiktok", "Demo", None), ("pinterest", "Shop", "shop"))
    assert names_of(owner.open("/compose"), "profiles") == ["Demo (X @one)", "demo (X @two)", "Demo (TikTok)", "Shop"]


def test_filters_and_keys_show_the_network_once_and_the_handle_where_it_is_needed(owner, rt):
    add_named(rt, ("x", "Demo", "one"), ("x", "Demo", "two"), ("pinterest", "Demo", "three"))
    assert names_of(owner.open("/posts"), "profileIds") == [
        "X: Demo (@one)",
        "X: Demo (@two)",
        "Pinterest: Demo",
    ]
    assert names_of(owner.open("/keys"), "profiles") == ["Demo (@one) (X)", "Demo (@two) (X)", "Demo (Pinterest)"]
    options = [one.text for one in owner.open("/log").field("Profile").all("option")]
    assert options[1:] == ["X: Demo (@one)", "X: Demo (@two)", "Pinterest: Demo"]


def test_a_disconnected_profile_makes_no_label_ambiguous(owner, rt):
    add_named(rt, ("x", "Demo", "one"), ("tiktok", "Demo", "two"))
    rt.db.write(lambda tx: tx.execute_sql("UPDATE profile SET status = 'disconnected' WHERE provider = 'tiktok'"))
    assert names_of(owner.open("/compose"), "profiles") == ["Demo"]
    assert names_of(owner.open("/posts"), "profileIds") == ["X: Demo", "TikTok: Demo (disconnected)"]
