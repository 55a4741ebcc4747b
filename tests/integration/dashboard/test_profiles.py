"""Accounts are connected, shown, changed and disconnected."""

from datetime import timedelta
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest

from socialpub.accounts import avatars, consents, profiles, tokens
from socialpub.core.settings.networks import TikTokSection
from socialpub.db.states import ProfileStatus, State
from socialpub.db.tables import audit_log, profile_rows
from socialpub.ops import audit_text
from socialpub.runtime import Runtime
from tests.support.appliance import accept, state_of
from tests.support.consent_browser import Browser, query_of
from tests.support.drain import drain
from tests.support.sandbox_http import connect_pinterest, connect_tiktok, connect_x
from tests.support.tab import Page, Tab


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    """An address that networks accept as a redirect address."""
    return sandbox_options


HTML = '<img src=x onerror="alert(1)">'


def through_consent(
    owner: Tab, consent: Browser, button: str, label: str, on: str = "/profiles", **decision: object
) -> Page:
    """Press the button, decide on the page of the network, and return."""
    page = owner.press(button, on=on)
    assert page.heading == f"Continue to {label}"
    (refresh,) = [one for one in page.root.all("meta") if one.attributes.get("http-equiv") == "refresh"]
    url = refresh.attributes["content"].partition("url=")[2]
    assert page.links()[f"Continue to {label}"] == url, "also where a page does not go on by itself"
    back = urlsplit(consent.decides(url, **decision))  # type: ignore[arg-type]
    return owner.open(f"{back.path}?{back.query}")


def test_an_account_is_connected_on_the_page_of_its_network(rt, owner, browser):
    page = owner.open("/profiles")
    assert "No account is connected yet" in page.text
    page = through_consent(owner, browser, "Connect X", "X")
    (row,) = profile_rows.list_all(rt.db)
    assert page.path == f"/profiles/{row.id}"
    assert page.role("status").endswith("on X is connected.")
    assert page.heading == row.name
    assert owner.open("/profiles").links()[row.name].endswith(row.id)
    assert "No account" not in owner.page.text


def test_a_network_without_an_app_shows_which_keys_to_set(rt, owner):
    rt.settings.providers.tiktok.__dict__["client_key"] = ""
    page = owner.open("/profiles")
    assert not page.has_button("Connect TikTok")
    assert page.has_button("Connect X")
    assert "client_key in [providers.tiktok] is empty" in page.text
    assert "http://127.0.0.1:8000/oauth/tiktok/callback" in page.text


def test_a_denied_consent_shows_what_to_do(rt, owner, browser):
    page = through_consent(owner, browser, "Connect X", "X", decision="deny")
    assert page.path == "/profiles"
    assert "did not give consent at X" in page.role("alert")
    assert "press “Connect X” under Profiles" in page.role("alert")
    assert profile_rows.list_all(rt.db) == []


def test_missing_permissions_show_their_consequences(owner, browser):
    page = through_consent(owner, browser, "Connect TikTok", "TikTok", without=["video.upload"])
    assert "video.upload was not granted" in page.role("status")
    assert "Missing permissions" in owner.open(page.path).text


def test_a_consent_connects_the_account_after_a_sign_out(rt, owner, browser):
    page = owner.press("Connect X", on="/profiles")
    url = page.links()["Continue to X"]
    owner.cookies.clear()
    back = urlsplit(browser.decides(url))
    page = owner.open(f"{back.path}?{back.query}")
    assert page.heading == "@demo on X is connected"
    (row,) = profile_rows.list_all(rt.db)
    assert page.links()["Continue to the profile"] == f"http://127.0.0.1:8000/profiles/{row.id}"


ELSEWHERE = "http://127.0.0.1:9000/oauth/x/callback"


@pytest.fixture
def elsewhere(rt: Runtime) -> None:
    """The redirect address of X is on another host."""
    rt.settings.providers.x.__dict__["redirect_url"] = ELSEWHERE


