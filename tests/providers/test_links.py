"""The address of a published post shows the post, also in the sandbox."""

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import create_app
from tests.providers.grid import BODY, Environment, begin
from tests.providers.networks import STORIES, story_of
from tests.support.drain import drain
from tests.support.sandbox_http import HOST
from tests.support.select import select_one


@pytest.mark.parametrize(("network", "story"), STORIES)
def test_the_address_of_a_post_shows_it(env: Environment, network: str, story: str) -> None:
    played, chosen = story_of(network, story)
    begin(env, played, chosen, played.connect(env.rt, env.world))
    drain(env.rt, env.clock)
    row = select_one(env.rt.db, "SELECT url FROM delivery")
    assert row is not None
    if row["url"] is None:
        assert network == "tiktok", "only what TikTok shows to its owner alone has no address"
        return
    assert row["url"].startswith(f"{HOST}/{network}/")
    page = TestClient(create_app(env.world), base_url=HOST).get(row["url"])
    assert page.status_code == 200
    assert BODY in page.text
