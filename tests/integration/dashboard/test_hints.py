"""Pages name a button instead of a command."""

from socialpub.accounts import api_keys
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
