"""The first page tells what needs the owner, with what to press, most urgent first; then what goes out and went out."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from socialpub.db import delivery_rows
from socialpub.db.models import State
from socialpub.db.transaction import Tx
from socialpub.media.files import Files
from socialpub.publishing import deliveries, holds
from socialpub.publishing.results import Run
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.appliance import accept, add_profile
from tests.support.copies import become_restored
from tests.support.dashboard_browser import DashboardBrowser, Page
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import connect_x

MARKUP = "<img src=x onerror=alert(1)>"


def end(rt: Runtime, post: str, state: State, message: str) -> None:
    def fail(_rt: Runtime, tx: Tx) -> None:
        for delivery in delivery_rows.open_of_post(tx, post):
            deliveries.fail(tx, delivery, state, message, Run(tx.stamp))

    rt.write(fail)


def needs(page: Page) -> list[str]:
    """The headings of what needs the owner, in their order."""
    return [one.text.partition(": ")[2] for one in page.root.all("h3")]


def refresh(page: Page) -> str:
    live = page.root_by_id("live")
    assert live is not None
    return live.attributes.get("hx-trigger", "")


def test_a_new_installation_is_led_through_its_first_steps(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock
) -> None:
    page = owner.open("/")
    assert "First steps" in page.text
    assert "Connect an account" in page.links()
    assert "Make a copy" not in page.text
    profile = connect_x(rt, world)
    page = owner.open("/")
    assert "Done: Connect an account" in page.text
    assert page.links()["Compose"].endswith("/compose")
    accept(rt, profile)
    drain(rt, clock)
    assert "First steps" not in owner.open("/").text


def test_a_calm_morning_is_one_sentence(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock, well: Callable[[], None]
) -> None:
    profile = connect_x(rt, world)
    out, ahead = (
        accept(rt, profile, body="This is out"),
        accept(rt, profile, body=MARKUP, at=rt.now() + timedelta(days=2)),
    )
    drain(rt, clock, within=3600)
    well()
    page = owner.open("/")
    assert "All is well: nothing needs you." in page.text
    assert page.links()["This is out"].endswith(f"/posts/{out}")
    assert page.links()[MARKUP].endswith(f"/posts/{ahead}")
    assert "See it on X: This is out" in page.links()
    assert "in 2 days · X" in page.text
    assert (page.root.all("img"), refresh(page)) == ([], "")


def test_everything_that_needs_the_owner_stands_there_most_urgent_first(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock
) -> None:
    dead = add_profile(rt, name="Dead", status="reauthRequired", reason=f"Withdrawn {MARKUP}.")
    soon = rt.stamp()[:8] + "14T00:00:00.000Z"
    add_profile(rt, account_id="b", name="Lapsing", tokens=("a", None), expires_at=soon)
    fine = add_profile(rt, account_id="c", name="Fine")
    failed, unknown = accept(rt, fine, body=f"Refused {MARKUP}"), accept(rt, fine, body="Cut off")
    end(rt, unknown, State.UNCONFIRMED, "Outcome unknown: the connection broke. Look at the account.")
    clock.forward(60)
    end(rt, failed, State.FAILED, f"No {MARKUP}")
    rt.db.write(lambda tx: holds.begin(tx, "tiktok", holds.PUBLISHING, f"The app is not approved {MARKUP}", None))
    rt.write(deliveries.pause)
    page = owner.open("/")
    assert needs(page) == [
        "Publishing is paused",
        "The worker has never run.",
        "Connect “Dead” again",
        "TikTok refuses this app",
        "Look at the account: a post to “Fine” may be out",
        "A post to “Fine” failed",
        "“Lapsing” needs you soon",
        "Make a copy",
    ]
    assert page.root.all("img") == []
    assert page.text.count(MARKUP) >= 4
    assert page.links()["Post again: Cut off"].endswith(f"/posts/{unknown}/again")
    assert page.links()[f"Refused {MARKUP}"].endswith(f"/posts/{failed}")
    assert page.has_button("Reconnect Dead")
    assert page.links()["X profile “Dead”"].endswith(f"/profiles/{dead}")
    assert page.has_button("Download a copy")
    assert "tried now" in owner.press("Try TikTok now").role("status")
    owner.open("/")
    assert owner.press("Resume").heading == "Resume publishing?"
    owner.press("Resume")
    assert "Publishing is paused" not in owner.open("/").text


def test_a_restored_copy_and_a_full_disk_are_told(
    owner: DashboardBrowser, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept(rt, add_profile(rt))
    become_restored(rt)
    monkeypatch.setattr(Files, "free_bytes", lambda self: 1000)
    page = owner.open("/")
    assert needs(page)[0] == "This is a restored copy, and it is paused"
    assert "The disk is full" in needs(page)


def test_many_failures_are_counted_and_the_newest_shown(owner: DashboardBrowser, rt: Runtime) -> None:
    profile = add_profile(rt)
    for number in range(8):
        end(rt, accept(rt, profile, body=f"Number {number}"), State.FAILED, "No.")
    page = owner.open("/")
    assert needs(page).count("A post to “x profile” failed") == 5
    assert "and 3 more within 7 days" in page.text


def test_the_page_looks_again_while_something_is_on_its_way(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock
) -> None:
    profile = connect_x(rt, world)
    accept(rt, profile, body="Now")
    assert refresh(owner.open("/")) == "every 3s"
    drain(rt, clock)
    assert refresh(owner.open("/")) == ""
    accept(rt, profile, body="In a while", at=rt.now() + timedelta(minutes=30))
    assert refresh(owner.open("/")) == "every 30s"
    rt.write(deliveries.pause)
    assert refresh(owner.open("/")) == ""


def test_what_went_out_of_one_post_stands_together(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock
) -> None:
    gone = add_profile(rt, account_id="gone")
    accept(rt, connect_x(rt, world), gone, body="Twice")
    rt.db.write(lambda tx: tx.update("profile", gone, status="disconnected"))
    drain(rt, clock)
    page = owner.open("/")
    (shown,) = [one for one in page.root.all("ul") if one.attributes.get("class") == "results"]
    assert sorted(one.text for one in shown.all("li")) == ["X Failed", "X Published See it"]