def test_an_address_on_another_host_can_be_pasted(rt, owner, browser, elsewhere):
    page = owner.press("Connect X", on="/profiles")
    assert [one for one in page.root.all("meta") if one.attributes.get("http-equiv") == "refresh"] == []
    (link,) = [one for one in page.root.all("a") if one.text == "Continue to X"]
    assert link.attributes["target"] == "_blank", "the field stays open beside it"
    assert ELSEWHERE in page.text
    page = owner.press("Connect", {"Redirected address": browser.decides(link.attributes["href"])})
    (row,) = profile_rows.list_all(rt.db)
    assert page.path == f"/profiles/{row.id}"
    assert page.role("status") == "@demo on X is connected."


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("http://evil.example/oauth/x/callback?state={state}&code={code}", "not the redirect address of this attempt"),
        (ELSEWHERE + "?state=another&code={code}", "To start again, press “Connect X” under Profiles."),
    ],
)
def test_an_address_of_another_host_path_or_attempt_connects_nothing(rt, owner, browser, elsewhere, wrong, said):
    url = owner.press("Connect X", on="/profiles").links()["Continue to X"]
    back = browser.decides(url)
    query = query_of(back)
    page = owner.press("Connect", {"Redirected address": wrong.format(**query)})
    assert page.status == 400
    assert page.role("alert")
    assert said in page.role("alert")
    assert "socialpub admin" not in page.text
    assert query["code"] not in page.html
    assert profile_rows.list_all(rt.db) == []
    page = owner.press("Connect", {"Redirected address": back})
    assert page.role("status") == "@demo on X is connected.", "nothing was used up"


def test_the_profiles_link_to_the_field_for_the_redirected_address(owner, browser, clock):
    back = browser.decides(owner.press("Connect X", on="/profiles").links()["Continue to X"])
    owner.open("/profiles")
    page = owner.follow("Paste the redirected address of X")
    assert page.heading == "Waiting for X"
    page = owner.press("Connect", {"Redirected address": back})
    assert page.role("status") == "@demo on X is connected."
    assert "Paste the redirected address" not in owner.open("/profiles").text
    owner.press("Connect X")
    clock.forward(601)
    assert "Paste the redirected address" not in owner.open("/profiles").text, "it is too late for this attempt"


def test_a_waiting_page_continues_when_another_tab_finishes(owner, browser, elsewhere):
    page = owner.press("Connect X", on="/profiles")
    (poll,) = [one.attributes["hx-get"] for one in page.root.all() if "hx-get" in one.attributes]
    address = urljoin(page.url, poll)
    assert "hx-redirect" not in owner.ask("GET", address, headers={"hx-request": "true"}).headers
    back = urlsplit(browser.decides(page.links()["Continue to X"]))
    owner.open(f"/oauth/x/callback?{back.query}")
    assert owner.ask("GET", address, headers={"hx-request": "true"}).headers["hx-redirect"]
    page = owner.open(address)
    assert page.heading == "Demo"
    assert page.role("status") == "@demo on X is connected."


def test_an_attempt_of_a_command_has_no_dashboard_page(rt, owner):
    begun, _ = consents.begin(rt, "x")
    assert owner.open(f"/profiles/connecting/{begun.id}").status == 404
    assert "waits for your consent" not in owner.open("/profiles").text


def test_reconnecting_an_account_publishes_its_waiting_posts(rt, world, owner, browser, clock, x):
    post = accept(rt, x, body="It waited")
    world.x.remove_access("demo")
    drain(rt)
    assert state_of(rt, post) is State.QUEUED
    page = owner.open("/profiles")
    assert "Press “Reconnect”" in page.text
    page = owner.follow("x profile")
    assert "refused by X. Nothing is sent until you reconnect the account" in page.text
    assert "1 post waits until you reconnect the account" in page.text
    assert "It waited" in page.text
    assert not page.has_button("Refresh")
    page = through_consent(owner, browser, "Reconnect", "X", f"/profiles/{x}")
    assert page.role("status") == "@demo on X has new tokens, and its waiting posts continue."
    drain(rt, clock)
    assert [one.text for one in world.x.posts] == ["It waited"]
    assert "No posts wait for this profile" in owner.open(page.path).text


