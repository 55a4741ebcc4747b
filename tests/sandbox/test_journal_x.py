"""The journal: effects survive the sandbox."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World, create_app
from tests.sandbox.x_caller import Caller
from tests.support.hand_clock import HandClock

Life = Callable[[], World]


@pytest.fixture
def life(tmp_path: Path, clock: HandClock) -> Iterator[Life]:
    """Starts the sandbox anew over the same journal."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(World(clock, journal=tmp_path / "journal.jsonl")))


def test_posts_accounts_and_tokens_survive_a_restart(life: Life, tmp_path: Path) -> None:
    before = life()
    with TestClient(create_app(before)) as web:
        caller = Caller(web, before, "newcomer")
        kept = caller.post("kept", media={"media_ids": [caller.upload()]}).json()["data"]["id"]
        gone = caller.post("gone").json()["data"]["id"]
        caller.call("DELETE", f"/2/tweets/{gone}")
        form = {"grant_type": "refresh_token", "refresh_token": caller.refresh_token}
        pair = web.post("/x/2/oauth2/token", data=form, auth=("app", "secret")).json()
    # The world is not closed: it was killed, in the middle of a line.
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"network":"x","kind":"po')

    after = life()
    assert [post.text for post in after.x.posts] == ["kept", "gone"]
    assert after.x.posts[0].media[0].sha256 == before.x.posts[0].media[0].sha256
    assert after.x.find_post(gone) is None
    assert after.x.posts[0].in_reply_to is None
    with TestClient(create_app(after)) as web:
        header = {"authorization": f"Bearer {pair['access_token']}"}
        made = web.post("/x/2/tweets", json={"text": "after"}, headers=header).json()["data"]["id"]
        assert web.post("/x/2/tweets", json={"text": "kept"}, headers=header).status_code == 403, "still a duplicate"
        old = web.post("/x/2/oauth2/token", data=form, auth=("app", "secret"))
        assert old.status_code == 400, "a spent token stays spent"
        assert "no longer kept" in web.get("/x/feed").text
    assert int(made) > int(gone) > int(kept)
    assert [post.text for post in life().x.posts] == ["kept", "gone", "after"]


def test_accounts_of_the_other_networks_survive_too(life: Life) -> None:
    before = life()
    tiktok, pinterest = before.tiktok.grant("neu"), before.pinterest.grant("neu")
    after = life()
    for book, granted in ((after.tiktok.tokens, tiktok), (after.pinterest.tokens, pinterest)):
        assert book.bearer(granted["accessToken"]) is not None
    assert after.tiktok.account_named("neu") == before.tiktok.account_named("neu")
    assert after.pinterest.account_named("neu") == before.pinterest.account_named("neu")


def test_reset_empties_the_journal(life: Life) -> None:
    world = life()
    world.x.grant("newcomer")
    world.reset()
    assert life().x.account_named("newcomer") is None
