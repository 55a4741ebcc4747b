"""Pages name a button instead of a command."""

from socialpub.accounts import api_keys
from socialpub.db.tables import profile_rows
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from socialpub.web.http.app import App
from tests.integration.api.client import Client
from tests.support.appliance import accept, attempts_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import connect_pinterest
from tests.support.tab import Tab

COMMAND = "socialpub admin"


def test_a_text_that_is_too_long_names_the_refresh_button(owner: Tab, x: str) -> None:
    page = owner.press("Check", {"Text": "a" * 300}, on="/compose")
    assert "press “Refresh” on the profile's page." in page.role("alert")
    assert COMMAND not in page.text


def test_an_api_problem_names_the_command(app: App, rt: Runtime, world: World, x: str) -> None:
    with Client(app, rt.write(api_keys.create, "test")) as client:
        body = {"post": {"body": "a" * 300}, "profiles": [x]}
        (checked,) = client.send("POST", "/posts/validate", body).data["deliveries"]
    said = checked["problems"][0]["message"]
    assert "“Refresh” on the profile's page, or run `socialpub admin refresh-profile" in said
    assert f"refresh-profile {x}`" in said, "a line to type, without a placeholder"


def test_a_post_that_failed_for_its_length_names_the_refresh_button_on_every_page(
    owner: Tab, rt: Runtime, clock: HandClock, x: str
) -> None:
    post = accept(rt, x, body="a" * 300)
    drain(rt, clock)
    for path in ("/", f"/posts/{post}", "/log", f"/compose?again={post}"):
        page = owner.open(path)
        assert "press “Refresh” on the profile's page" in page.text, path
        assert COMMAND not in page.text, path
        assert "`" not in page.text, path


def test_a_pin_without_a_board_names_the_form_s_field(owner: Tab, rt: Runtime, world: World, clock: HandClock) -> None:
    post = accept(rt, connect_pinterest(rt, world), body="Soup")
    drain(rt, clock)
    page = owner.open(f"/posts/{post}")
    assert "A pin needs a board. Choose a board in the options of the post or of the profile" in page.text
    assert COMMAND not in page.text
    assert "boardId is needed" not in page.text


def test_a_post_that_waits_for_its_account_names_the_button(owner: Tab, rt: Runtime, clock: HandClock, x: str) -> None:
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, x, "X has ended the grant."))
    post = accept(rt, x)
    drain(rt, clock, within=60)
    assert attempts_of(rt, post)[-1][1] == "held"
    page = owner.open(f"/posts/{post}")
    assert page.text.count("X has ended the grant. Press “Reconnect” under Profiles") == 2, "what it waits for, and why"
    assert COMMAND not in page.text
    assert COMMAND not in owner.open("/").text