def test_refresh_renews_the_tokens_and_a_refusal_shows_what_to_do(rt, world, owner, clock, tiktok):
    clock.forward(3600)
    page = owner.press("Refresh", on=f"/profiles/{tiktok}")
    assert page.role("status") == "“tiktok profile” has a new access token."
    assert profiles.get(rt.db, tiktok).renewed_at == rt.stamp()
    world.tiktok.remove_access("demo")
    page = owner.press("Refresh")
    assert page.status == 409
    assert "cannot be renewed" in page.role("alert")
    assert "press “Reconnect”" in page.role("alert")
    assert profiles.get(rt.db, tiktok).status == ProfileStatus.REAUTH_REQUIRED


def test_refresh_fetches_the_account_data_and_shows_the_changes(world, owner, x):
    page = owner.open(f"/profiles/{x}")
    assert "Longest text 280 characters" in page.text
    world.x.change_account("demo", handle="renamed", subscription_type="Premium")
    page = owner.press("Refresh")
    assert page.role("status").startswith("“x profile” has a new access token. The handle is now @renamed.")
    assert "Longest text: 25,000 characters (before: 280 characters)." in page.role("status")
    assert "X · @renamed" in page.text
    assert "Longest text 25,000 characters" in page.text


def test_a_label_can_be_changed_and_is_shown_as_text(rt, owner, x):
    accept(rt, x, body=HTML)
    page = owner.press("Rename", {"Name": HTML}, on=f"/profiles/{x}")
    assert page.role("status") == f"The profile is now called “{HTML}”."
    assert page.heading == HTML
    for path in ("/profiles", f"/profiles/{x}", f"/profiles/{x}/disconnect"):
        assert "<img src=x" not in owner.open(path).html
    assert profiles.get(rt.db, x).name == HTML


@pytest.mark.parametrize(
    ("button", "label", "given", "said", "kept"),
    [
        ("Rename", "Name", "n" * 201, "at most 200 characters", "n" * 201),
        ("Save options", "Link", "seven", "Link must be a complete http or https URL", "seven"),
        ("Create board", "Board name", "n" * 181, "at most 180 characters", ""),
    ],
)
def test_invalid_values_are_refused_at_their_fields(
    rt,
    world,
    owner,
    pins,
    button,
    label,
    given,
    said,
    kept,
):
    page = owner.press(button, {label: given}, on=f"/profiles/{pins}")
    assert (page.status, page.field(label).attributes["value"]) == (400, kept)
    assert said in page.text
    stored = profiles.get(rt.db, pins)
    assert (stored.name, stored.options) == ("pinterest profile", {})
    assert world.pinterest.statuses("create_board") == []


def test_default_options_can_be_set_and_removed(rt, owner, x):
    page = owner.press("Save options", {"Who may reply": "following", "Made with AI": "true"}, on=f"/profiles/{x}")
    assert "are saved" in page.role("status")
    assert profiles.get(rt.db, x).options == {"replySettings": "following", "madeWithAi": True}
    owner.press("Save options", {"Who may reply": ""})
    assert profiles.get(rt.db, x).options == {"madeWithAi": True}


def test_boards_and_sections_are_those_of_the_account(rt, world, owner, pins):
    sectioned = next(one for one in world.pinterest.boards_of("demo") if one.sections)
    owner.open(f"/profiles/{pins}")
    board = owner.page.field("Board")
    assert sectioned.name in [one.text for one in board.all("option")]
    page = owner.press("Save options", {"Board": sectioned.id})
    section_id, section_name = next(iter(sectioned.sections.items()))
    offered = {one.text: one.attributes["value"] for one in page.field("Section").all("option")}
    page = owner.press("Save options", {"Section": offered[f"{sectioned.name}: {section_name}"]})
    assert profiles.get(rt.db, pins).options == {"boardId": sectioned.id, "boardSectionId": section_id}
    composed = owner.open("/compose").field("Board").all("option")[0].text
    assert composed == f"Profile default: {sectioned.name}"
    page = owner.open(f"/profiles/{pins}")
    (chosen,) = [one for one in page.field("Section").all("option") if "selected" in one.attributes]
    assert chosen.text == f"{sectioned.name}: {section_name}"


