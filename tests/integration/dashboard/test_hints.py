"""Pages name a button instead of a command."""

from socialpub.accounts import api_keys
from socialpub.db.tables import profile_rows
from tests.integration.api.client import Client
from tests.support.appliance import accept
from tests.support.drain import drain

COMMAND = "socialpub admin"


def test_an_api_problem_names_the_command(app, rt, world, x):
    with Client(app, rt.write(api_keys.create, "test")) as client:
        body = {"post": {"body": "a" * 300}, "profiles": [x]}
        (checked,) = client.send("POST", "/posts/validate", body).data["deliveries"]
    said = checked["problems"][0]["message"]
    assert "“Refresh” on the profile's page, or run `socialpub admin refresh-profile" in said
    assert f"refresh-profile {x}`" in said, "a line to type, without a placeholder"


def test_a_post_that_failed_for_its_length_names_the_refresh_button_on_every_page(owner, rt, clock, x):
    post = accept(rt, x, body="a" * 300)
    drain(rt, clock)
    for path in ("/", f"/posts/{post}", "/log", f"/compose?again={post}"):
        page = owner.open(path)
        assert "press “Refresh” on the profile's page" in page.text, path
        assert COMMAND not in page.text, path
        assert "`" not in page.text, path


def test_a_post_that_waits_for_its_account_names_the_button(owner, rt, clock, x):
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, x, "X has ended the grant."))
    post = accept(rt, x)
    drain(rt, clock, within=60)
    page = owner.open(f"/posts/{post}")
    assert page.text.count("X has ended the grant. Press “Reconnect” under Profiles") == 2, "what it waits for, and why"
    assert COMMAND not in page.text + owner.open("/").text
