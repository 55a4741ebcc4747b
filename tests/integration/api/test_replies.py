"""`providerOptions.x.replyToPostId` is checked when a post is accepted, checked or changed (contract 10.7.3)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.core.clock import new_id, stamp
from socialpub.db.states import State
from socialpub.runtime import Runtime
from socialpub.web.http.app import App
from tests.integration.api.client import Client
from tests.support.appliance import accept, add_profile, end_deliveries

FIELD = ["providerOptions", "x", "replyToPostId"]


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return sandbox_options


@pytest.fixture
def limited(rt: Runtime, app: App, profile: str) -> Iterator[Client]:
    with Client(app, rt.write(api_keys.create, "limited", profiles=[profile])) as client:
        yield client


def post_to(*profiles: str, at: str | None = None, **options: Any) -> dict[str, Any]:
    post = {"body": "Two", **({"scheduledAt": at} if at else {})}
    return {"post": post, "profiles": list(profiles), "providerOptions": {"x": options}}


def refused(client: Client, body: dict[str, Any], path: str = "/posts", method: str = "POST") -> str:
    """Return the message at the field of the option."""
    reply = client.send(method, path, body)
    assert reply.status == 400, reply.body
    (error,) = reply.json()["errors"]
    assert error["path"] == FIELD
    return str(error["message"])


def test_a_reply_says_which_post_it_waits_for(client, rt, profile):
    first = accept(rt, profile)
    for key in ("replyToPostId", "reply_to_post_id"):
        reply = client.send("POST", "/posts", post_to(profile, **{key: first}))
        assert reply.status == 201
        (attempt,) = client.send("GET", f"/posts/{reply.data['id']}/attempts").json()["data"]
        assert (attempt["outcome"], first in attempt["message"]) == ("held", True)
        assert reply.data["deliveries"][0]["providerOptions"] == {key: first}


@pytest.mark.parametrize("path", ["/posts", "/posts?strict=true", "/posts/validate"])
def test_a_wrong_post_is_refused_at_the_option(client, rt, profile, path):
    elsewhere = accept(rt, add_profile(rt, account_id="other"))
    first = accept(rt, profile)
    for wrong in (new_id(rt.now()), "17", 17, "", ["a"], {}):
        assert "id of a post" in refused(client, post_to(profile, replyToPostId=wrong), path)
    assert "no delivery to the profile" in refused(client, post_to(profile, replyToPostId=elsewhere), path)
    both = post_to(profile, replyToPostId=first, in_reply_to_tweet_id="12")
    assert "in_reply_to_tweet_id" in refused(client, both, path)
    assert len(client.send("GET", "/posts").json()["data"]) == 2, "nothing was accepted"


def test_a_mistake_in_another_field_hides_no_wrong_post(client, rt, profile):
    body = post_to(profile, replyToPostId=new_id(rt.now()))
    reply = client.send("POST", "/posts", {**body, "post": {"body": 5}})
    assert [error["path"] for error in reply.json()["errors"]] == [["post", "body"], FIELD]


def test_a_check_says_what_the_reply_waits_for(client, rt, profile):
    first = accept(rt, profile)
    checked = client.send("POST", "/posts/validate", post_to(profile, replyToPostId=first)).data["deliveries"][0]
    assert (checked["problems"], checked["notes"]) == ([], [f"This reply waits until the post {first} is published."])
    end_deliveries(rt, first, State.FAILED)
    checked = client.send("POST", "/posts/validate", post_to(profile, replyToPostId=first)).data["deliveries"][0]
    assert "This reply fails unless a retry replaces that post." in checked["notes"][0]


def test_each_of_several_profiles_needs_its_own_delivery(client, rt, profile):
    other = add_profile(rt, account_id="other", name="Second")
    first = accept(rt, profile)
    assert "“Second”" in refused(client, post_to(profile, other, replyToPostId=first))
    assert (
        client.send("POST", "/posts", post_to(profile, other, replyToPostId=accept(rt, profile, other))).status == 201
    )


def test_a_post_beyond_the_scope_of_the_key_is_as_unknown_as_any(limited, rt, profile):
    shared = accept(rt, profile, add_profile(rt, account_id="other"))
    hidden = refused(limited, post_to(profile, replyToPostId=shared))
    assert hidden == refused(limited, post_to(profile, replyToPostId=new_id(rt.now())))
    assert limited.send("POST", "/posts", post_to(profile, replyToPostId=accept(rt, profile))).status == 201


def test_a_change_follows_the_same_rules(limited, rt, profile):
    shared = accept(rt, profile, add_profile(rt, account_id="other"))
    first = accept(rt, profile)
    at = stamp(rt.now() + timedelta(hours=1))
    reply = limited.send("POST", "/posts", post_to(profile, at=at, replyToPostId=first)).data["id"]
    for wrong in (shared, new_id(rt.now()), reply):
        body = {"providerOptions": {"x": {"replyToPostId": wrong}}}
        assert refused(limited, body, f"/posts/{reply}", "PATCH")
    changed = limited.send("PATCH", f"/posts/{reply}", {"post": {"body": "Three"}})
    assert changed.data["deliveries"][0]["providerOptions"] == {"replyToPostId": first}


def test_a_retry_needs_no_scope_over_the_post_that_it_answers(limited, rt, profile):
    shared = accept(rt, profile, add_profile(rt, account_id="other"))
    reply = accept(rt, profile, options={"x": {"replyToPostId": shared}})
    end_deliveries(rt, reply, State.FAILED)
    assert limited.send("POST", f"/posts/{reply}/retry").status == 201