def test_an_unavailable_network_leaves_a_field_for_the_id(rt, world, owner, pins):
    world.pinterest.next("list_boards").times_out_before_effect()
    page = owner.open(f"/profiles/{pins}")
    assert "The boards could not be listed." in page.text
    assert page.field("Board").tag == "input"
    refused = owner.press("Save options", {"Board": "Recipes"})
    assert (refused.status, "socialpub admin" in page.text + refused.text) == (400, False)
    owner.press("Save options", {"Board": "123456"})
    assert profiles.get(rt.db, pins).options == {"boardId": "123456"}


def test_tiktok_choices_are_current_choices_of_the_account(rt, world, owner, clock):
    world.tiktok.add_account("quiet", "Quiet Owner", private=True, comment_disabled=True)
    profile = connect_tiktok(rt, world, "quiet")
    page = owner.open(f"/profiles/{profile}")
    assert "“Quiet Owner”" in page.text
    offered = [one.attributes["value"] for one in page.field("Who can see it").all("option")]
    assert offered == ["", "FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"], "none of them is chosen"
    assert "disabled" in page.field("Comments").attributes
    owner.press("Save options", {"Who can see it": "SELF_ONLY"})
    assert profiles.get(rt.db, profile).options == {"privacyLevel": "SELF_ONLY"}
    world.tiktok.existing_account("quiet").banned = True
    clock.forward(61)
    assert "TikTok has banned this account from posting" in owner.open(f"/profiles/{profile}").text


def test_defaults_offer_no_options_of_a_single_post(rt, world, owner):
    x, tiktok, pins = connect_x(rt, world), connect_tiktok(rt, world), connect_pinterest(rt, world)
    labels = {one.text for one in owner.open(f"/profiles/{x}").root.all("label")}
    assert "Who may reply" in labels
    assert not labels & {"In reply to (post id on X)", "Reply to your post (id in socialpub)", "Quote (post id)"}
    labels = {one.text for one in owner.open(f"/profiles/{tiktok}").root.all("label")}
    assert "Comments" in labels
    assert not labels & {"Title", "Cover frame (milliseconds)", "Cover photo (first is 0)"}
    labels = {one.text for one in owner.open(f"/profiles/{pins}").root.all("label")}
    assert "Link" in labels
    assert not labels & {"Title", "Cover image", "Cover frame (seconds)", "Dominant color"}


def test_interactions_are_shown_without_double_negation(rt, owner, tiktok):
    choices = [one.text for one in owner.open(f"/profiles/{tiktok}").field("Comments").all("option")]
    assert choices == ["Default: not allowed", "Allowed", "Not allowed"]
    owner.press("Save options", {"Comments": "false", "Duets": "true"})
    assert profiles.get(rt.db, tiktok).options == {"disableComment": False, "disableDuet": True}
    post = accept(rt, tiktok, body="Hello", options={"tiktok": {"privacyLevel": "SELF_ONLY"}})
    page = owner.open(f"/posts/{post}")
    assert "Comments allowed Duets not allowed" in page.text
    assert "Comments off" not in page.text


def test_a_refresh_of_the_queue_does_not_ask_the_network(rt, owner, transport, clock, tiktok):
    accept(rt, tiktok, body="Tomorrow", at=clock.now() + timedelta(days=1))
    assert "hx-get" not in owner.open(f"/profiles/{tiktok}").html, "nothing is under way"
    accept(rt, tiktok, body="Now")
    queue = owner.open(f"/profiles/{tiktok}").by_id("queue")
    assert queue.attributes["hx-trigger"] == "every 5s"
    clock.forward(61)
    transport.called.clear()
    assert owner.ask("GET", queue.attributes["hx-get"], headers={"hx-request": "true"}).status == 200
    assert transport.called == []


def test_disconnect_shows_the_consequences_and_asks_first(rt, owner, clock, x):
    post = accept(rt, x, body="Tomorrow", at=clock.now() + timedelta(days=1))
    owner.open(f"/profiles/{x}")
    page = owner.follow("Disconnect")
    assert "1 post waits for this profile and will not be published to it" in page.text
    assert "This cannot be undone" in page.text
    assert "Tomorrow" in page.text
    assert profiles.get(rt.db, x).status == ProfileStatus.ACTIVE
    page = owner.press("Disconnect")
    assert "is disconnected. Its tokens are no longer used" in page.role("status")
    assert not page.has_button("Reconnect")
    assert profiles.get(rt.db, x).status == ProfileStatus.DISCONNECTED
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    assert owner.open(f"/profiles/{x}/disconnect").path == f"/profiles/{x}"
    assert "x profile" in owner.open("/profiles").text


def test_a_tiktok_profile_shows_the_limits_of_an_unaudited_app(rt, world, owner, tiktok):
    page = owner.open(f"/profiles/{tiktok}")
    assert "A direct post must be “Only me” (SELF_ONLY)" in page.text
    default = page.field("How to post").all("option")[0].text
    assert default == "Default: Send to the TikTok app in Compose, publish directly through the API"
    assert "accounts that you or your team manage" in page.text
    rt.settings.providers.tiktok.__dict__["audited"] = True
    assert "SELF_ONLY" not in owner.open(f"/profiles/{tiktok}").text
    assert "What X allows your app" not in owner.open(f"/profiles/{connect_x(rt, world)}").text


def test_the_health_of_tokens_is_shown(rt, owner, x):
    tokens.renew(rt, x)
    page = owner.open(f"/profiles/{x}")
    assert "expires 12 Oct 2026, 11:00 UTC in 2 hours" in page.text
    assert "automatic, X does not report an expiry" in page.text


def test_avatars_come_from_this_host_and_initials_replace_missing_ones(rt, owner, browser):
    page = through_consent(owner, browser, "Connect Pinterest", "Pinterest")
    assert page.root.all("img") == []
    profile_id = str(avatars.fetch_next(rt))
    (picture,) = owner.open("/profiles").root.all("img")
    assert picture.attributes["alt"] == ""
    shown = owner.ask("GET", picture.attributes["src"])
    assert shown.headers["content-type"] == "image/jpeg"
    assert shown.body == avatars.load(rt, profile_id)
    assert shown.headers["cache-control"].startswith("private")


def test_a_board_is_created_and_can_be_chosen_at_once(rt, world, owner, pins):
    world.pinterest.board_lag_seconds = 30
    page = owner.press("Create board", {"Board name": "Winter prints"}, on=f"/profiles/{pins}")
    assert page.role("status") == "The board “Winter prints” is created."
    created = world.pinterest.boards_of("demo")[-1]
    assert (created.name, created.privacy) == ("Winter prints", "PUBLIC")
    page = owner.press("Save options", {"Board": created.id})
    assert "are saved" in page.role("status")
    assert "Winter prints" in owner.open("/compose").text
    (entry,) = [one for one in audit_log.load_page(rt.db, ("profile",)).entries if "board" in one.action]
    assert (
        audit_text.describe(entry) == "Created the board “Winter prints” of the Pinterest profile “pinterest profile”."
    )


def test_a_section_is_created_on_the_board_that_is_chosen(world, owner, pins):
    board = world.pinterest.boards_of("demo")[0]
    page = owner.press("Create section", {"In the board": board.id, "Section name": "Blue"}, on=f"/profiles/{pins}")
    assert page.role("status") == "The section “Blue” is created."
    page = owner.press("Create section", {"In the board": board.id, "Section name": "blue"})
    assert page.role("status") == "The section “Blue” already exists."
    assert list(board.sections.values()).count("Blue") == 1


def test_an_account_without_boards_shows_the_form_for_one(rt, world, owner):
    world.pinterest.boards.clear()
    page = owner.open(f"/profiles/{connect_pinterest(rt, world)}")
    assert "To create a board, press “Create board” on the profile's page." in page.text
    assert page.has_button("Create board")
    assert not page.has_button("Create section")
    assert not owner.open(f"/profiles/{connect_x(rt, world)}").has_button("Create board")


def test_the_page_shows_the_redirect_rule_of_the_network_first(rt, owner):
    for key in ("api_url", "authorize_url"):
        rt.settings.providers.tiktok.__dict__[key] = TikTokSection.model_fields[key].default
    rt.settings.__dict__["base_url"] = "http://box.lan"
    page = owner.press("Connect TikTok", on="/profiles")
    assert "TikTok does not accept the redirect address http://box.lan/oauth/tiktok/callback" in page.text
    assert [one for one in page.root.all("meta") if one.attributes.get("http-equiv") == "refresh"] == []
